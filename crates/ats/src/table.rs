//! A table: its options, its keys, the store that it is in, fixation, clearing.
//!
//! [`operations`](crate::operations) and [`select`](crate::select) add what is done to objects.

mod current_store;
mod keys;
#[cfg(feature = "rivals")]
mod rival;
mod table_type;

use crate::bag::Rules;
use crate::error::Error;
use crate::snapshot_list::SnapshotList;
use crate::store::bytes::ByteStore;
use crate::store::codec::Codec;
use crate::store::{Records, SLICE, Store};
use crate::value::{Values, pack_for_store, record};
use ats_mem::{Adaptation, Buckets, RecordBox, ShapeNode, Upkeep};
use ats_store::{MayBlock, StoreHandle};
use ats_sync::Guard;
use ats_term::image::{Built, Host, Packer};
use ats_term::{TermRef, Zeros, exact};
pub(crate) use current_store::CurrentStore;
use keys::Keys;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
pub use table_type::TableType;

/// A table of objects of host `H`. See the [crate].
///
/// All operations may be called from any thread at any time. Reads take no lock and wait for no
/// other thread.
///
/// ```
/// use ats::{Error, Table, TableType, TermHost, Workspace};
/// use ats_term::Term;
///
/// let table = Table::<TermHost>::new(TableType::Set, 1);
/// std::thread::scope(|scope| {
///     for number in 0..4 {
///         let table = &table;
///         scope.spawn(move || {
///             let mut work = Workspace::new(); // one per thread
///             table.insert(&Term::from((number, "object")), &mut work)
///         });
///     }
/// });
/// assert_eq!(table.len()?, 4);
/// # Ok::<(), Error>(())
/// ```
pub struct Table<H: Host> {
    pub(crate) table_type: TableType,
    /// From 0.
    pub(crate) key_index: usize,
    pub(crate) zeros: Zeros,
    compressed: bool,
    /// `true` if values are bytes in the end, so that nothing can be shared by versions of a key.
    pub(crate) has_byte_store: bool,
    /// `true` once an object has a counter that changes in place.
    counts_in_place: AtomicBool,
    pub(crate) keys: Keys,
    pub(crate) store: CurrentStore<H>,
    snapshots: OnceLock<Arc<SnapshotList<H>>>,
}

impl<H: Host> Table<H> {
    /// An empty table whose objects have their key at `key_position` (from 1), with the rules of
    /// newer Erlang versions for zeros.
    ///
    /// # Panics
    /// If `key_position` is 0.
    pub fn new(table_type: TableType, key_position: usize) -> Self {
        Self::with_zeros(table_type, key_position, Zeros::Distinct)
    }

    /// Does what [`new`](Table::new) does, with a rule for zeros.
    ///
    /// # Panics
    /// If `key_position` is 0.
    pub fn with_zeros(table_type: TableType, key_position: usize, zeros: Zeros) -> Self {
        let records = Records::in_memory(table_type.is_ordered(), table_type.is_bag());
        Self::on(records, table_type, key_position, zeros)
    }

    /// An empty table that keeps its objects as bytes, in a store that has no records yet. `codec`
    /// says how objects become bytes, and `may_block` whether the calling thread may block:
    /// `|| Some(MayBlock::here())` where all threads may.
    ///
    /// It answers as another table does, and shows the errors of the store as [`Error::Storage`].
    /// Types without order are walked in the order of the bytes of their keys. Counters are not
    /// changed in place, [`slot`](Table::slot) and [`skip`](Table::skip) are O(objects passed). A
    /// change of a key of a bag is O(objects of the key), unless the store has the ability
    /// [`Bags`](ats_store::Bags); it asks an [`ObjectIdentity`](crate::ObjectIdentity) which
    /// objects are equal. An identifier of a resource of the host, as the external term format has
    /// it, does not keep the resource alive.
    ///
    /// ```
    /// use ats::{BTreeStore, MayBlock, Table, TableType, TermCodec, TermHost, Workspace, Zeros};
    /// use ats_term::Term;
    /// use std::sync::Arc;
    ///
    /// let zeros = Zeros::Distinct;
    /// let table = Table::<TermHost>::on_store(
    ///     Box::new(BTreeStore::new()),
    ///     || Some(MayBlock::here()), // all threads of this program may
    ///     Arc::new(TermCodec { zeros }),
    ///     TableType::OrderedSet,
    ///     1,
    ///     zeros,
    /// );
    /// let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// assert!(table.has_byte_store());
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Panics
    /// If `key_position` is 0.
    pub fn on_store(
        store: Box<dyn StoreHandle>,
        may_block: fn() -> Option<MayBlock>,
        codec: Arc<dyn Codec<H>>,
        table_type: TableType,
        key_position: usize,
        zeros: Zeros,
    ) -> Self {
        let (ordered, is_bag) = (table_type.is_ordered(), table_type.is_bag());
        let records = Records::Bytes(ByteStore::new(store, may_block, codec, ordered, is_bag));
        Self::on(records, table_type, key_position, zeros)
    }

