//! The table as seen by processes: its identifier, name, owner and protection.
//!
//! A table identifier is a reference to a [`Handle`], a resource with a pointer to the [`Shared`]
//! part as long as the table exists. Deletion takes that pointer out, at one moment for all
//! processes. Operations under way finish on the part they have found. The handle of a snapshot
//! records why the snapshot has ended.
//!
//! # Invariants
//! - HANDLE-1. `Handle::shared` goes from null to the table to null again, once. Only the thread
//!   that takes the pointer out deletes the table. A named table gets its name between the two, and
//!   with it exists.
//! - HANDLE-2. The handle has one count of the `Arc` of its `Shared`. Only epoch reclamation gives
//!   it up, after HANDLE-1, and after the name was removed. So a `Shared` found under a guard lives
//!   as long as the guard; [`Shared::to_arc`] takes a count of its own for longer.
//! - HANDLE-3. `Shared::id` keeps the resource alive as long as the table exists, even if no
//!   process has the identifier any more.

use crate::atoms::KnownAtom;
use crate::disk::{OpenTable, Pending};
use crate::env::{Env, VmWord};
use crate::full_scan;
use crate::owner::{Heir, Owner};
use crate::process;
use crate::process_monitor::TableMonitors;
use crate::resource::ResourceRef;
use crate::sys::Word;
use crate::vm_host::VmHost;
use ats::terms::{Ending, HeldReadPoint, Store, Table};
use ats_disk::Snapshot;
use ats_sync::Guard;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The resource of a table identifier.
pub struct Handle {
    shared: AtomicPtr<Shared>,
    /// Index in [`ENDINGS`], from 1, of the reason why a snapshot ends; 0 if the table is no
    /// snapshot.
    ending: AtomicU8,
}

/// Reasons why a snapshot ends. The first one is the default.
const ENDINGS: [KnownAtom; 5] = [
    KnownAtom::OwnerEnded,
    KnownAtom::Released,
    KnownAtom::Closed,
    KnownAtom::MaxAge,
    KnownAtom::Memory,
];

/// Index of the first of [`ENDINGS`].
const FIRST_ENDING: u8 = 1;

#[cfg(not(feature = "test-nifs"))]
fn ending_index(why: KnownAtom) -> u8 {
    let index = ENDINGS.iter().position(|ending| *ending == why);
    index.map_or(0, |index| index as u8) + FIRST_ENDING
}

fn ending_at(index: u8) -> Option<KnownAtom> {
    let index = usize::from(index).checked_sub(usize::from(FIRST_ENDING))?;
    ENDINGS.get(index).copied()
}

/// The snapshot of another table that a table shows.
pub struct SnapshotView {
    /// The snapshot. It ends with the table.
    pub shown: Shown,
    /// The identifier of the live table.
    pub source: ResourceRef<Handle>,
}

/// A snapshot of a table on disk or in memory.
pub enum Shown {
    /// A snapshot of a table on disk.
    Disk(Snapshot),
    /// A snapshot of a table in memory.
    Memory(Arc<HeldReadPoint<VmHost>>),
}

impl SnapshotView {
    /// Returns the snapshot if its table is on disk.
    pub fn of_disk(&self) -> Option<&Snapshot> {
        match &self.shown {
            Shown::Disk(snapshot) => Some(snapshot),
            Shown::Memory(_) => None,
        }
    }

    /// Returns the snapshot if its table is in memory.
    pub fn of_memory(&self) -> Option<&Arc<HeldReadPoint<VmHost>>> {
        match &self.shown {
            Shown::Memory(read_point) => Some(read_point),
            Shown::Disk(_) => None,
        }
    }

    /// Returns the time since the snapshot was taken.
    pub fn age(&self) -> Duration {
        match &self.shown {
            Shown::Disk(snapshot) => snapshot.age(),
            Shown::Memory(read_point) => read_point.age(),
        }
    }

    /// Ends the snapshot.
    pub fn end(&self) {
        match &self.shown {
            Shown::Disk(snapshot) => snapshot.end(),
            Shown::Memory(read_point) => {
                read_point.end(Ending::Released);
            }
        }
    }
}

