//! The one interface behind which record stores are exchanged.
//!
//! A table needs little of a store: find a record, change one key atomically, change several keys
//! as one, and walk. The meaning of the bytes is the table's business. Two stores implement it
//! here, [`CaTree`](crate::catree::CaTree) (ordered by key bytes) and
//! [`HashTable`](crate::hash::HashTable); others can.

use crate::batch::{self, Pinning, Stepwise, Trip};
use crate::change::{BatchPlan, Busy, Change, DecideMany};
use crate::moments::{Moment, Query, When};
use crate::record::{Record, RecordBox, Release};
use crate::short_key::ShortKey;
use ats_sync::Guard;
use std::ops::ControlFlow;

pub use ats_store::{Direction, End, KeyRange, ScanPosition, SlotAnswer};

/// The key given to a walk of an unordered store is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchKey;

/// The outcome of [skipping](Ordered::skip) records.
pub type Skipped<'g, R> = ats_store::Skipped<&'g Record<R>>;

/// The place to which a walk has come: see [`Ordered::neighbour`].
pub enum Neighbour<'g, R: Release> {
    /// A key alone, which was said to do. Its record was not looked at.
    Key(ShortKey),
    /// A record.
    Record(&'g Record<R>),
}

/// The structure of a store that adapts to contention. Approximate while it is changing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Adaptation {
    /// Nodes that only lead to base nodes.
    pub route_nodes: usize,
    /// Parts of the store, each with a lock of its own.
    pub base_nodes: usize,
    /// Most route nodes on the way to a base node.
    pub depth: usize,
    /// Base nodes split in two since the store was made.
    pub splits: u64,
    /// Pairs of base nodes joined since the store was made.
    pub joins: u64,
    /// Acquisitions of base nodes' locks that had to wait.
    pub contended: u64,
    /// Acquisitions of base nodes' locks that did not.
    pub uncontended: u64,
}

/// A node of a store that adapts to contention: see [`CaTree::shape`](crate::CaTree::shape).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapeNode {
    /// The number of route nodes above it.
    pub depth: usize,
    /// The state of a base node; a route node has none.
    pub base: Option<BaseState>,
}

/// The state of a base node, a moment old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseState {
    /// The number by which it adapts: contention makes it larger until the node is split, its
    /// absence smaller until the node is joined with a neighbour.
    pub statistics: i32,
    /// Acquisitions of its lock that had to wait.
    pub contended: u64,
    /// Acquisitions of its lock that did not.
    pub uncontended: u64,
}

/// The structure of a store that hashes. Approximate while it is changing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    /// Buckets in use.
    pub buckets: usize,
    /// Lines of buckets that overflow, beyond the one that each bucket has.
    pub lines: usize,
    /// Locks that the buckets share.
    pub locks: usize,
    /// The number of times that the number of locks was doubled since the store was made.
    pub doublings: u64,
    /// The number of times that it was halved.
    pub halvings: u64,
    /// Acquisitions of these locks that had to wait.
    pub contended: u64,
    /// Acquisitions of these locks that did not.
    pub uncontended: u64,
}

/// The content of a store at one moment: see [`Backend::totals`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Objects, as the [weights](Release::weight) of the records say that readers see.
    pub objects: i64,
    /// Bytes of these records, and of those that are kept for walks.
    pub bytes: i64,
    /// Bytes of what it takes to find them; about, while the store is changing.
    pub structure: i64,
}

/// Bytes of memory that a store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// In live records.
    pub records: usize,
    /// In what it takes to find them. It becomes less also when no record is removed, since the
    /// structure adapts to how it is used.
    pub structure: usize,
}

/// A store of records.
///
/// `get`, `update` and batches are linearizable. The walks (`first`, `last`, `next`, `prev`,
/// `scan`) are not snapshots: they look at one key after the other, each as of the moment it is
/// looked at. So a key that was there throughout is not passed over, a key that was missing
/// throughout is not returned, and a walk sees every write that had returned before it began. But
/// what `next` returns need not have been the next record at any single moment.
///
/// Readers (`get` and the walks) take no lock, write no shared memory and never wait. References
/// handed out live as long as the guard.
pub trait Backend<R: Release>: Stepwise<R> + Send + Sync {
    /// The record of `key`, as of the last committed write.
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>>;

    /// The record of `key` that a query of a moment sees.
    fn get_at<'g>(&'g self, key: &[u8], when: When, guard: &'g Guard) -> Option<&'g Record<R>> {
        let _ = when;
        self.get(key, guard)
    }

