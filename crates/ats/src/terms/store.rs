//! The record store of a table: in memory, or in a store of bytes.

pub(crate) mod bag_values;
pub(crate) mod bytes;
pub(crate) mod codec;
pub(crate) mod limited;
mod long_batches;
mod memory;
pub(crate) mod object_merge;
pub(crate) mod operator;
pub(crate) mod overlay;
pub mod program_merge;
pub(crate) mod records;
mod reported;
pub(crate) mod store_ref;

use crate::background::{self, FreeInSlices};
use crate::idle_joiner::{self, JoinIdle, Listed};
use crate::terms::bag::Decided;
use crate::terms::error::Error;
use crate::terms::note::Dating;
use crate::terms::value::{Rec, Values};
use ats_mem::batch;
use ats_mem::read_points::{self, ReadPoints};
use ats_mem::sequence::Leftovers;
use ats_mem::{
    Adaptation, BatchPlan, Beside, Buckets, Busy, CaTree, Change, HashTable, OnFirstSplit,
    ReadPoint, RecordBox, ShapeNode, ShortKey, Skipped, Totals, Transaction, Upkeep, Walk, When,
};
use ats_store::{Bags, Direction, End, KeyRange, SlotAnswer};
use ats_sync::Guard;
use ats_sync::count::atomic::{AtomicBool, Ordering};
use ats_term::image::Host;
use bytes::ByteStore;
use limited::{Limited, Limits, OnFirstEntry, OnGone, TimeLeft};
use long_batches::LongBatches;
use records::{Decide, StepTo, TableRecords, Visit, Walked};
use reported::Reported;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Defines functions of a [`Store`] that forward to its records. The compiler knows the type of the
/// records in memory: see [`TableRecords`].
macro_rules! forward {
    ($(
        $(#[$meta:meta])*
        fn $name:ident<$g:lifetime>(
            &$_g:lifetime $self:ident $(, $argument:ident: $type:ty)*
        ) -> $return:ty;
    )*) => {$(
        $(#[$meta])*
        pub(crate) fn $name<$g>(&$g $self $(, $argument: $type)*) -> $return {
            match &$self.records {
                Records::Ordered(store) => store.$name($($argument),*),
                Records::Hash(store) => store.$name($($argument),*),
                Records::OrderedLimited(store) => store.$name($($argument),*),
                Records::HashLimited(store) => store.$name($($argument),*),
                #[cfg(feature = "rivals")]
                Records::Rival(_, store) => store.$name($($argument),*),
                Records::Bytes(store) => store.$name($($argument),*),
                Records::Past(store) => store.$name($($argument),*),
            }
        }
    )*};
}

/// Matches the records of a [`Store`] that has limits, in a tree or a hash table.
macro_rules! if_limited {
    ($store:ident, $limited:ident => $then:expr, $otherwise:expr) => {
        match &$store.records {
            Records::OrderedLimited($limited) => $then,
            Records::HashLimited($limited) => $then,
            _ => $otherwise,
        }
    };
}

/// The current records of a table, and the state that belongs to them.
pub(crate) struct Store<H: Host> {
    records: Records<H>,
    listed: Listed,
    reported: Mutex<Reported>,
    /// `true` if the store was taken out of its table, and serves only queries.
    is_taken_out: AtomicBool,
    long_batches: LongBatches,
}

/// Maximum number of records of a store that is freed at once; a larger store is freed in the
/// background.
const FREED_AT_ONCE: usize = 1_000;
/// Number of records that are freed in one slice, or tidied up in one call.
pub(crate) const SLICE: usize = 2_000;
/// Interval at which the end of writers is polled.
const WRITERS_PAUSE: Duration = Duration::from_micros(100);
/// Time for which a quick look waits for writers.
const WRITERS_SHORT: Duration = Duration::from_micros(20);

/// The records, in the kind of store that was chosen when the table was made. An enum, so that the
/// compiler knows the path of a lookup in memory.
pub(crate) enum Records<H: Host> {
    /// A CA tree: records in memory, in the order of keys.
    Ordered(CaTree<Values<H>>),
    /// A hash table: records in memory, without order.
    Hash(HashTable<Values<H>>),
    /// A CA tree with limits. A box, so that other tables are no larger.
    OrderedLimited(Box<Limited<CaTree<Values<H>>, H>>),
    /// A hash table with limits.
    HashLimited(Box<Limited<HashTable<Values<H>>, H>>),
    /// A rival store.
    #[cfg(feature = "rivals")]
    Rival(ats_rivals::Rival, Box<dyn TableRecords<H>>),
    /// A store of bytes.
    Bytes(ByteStore<H>),
    /// A moment of another store.
    Past(Arc<dyn TableRecords<H>>),
}

impl<H: Host> Records<H> {
    /// Returns an empty store in memory.
    pub(crate) fn in_memory(ordered: bool, is_bag: bool) -> Self {
        match (ordered, is_bag) {
            (true, false) => Records::Ordered(CaTree::new()),
            (true, true) => Records::Ordered(CaTree::of_many_objects()),
            (false, _) => Records::Hash(HashTable::new()),
        }
    }

    /// Returns these records, which are empty and in memory, as records with limits, of which
    /// `on_gone` is told. Returns `None` if they are in another store.
    pub(crate) fn limited(
        self,
        limits: Limits,
        on_gone: Option<Arc<dyn OnGone<H>>>,
    ) -> Option<Self> {
        match self {
            Records::Ordered(tree) => {
                let limited = Limited::new(tree, limits, on_gone);
                Some(Records::OrderedLimited(Box::new(limited)))
            }
            Records::Hash(table) => {
                let limited = Limited::new(table, limits, on_gone);
                Some(Records::HashLimited(Box::new(limited)))
            }
            _ => None,
        }
    }
}

#[cfg(feature = "rivals")]
impl<H: Host> Records<H> {
    /// Returns an empty rival store.
    pub(crate) fn of_rival(rival: ats_rivals::Rival) -> Self {
        struct Boxing;

        impl<H: Host> ats_rivals::StoreUser<Values<H>> for Boxing {
            type Use = Box<dyn TableRecords<H>>;

            fn accept<S: ats_mem::Records<Values<H>> + 'static>(self, store: S) -> Self::Use {
                Box::new(store)
            }
        }

        Records::Rival(rival, rival.make(Boxing))
    }
}

/// The result of clearing a store.
pub(crate) enum Cleared<H: Host> {
    /// An empty store that is to replace the old one.
    Fresh(Arc<Store<H>>),
    /// The store is empty now, and this other one has its records.
    Taken(Arc<Store<H>>),
}

pub(crate) type DecideShort<'a, 'g, H> =
    dyn FnMut(Option<&'g Rec<H>>, bool) -> Option<Change<Values<H>>> + 'a;
pub(crate) type DecideBag<'a, 'g, H> = dyn FnMut(Option<&'g Rec<H>>) -> Decided<H> + 'a;

impl<H: Host> Store<H> {
    /// Returns a store of these records, which are empty. Its idle parts are joined in the
    /// background.
    pub(crate) fn new(records: Records<H>) -> Arc<Self> {
        // The thread also frees retired records when no other thread works on tables any more.
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
            Records::OrderedLimited(mut limited) => Arc::new_cyclic(|itself: &Weak<Self>| {
                limited.records_mut().on_first_split(itself.clone());
                limited.set_owner(itself.clone());
                store(Records::OrderedLimited(limited))
            }),
            Records::HashLimited(limited) => Arc::new_cyclic(|itself: &Weak<Self>| {
                limited.set_owner(itself.clone());
                store(Records::HashLimited(limited))
            }),
            records => Arc::new(store(records)),
        }
    }

    /// Makes the store that replaces this one when it is cleared.
    pub(crate) fn make_cleared(&self) -> Result<Cleared<H>, Error> {
        // The new store tells of the objects that have expired before.
        if_limited!(self, limited => limited.sweep_if_told()?, ());
        Ok(match &self.records {
            Records::Ordered(tree) => Cleared::Fresh(Store::new(Records::Ordered(tree.another()))),
            Records::Hash(_) => Cleared::Fresh(Store::new(Records::Hash(HashTable::new()))),
            Records::OrderedLimited(limited) => {
                let (tree, limits) = (limited.records().another(), limited.limits());
                let fresh = Limited::new(tree, limits, limited.on_gone());
                Cleared::Fresh(Store::new(Records::OrderedLimited(Box::new(fresh))))
            }
            Records::HashLimited(limited) => {
                let (table, limits) = (HashTable::new(), limited.limits());
                let fresh = Limited::new(table, limits, limited.on_gone());
                Cleared::Fresh(Store::new(Records::HashLimited(Box::new(fresh))))
            }
            #[cfg(feature = "rivals")]
            Records::Rival(rival, _) => Cleared::Fresh(Store::new(Records::of_rival(*rival))),
            Records::Bytes(records) => {
                let taken = Records::Bytes(records.take_all()?);
                Cleared::Taken(Store::new(taken))
            }
            Records::Past(_) => return Err(Error::Snapshot),
        })
    }

    forward! {
        fn is_ordered<'g>(&'g self) -> bool;
        #[inline]
        fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error>;
        #[inline]
        fn get_at<'g>(
            &'g self,
            key: &[u8],
            when: When,
            guard: &'g Guard
        ) -> Result<Option<&'g Rec<H>>, Error>;
        #[inline]
        fn get_again<'g>(
            &'g self,
            key: &[u8],
            guard: &'g Guard
        ) -> Result<Option<&'g Rec<H>>, Error>;
        #[inline]
        fn has_key<'g>(&'g self, key: &[u8], guard: &Guard) -> Result<bool, Error>;
        #[inline]
        fn prefetch<'g>(&'g self, key: &[u8]) -> ();
        fn prefetch_records<'g>(&'g self, keys: &[&[u8]], guard: &'g Guard) -> ();
        fn walk<'g>(
            &'g self,
            walk: Walk<'_>,
            guard: &'g Guard,
            visit: &mut Visit<'_, 'g, H>,
            pause: &mut dyn FnMut() -> ControlFlow<()>
        ) -> Result<Walked, Error>;
        #[inline(always)]
        fn beside<'g>(
            &'g self,
            key: Option<&[u8]>,
            direction: Direction,
            guard: &'g Guard
        ) -> Result<Beside<'g, Values<H>>, Error>;
        #[inline]
        fn neighbour<'g>(
            &'g self,
            key: &[u8],
            direction: Direction,
            guard: &'g Guard,
            will_do: &dyn Fn(&ShortKey) -> bool
        ) -> Result<StepTo<'g, H>, Error>;
        fn slot<'g>(
            &'g self,
            index: usize,
            guard: &'g Guard,
            visit: &mut dyn FnMut(&'g Rec<H>)
        ) -> Result<SlotAnswer, Error>;
        fn skip<'g>(
            &'g self,
            key_range: KeyRange<'_>,
            direction: Direction,
            most: usize,
            guard: &'g Guard,
            pause: &mut dyn FnMut() -> ControlFlow<()>
        ) -> Result<Skipped<'g, Values<H>>, Error>;
        fn skip_by_walking<'g>(
            &'g self,
            key_range: KeyRange<'_>,
            direction: Direction,
            most: usize,
            at: (When, &'g Guard),
            pause: &mut dyn FnMut() -> ControlFlow<()>
        ) -> Result<Skipped<'g, Values<H>>, Error>;
        fn skip_at_once<'g>(
            &'g self,
            key_range: KeyRange<'_>,
            direction: Direction,
            most: usize,
            guard: &'g Guard
        ) -> Option<Skipped<'g, Values<H>>>;
        fn update_by<'g>(
            &'g self,
            key: &[u8],
            by: Option<read_points::Query>,
            guard: &'g Guard,
            decide: &mut Decide<'_, 'g, H>
        ) -> Result<(), Error>;
        fn update_alone<'g>(
            &'g self,
            key: &[u8],
            guard: &'g Guard,
            decide: &mut Decide<'_, 'g, H>
        ) -> Result<(), Error>;
        #[inline]
        fn put<'g>(
            &'g self,
            key: &[u8],
            record: RecordBox<Values<H>>,
            guard: &Guard
        ) -> Result<(), Error>;
        #[inline]
        fn remove<'g>(&'g self, key: &[u8], guard: &Guard) -> Result<(), Error>;
        fn update_batch<'g>(
            &'g self,
            keys: &[&[u8]],
            guard: Option<&Guard>,
            plan: &mut dyn BatchPlan<Values<H>>
        ) -> Result<bool, Error>;
        fn stepwise<'g>(&'g self) -> Result<&'g dyn batch::Stepwise<Values<H>>, Error>;
        fn transact<'g>(
            &'g self,
            keys: &[&[u8]],
            plan: &mut dyn Transaction<Values<H>>
        ) -> Result<bool, Error>;
        fn living<'r>(&'r self, record: Option<&'r Rec<H>>) -> Option<&'r Rec<H>>;
        fn dated_if_it_fits<'g>(
            &'g self,
            key: &[u8],
            found: Option<&Rec<H>>,
            change: Change<Values<H>>
        ) -> Option<Change<Values<H>>>;
        fn after_held<'g>(&'g self, is_larger: bool) -> Result<(), Error>;
        fn update_end<'g>(
            &'g self,
            end: End,
            guard: &'g Guard,
            decide: &mut Decide<'_, 'g, H>
        ) -> Result<(), Error>;
        fn objects<'g>(&'g self) -> Result<usize, Error>;
        fn about_bytes<'g>(&'g self) -> usize;
        fn about_len<'g>(&'g self) -> Option<usize>;
        fn totals<'g>(&'g self) -> Result<Option<Totals>, Error>;
        #[inline]
        fn read_points<'g>(&'g self) -> Option<&'g ReadPoints<Values<H>>>;
        fn begin<'g>(
            &'g self,
            prepare: &mut dyn FnMut() -> Result<bool, Busy>
        ) -> Result<Option<ReadPoint>, Error>;
        fn fix<'g>(&'g self) -> ();
        fn unfix<'g>(&'g self) -> ();
        fn upkeep<'g>(&'g self, work: Upkeep, budget: usize, guard: &Guard) -> bool;
        #[cfg(feature = "forcing")]
        fn force_adaptation<'g>(&'g self, splits: u32, joins: u32) -> ();
    }

    /// Changes one key.
    pub(crate) fn update<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        self.update_by(key, None, guard, decide)
    }

    /// Ends a query of a moment.
    pub(crate) fn end(&self, read_point: ReadPoint) {
        if let Some(read_points) = self.read_points() {
            read_points.end(read_point);
        }
    }

    /// Frees up to about `budget` records that were kept for queries. Returns `true` if none is
    /// left.
    pub(crate) fn reclaim(&self, budget: usize) -> bool {
        self.upkeep(Upkeep::Queries, budget, &ats_sync::pin())
    }

    /// Returns the approximate bytes of memory that only queries still read.
    pub(crate) fn held_bytes(&self) -> usize {
        if self.is_taken_out.load(Ordering::Relaxed) {
            return self.about_bytes();
        }
        self.read_points().map_or(0, ReadPoints::held_bytes)
    }

    /// Visits records of keys that changed from one moment to another: see [`ReadPoints::changed`].
    pub(crate) fn changed(
        &self,
        between: (When, When),
        guard: &Guard,
        visit: &mut dyn FnMut(&Rec<H>),
    ) {
        if let Some(read_points) = self.read_points() {
            read_points.changed(between, guard, visit);
        }
    }

    /// Returns `false` if the store has not changed since the read point of a running query: see
    /// [`Table::may_have_changed`](crate::terms::Table::may_have_changed).
    pub(crate) fn may_have_changed(&self, since: When) -> Result<bool, Error> {
        // A query that begins now would not see objects that have expired.
        if_limited!(self, limited => limited.sweep_all()?, ());
        let is_listed = || {
            let read_points = self.read_points();
            read_points.is_none_or(|read_points| read_points.may_have_changed(since))
        };
        if is_listed() {
            return Ok(true);
        }
        // A batch lists a record after others can replace it.
        let grace = ats_sync::pin().grace();
        let begun = self.long_batches.begun();
        let deadline = Instant::now() + WRITERS_SHORT;
        while !grace.is_over() || !self.long_batches.are_done_before(begun) {
            if Instant::now() > deadline {
                return Ok(true);
            }
            std::thread::yield_now();
        }
        Ok(is_listed())
    }

    /// Returns `true` if the store shows a moment of another store.
    pub(crate) fn is_of_past(&self) -> bool {
        matches!(self.records, Records::Past(_))
    }

    /// Waits until all writers have finished that were in the store. The calling thread must not be
    /// pinned.
    pub(crate) fn wait_for_writers(&self) {
        let grace = ats_sync::pin().grace();
        let begun = self.long_batches.begun();
        while !grace.is_over() || !self.long_batches.are_done_before(begun) {
            std::thread::sleep(WRITERS_PAUSE);
        }
    }

    /// Notes that the store has taken the place of another one, which had something to tell, maybe.
    pub(crate) fn set_current(self: &Arc<Self>) {
        if self.limits().is_some() {
            idle_joiner::notice(self);
        }
    }

    /// Notes that the store was taken out of its table.
    pub(crate) fn set_taken_out(&self) {
        self.is_taken_out.store(true, Ordering::Relaxed);
        if_limited!(self, limited => limited.set_taken_out(), ());
    }

    /// Returns `true` if a query of an earlier moment runs. A thread that holds no lock of the
    /// store may also get `true` just after the last query has ended.
    #[inline]
    pub(crate) fn is_read(&self) -> bool {
        if self.is_of_past() {
            return true;
        }
        self.read_points().is_some_and(ReadPoints::are_read)
    }

    /// Visits keys and values of a store of bytes.
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

    /// Returns a bound that divides the records of a range in a store of bytes.
    pub(crate) fn median_bytes(&self, key_range: KeyRange<'_>) -> Result<Option<Vec<u8>>, Error> {
        match &self.records {
            Records::Bytes(records) => records.median_bytes(key_range),
            _ => Err(Error::TableType),
        }
    }

    /// Changes a key like [`update`](Store::update), by a decision that may take long: see [the
    /// lock budget](crate::terms::lock_budget). The second argument of `decide` is `true` if only
    /// the key is held. If it is `false`, other keys may wait, and `decide` returns `None` if it
    /// would take long; then it is called again while only the key is held. `by` is that of
    /// [`update_by`](Store::update_by).
    #[inline]
    pub(crate) fn update_short<'g>(
        &'g self,
        key: &[u8],
        by: Option<read_points::Query>,
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

    /// Changes a key like [`update`](Store::update), unless `decide` returns `None` because it
    /// would take long. Returns `true` in that case; then nothing has changed.
    #[inline]
    pub(crate) fn is_too_long_to_update<'g>(
        &'g self,
        key: &[u8],
        by: Option<read_points::Query>,
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

    /// Returns the kind of rival store, if this is one.
    #[cfg(feature = "rivals")]
    pub(crate) fn rival(&self) -> Option<ats_rivals::Rival> {
        match &self.records {
            Records::Rival(rival, _) => Some(*rival),
            _ => None,
        }
    }

    /// Returns `true` if queries of the store can read one moment.
    pub(crate) fn has_read_points(&self) -> bool {
        self.read_points().is_some()
    }

    /// Returns the bytes of memory, at one moment. They decrease only if objects are removed or
    /// become smaller: see [`Reported`].
    pub(crate) fn bytes(&self) -> Result<usize, Error> {
        // Concurrent calls take turns, so that each counts after the previous one has reported.
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(totals) = self.totals()? else {
            return Ok(self.about_bytes());
        };
        let bytes = |bytes| usize::try_from(bytes).unwrap_or(0);
        let (objects, structure) = (bytes(totals.bytes), bytes(totals.structure));
        // Objects come and go all the time in a store with a bound of its memory.
        if self.limits().is_some_and(|limits| limits.bytes.is_some()) {
            return Ok(objects + structure);
        }
        Ok(reported.report(objects, structure))
    }

    /// Returns the ability to change single objects of a key of a bag, if the store of bytes has
    /// it.
    pub(crate) fn bags(&self) -> Option<(&ByteStore<H>, &dyn Bags)> {
        match &self.records {
            Records::Bytes(records) => records.bags().map(|bags| (records, bags)),
            _ => None,
        }
    }

    /// Changes the objects of a key of a bag, like [`update`](Store::update).
    pub(crate) fn update_bag<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        decide: &mut DecideBag<'_, 'g, H>,
    ) -> Result<(), Error> {
        self.update_bag_by(key, None, guard, decide)
    }

    /// Changes the objects of a key of a bag, like [`update_by`](Store::update_by).
    pub(crate) fn update_bag_by<'g>(
        &'g self,
        key: &[u8],
        by: Option<read_points::Query>,
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

    /// Changes the objects of the key at an end of the store, like
    /// [`update_bag`](Store::update_bag).
    pub(crate) fn update_bag_end<'g>(
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
        self.update_end(end, guard, &mut decide)?;
        retire(leftovers, guard);
        Ok(())
    }

    /// Returns the tree of a store that has one.
    fn tree(&self) -> Option<&CaTree<Values<H>>> {
        match &self.records {
            Records::Ordered(tree) => Some(tree),
            Records::OrderedLimited(limited) => Some(limited.records()),
            _ => None,
        }
    }

    pub(crate) fn adaptation(&self) -> Option<Adaptation> {
        self.tree().map(CaTree::adaptation)
    }

    pub(crate) fn shape(&self) -> Option<Vec<ShapeNode>> {
        self.tree().map(CaTree::shape)
    }

    pub(crate) fn buckets(&self) -> Option<Buckets> {
        match &self.records {
            Records::Hash(table) => Some(table.buckets()),
            Records::HashLimited(limited) => Some(limited.records().buckets()),
            _ => None,
        }
    }

    /// Returns the limits of the store; `None` if it has none.
    pub(crate) fn limits(&self) -> Option<Limits> {
        if_limited!(self, limited => Some(limited.limits()), None)
    }

    /// Returns the number of records that were removed because there were too many.
    pub(crate) fn evicted(&self) -> u64 {
        if_limited!(self, limited => limited.evicted(), 0)
    }

    /// Returns the number of records that have expired and were removed.
    pub(crate) fn expired(&self) -> u64 {
        match &self.records {
            Records::Bytes(records) => records.expired(),
            _ => if_limited!(self, limited => limited.expired(), 0),
        }
    }

    /// Returns about how many reads by a key have found objects, and how many have found none.
    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        if_limited!(self, limited => (limited.hits(), limited.misses()), (0, 0))
    }

    /// Returns the time that is left to the objects of a key, and `true` if they have a time of
    /// their own; `None` if there are none. A store of an earlier moment may still have objects
    /// whose time has passed.
    pub(crate) fn time_left(
        &self,
        key: &[u8],
        guard: &Guard,
    ) -> Result<Option<(TimeLeft, bool)>, Error> {
        if let Records::Bytes(records) = &self.records {
            return Ok(records.time_left(key)?.map(|left| (left, true)));
        }
        let record = match &self.records {
            Records::OrderedLimited(limited) => limited.records().get(key, guard)?,
            Records::HashLimited(limited) => limited.records().get(key, guard)?,
            _ => self.get(key, guard)?,
        };
        let passed = self
            .is_of_past()
            .then_some((TimeLeft::Time(Duration::ZERO), true));
        Ok(record.and_then(|record| Limited::<(), H>::time_left(record).or(passed)))
    }

    /// Sets the deadline of the objects of a key. Returns `true` if there are some.
    ///
    /// # Errors
    /// [`Error::NoTtl`] if objects of the store do not expire.
    pub(crate) fn touch(&self, key: &[u8], dating: Dating, guard: &Guard) -> Result<bool, Error> {
        if let Records::Bytes(records) = &self.records {
            return records.touch(key, dating);
        }
        if_limited!(self, limited => limited.touch(key, dating, guard), Err(Error::NoTtl))
    }

    /// Removes a slice of the records that have expired. Returns `true` if none is left.
    fn sweep_slice(&self) -> bool {
        if_limited!(self, limited => limited.sweep_slice(SLICE), true)
    }

    /// Tidies the lists of a store with limits. Returns `true` if they are empty.
    fn tidy_lists(&self) -> bool {
        if_limited!(self, limited => limited.tidy_lists(), true)
    }
}