    fn on(records: Records<H>, table_type: TableType, key_position: usize, zeros: Zeros) -> Self {
        let key_index = key_position.checked_sub(1).expect("positions begin at 1");
        let has_byte_store = matches!(records, Records::Bytes(_));
        let exact = exact::Options {
            zeros,
            // Keys in a store of bytes mean the same in every process.
            atoms: match has_byte_store {
                true => exact::Atoms::Text,
                false => exact::Atoms::Word,
            },
        };
        Table {
            table_type,
            key_index,
            zeros,
            compressed: false,
            has_byte_store,
            counts_in_place: AtomicBool::new(false),
            keys: Keys::new(table_type.is_ordered(), exact),
            store: CurrentStore::new(Store::new(records)),
            snapshots: OnceLock::new(),
        }
    }

    /// Has the table store the objects it is given from now on in less memory, where that is
    /// possible, or no longer do so. It takes longer to write them, and to read them.
    ///
    /// Counters that change in place (see [`update_one_counter`](Table::update_one_counter)) keep
    /// their object as it would be in another table.
    #[must_use]
    pub fn compressed(mut self, compressed: bool) -> Self {
        self.compressed = compressed;
        self
    }

    /// Returns `true` if the table stores objects in less memory.
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// Returns `true` if objects are packed. Not where values become other bytes in the end.
    #[inline]
    pub(crate) fn packs(&self) -> bool {
        self.compressed && !self.has_byte_store
    }

    /// A record of an object that was built.
    #[inline(always)]
    pub(crate) fn record(
        &self,
        key: &[u8],
        built: Built<'_, H>,
        packer: &mut Packer,
    ) -> RecordBox<Values<H>> {
        match self.packs() {
            true => pack_record(key, built, packer),
            false => record(key, built),
        }
    }

