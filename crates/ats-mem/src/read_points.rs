//! Snapshot queries: the clock of a store, and the versions that queries may still read.
//!
//! A query has a *read point*, a number, and sees of each key the newest record whose time is not
//! above it. A store has a *clock*, a number that only queries advance; a record written while a
//! query runs has the current time of the clock, and leads to the record before it:
//!
//! ```text
//!   slot -> record ----> record before -------> record before that
//!              |  ^          |  ^                (without stamp: older than all queries)
//!              v  |          v  |
//!         version: time  version: time
//! ```
//!
//! A *version* is a separate block, to which the stamp of the record leads, so records have their
//! usual size once the queries have ended. While no query runs, a writer only reads one word.
//!
//! A removed key leaves a *removal* in its slot while queries can still see its old record: a
//! record without value. Ordinary readers see no record.
//!
//! # The read point of a query
//! A query begins when no writer is inside the store, like a [census](ats_sync::census): either it
//! has found all locks free twice with no turn in between, and has advanced the clock between the
//! two rounds; or it has closed the gate, waited until all locks were free, and has advanced the
//! clock then. So all earlier writes have a time that is not above the read point, and all later
//! ones a larger time. A batch commits under a lock, and takes its time there.
//!
//! # Reclaiming
//! Each version is in a list of the store. When no running query has a read point below its time, a
//! version is *reclaimed*: the record before is retired, and the stamp is taken away. The
//! thread that ends a query does this work, and a background thread: see
//! [`Provided::reclaim`](crate::Provided::reclaim).
//!
//! A record between two versions may be needed by no query, since all queries with a read point
//! between the two times have ended. It is *passed over* even if older queries run: the later
//! version then leads to the record before it. So a long query keeps the records that it may read,
//! and not those that were written and replaced since.
//!
//! If the clock stands still between two writes of a key, no query can see the first record, so the
//! second one takes over its version. So a key has at most one version for each moment at which a
//! query has begun.
//!
//! # Histories
//! A query that is older than many others would walk over the records of all of them. So each 64th
//! version of a key also leads to the *history* of the key: the records before it and their times,
//! in a searchable array of pages (see [`record::history`](crate::record)). A query reaches such a
//! version after at most 63 others, and finds its record there directly: O(log queries). Between
//! two of these, and for keys that are written less often, there is only the chain.
//!
//! The record that a query sees of a key never changes once the query has begun. A history stays
//! valid when a record is reclaimed or passed over: it still lists the record, but no query reads
//! that entry. When a version that leads to the history is passed over, the version above takes
//! over the history.
//!
//! # Changes that a query makes
//! A query that changes the records it finds visits each key once, and does not read its changes
//! again. So its own changes keep no old records if no other query runs: a record without stamp
//! replaces the one that the query sees, and a removed key disappears. If another thread has
//! written the key since, the query sees a record behind the one in the slot, and its change gets a
//! time like any other.
//!
//! # Sources
//! A clock that only queries advance, and version lists from the newest on, are from Y. Wei, N.
//! Ben-David, G. E. Blelloch, P. Fatourou, E. Ruppert, Y. Sun,
//! *Constant-time snapshots with applications to concurrent data structures* (PPoPP 2021); records
//! that hold their time themselves, without indirection while no query runs, are from G. E.
//! Blelloch, Y. Wei, *Verlib* (PPoPP 2024). Both let a write get its time after its publication,
//! from its first reader. Here writes happen under locks, and the clock advances while none is
//! held, so a write knows its time before. M. Arbel-Raviv, T. Brown
//! (*Harnessing epoch-based reclamation for efficient range queries*, PPoPP 2018) look for removed
//! records in the lists of retired ones; here the slot of the key leads to them.
//!
//! # Invariants
//! - READ_POINTS-1. The clock advances past a read point while no writer is inside: no thread holds
//!   a lock of the store and has found the gate open. So a thread inside that reads a time not
//!   above the read point has entered before, and has left when the query begins to read. A thread
//!   inside sees each query that began before it entered, and may see others. The same holds for
//!   the number of the only query (`alone`): if a thread inside reads it, each other query has a
//!   read point that is not before the thread's write, or has ended.
//! - READ_POINTS-2. A record that a query with a read point below the time of a version could need
//!   is reachable by `before` of that version, or from there, and is not retired until the version
//!   is reclaimed. One thread at a time changes `before` of versions in the list.
//! - READ_POINTS-3. A version is retired once its record's stamp was cleared, or that record was
//!   retired.
//! - READ_POINTS-4. A version is put into the list once, after its record was published: so the
//!   record before is no longer in the store when it is reclaimed.
//! - READ_POINTS-5. `record` of a version is the record that has it as its stamp and is not
//!   retired, or null; or, marked as an heir, a record that is about to get it, and until then the
//!   version is not reclaimed. A record is detached from its version before it is retired, so a
//!   thread that pins and then reads `record` gets a record that lives as long as its guard.
//! - READ_POINTS-6. A page of a history has the records of the read points in its range: for each
//!   read point of a running query at the time the page was made, the record that this query sees,
//!   which is not retired before the query ends (READ_POINTS-2). Its other records were not retired
//!   when it was made. So a thread that reads for a query that has ended meanwhile finds, in a page
//!   made before that end, the record that the query saw; and in a page made later, a record that
//!   was not retired when this thread pinned, because the query ran then.
//! - READ_POINTS-7. One thread at a time, the writer of the key, replaces the pages of a history,
//!   and retires the old ones. The history of a version is set before the version is published, or
//!   by the reclaiming thread; it is freed with the last version that has a count of it.