/// Processes that may read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Protection {
    /// Every process may do both.
    Public = 0,
    /// Every process may read, the owner may write.
    Protected = 1,
    /// Only the owner may do either.
    Private = 2,
    /// Processes that may read the table of this snapshot may read it. Nobody writes.
    OfSource = 3,
    /// Every process may read this snapshot. Nobody writes, and no property changes.
    Snapshot = 4,
}

impl Protection {
    /// Decodes a protection from its number.
    fn of(number: u8) -> Self {
        match number {
            0 => Protection::Public,
            1 => Protection::Protected,
            2 => Protection::Private,
            3 => Protection::OfSource,
            _ => Protection::Snapshot,
        }
    }
}

/// Options that `info` reports but that have no other effect.
#[derive(Clone, Copy)]
pub struct ReportedOptions {
    /// `{write_concurrency, _}`.
    pub write_concurrency: WriteConcurrency,
    /// `{read_concurrency, _}`.
    pub read_concurrency: bool,
    /// `{decentralized_counters, _}`.
    pub decentralized_counters: bool,
}

/// The values of `{write_concurrency, _}`.
#[derive(Clone, Copy)]
pub enum WriteConcurrency {
    /// `false`
    False,
    /// `true`
    True,
    /// `auto`
    Auto,
    /// `{debug_hash_fixed_number_of_locks, N}`
    Locks(i64),
}

/// A snapshot of a table on disk whose values are merged by a program.
pub type PendingSnapshot = Pending<Box<dyn Store>>;

/// An existing table.
pub struct Shared {
    /// The objects.
    pub table: Table<VmHost>,
    /// The open directory of a table on disk.
    pub disk: Option<Arc<OpenTable>>,
    /// The snapshot that the table shows, if its values are merged by a program.
    pub pending_snapshot: Option<Arc<PendingSnapshot>>,
    /// The snapshot of a table on disk, if it counts against a limit: it ends with this table.
    pub limited_snapshot: Option<Snapshot>,
    /// The snapshot that the table shows, if it is one.
    pub read_point: Option<SnapshotView>,
    /// The identifier.
    pub id: ResourceRef<Handle>,
    /// `true` if the table is named.
    pub named: bool,
    /// The processes that may read and write: a [`Protection`].
    protection: AtomicU8,
    /// The number of attempts of updates that were in vain.
    pub retries: AtomicU32,
    /// Options that are only reported.
    pub reported: ReportedOptions,
    /// The policy for queries that read the whole table.
    pub full_scan: full_scan::FullScanPolicy,
    /// The word of the name. Renaming changes it: for a named table only in the registry.
    pub name: AtomicU64,
    /// The word of the owner's pid, or [`NOBODY`]. Changes under the lock of `admin`.
    owner: AtomicU64,
    admin: Mutex<Admin>,
}

/// Stands for the pid of an owner if the table belongs to no process. No pid is this word.
const NOBODY: Word = 0;

/// Returns the word that stands for an owner.
fn word_of(owner: Owner) -> Word {
    match owner {
        Owner::Process(pid) | Owner::Application(pid) => pid,
        Owner::Nobody => NOBODY,
    }
}

/// Data that change seldom and only under a lock.
pub struct Admin {
    /// The process that gets the table when its owner dies.
    pub heir: Option<Heir>,
    /// `true` if the owner stands for an application.
    pub of_application: bool,
    /// Monitors of the processes whose exit concerns the table. Few: owners, an heir, and processes
    /// that walk.
    pub(crate) monitors: TableMonitors<Handle>,
    /// Processes that have fixed the table, with the number of their fixations.
    pub fixes: Vec<(Word, usize)>,
    /// The moment at which the table became fixed.
    pub fixed_since: Option<process::Clocks>,
}

/// The parts that a table is made with.
pub struct Recipe {
    /// The table.
    pub table: Table<VmHost>,
    /// The open directory of a table on disk.
    pub disk: Option<Arc<OpenTable>>,
    /// The snapshot that the table shows, if its values are merged by a program.
    pub pending_snapshot: Option<Arc<PendingSnapshot>>,
    /// The snapshot of a table on disk, if it counts against a limit: it ends with this table.
    pub limited_snapshot: Option<Snapshot>,
    /// The snapshot that the table shows, if it is one.
    pub read_point: Option<SnapshotView>,
    /// The word of the name.
    pub name: Word,
    /// `true` if the table is named.
    pub named: bool,
    /// The processes that may read and write.
    pub protection: Protection,
    /// Options that are only reported.
    pub reported: ReportedOptions,
    /// The policy for queries that read the whole table.
    pub full_scan: full_scan::FullScanPolicy,
    /// The owner.
    pub owner: Owner,
    /// The process that gets the table when its owner dies.
    pub heir: Option<Heir>,
}

