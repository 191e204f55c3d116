//! Tables: their options, their keys, their store, fixation, clearing.
//!
//! [`operations`](crate::terms::operations) and [`select`](crate::terms::select) add the operations
//! on objects.

mod current_store;
mod keys;
#[cfg(feature = "rivals")]
mod rival;
mod table_type;

use crate::terms::bag::{OldVersion, Rules};
use crate::terms::cells::gate::Gate;
use crate::terms::error::Error;
use crate::terms::likelihood::Likelihood;
use crate::terms::note::Dating;
use crate::terms::snapshot_list::SnapshotList;
use crate::terms::store::bytes::ByteStore;
use crate::terms::store::codec::Codec;
use crate::terms::store::limited::{Limits, OnGone, Ttl};
use crate::terms::store::{Records, SLICE, Store};
use crate::terms::value::{Values, pack_for_store, record_behind};
use ats_mem::{Adaptation, Buckets, RecordBox, ShapeNode, Upkeep};
use ats_store::StoreHandle;
use ats_sync::Guard;
use ats_term::image::{Built, Host, Packer};
use ats_term::{TermRef, Zeros, exact};
pub(crate) use current_store::CurrentStore;
use keys::Keys;
use std::sync::{Arc, OnceLock};
pub use table_type::TableType;

/// A table of objects of host `H`. See the [module](super).
///
/// All operations may be called from any thread at any time. Reads take no lock and wait for no
/// other thread.
///
/// ```
/// use ats::terms::{Error, Table, TableType, Term, TermHost, Workspace};
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
#[expect(
    clippy::struct_excessive_bools,
    reason = "properties that do not depend on each other"
)]
pub struct Table<H: Host> {
    pub(crate) table_type: TableType,
    /// The index of the key in objects, from 0.
    pub(crate) key_index: usize,
    pub(crate) zeros: Zeros,
    compressed: bool,
    /// `true` if the store keeps values as bytes, so that versions of a key cannot share anything.
    pub(crate) has_byte_store: bool,
    /// `true` if the table is that of a transaction, which may be undone.
    pub(crate) is_draft: bool,
    /// `true` if objects expire.
    pub(crate) expires: bool,
    pub(crate) cells_gate: Gate,
    /// The likelihood that an insert replaces an object by one that differs in cells.
    pub(crate) overwrites: Likelihood,
    /// The likelihood that an insert of a new key finds that the key is there.
    pub(crate) refusals: Likelihood,
    pub(crate) keys: Keys,
    pub(crate) store: CurrentStore<H>,
    snapshots: OnceLock<Arc<SnapshotList<H>>>,
}

impl<H: Host> Table<H> {
    /// Returns an empty table whose objects have their key at `key_position` (from 1), with the
    /// rules of newer Erlang versions for zeros.
    ///
    /// # Panics
    /// If `key_position` is 0.
    pub fn new(table_type: TableType, key_position: usize) -> Self {
        Self::with_zeros(table_type, key_position, Zeros::Distinct)
    }

    /// Returns an empty table like [`new`](Table::new), with a rule for zeros.
    ///
    /// # Panics
    /// If `key_position` is 0.
    pub fn with_zeros(table_type: TableType, key_position: usize, zeros: Zeros) -> Self {
        let records = Records::in_memory(table_type.is_ordered(), table_type.is_bag());
        Self::on(records, table_type, key_position, zeros)
    }