mod active;
mod histories;
mod reclaimer;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use self::active::Active;
use self::reclaimer::{Reclaimer, Stack};
use crate::lazy::Lazy;
use crate::prefetch::{prefetch, prefetch_to_write};
pub use crate::record::version::When;
use crate::record::version::{Distance, HEIR, MOVED, Version};
use crate::record::{self, Old, Record, RecordBox, Release, Weight};
use ats_sync::shim::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use ats_sync::shim::thread;
use ats_sync::{CachePadded, Guard};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

/// A moment that a query has begun at: see [`Records::begin`](crate::Records::begin).
#[derive(Debug)]
#[must_use = "a moment that is not ended keeps all that is replaced or removed from now on"]
pub struct ReadPoint {
    query: Query,
    /// Number of objects in the snapshot.
    pub objects: i64,
}

/// A query that runs, as it makes changes: see [`Provided::update_by`](crate::Provided::update_by).
#[derive(Clone, Copy, Debug)]
pub struct Query {
    when: When,
    /// Number of the query, which no other query of the store has. Not 0.
    number: u64,
}

impl Query {
    /// Returns its read point.
    pub fn when(self) -> When {
        self.when
    }
}

impl ReadPoint {
    /// Returns the read point, for functions that read.
    pub fn when(&self) -> When {
        self.query.when
    }

    /// Returns the query that reads the snapshot, to make changes.
    pub fn query(&self) -> Query {
        self.query
    }
}

/// The clock as read by a writer under its lock, while queries run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    time: u64,
    /// The newest read point of a query.
    newest: u64,
}

impl Tick {
    pub(crate) fn time(self) -> u64 {
        self.time
    }
}

/// The moment at which a held key is removed.
#[derive(Clone, Copy, Debug)]
pub enum RemovedAt {
    /// Now. The store counts the change of weight.
    Now,
    /// The commit of its batch, which has counted the change of weight.
    Commit(CommitTime),
}

/// The clock at a commit, if queries ran.
#[derive(Clone, Copy, Debug)]
pub struct CommitTime(pub(crate) Option<Tick>);

impl RemovedAt {
    /// Returns the change of weight that the store counts when it takes out a record.
    pub fn weight_of<R: Release>(self, before: &Record<R>) -> Weight {
        match self {
            RemovedAt::Now => Weight::NONE - R::weight(before),
            RemovedAt::Commit(_) => Weight::NONE,
        }
    }
}

/// A version to be listed once its record has been published (READ_POINTS-4).
#[must_use = "a version is reclaimed only if it is in the list"]
pub(crate) struct Fresh<R: Release>(Option<NonNull<Version<Record<R>>>>);

impl<R: Release> Fresh<R> {
    /// The lack of a version to list.
    pub(crate) const NONE: Self = Fresh(None);
}

