//! The resources that a snapshot or a walk keeps from being freed.

use super::expiry::{Pin, nanos};
use crate::core::{Core, Version};
use crate::error::Error;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// The resources that a snapshot keeps.
pub(crate) struct Pinned {
    core: Arc<Core>,
    /// The sequence number of the last change that is seen. It is in the list of snapshots until
    /// this is dropped.
    seq: u64,
    /// Nothing once the snapshot has expired.
    version: Mutex<Option<Arc<Version>>>,
    /// `true` if it was read since [`expire`](Pin::expire) has looked last. So reading it asks for
    /// no time.
    read: AtomicBool,
    /// The time at which that was found last, or the snapshot was taken, in nanoseconds.
    last_read: AtomicU64,
    expired: AtomicBool,
    /// Number of its last use, from 1, if it is one of those whose number is limited.
    last_use: AtomicU64,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !*self.expired.get_mut() {
            self.core.snapshots.remove(self.seq);
        }
        *self.version.get_mut() = None;
        self.core.background.wake_if(|| self.core.obsolete.is_due());
    }
}

impl Pinned {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        let seq = core.snapshots.add();
        // After that: what is published is in this version or in one of its memtables.
        let version = core.versions.current_arc();
        let taken = nanos(core.file_system.now());
        Pinned {
            core,
            seq,
            version: Mutex::new(Some(version)),
            read: AtomicBool::new(false),
            last_read: AtomicU64::new(taken),
            expired: AtomicBool::new(false),
            last_use: AtomicU64::new(0),
        }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    pub(crate) fn version(&self) -> Result<Arc<Version>, Error> {
        self.note_read();
        if self.last_use.load(Ordering::Relaxed) > 0 {
            self.note_use();
        }
        self.version.lock().clone().ok_or(Error::Expired)
    }

    /// Makes it the one that was used last.
    pub(crate) fn note_use(&self) {
        let this = self.core.expiry.next_use();
        self.last_use.store(this, Ordering::Relaxed);
    }

    /// Enters it among those that are counted and can expire.
    pub(crate) fn watch(self: &Arc<Self>) {
        self.core.expiry.add(Arc::downgrade(self) as Weak<dyn Pin>);
        if self.core.options.snapshot_age.is_some() {
            self.core.background.watch_snapshots();
        }
    }

    fn note_read(&self) {
        if !self.read.load(Ordering::Relaxed) {
            self.read.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.note_read();
        match self.expired.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(Error::Expired),
        }
    }
}

impl Pin for Pinned {
    fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    fn last_use(&self) -> u64 {
        self.last_use.load(Ordering::Relaxed)
    }

    fn expire(&self, now: u64, age: u64) {
        if self.read.swap(false, Ordering::Relaxed) {
            self.last_read.store(now, Ordering::Relaxed);
            return;
        }
        if now.saturating_sub(self.last_read.load(Ordering::Relaxed)) > age {
            self.end();
        }
    }

    fn end(&self) {
        if !self.expired.swap(true, Ordering::Relaxed) {
            // Nothing is kept for it any more: a walk that is under way finds that out.
            self.core.snapshots.remove(self.seq);
            *self.version.lock() = None;
        }
    }
}
