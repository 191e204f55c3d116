//! The record store of a table: one of those in memory, or one of bytes.

pub(crate) mod bag_values;
pub(crate) mod byte_store;
pub(crate) mod codec;
pub(crate) mod idle_joiner;
mod long_batches;
pub(crate) mod object_merge;
pub(crate) mod operator;
mod passing;
pub(crate) mod past;
pub mod program_merge;
mod reported;
pub(crate) mod store_ref;

use crate::background::{self, FreeInSlices};
use crate::bag::Decided;
use crate::error::Error;
use crate::value::{Rec, Values};
use ats_mem::batch::Stepwise;
use ats_mem::moments::{self, Moments};
use ats_mem::sequence::Leftovers;
use ats_mem::{
    Adaptation, Adaptive, Backend, BatchPlan, Buckets, Busy, CaTree, Change, Fixable, HashTable,
    Neighbour, NoSuchKey, OnFirstSplit, Ordered, RecordBox, ShapeNode, ShortKey, Skipped, Slots,
    When,
};
use ats_store::{Bags, Direction, End, KeyRange, ScanPosition, SlotAnswer};
use ats_sync::Guard;
use ats_sync::count::atomic::{AtomicBool, Ordering};
use ats_term::image::Host;
use byte_store::ByteStore;
use idle_joiner::{JoinIdle, Listed};
use long_batches::LongBatches;
use passing::{Unit, Visit, pass_records};
use past::Past;
use reported::Reported;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// A call on the records, which are in memory, or in a store of bytes or of the past.
macro_rules! either {
    ($records:expr, $backend:ident => $call:expr, $bytes:pat => $on_bytes:expr) => {
        match $records {
            Records::Ordered($backend) => $call,
            Records::Hash($backend) => $call,
            #[cfg(feature = "rivals")]
            Records::Rival(rival) => {
                let $backend = rival.records();
                $call
            }
            Records::Bytes($bytes) => $on_bytes,
            Records::Past($bytes) => $on_bytes,
        }
    };
}

/// Calls a function like `either`, where both have the same.
macro_rules! each {
    ($records:expr, $backend:ident => $call:expr) => {
        either!($records, $backend => $call, $backend => $call)
    };
}

/// Calls a function like `each`, for calls that cannot fail in memory.
macro_rules! read {
    ($records:expr, $backend:ident => $call:expr) => {
        either!($records, $backend => Ok($call), $backend => $call)
    };
}

/// Calls a function like `read`, of stores that have an order.
macro_rules! read_ordered {
    ($records:expr, $backend:ident => $call:expr) => {
        match $records {
            Records::Ordered($backend) => Ok($call),
            Records::Hash(_) => Err(Error::TableType),
            #[cfg(feature = "rivals")]
            Records::Rival(rival) => match rival.as_ordered() {
                Some($backend) => Ok($call),
                None => Err(Error::TableType),
            },
            Records::Bytes($backend) => $call,
            Records::Past($backend) => $call,
        }
    };
}

/// Calls a function like `each`, of stores in memory only.
macro_rules! in_memory {
    ($records:expr, $backend:ident => $call:expr, $on_bytes:expr) => {
        either!($records, $backend => $call, _ => $on_bytes)
    };
}

/// The records of a table, and the state that belongs to them, at a time.
pub(crate) struct Store<H: Host> {
    records: Records<H>,
    listed: Listed,
    reported: Mutex<Reported>,
    /// `true` if it was taken out of its table, and is there for queries only.
    is_taken_out: AtomicBool,
    long_batches: LongBatches,
}

/// A store with at most this many records is freed at once, a larger one in the background.
const FREED_AT_ONCE: usize = 1_000;
/// Records freed in one slice, or tidied up in one go.
pub(crate) const SLICE: usize = 2_000;
/// The time between two looks at whether writers are through.
const WRITERS_PAUSE: Duration = Duration::from_micros(100);