/// A way to remove a key.
pub(crate) enum Removal<'g, R: Release> {
    /// The record is taken out and retired.
    Plain(Old<'g, R>),
    /// A removal replaces the record, which is retired if given.
    By(RecordBox<R>, Fresh<R>, Option<Old<'g, R>>),
}

/// Stores with versions, which take out removals.
pub(crate) trait TakeOut<R: Release> {
    /// Takes a removal out of the store under the lock of its key, if it is in its slot. Calls
    /// `is_out` under the same lock, with `true` if it was.
    fn take_out(&self, removal: &Record<R>, guard: &Guard, is_out: &mut dyn FnMut(bool));
}

/// The clock of a store, and the versions that queries may read.
pub struct ReadPoints<R: Release> {
    /// The newest read point of a query; 0 if there is none, and the largest number while a query
    /// begins.
    newest: AtomicU64,
    /// The clock, which starts at 1.
    clock: AtomicU64,
    shared: Lazy<Shared<R>>,
}

/// Number of stacks for writers that have contended for the first one, so that they do not share a
/// cache line.
const STACKS: usize = 16;

struct Shared<R: Release> {
    active: Mutex<Active>,
    reclaimer: Mutex<Reclaimer<R>>,
    /// Bytes of versions and of the records that they hold, as last counted by the reclaiming
    /// thread.
    held: AtomicUsize,
    /// Number of the running query, if it is the only one; else 0.
    alone: AtomicU64,
    stack: Stack<R>,
    /// More stacks, made when two writers contend for the one above.
    more: OnceLock<Box<[CachePadded<Stack<R>>]>>,
}

impl<R: Release> Shared<R> {
    fn stacks(&self) -> impl Iterator<Item = &Stack<R>> {
        let more = self.more.get().map_or(&[][..], |more| more);
        std::iter::once(&self.stack).chain(more.iter().map(|stack| &stack.0))
    }

    /// Returns the stack of a thread that has met contention.
    #[cold]
    fn stack_of(&self, guard: &Guard) -> &Stack<R> {
        let new = |_| CachePadded(Stack::new(ptr::null_mut()));
        let make = || (0..STACKS).map(new).collect();
        &self.more.get_or_init(make)[usize::from(guard.thread_tag()) % STACKS].0
    }
}

/// Number of versions taken out of the list together before they are reclaimed one by one. Each
/// leads to two records that are rarely cached, so these are prefetched together.
const GROUP: usize = 16;

/// Number of versions that a [quick look](ReadPoints::may_have_changed) passes over.
const LOOKED_AT: usize = 1_000;

fn prefetch_to_reclaim<R: Release>(version: &Version<Record<R>>) {
    let record = version.record.load(Ordering::Relaxed);
    prefetch_to_write(record.map_addr(|bits| bits & !HEIR));
    prefetch::<1, _>(version.owned_before());
}

impl<R: Release> Default for Shared<R> {
    fn default() -> Self {
        Shared {
            active: Mutex::default(),
            reclaimer: Mutex::default(),
            held: AtomicUsize::new(0),
            alone: AtomicU64::new(0),
            stack: AtomicPtr::new(ptr::null_mut()),
            more: OnceLock::new(),
        }
    }
}

// SAFETY: `Reclaimer` may move to any thread, and the stacks are atomics.
unsafe impl<R: Release> Send for ReadPoints<R> {}
// SAFETY: threads that share moments access the lists behind mutexes, and everything else by
// atomics.
unsafe impl<R: Release> Sync for ReadPoints<R> {}

/// Locks a mutex that is never held for long, visibly to explored runs.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    loop {
        match mutex.try_lock() {
            Ok(locked) => return locked,
            Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => thread::yield_now(),
        }
    }
}

impl<R: Release> ReadPoints<R> {
    pub(crate) fn new() -> Self {
        ReadPoints {
            newest: AtomicU64::new(0),
            clock: AtomicU64::new(1),
            shared: Lazy::new(),
        }
    }

    /// Returns the bytes of memory beside the store.
    pub(crate) fn bytes(&self) -> usize {
        self.shared.bytes()
    }

    /// Returns the bytes of old records that are held back for queries. Records replaced since the
    /// last [reclaim](crate::Provided::reclaim) are not included yet.
    pub fn held_bytes(&self) -> usize {
        let shared = self.shared.get();
        shared.map_or(0, |shared| shared.held.load(Ordering::Relaxed))
    }

