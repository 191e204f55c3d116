//! A table as processes know it: its identifier, its name, its owner, and its protection.
//!
//! A table identifier is a reference to a [`Handle`], a resource with a word that leads to the
//! [`Shared`] part as long as the table exists. Deleting a table takes that word away, at one
//! moment for all processes. Operations that are under way finish on what they have. The handle of
//! a snapshot tells later why the snapshot has ended.
//!
//! # Invariants
//! - HANDLE-1. `Handle::shared` goes from null to the table to null again, once. Only the thread
//!   that takes the pointer out deletes the table. A named table gets its name between the two, and
//!   with it exists.
//! - HANDLE-2. The handle has one count of the `Arc` of its `Shared`, which is given up by epochs
//!   only, after HANDLE-1, and after the name was taken out of the names. So a `Shared` that was
//!   found under a guard lives as long as the guard; [`Shared::to_arc`] takes a count of its own
//!   for longer.
//! - HANDLE-3. `Shared::id` keeps the resource alive as long as the table exists, even if no
//!   process knows the identifier any more.

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
use ats::{Ending, KeptMoment, Store, Table};
use ats_disk::Snapshot;
use ats_sync::Guard;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The table that an identifier refers to.
pub struct Handle {
    shared: AtomicPtr<Shared>,
    /// Of a snapshot the place in [`ENDINGS`] of the reason why it ends, from 1.
    ending: AtomicU8,
}

/// The reasons why a snapshot ends. The first holds unless another one is known.
const ENDINGS: [KnownAtom; 5] = [
    KnownAtom::OwnerEnded,
    KnownAtom::Released,
    KnownAtom::Closed,
    KnownAtom::MaxAge,
    KnownAtom::Memory,
];

/// The place of the first of [`ENDINGS`].
const FIRST_ENDING: u8 = 1;

#[cfg(not(feature = "test-nifs"))]
fn place_of(why: KnownAtom) -> u8 {
    let place = ENDINGS.iter().position(|ending| *ending == why);
    place.map_or(0, |place| place as u8) + FIRST_ENDING
}

fn ending_at(place: u8) -> Option<KnownAtom> {
    let place = usize::from(place).checked_sub(usize::from(FIRST_ENDING))?;
    ENDINGS.get(place).copied()
}

/// The moment of another table that a table shows.
pub struct Moment {
    /// The moment. It ends with the table.
    pub shown: Shown,
    /// The identifier of the table that has changed since.
    pub source: ResourceRef<Handle>,
}

/// A moment of a table on disk, or in memory.
pub enum Shown {
    /// On disk.
    Disk(Snapshot),
    /// In memory.
    Memory(Arc<KeptMoment<VmHost>>),
}

impl Moment {
    /// That of a table on disk.
    pub fn of_disk(&self) -> Option<&Snapshot> {
        match &self.shown {
            Shown::Disk(snapshot) => Some(snapshot),
            Shown::Memory(_) => None,
        }
    }

    /// That of a table in memory.
    pub fn of_memory(&self) -> Option<&Arc<KeptMoment<VmHost>>> {
        match &self.shown {
            Shown::Memory(moment) => Some(moment),
            Shown::Disk(_) => None,
        }
    }

    /// The time since it began.
    pub fn age(&self) -> Duration {
        match &self.shown {
            Shown::Disk(snapshot) => snapshot.age(),
            Shown::Memory(moment) => moment.age(),
        }
    }

    /// Ends it.
    pub fn end(&self) {
        match &self.shown {
            Shown::Disk(snapshot) => snapshot.end(),
            Shown::Memory(moment) => {
                moment.end(Ending::Released);
            }
        }
    }
}

/// The processes that may read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Protection {
    /// Every process may do both.
    Public = 0,
    /// Every process may read, the owner may write.
    Protected = 1,
    /// Only the owner may do either.
    Private = 2,
    /// The processes that may read the table of which this is a moment may read. Nobody writes.
    OfSource = 3,
}

impl Protection {
    /// The protection that is kept as this number.
    fn of(number: u8) -> Self {
        match number {
            0 => Protection::Public,
            1 => Protection::Protected,
            2 => Protection::Private,
            _ => Protection::OfSource,
        }
    }
}

/// Options that are reported but change nothing here.
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

/// The moment of a table on disk whose values are merged by a program.
pub type PendingSnapshot = Pending<Box<dyn Store>>;

