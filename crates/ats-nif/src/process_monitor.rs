//! Process monitors shared by tables: the VM monitors a process once, however many tables need it.
//!
//! A monitor costs the VM some hundred bytes, and signals that the process has to handle. A process
//! that makes and deletes a table for each request would do little else. So each process that
//! tables depend on has one resource, its *monitor*, which knows these tables. It stays until the
//! process exits, even when it has no tables left.
//!
//! # Invariants
//! - PROCESS_MONITOR-1. The VM will report the exit of the process of each monitor in the map,
//!   until it has done so.
//! - PROCESS_MONITOR-2. A table is in the set of a monitor from the moment it is told that the
//!   process is monitored (or before it exists, if its owner makes it and cannot exit meanwhile)
//!   until it is deleted, or the exit of the process takes the set. Both take the lock of the set,
//!   so each table is told of the exit, or was deleted before, or finds that the process is gone
//!   when it asks.
//! - PROCESS_MONITOR-3. Locks are taken in this order: a table, a part of the map, a set.

use crate::env::{Env, VmWord};
use crate::resource::{Resource, ResourceRef, Slot};
use crate::sys::Word;
use ats_sync::CachePadded;
use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A table identifier that wants to know of process exits.
pub trait ExitListener: Resource {
    /// Name of the type of their monitors.
    const MONITOR_NAME: &'static CStr;

    /// Returns the slot of this type.
    fn monitor_slot() -> &'static Slot;

    /// Returns the monitors of all processes.
    fn monitors() -> &'static ProcessMonitors<Self>;

    /// Handles the exit of a process that these tables depend on. Runs while the process exits and
    /// cannot be interrupted.
    fn on_process_end(env: Env<'_>, pid: Word, tables: Vec<ResourceRef<Self>>);
}

/// The monitor of one process.
pub struct ProcessMonitor<T: ExitListener> {
    pid: Word,
    /// Tables to be told; `None` once the process is gone.
    tables: Mutex<Option<Tables<T>>>,
}

type Tables<T> = HashSet<Table<T>, BuildHasherDefault<Spread>>;

/// A table in a set, compared by address.
#[repr(transparent)]
struct Table<T: ExitListener>(ResourceRef<T>);

impl<T: ExitListener> Table<T> {
    /// Borrows a reference as a table of a set, without a count of its own.
    fn of(table: &ResourceRef<T>) -> &Self {
        // SAFETY: the type is transparent, so both types have the same layout.
        unsafe { &*std::ptr::from_ref(table).cast::<Self>() }
    }
}

impl<T: ExitListener> PartialEq for Table<T> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(&raw const *self.0, &raw const *other.0)
    }
}

impl<T: ExitListener> Eq for Table<T> {}