/// The records, in the store that was chosen when the table was made. An enum and not a `dyn` of
/// one trait, so that the way of a lookup in memory is known to the compiler.
pub(crate) enum Records<H: Host> {
    /// In memory, in the order of keys.
    Ordered(CaTree<Values<H>>),
    /// In memory, without order.
    Hash(HashTable<Values<H>>),
    /// In a store for comparison.
    #[cfg(feature = "rivals")]
    Rival(ats_rivals::RivalStore<Values<H>>),
    /// In a store of bytes.
    Bytes(ByteStore<H>),
    /// Those of another store, as they were at a moment.
    Past(Past<H>),
}

impl<H: Host> Records<H> {
    /// In memory, without records.
    pub(crate) fn in_memory(ordered: bool, is_bag: bool) -> Self {
        match (ordered, is_bag) {
            (true, false) => Records::Ordered(CaTree::new()),
            (true, true) => Records::Ordered(CaTree::of_many_objects()),
            (false, _) => Records::Hash(HashTable::new()),
        }
    }
}

/// The way in which a store is cleared.
pub(crate) enum Cleared<H: Host> {
    /// It is to be exchanged for this one, which is empty.
    Fresh(Arc<Store<H>>),
    /// It is empty now, and this is what was in it.
    Taken(Arc<Store<H>>),
}