/// An existing table.
pub struct Shared {
    /// The objects.
    pub table: Table<VmHost>,
    /// The directory that it is in, if it is in one.
    pub disk: Option<Arc<OpenTable>>,
    /// The moment that the table shows, if its values are merged by a program.
    pub pending_snapshot: Option<Arc<PendingSnapshot>>,
    /// The snapshot of a table on disk, if their number is limited: it ends with this table.
    pub limited_snapshot: Option<Snapshot>,
    /// The moment that it shows, if it is a snapshot.
    pub moment: Option<Moment>,
    /// The identifier.
    pub id: ResourceRef<Handle>,
    /// `true` if users know it by its name.
    pub named: bool,
    /// The processes that may read and write: a [`Protection`].
    protection: AtomicU8,
    /// Options that are only reported.
    pub reported: ReportedOptions,
    /// Queries that read everything.
    pub full_scan: full_scan::FullScanPolicy,
    /// The word of the name; changes by renaming: that of a named table in the registry only.
    pub name: AtomicU64,
    /// The word of the owner's pid, or [`NOBODY`]; changes under the lock of `admin`.
    owner: AtomicU64,
    admin: Mutex<Admin>,
}

/// In the place of the pid of an owner: the table belongs to no process. No pid is this word.
const NOBODY: Word = 0;

/// The word that stands for an owner.
fn word_of(owner: Owner) -> Word {
    match owner {
        Owner::Process(pid) | Owner::Application(pid) => pid,
        Owner::Nobody => NOBODY,
    }
}

/// The data that change seldom and only under a lock.
pub struct Admin {
    /// The process that gets the table when its owner dies.
    pub heir: Option<Heir>,
    /// `true` if the owner stands for an application.
    pub of_application: bool,
    /// The processes of whose end the VM will tell. Few: owners, an heir, and processes that walk.
    pub(crate) monitors: TableMonitors<Handle>,
    /// The processes that have fixed the table, and how often each has done so.
    pub fixes: Vec<(Word, usize)>,
    /// The moment at which the table became fixed.
    pub fixed_since: Option<process::Moment>,
}

/// The parts that a table is made with.
pub struct Recipe {
    /// The table.
    pub table: Table<VmHost>,
    /// The directory that it is in, if it is in one.
    pub disk: Option<Arc<OpenTable>>,
    /// The moment that the table shows, if its values are merged by a program.
    pub pending_snapshot: Option<Arc<PendingSnapshot>>,
    /// The snapshot of a table on disk, if their number is limited: it ends with this table.
    pub limited_snapshot: Option<Snapshot>,
    /// The moment that it shows, if it is a snapshot.
    pub moment: Option<Moment>,
    /// The word of its name.
    pub name: Word,
    /// `true` if the name shall lead to it.
    pub named: bool,
    /// The processes that may read and write.
    pub protection: Protection,
    /// Options that are only reported.
    pub reported: ReportedOptions,
    /// Queries that read everything.
    pub full_scan: full_scan::FullScanPolicy,
    /// Its owner.
    pub owner: Owner,
    /// The process that gets it when its owner dies.
    pub heir: Option<Heir>,
}

impl Handle {
    /// An identifier that leads to no table yet.
    pub(crate) fn new() -> ResourceRef<Self> {
        ResourceRef::new(Handle {
            shared: AtomicPtr::new(ptr::null_mut()),
            ending: AtomicU8::new(0),
        })
    }

    #[cfg(not(feature = "test-nifs"))]
    /// Says that the table is a snapshot, which ends with its owner unless it ends otherwise.
    pub(crate) fn begin_snapshot(&self) {
        let _ended_already =
            self.ending
                .compare_exchange(0, FIRST_ENDING, Ordering::AcqRel, Ordering::Relaxed);
    }

    #[cfg(not(feature = "test-nifs"))]
    /// Says why the snapshot ends, unless that is known. Before it does, so that a process that
    /// finds no table any more finds the reason.
    pub(crate) fn set_ending(&self, why: KnownAtom) {
        let _known_already =
            self.ending
                .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |known| {
                    (known <= FIRST_ENDING).then_some(place_of(why))
                });
    }

    #[cfg(not(feature = "test-nifs"))]
    /// Says that the snapshot is released, whatever was said before. Returns what that was, if it
    /// is a snapshot.
    pub(crate) fn set_released(&self) -> Option<KnownAtom> {
        let before = self.ending()?;
        let place = place_of(KnownAtom::Released);
        ending_at(self.ending.swap(place, Ordering::AcqRel)).or(Some(before))
    }

    /// The reason why the snapshot ends, if it is one.
    pub fn ending(&self) -> Option<KnownAtom> {
        ending_at(self.ending.load(Ordering::Acquire))
    }

    /// The table, unless it has been deleted.
    #[inline]
    pub fn get<'g>(&self, _guard: &'g Guard) -> Option<&'g Shared> {
        // SAFETY: a table found under a guard lives as long as the guard (HANDLE-2).
        unsafe { self.shared.load(Ordering::Acquire).as_ref() }
    }

    /// Takes the table out of its identifier, has `leave` take it out of everything else that leads
    /// to it, and frees its memory by and by. False if another thread has taken it out already.
    pub(crate) fn end(&self, guard: &Guard, leave: impl FnOnce(&Shared)) -> bool {
        let shared = self.shared.swap(ptr::null_mut(), Ordering::AcqRel);
        if shared.is_null() {
            return false;
        }
        // SAFETY: we took the pointer out, so the table is ours to delete (HANDLE-1), and the count
        // of the handle ours to give up (HANDLE-2).
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
    // leads to it no more (HANDLE-2).
    drop(unsafe { Arc::from_raw(raw.cast::<Shared>().cast_const()) });
}

