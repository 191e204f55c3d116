//! The record store of a table: one of those in memory, or one of bytes.

pub(crate) mod bag_values;
pub(crate) mod bytes;
pub(crate) mod codec;
pub(crate) mod idle_joiner;
mod long_batches;
mod memory;
pub(crate) mod object_merge;
pub(crate) mod operator;
pub mod program_merge;
pub(crate) mod records;
mod reported;
pub(crate) mod store_ref;

use crate::background::{self, FreeInSlices};
use crate::bag::Decided;
use crate::error::Error;
use crate::value::{Rec, Values};
use ats_mem::moments::{self, Moments};
use ats_mem::sequence::Leftovers;
use ats_mem::{
    Adaptation, BatchPlan, Beside, Buckets, Busy, CaTree, Change, HashTable, Moment, OnFirstSplit,
    RecordBox, ShapeNode, ShortKey, Skipped, Totals, Upkeep, Walk, When,
};
use ats_store::{Bags, Direction, End, KeyRange, SlotAnswer};
use ats_sync::Guard;
use ats_sync::count::atomic::{AtomicBool, Ordering};
use ats_term::image::Host;
use bytes::ByteStore;
use idle_joiner::{JoinIdle, Listed};
use long_batches::LongBatches;
use records::{Decide, StepTo, TableRecords, Visit, Walked};
use reported::Reported;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// Makes functions of a [`Store`] that are those of its records, of which the compiler knows the
/// store: see [`TableRecords`].
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
                #[cfg(feature = "rivals")]
                Records::Rival(_, store) => store.$name($($argument),*),
                Records::Bytes(store) => store.$name($($argument),*),
                Records::Past(store) => store.$name($($argument),*),
            }
        }
    )*};
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

/// The records, in the store that was chosen when the table was made. An enum, so that the way of a
/// lookup in memory is known to the compiler.
pub(crate) enum Records<H: Host> {
    /// A CA tree: records in memory, in the order of keys.
    Ordered(CaTree<Values<H>>),
    /// A hash table: records in memory, without order.
    Hash(HashTable<Values<H>>),
    /// A store for comparison.
    #[cfg(feature = "rivals")]
    Rival(ats_rivals::Rival, Box<dyn TableRecords<H>>),
    /// A store of bytes.
    Bytes(ByteStore<H>),
    /// A moment of another store.
    Past(Arc<dyn TableRecords<H>>),
}

impl<H: Host> Records<H> {
    /// Makes an empty store in memory.
    pub(crate) fn in_memory(ordered: bool, is_bag: bool) -> Self {
        match (ordered, is_bag) {
            (true, false) => Records::Ordered(CaTree::new()),
            (true, true) => Records::Ordered(CaTree::of_many_objects()),
            (false, _) => Records::Hash(HashTable::new()),
        }
    }
}

#[cfg(feature = "rivals")]
impl<H: Host> Records<H> {
    /// Makes an empty store for comparison.
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

/// The way in which a store is cleared.
pub(crate) enum Cleared<H: Host> {
    /// The store is to be exchanged for this one, which is empty.
    Fresh(Arc<Store<H>>),
    /// The store is empty now, and this one has its records.
    Taken(Arc<Store<H>>),
}

pub(crate) type DecideShort<'a, 'g, H> =
    dyn FnMut(Option<&'g Rec<H>>, bool) -> Option<Change<Values<H>>> + 'a;
pub(crate) type DecideBag<'a, 'g, H> = dyn FnMut(Option<&'g Rec<H>>) -> Decided<H> + 'a;

impl<H: Host> Store<H> {
    /// A store of these records, of which there are none yet. Its idle parts are joined in the
    /// background.
    pub(crate) fn new(records: Records<H>) -> Arc<Self> {
        // The thread frees retired records also when no other thread works on tables any more.
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
        fn prefetch<'g>(&'g self, key: &[u8]) -> ();
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
            by: Option<moments::Query>,
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
        fn moments<'g>(&'g self) -> Option<&'g Moments<Values<H>>>;
        fn begin<'g>(
            &'g self,
            prepare: &mut dyn FnMut() -> Result<bool, Busy>
        ) -> Result<Option<Moment>, Error>;
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
    pub(crate) fn end(&self, moment: Moment) {
        if let Some(moments) = self.moments() {
            moments.end(moment);
        }
    }

    /// Gives back up to about `budget` records that were kept for queries; true if none is left.
    pub(crate) fn cut(&self, budget: usize) -> bool {
        self.upkeep(Upkeep::Queries, budget, &ats_sync::pin())
    }

    /// About how many bytes of memory only queries still read.
    pub(crate) fn held_bytes(&self) -> usize {
        if self.is_taken_out.load(Ordering::Relaxed) {
            return self.about_bytes();
        }
        self.moments().map_or(0, Moments::held_bytes)
    }

    /// Visits records of keys that changed from one moment to another: see [`Moments::changed`].
    pub(crate) fn changed(
        &self,
        between: (When, When),
        guard: &Guard,
        visit: &mut dyn FnMut(&Rec<H>),
    ) {
        if let Some(moments) = self.moments() {
            moments.changed(between, guard, visit);
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
        self.moments().is_some_and(Moments::are_read)
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
            Records::Rival(rival, _) => Some(*rival),
            _ => None,
        }
    }

    /// Returns `true` if queries of the store can read one moment.
    pub(crate) fn has_moments(&self) -> bool {
        self.moments().is_some()
    }

    /// Bytes of memory, at one moment, which become fewer only if objects are removed or become
    /// smaller: see [`Reported`].
    pub(crate) fn bytes(&self) -> Result<usize, Error> {
        // Calls beside each other take turns: each counts after the one before has reported.
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(totals) = self.totals()? else {
            return Ok(self.about_bytes());
        };
        let bytes = |bytes| usize::try_from(bytes).unwrap_or(0);
        Ok(reported.report(bytes(totals.bytes), bytes(totals.structure)))
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
}

impl<H: Host> JoinIdle for Store<H> {
    fn list_flag(&self) -> &Listed {
        &self.listed
    }

    fn join_idle(&self) -> bool {
        self.upkeep(Upkeep::Parts, 0, &ats_sync::pin())
    }

    fn cut_slice(&self) -> bool {
        self.cut(SLICE)
    }

    /// The last reference frees the store: at once if it is small, else in the background. It is
    /// not known how long a store of bytes takes.
    fn release(self: Arc<Self>) {
        let is_large = !self.is_of_past() && self.about_len().is_none_or(|len| len > FREED_AT_ONCE);
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

/// Retires the leftovers of the version before a change of a bag that has just been made.
fn retire<H: Host>(leftovers: Option<Leftovers<Values<H>>>, guard: &Guard) {
    if let Some(leftovers) = leftovers {
        // SAFETY: the record of the old version has been replaced, so no reader finds it any more.
        unsafe { leftovers.retire(guard) };
    }
}