pub(crate) type Decide<'a, 'g, H> = dyn FnMut(Option<&'g Rec<H>>) -> Change<Values<H>> + 'a;
pub(crate) type DecideShort<'a, 'g, H> =
    dyn FnMut(Option<&'g Rec<H>>, bool) -> Option<Change<Values<H>>> + 'a;
pub(crate) type DecideBag<'a, 'g, H> = dyn FnMut(Option<&'g Rec<H>>) -> Decided<H> + 'a;
/// The result of a step from a key.
pub(crate) type StepTo<'g, H> = Result<Option<Neighbour<'g, Values<H>>>, NoSuchKey>;

impl<H: Host> Store<H> {
    /// A store of these records, of which there are none yet. Its idle parts are joined in the
    /// background.
    pub(crate) fn new(records: Records<H>) -> Arc<Self> {
        // Its retired records are freed also when no thread works on tables any more.
        background::start();
        let store = |records| Store {
            records,
            reported: Mutex::default(),
            listed: Listed::new(),
            is_taken_out: AtomicBool::new(false),
            long_batches: LongBatches::default(),
        };
        match records {
            Records::Ordered(mut tree) => Arc::new_cyclic(|itself: &Weak<Self>| {
                tree.on_first_split(itself.clone());
                store(Records::Ordered(tree))
            }),
            records => Arc::new(store(records)),
        }
    }

    /// Makes the store that takes the place of this one when it is cleared.
    pub(crate) fn make_cleared(&self) -> Result<Cleared<H>, Error> {
        Ok(match &self.records {
            Records::Ordered(tree) => Cleared::Fresh(Store::new(Records::Ordered(tree.another()))),
            Records::Hash(_) => Cleared::Fresh(Store::new(Records::Hash(HashTable::new()))),
            #[cfg(feature = "rivals")]
            Records::Rival(rival) => {
                Cleared::Fresh(Store::new(Records::Rival(rival.rival().store())))
            }
            Records::Bytes(records) => {
                let taken = Records::Bytes(records.take_all()?);
                Cleared::Taken(Store::new(taken))
            }
            Records::Past(_) => return Err(Error::Snapshot),
        })
    }

    #[inline]
    pub(crate) fn get<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        read!(&self.records, backend => backend.get(key, guard))
    }

    /// The record of a key that a query of a moment sees.
    pub(crate) fn get_at<'g>(
        &'g self,
        key: &[u8],
        when: When,
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        in_memory!(
            &self.records,
            backend => Ok(backend.get_at(key, when, guard)),
            self.get(key, guard)
        )
    }

    /// See [`Backend::begin`].
    pub(crate) fn begin(
        &self,
        prepare: &mut dyn FnMut() -> Result<bool, Busy>,
    ) -> Result<Option<ats_mem::Moment>, Error> {
        in_memory!(&self.records, backend => Ok(backend.begin(prepare)?), Ok(None))
    }

    /// See [`Backend::end`].
    pub(crate) fn end(&self, moment: ats_mem::Moment) {
        in_memory!(&self.records, backend => backend.end(moment), ());
    }

    /// Gives back up to about `budget` records that were kept for queries; true if none is left.
    pub(crate) fn cut(&self, budget: usize) -> bool {
        let guard = ats_sync::pin();
        in_memory!(&self.records, backend => backend.cut(budget, &guard), true)
    }

    /// Bytes of memory that are held back for queries, about: what only they read.
    pub(crate) fn held_bytes(&self) -> usize {
        if self.is_taken_out.load(Ordering::Relaxed) {
            return self.about_bytes();
        }
        let moments = in_memory!(&self.records, backend => backend.moments(), None);
        moments.map_or(0, Moments::held_bytes)
    }

    /// Visits records of keys that changed from one moment to another: see [`Moments::changed`].
    pub(crate) fn changed(
        &self,
        moments: (When, When),
        guard: &Guard,
        visit: &mut dyn FnMut(&Rec<H>),
    ) {
        let known = in_memory!(&self.records, backend => backend.moments(), None);
        if let Some(known) = known {
            known.changed(moments, guard, visit);
        }
    }

    /// Returns `true` if it shows a moment of another one.
    pub(crate) fn is_of_past(&self) -> bool {
        matches!(self.records, Records::Past(_))
    }

    /// Waits until all writers are through that were in the store. For a thread that is not pinned.
    pub(crate) fn wait_for_writers(&self) {
        let grace = ats_sync::pin().grace();
        let begun = self.long_batches.begun();
        while !grace.is_over() || !self.long_batches.are_done_before(begun) {
            std::thread::sleep(WRITERS_PAUSE);
        }
    }

    /// Says that it was taken out of its table.
    pub(crate) fn set_taken_out(&self) {
        self.is_taken_out.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if a query of an earlier moment runs, or none does and this thread holds no
    /// lock of the store.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        if self.is_of_past() {
            return true;
        }
        let moments = in_memory!(&self.records, backend => backend.moments(), None);
        moments.is_some_and(Moments::are_read)
    }

    /// Does what [`get`](Store::get) does, for a key that the process has likely asked for shortly
    /// before.
    #[inline]
    pub(crate) fn get_again<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        match &self.records {
            Records::Ordered(tree) => Ok(tree.get_again(key, guard)),
            _ => self.get(key, guard),
        }
    }

    /// Shows keys and values of a store of bytes.
    pub(crate) fn scan_bytes(
        &self,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut ats_store::store::Visit<'_>,
    ) -> Result<(), Error> {
        match &self.records {
            Records::Bytes(records) => records.scan_bytes(key_range, direction, visit),
            _ => Err(Error::TableType),
        }
    }

    /// A bound that divides the records of a range in a store of bytes.
    pub(crate) fn median_bytes(&self, key_range: KeyRange<'_>) -> Result<Option<Vec<u8>>, Error> {
        match &self.records {
            Records::Bytes(records) => records.median_bytes(key_range),
            _ => Err(Error::TableType),
        }
    }

    #[inline]
    pub(crate) fn prefetch(&self, key: &[u8]) {
        in_memory!(&self.records, backend => backend.prefetch(key), ());
    }

    pub(crate) fn update<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        each!(&self.records, backend => Ok(backend.update(key, guard, decide)?))
    }

    /// Does what [`update`](Store::update) does, for a query if one is given: see
    /// [`Backend::update_by`].
    pub(crate) fn update_by<'g>(
        &'g self,
        key: &[u8],
        by: Option<moments::Query>,
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        let Some(query) = by else {
            return self.update(key, guard, decide);
        };
        in_memory!(
            &self.records,
            backend => Ok(backend.update_by(key, query, guard, decide)?),
            self.update(key, guard, decide)
        )
    }

    /// Puts a record of a key, whatever is there.
    #[inline]
    pub(crate) fn put(
        &self,
        key: &[u8],
        record: RecordBox<Values<H>>,
        guard: &Guard,
    ) -> Result<(), Error> {
        let mut new = Some(record);
        let mut new = || new.take().expect("put once");
        in_memory!(
            &self.records,
            backend => Ok(backend.put(key, new(), guard).map(drop)?),
            self.update(key, guard, &mut |_| Change::Put(new()))
        )
    }

    /// Removes all objects of a key. A [counter](crate::counter_cell) need not be stopped: what is
    /// counted too late counts as done before.
    #[inline]
    pub(crate) fn remove(&self, key: &[u8], guard: &Guard) -> Result<(), Error> {
        in_memory!(
            &self.records,
            backend => Ok(backend.remove(key, guard).map(drop)?),
            self.update(key, guard, &mut |current| match current {
                Some(_) => Change::Remove,
                None => Change::Keep,
            })
        )
    }

    /// Does what [`update`](Store::update) does, for a decision that may take long: no lock is held
    /// meanwhile, only the key.
    pub(crate) fn update_alone<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        each!(&self.records, backend => Ok(backend.update_alone(key, guard, decide)?))
    }

    /// Does what [`update`](Store::update) does, for a decision that may turn out to take long: see
    /// [the lock budget](crate::lock_budget). `decide` is told whether the key is held alone. If it
    /// is not, other keys may wait, and `decide` returns `None` if it would take long; then it is
    /// called again while the key is held alone. `by` is as for [`update_by`](Store::update_by).
    #[inline]
    pub(crate) fn update_short<'g>(
        &'g self,
        key: &[u8],
        by: Option<moments::Query>,
        guard: &'g Guard,
        decide: &mut DecideShort<'_, 'g, H>,
    ) -> Result<(), Error> {
        if self.is_too_long_to_update(key, by, guard, &mut |current| decide(current, false))? {
            self.update_alone(key, guard, &mut |current| {
                let change = decide(current, true);
                change.expect("a key that is held alone can be changed")
            })?;
        }
        Ok(())
    }

    /// Does what [`update`](Store::update) does, unless `decide` returns `None` because it would
    /// take long. Returns `true` if it did; then nothing has changed.
    #[inline]
    pub(crate) fn is_too_long_to_update<'g>(
        &'g self,
        key: &[u8],
        by: Option<moments::Query>,
        guard: &'g Guard,
        decide: &mut dyn FnMut(Option<&'g Rec<H>>) -> Option<Change<Values<H>>>,
    ) -> Result<bool, Error> {
        let mut is_long = false;
        self.update_by(key, by, guard, &mut |current| {
            decide(current).unwrap_or_else(|| {
                is_long = true;
                Change::Keep
            })
        })?;
        Ok(is_long)
    }

    /// The store for comparison that this is, if it is one.
    #[cfg(feature = "rivals")]
    pub(crate) fn rival(&self) -> Option<ats_rivals::Rival> {
        match &self.records {
            Records::Rival(rival) => Some(rival.rival()),
            _ => None,
        }
    }

    /// See [`Backend::update_batch`].
    pub(crate) fn update_batch(
        &self,
        keys: &[&[u8]],
        guard: &Guard,
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        each!(&self.records, backend => Ok(backend.update_batch(keys, guard, plan)?))
    }

    /// See [`Backend::update_long_batch`]. For a [`LongBatch`](store_ref::LongBatch), since the
    /// caller is not pinned.
    fn update_long_batch(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        each!(&self.records, backend => Ok(backend.update_long_batch(keys, plan)?))
    }

    pub(crate) fn first<'g>(&'g self, guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        read!(&self.records, backend => backend.first(guard))
    }

    pub(crate) fn last<'g>(&'g self, guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        read!(&self.records, backend => backend.last(guard))
    }

    pub(crate) fn next<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Result<Option<&'g Rec<H>>, NoSuchKey>, Error> {
        read!(&self.records, backend => backend.next(key, guard))
    }

    pub(crate) fn prev<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Result<Option<&'g Rec<H>>, NoSuchKey>, Error> {
        read!(&self.records, backend => backend.prev(key, guard))
    }

    /// See [`Ordered::neighbour`]. Returns the key after one if there is no order.
    #[inline]
    pub(crate) fn neighbour<'g>(
        &'g self,
        key: &[u8],
        direction: Direction,
        guard: &'g Guard,
        will_do: &dyn Fn(&ShortKey) -> bool,
    ) -> Result<StepTo<'g, H>, Error> {
        if let Records::Ordered(tree) = &self.records {
            return Ok(Ok(tree.neighbour(key, direction, guard, will_do)));
        }
        let found = match direction {
            Direction::Up => self.next(key, guard)?,
            Direction::Down => self.prev(key, guard)?,
        };
        Ok(found.map(|record| record.map(Neighbour::Record)))
    }

    pub(crate) fn scan<'g>(
        &'g self,
        after: Option<&[u8]>,
        when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<Result<(), NoSuchKey>, Error> {
        read!(&self.records, backend => backend.scan(after, when, guard, visit))
    }

    pub(crate) fn scan_from<'g>(
        &'g self,
        from: &[u8],
        when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error> {
        read_ordered!(&self.records, backend => backend.scan_from(from, when, guard, visit))
    }

    pub(crate) fn scan_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error> {
        read_ordered!(&self.records, backend => backend.scan_down(below, when, guard, visit))
    }

    pub(crate) fn resume_scan<'g>(
        &'g self,
        from: ScanPosition<'_>,
        when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, Error> {
        read!(&self.records, backend => backend.resume_scan(from, when, guard, visit, pause))
    }

    pub(crate) fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Rec<H>),
    ) -> Result<SlotAnswer, Error> {
        read!(&self.records, backend => backend.slot(index, guard, visit))
    }

    pub(crate) fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Skipped<'g, Values<H>>, Error> {
        read_ordered!(&self.records, backend => {
            backend.skip(key_range, direction, most, guard, pause)
        })
    }

    /// See [`Ordered::skip_at_once`]. `None` also if the store is not an ordered one in memory.
    pub(crate) fn skip_at_once<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
    ) -> Option<Skipped<'g, Values<H>>> {
        match &self.records {
            Records::Ordered(tree) => tree.skip_at_once(key_range, direction, most, guard),
            _ => None,
        }
    }

    /// Does what [`skip`](Self::skip) does, at a moment that a query reads. O(records passed).
    pub(crate) fn skip_at<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        (when, guard): (When, &'g Guard),
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Skipped<'g, Values<H>>, Error> {
        let KeyRange { low, high } = key_range;
        let scan = |visit: &mut Visit<'_, 'g, H>| match direction {
            Direction::Up => self.scan_from(low.unwrap_or_default(), when, guard, visit),
            Direction::Down => self.scan_down(high, when, guard, visit),
        };
        pass_records(key_range, direction, (most, Unit::Objects), pause, scan)
    }

    /// Returns `true` if queries of the store can read one moment.
    pub(crate) fn has_moments(&self) -> bool {
        in_memory!(&self.records, backend => backend.moments().is_some(), false)
    }

    /// Number of objects, at one moment: see [`Backend::totals`].
    pub(crate) fn objects(&self) -> Result<usize, Error> {
        match &self.records {
            Records::Bytes(records) => return records.objects(),
            Records::Past(past) => return Ok(past.objects()),
            _ => {}
        }
        let totals = in_memory!(&self.records, backend => backend.totals(), unreachable!());
        Ok(usize::try_from(totals?.objects).unwrap_or(0))
    }

    /// Bytes of memory, at one moment, which become fewer only if objects are removed or become
    /// smaller: see [`Reported`].
    pub(crate) fn bytes(&self) -> Result<usize, Error> {
        if let Records::Bytes(_) | Records::Past(_) = &self.records {
            return Ok(self.about_bytes());
        }
        // Calls beside each other report one after the other, each what it has found after the one
        // before.
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = in_memory!(&self.records, backend => backend.totals(), unreachable!())?;
        let bytes = |bytes| usize::try_from(bytes).unwrap_or(0);
        Ok(reported.report(bytes(totals.bytes), bytes(totals.structure)))
    }

    /// About how many bytes of memory it has.
    pub(crate) fn about_bytes(&self) -> usize {
        each!(&self.records, backend => backend.bytes())
    }

    /// The ability to change objects of a bag without the others of their key, where the store of
    /// bytes has it.
    pub(crate) fn bags(&self) -> Option<(&ByteStore<H>, &dyn Bags)> {
        match &self.records {
            Records::Bytes(records) => records.bags().map(|bags| (records, bags)),
            _ => None,
        }
    }

    /// Does what [`update`](Store::update) does, for the objects of a key of a bag.
    pub(crate) fn update_bag<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut DecideBag<'_, 'g, H>,
    ) -> Result<(), Error> {
        self.update_bag_by(key, None, guard, decide)
    }

    /// Does what [`update_bag`](Store::update_bag) does, as [`update_by`](Store::update_by).
    pub(crate) fn update_bag_by<'g>(
        &'g self,
        key: &[u8],
        by: Option<moments::Query>,
        guard: &'g Guard,
        decide: &mut DecideBag<'_, 'g, H>,
    ) -> Result<(), Error> {
        let mut leftovers = None;
        self.update_by(key, by, guard, &mut |current| {
            let change;
            (change, leftovers) = decide(current);
            change
        })?;
        retire(leftovers, guard);
        Ok(())
    }

    /// Does what [`update_bag`](Store::update_bag) does, for the key at an end of the store.
    pub(crate) fn update_end<'g>(
        &'g self,
        end: End,
        guard: &'g Guard,
        decide: &mut DecideBag<'_, 'g, H>,
    ) -> Result<(), Error> {
        let mut leftovers = None;
        let mut decide = |current| {
            let change;
            (change, leftovers) = decide(current);
            change
        };
        each!(&self.records, backend => backend.update_end(end, guard, &mut decide)?);
        retire(leftovers, guard);
        Ok(())
    }

    pub(crate) fn fix(&self) {
        each!(&self.records, backend => backend.fix());
    }

    pub(crate) fn unfix(&self) {
        each!(&self.records, backend => backend.unfix());
    }

    /// Does up to about `budget` records' worth of work that was put off; true when nothing is
    /// left.
    pub(crate) fn tidy(&self, budget: usize, guard: &Guard) -> bool {
        in_memory!(&self.records, backend => backend.tidy(budget, guard), true)
    }

    pub(crate) fn adaptation(&self) -> Option<Adaptation> {
        match &self.records {
            Records::Ordered(tree) => Some(tree.adaptation()),
            _ => None,
        }
    }

    pub(crate) fn shape(&self) -> Option<Vec<ShapeNode>> {
        match &self.records {
            Records::Ordered(tree) => Some(tree.shape()),
            _ => None,
        }
    }

    pub(crate) fn buckets(&self) -> Option<Buckets> {
        match &self.records {
            Records::Hash(table) => Some(table.buckets()),
            _ => None,
        }
    }

    #[cfg(feature = "forcing")]
    pub(crate) fn force_adaptation(&self, splits: u32, joins: u32) {
        in_memory!(&self.records, backend => backend.force_adaptation(splits, joins), ());
    }
}