impl Handle {
    /// Creates an identifier without a table.
    pub(crate) fn new() -> ResourceRef<Self> {
        ResourceRef::new(Handle {
            shared: AtomicPtr::new(ptr::null_mut()),
            ending: AtomicU8::new(0),
        })
    }

    #[cfg(not(feature = "test-nifs"))]
    /// Marks the table as a snapshot, which ends with its owner unless it ends otherwise.
    pub(crate) fn begin_snapshot(&self) {
        let _ended_already =
            self.ending
                .compare_exchange(0, FIRST_ENDING, Ordering::AcqRel, Ordering::Relaxed);
    }

    #[cfg(not(feature = "test-nifs"))]
    /// Records why the snapshot ends, unless a reason is known. Called before the end, so that a
    /// process that finds no table finds the reason.
    pub(crate) fn set_ending(&self, why: KnownAtom) {
        let _known_already =
            self.ending
                .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |known| {
                    (known <= FIRST_ENDING).then_some(ending_index(why))
                });
    }

    #[cfg(not(feature = "test-nifs"))]
    /// Records that the snapshot is released, overriding any other reason. Returns the earlier
    /// reason, if this is a snapshot.
    pub(crate) fn set_released(&self) -> Option<KnownAtom> {
        let before = self.ending()?;
        let index = ending_index(KnownAtom::Released);
        ending_at(self.ending.swap(index, Ordering::AcqRel)).or(Some(before))
    }

    /// Returns the reason why the snapshot ends, if this is a snapshot.
    pub fn ending(&self) -> Option<KnownAtom> {
        ending_at(self.ending.load(Ordering::Acquire))
    }

    /// Returns the table, unless it has been deleted.
    #[inline]
    pub fn get<'g>(&self, _guard: &'g Guard) -> Option<&'g Shared> {
        // SAFETY: a table found under a guard lives as long as the guard (HANDLE-2).
        unsafe { self.shared.load(Ordering::Acquire).as_ref() }
    }

    /// Takes the table out of its identifier, lets `leave` remove all other references, and retires
    /// it. Returns `false` if another thread has taken it out already.
    pub(crate) fn end(&self, guard: &Guard, leave: impl FnOnce(&Shared)) -> bool {
        let shared = self.shared.swap(ptr::null_mut(), Ordering::AcqRel);
        if shared.is_null() {
            return false;
        }
        // SAFETY: we took the pointer out, so deleting the table is up to us (HANDLE-1), and so is
        // giving up the count of the handle (HANDLE-2).
        unsafe {
            leave(&*shared);
            let bytes = size_of::<Shared>() + (*shared).table.about_bytes();
            guard.retire(shared.cast(), bytes, free);
        }
        true
    }
}

unsafe fn free(raw: *mut u8) {
    // SAFETY: `publish` made the pointer by `Arc::into_raw`. This is the count of the handle, which
    // no longer points to the table (HANDLE-2).
    drop(unsafe { Arc::from_raw(raw.cast::<Shared>().cast_const()) });
}

impl Shared {
    /// Publishes a table: makes an identifier that leads to it, which no process knows yet.
    /// `monitors` are the process monitors that already know the identifier.
    pub(crate) fn publish(
        recipe: Recipe,
        id: ResourceRef<Handle>,
        monitors: TableMonitors<Handle>,
        _guard: &Guard,
    ) -> &Shared {
        let shared = Arc::new(Shared {
            table: recipe.table,
            disk: recipe.disk,
            pending_snapshot: recipe.pending_snapshot,
            limited_snapshot: recipe.limited_snapshot,
            read_point: recipe.read_point,
            id,
            named: recipe.named,
            protection: AtomicU8::new(recipe.protection as u8),
            retries: AtomicU32::new(0),
            reported: recipe.reported,
            full_scan: recipe.full_scan,
            name: AtomicU64::new(recipe.name),
            owner: AtomicU64::new(word_of(recipe.owner)),
            admin: Mutex::new(Admin {
                heir: recipe.heir,
                of_application: matches!(recipe.owner, Owner::Application(_)),
                monitors,
                fixes: Vec::new(),
                fixed_since: None,
            }),
        });
        let raw = Arc::into_raw(shared);
        // SAFETY: published by the next line, under the guard, so retired after it (HANDLE-2).
        let shared = unsafe { &*raw };
        shared.id.shared.store(raw.cast_mut(), Ordering::Release);
        shared
    }