    /// Begins a query of one moment. The functions that take a [`When`] show each key as of this
    /// moment until it is [ended](Backend::end): all that was done before this call, all of a batch
    /// or nothing of it, and nothing that comes after the call.
    ///
    /// Records that writers replace or remove meanwhile stay in memory until then. Costs as much as
    /// [`totals`](Backend::totals). `None` if the store has no moments: then a query sees
    /// each key as of the moment at which it comes to it.
    ///
    /// If no query runs that has prepared, `prepare` is called first, after which
    /// [`Moments::are_read`](crate::moments::Moments::are_read) says that one does: it can wait for
    /// threads that change values in place without a lock, and returns `true`. A query that does
    /// not need these values as of its moment need not, and returns `false`.
    ///
    /// [`Busy`] as for `totals`, or if `prepare` says so.
    fn begin(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<Moment>, Busy> {
        let _ = prepare;
        Ok(None)
    }

    /// Ends a query. What was kept for it is to be [cut](Backend::cut).
    fn end(&self, moment: Moment) {
        if let Some(moments) = self.moments() {
            moments.end(moment);
        }
    }

    /// Gives back up to about `budget` records that were kept for queries, and that no query needs
    /// any more. Returns `true` if none is left. To be called after [`end`](Backend::end), as often
    /// as it takes, and now and then while queries run.
    fn cut(&self, budget: usize, guard: &Guard) -> bool {
        let _ = (budget, guard);
        true
    }

    /// Does what [`get`](Backend::get) does, for a key that the thread has likely asked for by this
    /// function shortly before.
    #[inline]
    fn get_again<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Option<&'g Record<R>> {
        self.get(key, guard)
    }

    /// Says that a call for this key will follow, so that what it will touch can be fetched
    /// meanwhile. A hint; does nothing unless the store does better.
    #[inline]
    fn prefetch(&self, key: &[u8]) {
        let _ = key;
    }