impl<H: Host> JoinIdle for Store<H> {
    fn list_flag(&self) -> &Listed {
        &self.listed
    }

    fn join_idle(&self) -> bool {
        let guard = ats_sync::pin();
        in_memory!(&self.records, backend => backend.join_idle(&guard), true)
    }

    fn cut_slice(&self) -> bool {
        self.cut(SLICE)
    }

    /// The last reference frees the store: at once if it is small, else in the background. It is
    /// not known how long a store of bytes takes.
    fn release(self: Arc<Self>) {
        let is_large = match &self.records {
            Records::Past(_) => false,
            records => in_memory!(records, backend => backend.len() > FREED_AT_ONCE, true),
        };
        if is_large && let Some(store) = Arc::into_inner(self) {
            background::free(Box::new(store));
        }
    }
}

impl<H: Host> OnFirstSplit for Store<H> {
    fn has_split(self: Arc<Self>) {
        // The writer that calls this is in the store, so this reference is not the last.
        idle_joiner::notice(&self);
    }
}

impl<H: Host> FreeInSlices for Store<H> {
    fn free_slice(&mut self) -> bool {
        match &mut self.records {
            Records::Ordered(tree) => tree.free_some(SLICE),
            Records::Hash(table) => table.free_some(SLICE),
            // Freed as a whole, in the background.
            _ => true,
        }
    }
}

/// Retires what a change of a bag, which has just been made, has left of the version before.
fn retire<H: Host>(leftovers: Option<Leftovers<Values<H>>>, guard: &Guard) {
    if let Some(leftovers) = leftovers {
        // SAFETY: the record of the old version has been replaced, so no reader finds it any more.
        unsafe { leftovers.retire(guard) };
    }
}