    /// Returns a count of the table that outlives the guard it was found under. The table may be
    /// deleted meanwhile; no process finds it then, and it is freed with the last count.
    pub fn to_arc(&self) -> Arc<Shared> {
        // SAFETY: `publish` makes every `Shared` in an `Arc`, and the count of the handle keeps it
        // alive as long as the guard which `self` was found under (HANDLE-2).
        unsafe {
            Arc::increment_strong_count(self);
            Arc::from_raw(self)
        }
    }

    /// Returns the process that owns the table, if one does.
    #[inline]
    pub fn owner(&self) -> Option<VmWord<'static>> {
        let owner = self.owner_word();
        // SAFETY: the word is a local pid, which is an immediate and so a term in every
        // environment (ENV-2).
        (owner != NOBODY).then(|| unsafe { VmWord::new(owner) })
    }

    #[inline]
    fn owner_word(&self) -> Word {
        self.owner.load(Ordering::Acquire)
    }

    /// Changes the owner, which is monitored if it is a process. The caller holds the lock of
    /// `admin`.
    pub(crate) fn set_owner(&self, admin: &mut Admin, owner: Owner) {
        admin.of_application = matches!(owner, Owner::Application(_));
        self.owner.store(word_of(owner), Ordering::Release);
    }

    /// Returns `true` if the owner is alive, or not needed. A process counts as dead once the VM
    /// begins to end it, which is before the VM reports the exit to any process or library.
    #[inline]
    pub fn has_living_owner(&self, env: Env<'_>) -> bool {
        self.owner()
            .is_none_or(|owner| process::is_alive(env, owner))
    }

    /// Returns the name given to the table.
    pub fn name(&self) -> VmWord<'static> {
        // SAFETY: the word is an atom, which is an immediate and so a term in every
        // environment (ENV-2).
        unsafe { VmWord::new(self.name.load(Ordering::Acquire)) }
    }

    /// Returns `true` if the table has not been deleted. A table is deleted at the moment at which
    /// it is taken out of its handle, also for processes that know it by name.
    #[inline]
    pub(crate) fn is_found_by_id(&self) -> bool {
        !self.id.shared.load(Ordering::Acquire).is_null()
    }

    /// Returns the term by which users know the table: its name if it is named, else its
    /// identifier.
    pub fn user_term<'e>(&self, env: Env<'e>) -> VmWord<'e> {
        if self.named {
            self.name()
        } else {
            self.id.term(env)
        }
    }

    /// Returns the protection.
    #[inline]
    pub fn protection(&self) -> Protection {
        Protection::of(self.protection.load(Ordering::Acquire))
    }

    /// Changes the protection. Takes effect from the next operation of any process on.
    pub(crate) fn protect(&self, protection: Protection) {
        self.protection.store(protection as u8, Ordering::Release);
    }

    /// Returns `true` if the calling process is the owner.
    #[inline]
    pub fn is_owner(&self, env: Env<'_>) -> bool {
        env.own_pid()
            .is_some_and(|pid| pid.raw() == self.owner_word())
    }

    /// Locks the administrative data.
    pub fn admin(&self) -> MutexGuard<'_, Admin> {
        // A panic cannot leave the data half changed: the values are set one by one.
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Monitors a process. Returns `false` if it is gone already.
    pub(crate) fn monitor(&self, env: Env<'_>, admin: &mut Admin, pid: Word) -> bool {
        admin.monitors.monitor(env, pid, &self.id)
    }

    /// Stops monitoring all processes, because the table is deleted.
    pub(crate) fn stop_monitoring(&self) {
        let monitors = std::mem::take(&mut self.admin().monitors);
        monitors.forget_table(&self.id);
    }
}
