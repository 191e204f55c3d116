//! Calls of a file system, their failures, and records of the moments before them.

use super::disk::Disk;
use std::sync::Arc;

pub(crate) const EINTR: i32 = 4;
pub(crate) const EIO: i32 = 5;
pub(crate) const EMFILE: i32 = 24;
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EROFS: i32 = 30;

/// A call of the file system. It is a bit, so that calls make sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Calls(u16);

impl Calls {
    pub(crate) const READ: Calls = Calls(1);
    pub(crate) const LEN: Calls = Calls(2);
    pub(crate) const LIST: Calls = Calls(4);
    pub(crate) const OPEN: Calls = Calls(8);
    pub(crate) const WRITE: Calls = Calls(16);
    pub(crate) const SET_LEN: Calls = Calls(32);
    pub(crate) const RESERVE: Calls = Calls(64);
    pub(crate) const SYNC: Calls = Calls(128);
    pub(crate) const CREATE: Calls = Calls(256);
    pub(crate) const RENAME: Calls = Calls(512);
    pub(crate) const REMOVE: Calls = Calls(1024);
    pub(crate) const SYNC_DIR: Calls = Calls(2048);
    pub(crate) const CREATE_DIR: Calls = Calls(4096);
    pub(crate) const LOCK: Calls = Calls(8192);
    pub(crate) const OPEN_DIR: Calls = Calls(16384);
    pub(crate) const ALL: Calls = Calls(u16::MAX);
    /// Calls that change nothing.
    pub(crate) const READING: Calls = Calls(1 | 2 | 4 | 8 | 8192 | 16384);
    pub(crate) const CHANGING: Calls = Calls(!Calls::READING.0);
    /// Calls that need a descriptor that is free.
    pub(crate) const OPENING: Calls = Calls(4 | 8 | 256 | 16384);
    pub(crate) const SYNCING: Calls = Calls(128 | 2048);

    pub(crate) fn has(self, call: Calls) -> bool {
        self.0 & call.0 != 0
    }
}

/// The way in which a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// The machine stops: this call and all later ones do nothing.
    Stop,
    /// The call fails with this error and does nothing.
    Nothing(i32),
    /// The call fails with this error; half the bytes of a write are done, or half the actions of a
    /// sync.
    Half(i32),
    /// The call fails with this error; a write or a sync is done nevertheless.
    All(i32),
}

/// A failure to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    /// The number of the call that fails, from 0.
    pub(crate) at: u64,
    /// The calls that are counted, and may fail.
    pub(crate) of: Calls,
    pub(crate) how: Break,
    /// `true` if those after it fail, too.
    pub(crate) forever: bool,
}

/// The knowledge about the writes when the machine stops: how many had been done by the last sync,
/// how many had returned, and how many had begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) synced: usize,
    pub(crate) returned: usize,
    pub(crate) begun: usize,
}

/// A moment before a call.
#[derive(Clone)]
pub(crate) struct Point {
    pub(crate) disk: Arc<Disk>,
    pub(crate) window: Window,
    /// The number of the call.
    pub(crate) call: u64,
    pub(crate) name: Calls,
}