    /// Begins a query: from now on no version that it could need is reclaimed. `find` finds a
    /// moment at which no writer is inside, and advances the clock then. If no running query has
    /// prepared, `prepare` is called first, and returns whether it did: from then on
    /// [`are_read`](Self::are_read) is `true`.
    pub(crate) fn begin<E>(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, E>,
        find: impl FnOnce() -> Result<(u64, i64), E>,
    ) -> Result<ReadPoint, E> {
        let shared = self.shared.get_or_make();
        let lowest = self.clock.load(Ordering::SeqCst);
        let mut is_prepared = false;
        self.change(shared, |active| {
            is_prepared = active.is_prepared;
            active.add(lowest);
            if active.beginning == 0 {
                active.first_beginning = lowest;
            }
            active.beginning += 1;
        });
        let prepared = if is_prepared { Ok(true) } else { prepare() };
        let is_prepared = matches!(prepared, Ok(true));
        let found = prepared.and_then(|_| find());
        let mut number = 0;
        self.change(shared, |active| {
            active.beginning -= 1;
            active.is_prepared |= is_prepared;
            if let Ok((read_point, _)) = found {
                number = active.add_query(read_point);
            }
            active.remove(lowest);
        });
        found.map(|(read_point, objects)| {
            let when = When(read_point);
            ReadPoint {
                query: Query { when, number },
                objects,
            }
        })
    }

    /// Ends a query.
    pub fn end(&self, read_point: ReadPoint) {
        self.change(self.shared.get_or_make(), |active| {
            active.remove_query(read_point.query.when.0, read_point.query.number);
        });
    }

    fn change(&self, shared: &Shared<R>, change: impl FnOnce(&mut Active)) {
        let mut active = lock(&shared.active);
        change(&mut active);
        shared.alone.store(active.alone(), Ordering::SeqCst);
        self.newest.store(active.newest(), Ordering::SeqCst);
    }

    /// Returns `true` if a query runs. The caller holds a lock of the store, or is pinned and was
    /// prepared for.
    #[inline]
    pub fn are_read(&self) -> bool {
        self.newest.load(Ordering::Relaxed) != 0
    }

    /// Advances the clock. Returns its value before, which is a read point from now on
    /// (READ_POINTS-1).
    pub(crate) fn advance(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Returns the time, for a writer that holds a lock of the store.
    pub(crate) fn time(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }

    /// Returns the clock, for a writer that holds a lock of the store, if queries run.
    #[inline(always)]
    pub(crate) fn tick(&self) -> Option<Tick> {
        let newest = self.newest.load(Ordering::Relaxed);
        (newest != 0).then(|| Tick {
            time: self.clock.load(Ordering::Relaxed),
            newest,
        })
    }

    /// Returns `true` if a query's change of a key needs no version: there is no other query, and
    /// the record that this query sees is in the slot, and not behind it.
    fn keeps_nothing(&self, by: Option<Query>, old: Option<&Old<'_, R>>, guard: &Guard) -> bool {
        let (Some(query), Some(shared)) = (by, self.shared.get()) else {
            return false;
        };
        let is_seen = match old {
            Some(Old::Seen(record)) => {
                let version = record.version(guard);
                version.is_none_or(|version| query.when.sees(version.time))
            }
            // A simple record has no stamp (SLOT-1).
            Some(Old::Unseen(_)) => true,
            None => false,
        };
        is_seen && shared.alone.load(Ordering::Relaxed) == query.number
    }

    /// Gives a time to the record, which has a value, that is about to replace the record or
    /// removal in its key's slot. `by` is the query that makes the change, if one does. Returns the
    /// record to retire afterwards.
    #[inline(always)]
    pub(crate) fn date<'g>(
        &self,
        new: &Record<R>,
        old: Option<Old<'g, R>>,
        by: Option<Query>,
        guard: &'g Guard,
    ) -> (Fresh<R>, Option<Old<'g, R>>) {
        debug_assert!(!new.is_empty(), "a record without value is a removal");
        match self.tick() {
            None => (Fresh::NONE, old),
            Some(tick) => self.date_at((tick, by), new, old, guard),
        }
    }