    /// Returns an empty table that keeps its objects as bytes, in a store that has no records yet.
    /// `codec` encodes objects as bytes. `may_block` returns `true` if the calling thread may
    /// block; each operation asks it.
    ///
    /// The table behaves like other tables, and returns errors of the store as [`Error::Storage`].
    /// Types without order are walked in the order of the bytes of their keys. Counters are not
    /// changed in place. [`slot`](Table::slot) and [`skip`](Table::skip) are O(objects passed). A
    /// change of a key of a bag is O(objects of the key), unless the store implements
    /// [`Bags`](ats_store::Bags); such a store compares objects with an
    /// [`ObjectIdentity`](crate::terms::ObjectIdentity). An identifier of a resource of the host in
    /// the external term format does not keep the resource alive.
    ///
    /// Objects [expire](Table::expiring) if the records of the store [do](ats_store::Expires). The
    /// objects of a key have one deadline; such a store must not have [`Bags`](ats_store::Bags).
    ///
    /// ```
    /// use ats::terms::{BTreeStore, Table, TableType, Term, TermCodec, TermHost, Workspace, Zeros};
    /// use std::sync::Arc;
    ///
    /// let zeros = Zeros::Distinct;
    /// let table = Table::<TermHost>::on_store(
    ///     Box::new(BTreeStore::new()),
    ///     || true, // all threads of this program may block
    ///     Arc::new(TermCodec { zeros }),
    ///     TableType::OrderedSet,
    ///     1,
    ///     zeros,
    /// );
    /// let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// assert!(table.has_byte_store());
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Panics
    /// If `key_position` is 0.
    pub fn on_store(
        store: Box<dyn StoreHandle>,
        may_block: fn() -> bool,
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
        let expires = matches!(&records, Records::Bytes(records) if records.expires());
        let exact = exact::Options {
            zeros,
            // Keys in a store of bytes must mean the same in every process.
            atoms: if has_byte_store {
                exact::Atoms::Text
            } else {
                exact::Atoms::Word
            },
        };
        Table {
            table_type,
            key_index,
            zeros,
            compressed: false,
            has_byte_store,
            is_draft: false,
            expires,
            cells_gate: Gate::new(),
            overwrites: Likelihood::new(),
            refusals: Likelihood::new(),
            keys: Keys::new(table_type.is_ordered(), exact),
            store: CurrentStore::new(Store::new(records)),
            snapshots: OnceLock::new(),
        }
    }

    /// Selects whether the table stores further objects in less memory, if possible. Compressed
    /// objects take longer to write, and to read.
    ///
    /// Objects with a counter (see
    /// [`update_one_counter`](Table::update_one_counter)) are never compressed.
    #[must_use]
    pub fn compressed(mut self, compressed: bool) -> Self {
        self.compressed = compressed;
        self
    }