impl<T: ExitListener> Hash for Table<T> {
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
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// Number of parts of the map, each with its own lock.
const PARTS: usize = 64;

type Part<T> = HashMap<Word, ResourceRef<ProcessMonitor<T>>, BuildHasherDefault<Spread>>;

/// The monitors of all processes.
pub struct ProcessMonitors<T: ExitListener>([CachePadded<Mutex<Part<T>>>; PARTS]);

impl<T: ExitListener> Default for ProcessMonitors<T> {
    fn default() -> Self {
        ProcessMonitors(std::array::from_fn(|_| CachePadded(Mutex::default())))
    }
}

fn lock_part<T: ExitListener>(pid: Word) -> MutexGuard<'static, Part<T>> {
    let mut hash = Spread::default();
    hash.write_u64(pid);
    // The hash map uses the low and the highest bits, so the part comes from those between.
    let part = &T::monitors().0[(hash.finish() >> 20) as usize % PARTS];
    // Maps are consistent at every moment, so a poisoned lock is harmless.
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the monitor of a local process; `None` if the process is gone.
fn get_or_create<T: ExitListener>(
    env: Env<'_>,
    pid: Word,
) -> Option<ResourceRef<ProcessMonitor<T>>> {
    let mut part = lock_part(pid);
    if let Some(monitor) = part.get(&pid) {
        return Some(monitor.clone());
    }
    let monitor = ResourceRef::new(ProcessMonitor {
        pid,
        tables: Mutex::new(Some(Tables::default())),
    });
    // SAFETY: the word is a local pid, which is an immediate and so a term in every
    // environment (ENV-2).
    let process = unsafe { VmWord::new(pid) };
    // A process that exits now waits for the lock that we hold before it looks for the monitor
    // (PROCESS_MONITOR-1).
    monitor.monitor(env, process).then(|| {
        part.insert(pid, monitor.clone());
        monitor
    })
}

/// Adds a table to those told of the exit of a local process; `None` if that is gone already.
fn add_table<T: ExitListener>(
    env: Env<'_>,
    pid: Word,
    table: &ResourceRef<T>,
) -> Option<ResourceRef<ProcessMonitor<T>>> {
    let monitor = get_or_create(env, pid)?;
    monitor.lock_tables().as_mut()?.insert(Table(table.clone()));
    Some(monitor)
}

/// Monitors that have a table in their sets. Mostly one, which needs no heap memory.
pub(crate) struct TableMonitors<T: ExitListener> {
    first: Option<ResourceRef<ProcessMonitor<T>>>,
    more: Vec<ResourceRef<ProcessMonitor<T>>>,
}

impl<T: ExitListener> Default for TableMonitors<T> {
    fn default() -> Self {
        TableMonitors {
            first: None,
            more: Vec::new(),
        }
    }
}

impl<T: ExitListener> TableMonitors<T> {
    fn iter(&self) -> impl Iterator<Item = &ResourceRef<ProcessMonitor<T>>> {
        self.first.iter().chain(&self.more)
    }

    /// Monitors a local process for a table, which is told of its exit. Returns `false` if the
    /// process is gone already.
    pub(crate) fn monitor(&mut self, env: Env<'_>, pid: Word, table: &ResourceRef<T>) -> bool {
        if self.iter().any(|monitor| monitor.pid == pid) {
            return true;
        }
        let monitor = add_table(env, pid, table);
        let is_monitored = monitor.is_some();
        if self.first.is_none() {
            self.first = monitor;
        } else {
            self.more.reserve_exact(1);
            self.more.extend(monitor);
        }
        is_monitored
    }

    /// Removes the monitor of a process that has exited, after the table was told.
    pub(crate) fn forget_process(&mut self, pid: Word) {
        self.first.take_if(|monitor| monitor.pid == pid);
        self.more.retain(|monitor| monitor.pid != pid);
    }

    /// Removes the table from all its monitors.
    pub(crate) fn forget_table(&self, table: &ResourceRef<T>) {
        self.iter().for_each(|monitor| monitor.forget(table));
    }
}

impl<T: ExitListener> ProcessMonitor<T> {
    /// Removes a table from the set.
    fn forget(&self, table: &ResourceRef<T>) {
        if let Some(tables) = self.lock_tables().as_mut() {
            tables.remove(Table::of(table));
            shrink(tables);
        }
    }

    fn lock_tables(&self) -> MutexGuard<'_, Option<Tables<T>>> {
        // A set is consistent at every moment, so a poisoned lock is harmless.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frees the memory of a set that was much larger.
pub(crate) fn shrink<T: Eq + Hash>(set: &mut HashSet<T, BuildHasherDefault<Spread>>) {
    const LARGE: usize = 1 << 10;
    if set.capacity() > LARGE && set.len() < set.capacity() / 8 {
        set.shrink_to(2 * set.len());
    }
}

impl<T: ExitListener> Resource for ProcessMonitor<T> {
    const NAME: &'static CStr = T::MONITOR_NAME;

    fn slot() -> &'static Slot {
        T::monitor_slot()
    }

    fn down(&self, env: Env<'_>, pid: VmWord<'_>) {
        lock_part::<T>(self.pid).remove(&self.pid);
        let tables = self.lock_tables().take();
        let tables = tables.into_iter().flatten().map(|table| table.0);
        T::on_process_end(env, pid.raw(), tables.collect());
    }
}