    /// Gives a time to a record like [`date`](Self::date), for a writer that has read the clock.
    #[cold]
    pub(crate) fn date_at<'g>(
        &self,
        (tick, by): (Tick, Option<Query>),
        new: &Record<R>,
        old: Option<Old<'g, R>>,
        guard: &'g Guard,
    ) -> (Fresh<R>, Option<Old<'g, R>>) {
        if self.keeps_nothing(by, old.as_ref(), guard) {
            return (Fresh::NONE, old);
        }
        // The old record is invisible to queries if none has begun since it was written.
        if let Some(Old::Seen(record)) = &old
            && let Some(version) = record.version(guard)
            && version.time > tick.newest
            && version.give(record, new, || new.set_version(version))
        {
            return (Fresh::NONE, old);
        }
        let before = old.as_ref().map_or(ptr::null_mut(), Old::pointer);
        let last = match &old {
            Some(Old::Seen(record)) => record.version(guard),
            _ => None,
        };
        let history = match last {
            Some(last) => self.history_above(last, before, tick.time, guard),
            None => Err(Distance(0)),
        };
        let version = Version::new(tick.time, before, new, history).into_block();
        // SAFETY: the version has just been made, and is freed only after it was listed.
        new.set_version(unsafe { version.as_ref() });
        (Fresh(Some(version)), None)
    }

    /// Decides how a key is removed. `by` is as in [`date`](Self::date).
    #[inline(always)]
    pub(crate) fn remove<'g>(
        &self,
        key: &[u8],
        old: Old<'g, R>,
        by: Option<Query>,
        guard: &'g Guard,
    ) -> Removal<'g, R> {
        match self.tick() {
            None => Removal::Plain(old),
            Some(tick) => self.remove_at((tick, by), key, old, guard),
        }
    }

    /// Decides how a held key is removed: see
    /// [`remove_held`](crate::batch::Stepwise::remove_held).
    pub(crate) fn remove_held<'g>(
        &self,
        key: &[u8],
        old: Old<'g, R>,
        at: RemovedAt,
        guard: &'g Guard,
    ) -> Removal<'g, R> {
        let tick = match at {
            RemovedAt::Now => self.tick(),
            RemovedAt::Commit(CommitTime(tick)) => tick,
        };
        match tick {
            None => Removal::Plain(old),
            Some(tick) => self.remove_at((tick, None), key, old, guard),
        }
    }

    #[cold]
    fn remove_at<'g>(
        &self,
        (tick, by): (Tick, Option<Query>),
        key: &[u8],
        old: Old<'g, R>,
        guard: &'g Guard,
    ) -> Removal<'g, R> {
        if self.keeps_nothing(by, Some(&old), guard) {
            return Removal::Plain(old);
        }
        if let Old::Seen(record) = &old
            && let Some(version) = record.version(guard)
            && version.time > tick.newest
            && version.before(guard).is_none()
        {
            return Removal::Plain(old);
        }
        let removal = RecordBox::new(key, &[], false);
        let (fresh, old) = self.date_at((tick, None), &removal, Some(old), guard);
        Removal::By(removal, fresh, old)
    }

    /// Puts a version into the list.
    #[inline(always)]
    pub(crate) fn list(&self, fresh: Fresh<R>, guard: &Guard) {
        if let Fresh(Some(version)) = fresh {
            self.push(version, guard);
        }
    }

    #[cold]
    fn push(&self, version: NonNull<Version<Record<R>>>, guard: &Guard) {
        let shared = self.shared.get_or_make();
        let mut stack = &shared.stack;
        if shared.more.get().is_some() {
            stack = shared.stack_of(guard);
        }
        let mut top = stack.load(Ordering::Relaxed);
        loop {
            // SAFETY: this thread has the version alone until it is in the list.
            unsafe { version.as_ref() }
                .next
                .store(top, Ordering::Relaxed);
            let (new, order) = (version.as_ptr(), Ordering::Relaxed);
            match stack.compare_exchange(top, new, Ordering::Release, order) {
                Ok(_) => return,
                Err(_) => {
                    stack = shared.stack_of(guard);
                    top = stack.load(Ordering::Relaxed);
                }
            }
        }
    }

    /// Reclaims up to about `budget` versions that no query needs any more. Returns `true` if none
    /// is left of those that existed at the call.
    pub(crate) fn reclaim(&self, store: &impl TakeOut<R>, budget: usize, guard: &Guard) -> bool {
        let Some(shared) = self.shared.get() else {
            return true;
        };
        let mut reclaimer = match shared.reclaimer.try_lock() {
            Ok(locked) => locked,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread is reclaiming.
            Err(TryLockError::WouldBlock) => return false,
        };
        reclaimer.take_stacks(shared.stacks());
        // Read before the stacks are taken: a query that begins later has a read point that is not
        // below the time of any version in the list before it.
        let (oldest, ended) = {
            let mut active = lock(&shared.active);
            (active.oldest(), active.take_ended())
        };
        for times in ended {
            reclaimer.doubt(times);
        }
        let mut left = budget;
        let mut is_done = false;
        let mut group = Vec::new();
        while left > 0 && !is_done {
            while group.len() < GROUP && left > 0 && !is_done {
                match self.next_to_reclaim(shared, &mut reclaimer, oldest, &mut left, guard) {
                    Some(version) => {
                        // SAFETY: a version from the list lives until `reclaim_one` retires it.
                        prefetch_to_reclaim(unsafe { version.as_ref() });
                        group.push(version);
                        left = left.saturating_sub(1);
                    }
                    None => is_done = true,
                }
            }
            for version in group.drain(..) {
                self.reclaim_one(&mut reclaimer, version, store, guard);
            }
        }
        shared.held.store(reclaimer.held, Ordering::Relaxed);
        is_done && reclaimer.rest.is_empty() && reclaimer.doubtful.is_empty()
    }

    /// Takes out the next version that no query needs. Needed ones from the stacks are kept.
    fn next_to_reclaim(
        &self,
        shared: &Shared<R>,
        reclaimer: &mut Reclaimer<R>,
        oldest: u64,
        left: &mut usize,
        guard: &Guard,
    ) -> Option<NonNull<Version<Record<R>>>> {
        while *left > 0 {
            let Some(version) = reclaimer
                .next_of_rest(guard)
                .or_else(|| reclaimer.doubtful.pop())
            else {
                break;
            };
            // SAFETY: the version is in the list, so only the thread that takes it out frees it.
            let found = unsafe { version.as_ref() };
            if found.time <= oldest {
                return Some(version);
            }
            while self.pass_over(shared, reclaimer, found, guard) {
                *left = left.saturating_sub(1);
            }
            if found.is_passed_over() {
                return Some(version);
            }
            reclaimer.keep(found.time, version);
            *left = left.saturating_sub(1);
        }
        reclaimer.take_up_to(oldest)
    }

    /// Takes the record before a version out of the chain if no query sees it: the version then
    /// leads to its predecessor. Queries that have reached the record continue from there
    /// unaffected.
    fn pass_over(
        &self,
        shared: &Shared<R>,
        reclaimer: &mut Reclaimer<R>,
        version: &Version<Record<R>>,
        guard: &Guard,
    ) -> bool {
        let before = version.owned_before();
        // SAFETY: the version leads to the record, so it is not retired (READ_POINTS-2).
        let Some(other) = (unsafe { before.as_ref() }).and_then(|before| before.version(guard))
        else {
            return false;
        };
        if lock(&shared.active).has(other.time..version.time) {
            return false;
        }
        version.take_over_history(other, guard);
        let next = other.before.load(Ordering::Acquire);
        version.before.store(next, Ordering::Release);
        let moved = next.map_addr(|address| address | MOVED);
        other.before.store(moved, Ordering::Release);
        // The version now holds the bytes that were counted for the other.
        reclaimer.count(version, guard);
        if other.counted().is_some() {
            reclaimer.count(other, guard);
        }
        // SAFETY: only this version led to the record, which is in no slot (READ_POINTS-4), so no
        // thread that pins from now on finds it.
        unsafe { record::retire(before, guard) };
        reclaimer.note_passed_over(other.time);
        true
    }

    /// Reclaims a version that was taken out of the list.
    fn reclaim_one(
        &self,
        reclaimer: &mut Reclaimer<R>,
        taken: NonNull<Version<Record<R>>>,
        store: &impl TakeOut<R>,
        guard: &Guard,
    ) {
        // SAFETY: the version was in the list, so it lives until it is retired below.
        let version = unsafe { taken.as_ref() };
        let record = version.record.load(Ordering::Acquire);
        if record.addr() & HEIR != 0 {
            return self.keep(reclaimer, taken);
        }
        // SAFETY: a record is detached before it is retired, and this thread was pinned before it
        // read that it is not (READ_POINTS-5).
        if let Some(found) = unsafe { record.as_ref() } {
            if found.is_empty() {
                let mut was_there = false;
                store.take_out(found, guard, &mut |is_out| {
                    was_there = is_out;
                    found.clear_version(version);
                });
                version.detach(record);
                if was_there {
                    // SAFETY: the removal was just taken out of its slot under the lock of its key,
                    // so no thread that pins from now on finds it.
                    unsafe { record::retire(record, guard) };
                }
            } else {
                version.detach(record);
                found.clear_version(version);
            }
            // A writer has just passed the version to the successor, which still needs it.
            if !version.record.load(Ordering::Acquire).is_null() {
                return self.keep(reclaimer, taken);
            }
        }
        reclaimer.uncount(version);
        let before = version.owned_before();
        if !before.is_null() {
            // SAFETY: the record before was taken out of its slot before the version was put into
            // the list (READ_POINTS-4), and no query is left that looks for it (READ_POINTS-2), so
            // no thread that pins from now on finds it. This is the only version that leads to it.
            unsafe { record::retire(before, guard) };
        }
        unsafe fn free<R: Release>(raw: *mut u8) {
            // SAFETY: `reclaim_one` retires a version, which is not null, and its grace period is
            // over.
            unsafe { Version::free(NonNull::new_unchecked(raw.cast::<Version<Record<R>>>())) };
        }
        // SAFETY: the version is in no stamp of a record that is in the store, nor in the list, so
        // no thread that pins from now on finds it (READ_POINTS-3).
        unsafe {
            guard.retire(
                taken.as_ptr().cast(),
                size_of::<Version<Record<R>>>(),
                free::<R>,
            );
        };
    }
}