    /// Returns the table, which is empty, as one whose objects expire.
    ///
    /// An object is gone at its deadline, at once, for every function. Its memory is given back
    /// within about a tenth of a second. A deadline belongs to the objects of a key: an insert
    /// gives them a new one, and a change of an object keeps it. A query of a moment sees the
    /// objects that had not expired at that moment.
    ///
    /// Each object takes 8 bytes more, and one that expires its key and 14 bytes besides. Counting
    /// a range and finding a rank take O(objects passed).
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Ttl, Workspace};
    /// # use ats::terms::Term;
    /// # use std::time::Duration;
    /// let table = Table::<TermHost>::new(TableType::Set, 1);
    /// let table = table.expiring(Ttl::Written(Duration::from_millis(20)))?;
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// assert_eq!(table.len()?, 1);
    /// std::thread::sleep(Duration::from_millis(20));
    /// assert_eq!(table.len()?, 0);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TableType`] if the table is not in memory.
    pub fn expiring(self, ttl: Ttl) -> Result<Self, Error> {
        self.limited(Limits {
            ttl,
            ..Limits::default()
        })
    }

    /// Returns the table, which is empty, as one with limits.
    ///
    /// If an insert brings more objects than the bound, others are removed before it returns: those
    /// that were not read, or not read for longest, by S3-FIFO (Yang and others, 2023). Writers
    /// that are under way at the same time may each bring one object more. A list is inserted
    /// whole, and then objects are removed. For expiry see [`expiring`](Table::expiring).
    ///
    /// A read of an object writes to it until it was read three times. An object takes 8 bytes
    /// more, and its key and 6 bytes besides.
    ///
    /// ```
    /// # use ats::terms::{Limits, Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// let limits = Limits { objects: Some(100), ..Limits::default() };
    /// let table = Table::<TermHost>::new(TableType::Set, 1).limited(limits)?;
    /// # let mut work = Workspace::new();
    /// for number in 0..1000 {
    ///     table.insert(&Term::from((number, "object")), &mut work)?;
    /// }
    /// assert_eq!((table.len()?, table.evicted()), (100, 900));
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TableType`] if the table is not in memory.
    pub fn limited(self, limits: Limits) -> Result<Self, Error> {
        self.with_limits(limits, None)
    }

    /// Returns the table, which is empty, as one with limits that tells of the objects that are
    /// gone because of them. A snapshot may still have them.
    ///
    /// # Errors
    /// [`Error::TableType`] if the table is not in memory.
    pub fn telling(self, limits: Limits, on_gone: Arc<dyn OnGone<H>>) -> Result<Self, Error> {
        self.with_limits(limits, Some(on_gone))
    }

    fn with_limits(
        mut self,
        limits: Limits,
        on_gone: Option<Arc<dyn OnGone<H>>>,
    ) -> Result<Self, Error> {
        if self.has_byte_store {
            return Err(Error::TableType);
        }
        let records = Records::in_memory(self.table_type.is_ordered(), self.table_type.is_bag());
        let records = records.limited(limits, on_gone).ok_or(Error::TableType)?;
        self.store = CurrentStore::new(Store::new(records));
        self.expires = true;
        Ok(self)
    }

    /// Returns `true` if objects can have a deadline: if the table is [expiring](Table::expiring),
    /// or its [store of bytes](Table::on_store) is.
    pub fn expires(&self) -> bool {
        self.expires
    }

    /// Returns the limits of a table in memory; `None` if it has none.
    pub fn limits(&self) -> Option<Limits> {
        self.store(&ats_sync::pin()).limits()
    }

    /// Returns the number of keys whose objects were removed because there were too many, since the
    /// table was made or cleared.
    pub fn evicted(&self) -> u64 {
        self.store(&ats_sync::pin()).evicted()
    }

    /// Returns the number of keys whose objects have expired and were removed, since the table was
    /// made or cleared; on a [store of bytes](Table::on_store), since that was opened.
    pub fn expired(&self) -> u64 {
        self.store(&ats_sync::pin()).expired()
    }

    /// Returns about how many reads by a key have found objects, and about how many have found
    /// none, since the table was made or cleared. One read in 64 is counted, for all of them; none
    /// in a table without limits.
    pub fn hits_and_misses(&self) -> (u64, u64) {
        self.store(&ats_sync::pin()).hits_and_misses()
    }

    /// Returns `true` if the table stores objects in less memory.
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// Returns `true` if objects are packed. Tables on a store of bytes do not pack, since their
    /// values become other bytes.
    #[inline]
    pub(crate) fn packs(&self) -> bool {
        self.compressed && !self.has_byte_store
    }

    /// Returns a record of a newly built object.
    #[inline(always)]
    pub(crate) fn record(
        &self,
        key: &[u8],
        built: Built<'_, H>,
        packer: &mut Packer,
    ) -> RecordBox<Values<H>> {
        self.record_dated(key, built, packer, None)
    }

    /// Returns a record of a newly built object, which brings a dating if there is one.
    #[inline(always)]
    pub(crate) fn record_dated(
        &self,
        key: &[u8],
        built: Built<'_, H>,
        packer: &mut Packer,
        dating: Option<Dating>,
    ) -> RecordBox<Values<H>> {
        if self.packs() {
            pack_record(key, built, packer, dating)
        } else {
            record_behind(key, built, dating.map(Dating::word))
        }
    }

    /// Returns the stored form of a newly built object.
    pub(crate) fn pack_for_store<'a>(
        &self,
        built: Built<'a, H>,
        packer: &'a mut Packer,
    ) -> Built<'a, H> {
        pack_for_store(built, packer, self.packs())
    }

    /// Returns the rules for bags of this table. With `keeps_old`, replaced objects may still be
    /// read.
    pub(crate) fn bag_rules(&self, keeps_old: bool) -> Rules {
        Rules {
            distinct: self.table_type.is_distinct_bag(),
            zeros: self.zeros,
            grows: !self.has_byte_store,
            old_version: match (self.is_draft, keeps_old) {
                (true, _) => OldVersion::MayComeBack,
                (false, true) => OldVersion::IsRead,
                (false, false) => OldVersion::Ends,
            },
        }
    }

    /// Returns `true` if the table keeps its objects [in a store of bytes](Table::on_store).
    pub fn has_byte_store(&self) -> bool {
        self.has_byte_store
    }

    /// Returns the type of the table.
    pub fn table_type(&self) -> TableType {
        self.table_type
    }

    /// Returns the position of the key in objects, from 1.
    pub fn key_position(&self) -> usize {
        self.key_index + 1
    }

    /// Returns a table with the options of this one, on another store.
    pub(crate) fn with_store(&self, store: CurrentStore<H>) -> Self {
        Table {
            table_type: self.table_type,
            key_index: self.key_index,
            zeros: self.zeros,
            compressed: self.compressed,
            has_byte_store: self.has_byte_store,
            is_draft: false,
            expires: self.expires,
            cells_gate: Gate::new(),
            overwrites: Likelihood::new(),
            refusals: Likelihood::new(),
            keys: self.keys.for_taken_objects(),
            store,
            snapshots: OnceLock::new(),
        }
    }

    /// Returns the list of the table's snapshots, and creates it on first use.
    pub(crate) fn snapshots(&self) -> &Arc<SnapshotList<H>> {
        self.snapshots.get_or_init(SnapshotList::new)
    }

    /// Returns the list of the table's snapshots, if it was created.
    pub(crate) fn known_snapshots(&self) -> Option<&Arc<SnapshotList<H>>> {
        self.snapshots.get()
    }

    /// Returns `true` if the table is a snapshot of another table.
    pub fn is_snapshot(&self) -> bool {
        self.store(&ats_sync::pin()).is_of_past()
    }

    /// Appends the bytes of a key in this table to `out`.
    #[inline]
    pub fn key_bytes<T: TermRef>(&self, key: T, out: &mut Vec<u8>) {
        let _made = self.key_bytes_within(key, out, usize::MAX);
    }

    /// Appends the bytes of a key like [`key_bytes`](Table::key_bytes), unless that takes longer
    /// than copying about `words` words: then it appends nothing. Meant for callers that must not
    /// work for long.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the key takes too long.
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

    /// Visits the keys and values of a table on a [store of bytes](Table::on_store), in the form of
    /// the store, in a range and a direction, until `visit` breaks. Each key shows a concurrent
    /// write or not, unless the store never changes.
    ///
    /// [`objects`](crate::terms::program_merge::objects) splits the value of a key.
    ///
    /// # Errors
    /// [`Error::TableType`] if the table is in memory; [`Error::Storage`].
    pub fn scan_bytes(
        &self,
        key_range: ats_store::KeyRange<'_>,
        direction: ats_store::Direction,
        visit: &mut ats_store::store::Visit<'_>,
    ) -> Result<(), Error> {
        self.store(&ats_sync::pin())
            .scan_bytes(key_range, direction, visit)
    }

    /// Returns a bound within a range of key bytes, as in [`scan_bytes`](Table::scan_bytes), that
    /// divides its records into two parts of about the same size; `None` if the range is empty, or
    /// the store does not know.
    ///
    /// # Errors
    /// The errors of [`scan_bytes`](Table::scan_bytes).
    pub fn median_bytes(
        &self,
        key_range: ats_store::KeyRange<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.store(&ats_sync::pin()).median_bytes(key_range)
    }

    /// Returns the number of objects at one moment between the begin and the end of the call. Calls
    /// are linearizable with changes and lookups. O(locks of the table); writers wait for the call
    /// if the table has many locks. O(objects) for a bag [in a store of bytes](Table::on_store).
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// assert_eq!(table.len()?, 0);
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`] if the store must read to count, and fails. [`Error::Busy`] if the
    /// calling thread [must not wait](ats_sync::lock::set_may_wait) for long.
    pub fn len(&self) -> Result<usize, Error> {
        self.store(&ats_sync::pin()).objects()
    }

    /// Returns `true` if the table has no object.
    ///
    /// # Errors
    /// The errors of [`len`](Table::len).
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Returns the bytes of memory of the table, without memory that its objects share with others.
    /// The number is exact at one moment, like [`len`](Table::len).
    ///
    /// # Errors
    /// [`Error::Busy`], like [`len`](Table::len).
    pub fn bytes(&self) -> Result<usize, Error> {
        Ok(self.store(&ats_sync::pin()).bytes()? + size_of::<Self>())
    }

    /// Returns the approximate bytes of memory of the table. Waits for no thread.
    pub fn about_bytes(&self) -> usize {
        self.store(&ats_sync::pin()).about_bytes() + size_of::<Self>()
    }

    /// Starts a period in which a walk visits every object that stays exactly once, and may
    /// continue from a key that was removed meanwhile. Nests.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// for key in 0..9 {
    ///     table.insert(&Term::from((key, "object")), &mut work)?;
    /// }
    /// table.fix();
    /// let guard = ats::terms::pin();
    /// let mut step = table.first(&guard)?;
    /// while let Some(found) = step {
    ///     table.delete_object(&found.to_terms()[0], &mut work)?;
    ///     step = table.next(found.key_bytes(), &guard)?; // after a key that is gone
    /// }
    /// if !table.unfix() {
    ///     while !table.tidy() {}
    /// }
    /// assert!(table.is_empty()?);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    pub fn fix(&self) {
        self.store.fix();
    }

    /// Ends a period begun by [`fix`](Table::fix). Does nothing if none was begun.
    ///
    /// The records that were kept for the walks are removed slice by slice. Returns `true` if all
    /// are removed; otherwise the caller should call [`tidy`](Table::tidy) until that returns
    /// `true`.
    pub fn unfix(&self) -> bool {
        !self.store.unfix() || self.tidy()
    }

    /// Does a slice of postponed work, in well under a millisecond. Returns `true` when no work is
    /// left, or the table is fixed.
    pub fn tidy(&self) -> bool {
        let guard = ats_sync::pin();
        self.store(&guard).upkeep(Upkeep::Walks, SLICE, &guard)
    }

    /// Removes all objects, at one moment for every reader and writer, and returns their number.
    /// O(1); the memory is freed later. The number is exact if no other operation runs.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// assert_eq!(table.clear()?, 1);
    /// assert!(table.is_empty()?);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Busy`] while a [transaction over several tables](Table::transact_all) runs: the
    /// caller can try again, and no further one begins for a tenth of a second. [`Error::Storage`].
    /// Then nothing has changed.
    pub fn clear(&self) -> Result<usize, Error> {
        let guard = ats_sync::pin();
        // A store of bytes may fail to count, so it counts before anything is removed.
        let before = if self.has_byte_store {
            Some(self.store(&guard).objects()?)
        } else {
            None
        };
        let old = self.store.take_out(&guard)?;
        before.map_or_else(|| old.objects(), Ok)
    }

    /// Removes all objects like [`clear`](Table::clear), but does not count them, which takes long
    /// in a store of bytes.
    ///
    /// # Errors
    /// The errors of [`clear`](Table::clear).
    pub fn delete_all(&self) -> Result<(), Error> {
        self.store.take_out(&ats_sync::pin()).map(drop)
    }

    /// Lets no long list and no transaction begin in the table any more, which its owner is about
    /// to give up: so no [transaction over several tables](Table::transact_all) changes others
    /// afterwards.
    ///
    /// # Errors
    /// [`Error::Busy`] while such a transaction runs: the caller can try again, and no further one
    /// begins for a tenth of a second.
    pub fn close(&self) -> Result<(), Error> {
        self.store(&ats_sync::pin()).close_to_spanning_batches()
    }

    /// Calls a function that replaces all records of the table's [store of bytes](Table::on_store)
    /// without the table's knowledge.
    ///
    /// # Errors
    /// The errors of the function, which has then changed nothing.
    pub fn replace_all(&self, replace: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        // The first call is for walks that go on while the records are replaced, which takes too
        // long for the lock.
        self.store.allow_lost_keys();
        replace()?;
        self.store.allow_lost_keys();
        Ok(())
    }

    /// Returns statistics of the adaptation to contention since the table was made or cleared;
    /// `None` for a table without order. Approximate while others write. O(base nodes).
    pub fn adaptation(&self) -> Option<Adaptation> {
        self.store(&ats_sync::pin()).adaptation()
    }

    /// Returns the nodes that [`adaptation`](Table::adaptation) counts, in key order; a route node
    /// comes before its children. `None` for a table without order. O(base nodes).
    pub fn shape(&self) -> Option<Vec<ShapeNode>> {
        self.store(&ats_sync::pin()).shape()
    }

    /// Returns the layout of a table without order, and statistics of its adaptation to contention
    /// since it was made or cleared; `None` for a table with order. Approximate while others write.
    /// O(locks).
    pub fn buckets(&self) -> Option<Buckets> {
        self.store(&ats_sync::pin()).buckets()
    }

    /// Forces adaptations, for tests, from now on and also after [`clear`](Table::clear). One of
    /// `splits` writes makes the table split a part of itself, or double its locks, as under
    /// contention. One of `joins` writes makes it join two parts, or halve its locks. 0 means
    /// never. Only [`adaptation`](Table::adaptation) and [`buckets`](Table::buckets) show a
    /// difference.
    #[cfg(feature = "forcing")]
    pub fn force_adaptation(&self, splits: u32, joins: u32) {
        self.store.force_adaptation(splits, joins);
    }
}

/// Returns a record of a newly built object, in a table that packs its objects.
#[inline(never)]
fn pack_record<H: Host>(
    key: &[u8],
    built: Built<'_, H>,
    packer: &mut Packer,
    dating: Option<Dating>,
) -> RecordBox<Values<H>> {
    record_behind(key, packer.pack(built), dating.map(Dating::word))
}