impl Shared {
    /// Makes a table, and an identifier that leads to it. No process knows the identifier yet.
    /// `monitors` says by which monitors of processes the identifier is known already.
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
            moment: recipe.moment,
            id,
            named: recipe.named,
            protection: AtomicU8::new(recipe.protection as u8),
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

    /// The table, to be kept beyond the guard it was found under. It may be deleted meanwhile; then
    /// it is a table that no process finds, and is freed when this is dropped.
    pub fn to_arc(&self) -> Arc<Shared> {
        // SAFETY: `publish` makes every `Shared` in an `Arc`, and the count of the handle keeps it
        // alive as long as the guard which `self` was found under (HANDLE-2).
        unsafe {
            Arc::increment_strong_count(self);
            Arc::from_raw(self)
        }
    }

    /// The process the table belongs to, if it belongs to one.
    #[inline]
    pub fn owner(&self) -> Option<VmWord<'static>> {
        let owner = self.owner_word();
        // SAFETY: the word is that of a local pid, which is an immediate and so a term in every
        // environment (ENV-2).
        (owner != NOBODY).then(|| unsafe { VmWord::new(owner) })
    }

    #[inline]
    fn owner_word(&self) -> Word {
        self.owner.load(Ordering::Acquire)
    }

    /// Gives the table another owner, which is monitored if it is a process. To be called under the
    /// lock of `admin`.
    pub(crate) fn set_owner(&self, admin: &mut Admin, owner: Owner) {
        admin.of_application = matches!(owner, Owner::Application(_));
        self.owner.store(word_of(owner), Ordering::Release);
    }

    /// Returns `true` if the owner is alive, or not needed. From the moment the VM begins to end a
    /// process, it is not alive. That is before the VM tells any process or library of the end.
    #[inline]
    pub fn has_living_owner(&self, env: Env<'_>) -> bool {
        self.owner()
            .is_none_or(|owner| process::is_alive(env, owner))
    }

    /// The name it was given.
    pub fn name(&self) -> VmWord<'static> {
        // SAFETY: the word is that of an atom, which is an immediate and so a term in every
        // environment (ENV-2).
        unsafe { VmWord::new(self.name.load(Ordering::Acquire)) }
    }

    /// Returns `true` if it has not been deleted. Deleting takes it out of its handle, which is the
    /// moment that counts, also for processes that know it by its name.
    #[inline]
    pub(crate) fn is_found_by_id(&self) -> bool {
        !self.id.shared.load(Ordering::Acquire).is_null()
    }

    /// The term by which users know the table: its name if it is a named one, else its identifier.
    pub fn user_term<'e>(&self, env: Env<'e>) -> VmWord<'e> {
        match self.named {
            true => self.name(),
            false => self.id.term(env),
        }
    }

    /// The processes that may read and write.
    #[inline]
    pub fn protection(&self) -> Protection {
        Protection::of(self.protection.load(Ordering::Acquire))
    }

    /// Changes which processes may read and write. Takes effect from the next operation of any
    /// process on.
    pub(crate) fn protect(&self, protection: Protection) {
        self.protection.store(protection as u8, Ordering::Release);
    }

    /// Returns `true` if the calling process is the owner.
    #[inline]
    pub fn is_owner(&self, env: Env<'_>) -> bool {
        env.own_pid()
            .is_some_and(|pid| pid.raw() == self.owner_word())
    }

    /// The part under a lock.
    pub fn admin(&self) -> MutexGuard<'_, Admin> {
        // A panic cannot leave it half changed: it holds plain values that are set one by one.
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the VM tell of the end of a process. False if it is gone already.
    pub(crate) fn monitor(&self, env: Env<'_>, admin: &mut Admin, pid: Word) -> bool {
        admin.monitors.monitor(env, pid, &self.id)
    }

    /// Has the VM tell of no process any more. For a table that is deleted.
    pub(crate) fn stop_monitoring(&self) {
        let monitors = std::mem::take(&mut self.admin().monitors);
        monitors.forget_table(&self.id);
    }
}