    /// Returns the stored form of an object that was built.
    pub(crate) fn pack_for_store<'a>(
        &self,
        built: Built<'a, H>,
        packer: &'a mut Packer,
    ) -> Built<'a, H> {
        pack_for_store(built, packer, self.packs())
    }

    /// The rules of bags of this table. `keeps_old` says that the objects that were there may be
    /// read after they have been replaced.
    pub(crate) fn bag_rules(&self, keeps_old: bool) -> Rules {
        Rules {
            distinct: self.table_type.is_distinct_bag(),
            zeros: self.zeros,
            grows: !self.has_byte_store,
            keeps_old,
        }
    }

    /// Returns `true` if an object may have a counter that changes in place. Then the first query
    /// of one moment [waits](Table::begin) for threads that are pinned.
    pub fn counts_in_place(&self) -> bool {
        self.counts_in_place.load(Ordering::SeqCst)
    }

    /// Says that an object is about to get such a counter.
    pub(crate) fn set_counts_in_place(&self) {
        if !self.counts_in_place.load(Ordering::Relaxed) {
            self.counts_in_place.store(true, Ordering::SeqCst);
        }
    }

    /// Returns `true` if the table keeps its objects [in a store of bytes](Table::on_store).
    pub fn has_byte_store(&self) -> bool {
        self.has_byte_store
    }

    /// The type of the table.
    pub fn table_type(&self) -> TableType {
        self.table_type
    }

    /// The position of the key in objects, from 1.
    pub fn key_position(&self) -> usize {
        self.key_index + 1
    }

    /// A table like this one, of another store.
    pub(crate) fn with_store(&self, store: CurrentStore<H>) -> Self {
        Table {
            table_type: self.table_type,
            key_index: self.key_index,
            zeros: self.zeros,
            compressed: self.compressed,
            has_byte_store: self.has_byte_store,
            counts_in_place: AtomicBool::new(false),
            keys: self.keys.for_taken_objects(),
            store,
            snapshots: OnceLock::new(),
        }
    }

    /// The list of its snapshots.
    pub(crate) fn snapshots(&self) -> &Arc<SnapshotList<H>> {
        self.snapshots.get_or_init(SnapshotList::new)
    }

    /// The list of its snapshots, if there have been any.
    pub(crate) fn known_snapshots(&self) -> Option<&Arc<SnapshotList<H>>> {
        self.snapshots.get()
    }

    /// Returns `true` if the table shows a moment of another one.
    pub fn is_snapshot(&self) -> bool {
        self.store(&ats_sync::pin()).is_of_past()
    }

    /// The bytes by which this table knows a key; appended to `out`.
    #[inline]
    pub fn key_bytes<T: TermRef>(&self, key: T, out: &mut Vec<u8>) {
        let _made = self.key_bytes_within(key, out, usize::MAX);
    }

    /// Does what [`key_bytes`](Table::key_bytes) does, unless that takes longer than to copy about
    /// so many words: then it appends nothing. For callers that must not work for long.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it gave up.
    #[inline]
    pub fn key_bytes_within<T: TermRef>(
        &self,
        key: T,
        out: &mut Vec<u8>,
        words: usize,
    ) -> Result<(), Error> {
        self.keys.write_within(key, out, words)
    }

    #[inline]
    pub(crate) fn store<'g>(&'g self, guard: &'g Guard) -> &'g Store<H> {
        self.store.get(guard)
    }

    /// Shows the keys and the values of a table on a [store of bytes](Table::on_store), as the
    /// store has them, in a range and a direction, until `visit` breaks. Writes meanwhile are seen
    /// or not, key by key, unless the store is one that does not change.
    ///
    /// The value of a key is what [`objects`](crate::program_merge::objects) takes apart.
    ///
    /// # Errors
    /// [`Error::TableType`] of a table in memory; [`Error::Storage`].
    pub fn scan_bytes(
        &self,
        key_range: ats_store::KeyRange<'_>,
        direction: ats_store::Direction,
        visit: &mut ats_store::store::Visit<'_>,
    ) -> Result<(), Error> {
        self.store(&ats_sync::pin())
            .scan_bytes(key_range, direction, visit)
    }

    /// A bound within a range of bytes, as [`scan_bytes`](Table::scan_bytes) has them, that divides
    /// its records in two parts of about the same size; `None` if there are none, or the store
    /// cannot tell.
    ///
    /// # Errors
    /// Those of [`scan_bytes`](Table::scan_bytes).
    pub fn median_bytes(
        &self,
        key_range: ats_store::KeyRange<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.store(&ats_sync::pin()).median_bytes(key_range)
    }

    /// Number of objects at one moment between the begin and the end of the call, in the order of
    /// all that other calls do and see. O(locks of the table), which writers wait for if they are
    /// many; O(objects) of a bag [in a store of bytes](Table::on_store).
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// assert_eq!(table.len()?, 0);
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`], of a table on a store that must read to tell. [`Error::Busy`], if the
    /// calling thread [must not wait](ats_sync::lock::set_may_wait) for long.
    pub fn len(&self) -> Result<usize, Error> {
        self.store(&ats_sync::pin()).objects()
    }

    /// Returns `true` if there is no object.
    ///
    /// # Errors
    /// Those of [`len`](Table::len).
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Bytes of memory the table takes, without what its objects share with others; at one moment,
    /// as [`len`](Table::len).
    ///
    /// # Errors
    /// [`Error::Busy`], as [`len`](Table::len).
    pub fn bytes(&self) -> Result<usize, Error> {
        Ok(self.store(&ats_sync::pin()).bytes()? + size_of::<Self>())
    }

    /// About how many bytes of memory the table takes. Waits for no thread.
    pub fn about_bytes(&self) -> usize {
        self.store(&ats_sync::pin()).about_bytes() + size_of::<Self>()
    }

    /// Starts a period in which a walk meets every object that stays exactly once, and may go on
    /// from a key that was removed meanwhile. Nests.
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// for key in 0..9 {
    ///     table.insert(&Term::from((key, "object")), &mut work)?;
    /// }
    /// table.fix();
    /// let guard = ats::pin();
    /// let mut step = table.first(&guard)?;
    /// while let Some(found) = step {
    ///     table.delete_object(&found.to_terms()[0], &mut work)?;
    ///     step = table.next(found.key_bytes(), &guard)?; // after a key that is gone
    /// }
    /// if !table.unfix() {
    ///     while !table.tidy() {}
    /// }
    /// assert!(table.is_empty()?);
    /// # Ok::<(), ats::Error>(())
    /// ```
    pub fn fix(&self) {
        self.store.fix();
    }

    /// Ends a period begun by [`fix`](Table::fix). Does nothing if none was begun.
    ///
    /// The records that were kept for the walks are removed a slice at a time: true if that is
    /// done, false if [`tidy`](Table::tidy) should be called until it says so.
    pub fn unfix(&self) -> bool {
        !self.store.unfix() || self.tidy()
    }

    /// Does a slice of the work that was put off; true when nothing is left, or the table is fixed.
    /// Takes well under a millisecond.
    pub fn tidy(&self) -> bool {
        let guard = ats_sync::pin();
        self.store(&guard).upkeep(Upkeep::Walks, SLICE, &guard)
    }

    /// Removes all objects, at one moment for every reader and writer, and returns how many they
    /// were. O(1); the memory is freed by and by. The number is exact if no operation is running.
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// assert_eq!(table.clear()?, 1);
    /// assert!(table.is_empty()?);
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`], after which nothing has changed.
    pub fn clear(&self) -> Result<usize, Error> {
        let guard = ats_sync::pin();
        // A store of bytes may fail to tell.
        let before = match self.has_byte_store {
            true => Some(self.store(&guard).objects()?),
            false => None,
        };
        let old = self.store.take_out(&guard)?;
        before.map_or_else(|| old.objects(), Ok)
    }

    /// Does what [`clear`](Table::clear) does, without counting the objects, which of a store of
    /// bytes takes long.
    ///
    /// # Errors
    /// Those of [`clear`](Table::clear).
    pub fn delete_all(&self) -> Result<(), Error> {
        self.store.take_out(&ats_sync::pin()).map(drop)
    }

    /// Calls a function that replaces all records of the [store of bytes](Table::on_store) that the
    /// table is on, which this does not see.
    ///
    /// # Errors
    /// Those of the function, which has changed nothing then.
    pub fn replace_all(&self, replace: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        // Before as well, for walks that go on while the records are replaced: that takes too long
        // for the lock.
        self.store.allow_lost_keys();
        replace()?;
        self.store.allow_lost_keys();
        Ok(())
    }

    /// The adaptation of a table with an order to contention since it was made or cleared; `None`
    /// of others. Not exact while others write. O(base nodes).
    pub fn adaptation(&self) -> Option<Adaptation> {
        self.store(&ats_sync::pin()).adaptation()
    }

    /// The nodes whose number [`adaptation`](Table::adaptation) tells, in the order of their keys;
    /// a route node comes before those that it leads to. `None` of tables without order.
    /// O(base nodes).
    pub fn shape(&self) -> Option<Vec<ShapeNode>> {
        self.store(&ats_sync::pin()).shape()
    }

    /// The layout of a table without order, and its adaptation to contention since it was made or
    /// cleared;
    /// `None` of others. Not exact while others write. O(locks).
    pub fn buckets(&self) -> Option<Buckets> {
        self.store(&ats_sync::pin()).buckets()
    }

    /// For tests: from now on, also after [`clear`](Table::clear), one of `splits` writes forces
    /// the table to split a part of itself, or to double its locks, as contention would do, and one
    /// of `joins` to join two parts, or to halve its locks; 0 is never. Only
    /// [`adaptation`](Table::adaptation) and [`buckets`](Table::buckets) show a difference.
    #[cfg(feature = "forcing")]
    pub fn force_adaptation(&self, splits: u32, joins: u32) {
        self.store.force_adaptation(splits, joins);
    }
}

/// Makes a record of an object that was built, in a table that packs its objects.
#[inline(never)]
fn pack_record<H: Host>(
    key: &[u8],
    built: Built<'_, H>,
    packer: &mut Packer,
) -> RecordBox<Values<H>> {
    record(key, packer.pack(built))
}