    /// Changes one key atomically.
    ///
    /// `decide` sees the current record and says what to do; it runs under a lock, at most once,
    /// and must not call the store. If it panics, nothing has changed. After `Put` or `Remove` the
    /// old record may still be read by `decide`'s caller until the guard goes.
    fn update<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        batch::update(self, key, Trip::new(), guard, decide)
    }

    /// Does what [`update`](Backend::update) does, as a change that a query makes: one that has
    /// come to the key, and does not need what it replaces or removes any more. So if no other
    /// query runs, nothing is kept, and the query would find what it has put. If it has ended, this
    /// is the change of any other writer.
    fn update_by<'g>(
        &'g self,
        key: &[u8],
        query: Query,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        batch::update(self, key, Trip::by(query), guard, decide)
    }

    /// Puts a record of `key`, whatever is there. As [`update`](Backend::update) with a decision
    /// that does not look at the current record, so that a store need not look at it either.
    /// Returns `true` if there was one.
    fn put(&self, key: &[u8], record: RecordBox<R>, guard: &Guard) -> Result<bool, Busy> {
        let (mut record, mut was_there) = (Some(record), false);
        self.update(key, guard, &mut |current| {
            was_there = current.is_some();
            Change::Put(record.take().expect("decided once"))
        })?;
        Ok(was_there)
    }

    /// Removes the record of `key`. As [`put`](Backend::put).
    fn remove(&self, key: &[u8], guard: &Guard) -> Result<bool, Busy> {
        let mut was_there = false;
        self.update(key, guard, &mut |current| {
            was_there = current.is_some();
            Change::Remove
        })?;
        Ok(was_there)
    }

    /// Does what [`update`](Backend::update) does, for a decision that may take long: `decide` runs
    /// without any lock.
    ///
    /// Meanwhile readers of the key find the old record, and its other writers are [`Busy`] after a
    /// while. All other keys go on. Costs three visits to the lock of the key, and a block of
    /// memory.
    fn update_alone<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy> {
        batch::update_alone(self, key, guard, decide)
    }

    /// Changes the record at an end of the store atomically.
    ///
    /// Like [`update`](Backend::update), but of the key that is the first, or the last, at the
    /// moment of the change: `decide` sees its record, or nothing if the store is empty at that
    /// moment, after which it can change nothing. A new record must have the same key.
    ///
    /// An unordered store has no end. There `decide` sees *some* record, and nothing only if no
    /// record was there throughout the call. Removing all records by and by takes O(1) for each,
    /// amortised.
    fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Record<R>>) -> Change<R>,
    ) -> Result<(), Busy>;

    /// Changes several keys as one: every reader sees all of the changes or none.
    ///
    /// `keys` are distinct and ascending bytewise. Returns `Ok(false)` if the plan answered
    /// `Abort`, after which nothing has changed. `Err(Busy)` also leaves nothing changed, and the
    /// plan may then be asked again for all keys by a later attempt. If it panics, nothing has
    /// changed either.
    ///
    /// From the decision about a key until the batch ends no other writer changes it, also if it is
    /// kept: so all decisions are right at the moment at which the changes become visible. Words of
    /// a value that their owner [changes in place](Record::value_words) may change meanwhile, as
    /// those of any record.
    fn update_batch(
        &self,
        keys: &[&[u8]],
        guard: &Guard,
        plan: &mut dyn BatchPlan<R>,
    ) -> Result<bool, Busy> {
        batch::update_batch(self, keys, Pinning::Callers(guard), plan)
    }

    /// Does what [`update_batch`](Backend::update_batch) does, for any number of keys: pins for
    /// some hundred keys at a time, and not at all while the plan builds. The caller is not pinned,
    /// and keeps the store alive.
    fn update_long_batch(&self, keys: &[&[u8]], plan: &mut dyn BatchPlan<R>) -> Result<bool, Busy> {
        batch::update_batch(self, keys, Pinning::Own(None), plan)
    }

    /// [`update_batch`](Backend::update_batch) with a closure that decides.
    fn update_many(
        &self,
        keys: &[&[u8]],
        guard: &Guard,
        mut decide: &mut DecideMany<'_, R>,
    ) -> Result<bool, Busy> {
        self.update_batch(keys, guard, &mut decide)
    }

    /// The first record in the order of the store.
    fn first<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>>;

    /// The last record in the order of the store. Unordered stores return `first`.
    fn last<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>>;

    /// The record after `key`. Ordered stores accept any key; unordered ones need a key that is
    /// there, or was deleted since the table was fixed.
    fn next<'g>(&'g self, key: &[u8], guard: &'g Guard)
    -> Result<Option<&'g Record<R>>, NoSuchKey>;

    /// The record before `key`. Unordered stores answer as `next`.
    fn prev<'g>(&'g self, key: &[u8], guard: &'g Guard)
    -> Result<Option<&'g Record<R>>, NoSuchKey>;

    /// Visits the records after `after` (all, if `None`) in the order of the store until `visit`
    /// breaks: as of one moment, or each record as of the moment at which it is visited; then a key
    /// that is present throughout is met exactly once. `visit` must not call the store.
    fn scan<'g>(
        &'g self,
        after: Option<&[u8]>,
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    ) -> Result<(), NoSuchKey>;

    /// Visits the records behind a position in the order of the store until `visit` breaks. Also
    /// asks `pause` now and then, at least after so much work as finding a few records is, whether
    /// there were any or not; if that breaks, returns a position at which another scan goes on.
    ///
    /// Like [`scan`](Backend::scan), but goes on behind any key, whether the store is fixed or not:
    /// a key that is there throughout all these scans is met exactly once.
    fn resume_scan<'g>(
        &'g self,
        from: ScanPosition<'_>,
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<u64>;

    /// The number of objects, and of the bytes that they take, at one moment between the begin and
    /// the end of the call: all that readers have seen before is in it, and all that is in it
    /// readers see afterwards. The objects of a batch are in it together. O(parts with a lock of
    /// their own).
    ///
    /// Writers do not pay for it. While many threads write, it keeps them from entering the store
    /// for the time of a look at each part. [`Busy`] if a thread that must not wait for long would
    /// have to.
    fn totals(&self) -> Result<Totals, Busy>;

    /// About how many objects there are: exact when no update is running, else within what the
    /// updates that run change. Keeps no thread waiting. O(parts with a lock of their own).
    fn len(&self) -> usize;

    /// Returns `true` if there is no object.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// About how many bytes of memory are held, as [`len`](Backend::len).
    fn memory(&self) -> Memory;

    /// The sum of [`memory`](Backend::memory).
    fn bytes(&self) -> usize {
        let Memory { records, structure } = self.memory();
        records + structure
    }
}

/// The number of times that a caller that needs a number of one moment
/// [counts](Ordered::skip) a range, after which it asks for that
/// [at once](Ordered::skip_at_once) again. When that did not help, it walks over the records of a
/// [moment](Backend::begin).
pub const COUNTINGS: u32 = 3;