impl<R: Release> ReadPoints<R> {
    /// Visits records and removals written after one read point and up to another, in any order: at
    /// least one for each key that changed in between, and some for keys that did not change in the
    /// end. Both read points belong to running queries. O(versions kept).
    pub fn changed<'g>(
        &self,
        (from, to): (When, When),
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>),
    ) {
        let (Some(shared), true) = (self.shared.get(), from < to) else {
            return;
        };
        let mut reclaimer = lock(&shared.reclaimer);
        reclaimer.take_stacks(shared.stacks());
        for version in reclaimer.listed((from.0, to.0)) {
            if version.time > from.0
                && version.time <= to.0
                && let Some(record) = version.borne_by(guard)
            {
                visit(record);
            }
        }
    }

    /// Returns `false` if no listed version has a time after the read point of a running query. The
    /// caller knows that all versions of earlier writes are listed. Returns `true` also if that
    /// cannot be told quickly, because another thread reclaims, or many versions are left to be
    /// reclaimed. O(1).
    pub fn may_have_changed(&self, since: When) -> bool {
        let Some(shared) = self.shared.get() else {
            return true;
        };
        let Ok(mut reclaimer) = shared.reclaimer.try_lock() else {
            return true;
        };
        reclaimer.take_stacks(shared.stacks());
        let listed = reclaimer.listed((since.0, u64::MAX));
        let mut looked_at = 0;
        for version in listed {
            looked_at += 1;
            if version.time > since.0 || looked_at > LOOKED_AT {
                return true;
            }
        }
        false
    }

    /// Keeps a version that a writer passes to the successor of its record, so that it is reclaimed
    /// later.
    fn keep(&self, reclaimer: &mut Reclaimer<R>, version: NonNull<Version<Record<R>>>) {
        reclaimer.keep(self.clock.load(Ordering::Relaxed), version);
    }
}

impl<R: Release> Drop for ReadPoints<R> {
    fn drop(&mut self) {
        let Some(shared) = self.shared.get() else {
            return;
        };
        let free = |version: NonNull<Version<Record<R>>>| {
            // SAFETY: `drop` has the only reference to the store. A version is in the list once,
            // and only it leads to its record before.
            unsafe {
                let before = version.as_ref().owned_before();
                if !before.is_null() {
                    drop(RecordBox::from_raw(before));
                }
                let next = version.as_ref().next.load(Ordering::Relaxed);
                Version::free(version);
                next
            }
        };
        let mut reclaimer = lock(&shared.reclaimer);
        let tops = shared.stacks();
        let tops = tops.map(|stack| stack.load(Ordering::Relaxed));
        let tops: Vec<_> = tops.chain(std::mem::take(&mut reclaimer.rest)).collect();
        for mut top in tops {
            while let Some(version) = NonNull::new(top) {
                top = free(version);
            }
        }
        let kept = std::mem::take(&mut reclaimer.kept);
        let kept = kept.into_values().flat_map(|kept| kept.versions);
        let doubtful = std::mem::take(&mut reclaimer.doubtful);
        for version in kept.chain(doubtful) {
            free(version);
        }
    }
}