impl<H: Host> JoinIdle for Store<H> {
    fn list_flag(&self) -> &Listed {
        &self.listed
    }

    fn join_idle(&self) -> bool {
        let is_one_part = self.upkeep(Upkeep::Parts, 0, &ats_sync::pin());
        self.tidy_lists() && is_one_part
    }

    fn reclaim_slice(&self) -> bool {
        let is_swept = self.sweep_slice();
        self.reclaim(SLICE) && is_swept
    }

    /// Gives up a reference. The last one frees the store: at once if it is small, else in the
    /// background. Freeing a store of bytes may take any time, so it counts as large.
    fn release(self: Arc<Self>) {
        let is_large = !self.is_of_past() && self.about_len().is_none_or(|len| len > FREED_AT_ONCE);
        if is_large && let Some(store) = Arc::into_inner(self) {
            background::free(Box::new(store));
        }
    }
}

impl<H: Host> OnFirstSplit for Store<H> {
    fn has_split(self: Arc<Self>) {
        // The writer that calls this is in the store, so this reference is not the last one.
        idle_joiner::notice(&self);
    }
}

impl<H: Host> OnFirstEntry for Store<H> {
    fn has_entries(self: Arc<Self>) {
        // The writer that calls this is in the store, so this reference is not the last one.
        idle_joiner::notice(&self);
    }
}

impl<H: Host> FreeInSlices for Store<H> {
    fn free_slice(&mut self) -> bool {
        match &mut self.records {
            Records::Ordered(tree) => tree.free_some(SLICE),
            Records::Hash(table) => table.free_some(SLICE),
            Records::OrderedLimited(limited) => limited.records_mut().free_some(SLICE),
            Records::HashLimited(limited) => limited.records_mut().free_some(SLICE),
            // Other stores are freed as a whole, in the background.
            _ => true,
        }
    }
}

/// Retires the leftovers of the version that a change of a bag has just replaced.
fn retire<H: Host>(leftovers: Option<Leftovers<Values<H>>>, guard: &Guard) {
    if let Some(leftovers) = leftovers {
        // SAFETY: the record of the old version has been replaced, so no reader finds it any more.
        unsafe { leftovers.retire(guard) };
    }
}
