//! Watching processes for tables: whatever the number of tables, the VM is asked once to tell of
//! the end of a process.
//!
//! To monitor a process costs the VM some hundred bytes, and signals to the process which it has to
//! handle. A process that makes and deletes a table for each request would do little else. So there
//! is one resource for each process that a table has to do with, its *watch*, which knows these
//! tables. It stays until the process ends, also when it has no tables left.
//!
//! # Invariants
//! - WATCH-1. A watch in the map is one that the VM tells of the end of its process, until it has
//!   done so.
//! - WATCH-2. A table is in the set of a watch from the moment it is told that the process is
//!   watched (or before it exists, if its owner makes it and cannot end meanwhile) until it is
//!   deleted, or the set is taken by the end of the process. Both take the lock of the set, so each
//!   table is told of the end, or was deleted before, or finds that the process is gone when it
//!   asks.
//! - WATCH-3. Locks are taken in this order: that of a table, that of a part of the map, that of a
//!   set.

use crate::env::{Env, VmWord};
use crate::resource::{Resource, ResourceRef, Slot};
use crate::sys::Word;
use ats_sync::CachePadded;
use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Identifiers of tables that are told of the end of processes.
pub trait Watching: Resource {
    /// Name of the type of their watches.
    const WATCH_NAME: &'static CStr;

    /// The slot of this type.
    fn watch_slot() -> &'static Slot;

    /// The watches of all processes.
    fn watches() -> &'static Watches<Self>;

    /// A process is gone with which these have to do. Runs while that process exits and cannot be
    /// interrupted.
    fn process_ended(env: Env<'_>, pid: Word, tables: Vec<ResourceRef<Self>>);
}

/// A process, as far as tables have to do with it.
pub struct Watch<T: Watching> {
    pid: Word,
    /// None when the process is gone.
    tables: Mutex<Option<Tables<T>>>,
}

type Tables<T> = HashSet<Table<T>, BuildHasherDefault<Spread>>;

/// A table in a set: by its address.
#[repr(transparent)]
struct Table<T: Watching>(ResourceRef<T>);

impl<T: Watching> Table<T> {
    /// A reference to a table as one in a set; without a count of its own.
    fn of(table: &ResourceRef<T>) -> &Self {
        // SAFETY: the type is transparent, so the two have one layout.
        unsafe { &*std::ptr::from_ref(table).cast::<Self>() }
    }
}

impl<T: Watching> PartialEq for Table<T> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(&*self.0, &*other.0)
    }
}

impl<T: Watching> Eq for Table<T> {}

impl<T: Watching> Hash for Table<T> {
    fn hash<S: Hasher>(&self, state: &mut S) {
        state.write_usize(std::ptr::from_ref(&*self.0).addr());
    }
}

/// A hash of one word that spreads addresses and pids, which no program chooses.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes
            .iter()
            .for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// The parts of the map, each with a lock of its own.
const PARTS: usize = 64;

type Part<T> = HashMap<Word, ResourceRef<Watch<T>>, BuildHasherDefault<Spread>>;

/// The watches of all processes.
pub struct Watches<T: Watching>([CachePadded<Mutex<Part<T>>>; PARTS]);

impl<T: Watching> Default for Watches<T> {
    fn default() -> Self {
        Watches(std::array::from_fn(|_| CachePadded(Mutex::default())))
    }
}

fn part<T: Watching>(pid: Word) -> MutexGuard<'static, Part<T>> {
    let mut hash = Spread::default();
    hash.write_u64(pid);
    // The map uses the low bits and the highest.
    let part = &T::watches().0[(hash.finish() >> 20) as usize % PARTS];
    // Maps are valid at every moment, so a panic elsewhere does not spoil them.
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The watch of a local process; none if the process is gone.
fn of_process<T: Watching>(env: Env<'_>, pid: Word) -> Option<ResourceRef<Watch<T>>> {
    let mut part = part(pid);
    if let Some(watch) = part.get(&pid) {
        return Some(watch.clone());
    }
    let watch = ResourceRef::new(Watch {
        pid,
        tables: Mutex::new(Some(Tables::default())),
    });
    // SAFETY: the word is that of a local pid, which is an immediate and so a term in every
    // environment (ENV-2).
    let process = unsafe { VmWord::new(pid) };
    // If the process ends now, it waits for the lock that we hold before it looks for the watch
    // (WATCH-1).
    watch.monitor(env, process).then(|| {
        part.insert(pid, watch.clone());
        watch
    })
}

/// Has a table told of the end of a local process; none if that is gone already.
fn watch<T: Watching>(
    env: Env<'_>,
    pid: Word,
    table: &ResourceRef<T>,
) -> Option<ResourceRef<Watch<T>>> {
    let watch = of_process(env, pid)?;
    watch.tables().as_mut()?.insert(Table(table.clone()));
    Some(watch)
}

/// The watches that have a table in their sets. Mostly one, which needs no memory elsewhere.
pub(crate) struct Watched<T: Watching> {
    first: Option<ResourceRef<Watch<T>>>,
    more: Vec<ResourceRef<Watch<T>>>,
}

impl<T: Watching> Default for Watched<T> {
    fn default() -> Self {
        Watched {
            first: None,
            more: Vec::new(),
        }
    }
}

impl<T: Watching> Watched<T> {
    fn iter(&self) -> impl Iterator<Item = &ResourceRef<Watch<T>>> {
        self.first.iter().chain(&self.more)
    }

    /// Has a table told of the end of a local process. False if that is gone already.
    pub(crate) fn watch(&mut self, env: Env<'_>, pid: Word, table: &ResourceRef<T>) -> bool {
        if self.iter().any(|watch| watch.pid == pid) {
            return true;
        }
        let watch = watch(env, pid, table);
        let is_watched = watch.is_some();
        if self.first.is_none() {
            self.first = watch;
        } else {
            self.more.reserve_exact(1);
            self.more.extend(watch);
        }
        is_watched
    }

    /// A process is gone, and the table has been told.
    pub(crate) fn forget_process(&mut self, pid: Word) {
        self.first.take_if(|watch| watch.pid == pid);
        self.more.retain(|watch| watch.pid != pid);
    }

    /// The table need not be told of any process any more.
    pub(crate) fn forget_table(&self, table: &ResourceRef<T>) {
        self.iter().for_each(|watch| watch.forget(table));
    }
}

impl<T: Watching> Watch<T> {
    /// A table that is told of the end of the process need not be told any more.
    fn forget(&self, table: &ResourceRef<T>) {
        if let Some(tables) = self.tables().as_mut() {
            tables.remove(Table::of(table));
            shrink(tables);
        }
    }

    fn tables(&self) -> MutexGuard<'_, Option<Tables<T>>> {
        // A set is valid at every moment, so a panic elsewhere does not spoil it.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives back the memory of a set that was much larger.
pub(crate) fn shrink<T: Eq + Hash>(set: &mut HashSet<T, BuildHasherDefault<Spread>>) {
    const LARGE: usize = 1 << 10;
    if set.capacity() > LARGE && set.len() < set.capacity() / 8 {
        set.shrink_to(2 * set.len());
    }
}

impl<T: Watching> Resource for Watch<T> {
    const NAME: &'static CStr = T::WATCH_NAME;

    fn slot() -> &'static Slot {
        T::watch_slot()
    }

    fn down(&self, env: Env<'_>, pid: VmWord<'_>) {
        part::<T>(self.pid).remove(&self.pid);
        let tables = self.tables().take();
        let tables = tables.into_iter().flatten().map(|table| table.0);
        T::process_ended(env, pid.raw(), tables.collect());
    }
}