/// The ability of a store that has the order of its keys: walks from any key, in both directions,
/// and order statistics.
pub trait Ordered<R: Release>: Backend<R> {
    /// Visits the records from `from` on, itself included, in the order of the keys until `visit`
    /// breaks. As [`scan`](Backend::scan), but any key will do.
    fn scan_from<'g>(
        &'g self,
        from: &[u8],
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    );

    /// The key next to `key` in a direction, alone if the store can tell it without a look at its
    /// record, and if `will_do` says of the key, after it was found, that it will do; else its
    /// record. As [`next`](Backend::next) and [`prev`](Backend::prev).
    fn neighbour<'g>(
        &'g self,
        key: &[u8],
        direction: Direction,
        guard: &'g Guard,
        will_do: &dyn Fn(&ShortKey) -> bool,
    ) -> Option<Neighbour<'g, R>> {
        let _ = will_do;
        let found = match direction {
            Direction::Up => self.next(key, guard),
            Direction::Down => self.prev(key, guard),
        };
        // A store that has an order walks from any key.
        found.ok().flatten().map(Neighbour::Record)
    }

    /// Visits the records below `below` (all, if `None`) in descending order of the keys until
    /// `visit` breaks. As [`scan`](Backend::scan).
    fn scan_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        when: When,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
    );

    /// Passes over `most` objects of a range, or all if they are not more, from its low end upwards
    /// or from its high end downwards, and comes to the next: so it counts them, or finds the n-th.
    /// Asks `pause` now and then, and ends if that breaks.
    ///
    /// The count is exact if no thread writes meanwhile. Otherwise it is off by at most the number
    /// of updates that run meanwhile. The records of a batch count before they can be read. The
    /// record that is returned is always in the range.
    fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Skipped<'g, R>;

    /// Does what [`skip`](Ordered::skip) does, as of one moment between the begin and the end of
    /// the call: it counts all objects that readers saw then, those of a batch together. Never
    /// pauses.
    ///
    /// `None` if the store cannot tell within some fifty microseconds: it has not counted enough of
    /// the range, which `skip` does; or batches are open all the time; or it has no such ability.
    /// Meanwhile all writers wait. O(log n) and O(parts with a lock of their own).
    fn skip_at_once<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
    ) -> Option<Skipped<'g, R>> {
        let _ = (key_range, direction, most, guard);
        None
    }
}

/// The ability of a store to be walked by numbers.
pub trait Slots<R: Release>: Backend<R> {
    /// Visits the records of slot `index`: the slots, numbered from 0, divide the store, and each
    /// record is in one of them. The number and the content of the slots of a [fixed](Fixable::fix)
    /// store do not depend on what is inserted meanwhile.
    fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Record<R>),
    ) -> SlotAnswer;
}

/// The ability of a store to keep what walks remember. A store that has an order needs to do
/// nothing for that.
pub trait Fixable {
    /// Starts a period in which a walk returns every record that stays, exactly once, and may
    /// continue from a key that was deleted meanwhile. Nests. Waits for removals that have begun.
    fn fix(&self);

    /// Ends a period started by [`fix`](Fixable::fix). [`tidy`](Fixable::tidy) removes what was
    /// kept for the walks.
    fn unfix(&self);

    /// Does up to about `budget` records' worth of work that was put off, unless the store is
    /// fixed. Returns `true` if nothing is left to do. To be called after `unfix`, as often as it
    /// takes.
    fn tidy(&self, budget: usize, guard: &Guard) -> bool;
}

/// The ability of a store to adapt to the contention of its writers.
pub trait Adaptive {
    /// Lets parts that no writer came to since the last call drift together: the decay by which a
    /// store that is only read, or not used, gets fewer parts again. A bounded amount of work; to
    /// be called now and then. Returns `true` if nothing is left to join.
    fn join_idle(&self, guard: &Guard) -> bool {
        let _ = guard;
        true
    }

    /// For tests: from now on one of `splits` writes forces a split of the part it writes to, and
    /// one of `joins` a join; 0 is never. A store that hashes doubles or halves the number of its
    /// locks instead, and gets a few buckets more or less than it should have.
    #[cfg(feature = "forcing")]
    fn force_adaptation(&self, splits: u32, joins: u32) {
        let _ = (splits, joins);
    }
}

/// A store with all abilities that do not depend on an order.
pub trait MemoryStore<R: Release>: Backend<R> + Slots<R> + Fixable + Adaptive {}

impl<R: Release, S: Backend<R> + Slots<R> + Fixable + Adaptive> MemoryStore<R> for S {}

/// A store with all abilities.
pub trait OrderedStore<R: Release>: MemoryStore<R> + Ordered<R> {}

impl<R: Release, S: MemoryStore<R> + Ordered<R>> OrderedStore<R> for S {}
