//! A table: its type, its keys, walking, fixation, clearing.

use crate::bag::Rules;
use crate::error::Error;
use crate::found::Found;
use crate::store::codec::Codec;
use crate::store::idle_joiner::JoinIdle;
use crate::store::portable::Portable;
use crate::store::visit::Visit;
use crate::store::{Cleared, Records, SLICE, Store};
use crate::value::{Rec, Values, record, stored};
use ats_mem::{Adaptation, Buckets, Neighbour, NoSuchKey, RecordBox, ShortKey};
use ats_store::{Direction, MayBlock, SlotAnswer, StoreRef};
use ats_sync::Guard;
use ats_sync::count::atomic::{AtomicBool, AtomicPtr, Ordering};
use ats_term::image::{Built, Host, Packer};
use ats_term::{Kind, TermRef, Zeros, exact, order};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[cfg(feature = "rivals")]
mod rival;

/// The rule that says which keys are the same, and if a key can have several objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableType {
    /// One object per key; keys are the same if `=:=`. No order.
    Set,
    /// One object per key; keys are the same if `==`, and in Erlang's standard order.
    OrderedSet,
    /// Any number of different objects per key; keys as in a set.
    Bag,
    /// Any number of objects per key; keys as in a set.
    DuplicateBag,
    /// Any number of different objects per key; keys as in an ordered set, and in their order.
    OrderedBag,
    /// Any number of objects per key; keys as in an ordered set, and in their order.
    OrderedDuplicateBag,
}

impl TableType {
    /// Returns `true` if a key can have several objects.
    #[must_use]
    pub fn is_bag(self) -> bool {
        !matches!(self, TableType::Set | TableType::OrderedSet)
    }

    /// Returns `true` if keys are the same if `==`, and the table has them in Erlang's standard order.
    #[must_use]
    pub fn is_ordered(self) -> bool {
        use TableType::{OrderedBag, OrderedDuplicateBag, OrderedSet};
        matches!(self, OrderedSet | OrderedBag | OrderedDuplicateBag)
    }

    /// Returns `true` if a key can have several objects, but none of them twice.
    #[must_use]
    pub fn is_distinct_bag(self) -> bool {
        matches!(self, TableType::Bag | TableType::OrderedBag)
    }

    /// The name in Erlang.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TableType::Set => "set",
            TableType::OrderedSet => "ordered_set",
            TableType::Bag => "bag",
            TableType::DuplicateBag => "duplicate_bag",
            TableType::OrderedBag => "ordered_bag",
            TableType::OrderedDuplicateBag => "ordered_duplicate_bag",
        }
    }
}

/// A key that a walk has come to.
pub enum NextKey<'g, H: Host> {
    /// This integer.
    Integer(i64),
    /// That of the object, or the objects, of this key.
    Of(Found<'g, H>),
}

/// A table of objects of host `H`. See the [crate].
///
/// All operations may be called from any thread at any time. Reads take no lock and wait for no other
/// thread.
pub struct Table<H: Host> {
    pub(crate) table_type: TableType,
    /// From 0.
    pub(crate) key_index: usize,
    pub(crate) zeros: Zeros,
    compressed: bool,
    /// `true` if values are bytes in the end, so that nothing can be shared by versions of a key.
    pub(crate) is_portable: bool,
    /// Exchanged as a whole to clear the table: an operation works on the store it finds, and one
    /// that still works on the old store counts as done before the exchange. Made by `Arc::into_raw`.
    store: AtomicPtr<Store<H>>,
    /// `true` if a key of a table with order has been a float. Set before such a key is in the store,
    /// and never cleared: a number without fraction has the same bytes as an integer and as a float.
    has_met_float: AtomicBool,
    admin: Mutex<Admin>,
}

/// The data that change only under a lock.
#[derive(Default)]
struct Admin {
    /// Number of fixations.
    fixed: usize,
    /// `true` if the table was cleared since it was fixed: then keys that a walk remembers may be
    /// gone.
    cleared: bool,
    /// The argument of `Table::force_adaptation`.
    #[cfg(feature = "forcing")]
    forcing: (u32, u32),
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

    /// An empty table that keeps its objects as bytes, in a store that has no records yet. `codec` says how objects
    /// become bytes, and `may_block` whether the calling thread may block: `|| Some(MayBlock::here())`
    /// where all threads may.
    ///
    /// It answers as another table does, and shows the errors of the store as [`Error::Storage`].
    /// Types without order are walked in the order of the bytes of their keys. Counters are not changed in
    /// place, [`slot`](Table::slot) and [`skip`](Table::skip) are O(objects passed). A change of a key of a
    /// bag is O(objects of the key), unless the store has the ability [`Bags`](ats_store::Bags); it asks
    /// an [`ObjectIdentity`](crate::ObjectIdentity) which objects are equal. An identifier of a resource
    /// of the host, as the external term format has it, does not keep the resource alive.
    ///
    /// # Panics
    /// If `key_position` is 0.
    pub fn on_store(
        store: Box<dyn StoreRef>,
        may_block: fn() -> Option<MayBlock>,
        codec: Arc<dyn Codec<H>>,
        table_type: TableType,
        key_position: usize,
        zeros: Zeros,
    ) -> Self {
        let (ordered, is_bag) = (table_type.is_ordered(), table_type.is_bag());
        let records = Records::Bytes(Portable::new(store, may_block, codec, ordered, is_bag));
        Self::on(records, table_type, key_position, zeros)
    }

    fn on(records: Records<H>, table_type: TableType, key_position: usize, zeros: Zeros) -> Self {
        let key_index = key_position.checked_sub(1).expect("positions begin at 1");
        Table {
            table_type,
            key_index,
            zeros,
            compressed: false,
            is_portable: matches!(records, Records::Bytes(_)),
            store: AtomicPtr::new(into_raw(Store::new(records))),
            has_met_float: AtomicBool::new(false),
            admin: Mutex::default(),
        }
    }

    /// Has the table store the objects it is given from now on in less memory, where that is possible, or
    /// no longer do so. It takes longer to write them, and to read them.
    ///
    /// Counters that change in place (see [`update_one_counter`](Table::update_one_counter)) keep their
    /// object as it would be in another table.
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
        self.compressed && !self.is_portable
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
            true => packed_record(key, built, packer),
            false => record(key, built),
        }
    }

    /// The stored form of an object that was built.
    pub(crate) fn stored<'a>(&self, built: Built<'a, H>, packer: &'a mut Packer) -> Built<'a, H> {
        stored(built, packer, self.packs())
    }

    /// The rule of bags of this table for equal objects.
    pub(crate) fn bag_rules(&self) -> Rules {
        Rules {
            distinct: self.table_type.is_distinct_bag(),
            zeros: self.zeros,
            grows: !self.is_portable,
        }
    }

    /// Returns `true` if the table keeps its objects [in a store of bytes](Table::on_store).
    pub fn is_portable(&self) -> bool {
        self.is_portable
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
    pub(crate) fn with_store(&self, store: *mut Store<H>) -> Self {
        Table {
            table_type: self.table_type,
            key_index: self.key_index,
            zeros: self.zeros,
            compressed: self.compressed,
            is_portable: self.is_portable,
            store: AtomicPtr::new(store),
            // The other table has met them, and maybe still meets some.
            has_met_float: AtomicBool::new(true),
            admin: Mutex::default(),
        }
    }

    /// The store, which is taken away: whatever the table is asked for afterwards, it has none.
    pub(crate) fn give_up_store(&mut self) -> *mut Store<H> {
        std::mem::replace(self.store.get_mut(), std::ptr::null_mut())
    }

    /// The options of exact keys. Those in a store of bytes mean the same in every process.
    pub(crate) fn exact_options(&self) -> exact::Options {
        exact::Options {
            zeros: self.zeros,
            atoms: match self.is_portable {
                true => exact::Atoms::Text,
                false => exact::Atoms::Word,
            },
        }
    }

    /// The bytes by which this table knows a key; appended to `out`.
    #[inline]
    pub fn key_bytes<T: TermRef>(&self, key: T, out: &mut Vec<u8>) {
        let _made = self.key_bytes_within(key, out, usize::MAX);
    }

    /// Does what [`key_bytes`](Table::key_bytes) does, unless that takes longer than to copy about so many
    /// words: then it appends nothing. For callers that must not work for long.
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
        let zeros = self.zeros;
        let most = words.saturating_mul(size_of::<u64>());
        let made = match self.table_type.is_ordered() {
            true => {
                self.meet_key(key);
                order::order_key_within(key, out, zeros, most)
            }
            false => exact::exact_key_within(key, out, self.exact_options(), most),
        };
        made.map(|_| ()).ok_or(Error::TooLarge)
    }

    /// Notes whether a key is a float.
    #[inline]
    fn meet_key<T: TermRef>(&self, key: T) {
        if key.immediate().is_none()
            && matches!(key.kind(), Kind::Float(_))
            && !self.has_met_float.load(Ordering::Relaxed)
        {
            self.has_met_float.store(true, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn store<'g>(&'g self, _guard: &'g Guard) -> &'g Store<H> {
        // SAFETY: a store is retired after it was exchanged, so one found under a guard lives as
        // long as the guard; the table itself frees its last store only when it is dropped.
        unsafe { &*self.store.load(Ordering::Acquire) }
    }

    /// The store, for a call that works on it beyond one guard.
    pub(crate) fn visit(&self) -> Visit<H> {
        let guard = ats_sync::pin();
        // SAFETY: the store is one of `into_raw`, and is given up by retiring it after it was exchanged. The
        // last one is given up when the table is dropped, which the caller borrows.
        unsafe { Visit::new(self.store.load(Ordering::Acquire), &guard) }
    }

    /// Does what [`lookup`](Table::lookup) does, by the bytes of the key.
    ///
    /// # Errors
    /// [`Error::Storage`] of a store of bytes that cannot read.
    #[inline]
    pub fn lookup_bytes<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<Found<'g, H>>, Error> {
        Ok(self.store(guard).get(key, guard)?.map(Found::new))
    }

    /// The first key in the order of the table.
    ///
    /// Linearizable with changes of keys: no object that was there throughout the call is passed
    /// over. O(log n) in tables with order, else O(1), amortised.
    ///
    /// # Errors
    /// [`Error::Storage`] of a store of bytes that cannot read.
    pub fn first<'g>(&'g self, guard: &'g Guard) -> Result<Option<Found<'g, H>>, Error> {
        Ok(self.store(guard).first(guard)?.map(Found::new))
    }

    /// The last key in the order of the table; in tables without order, the same as the first.
    ///
    /// See [`first`](Table::first).
    ///
    /// # Errors
    /// [`Error::Storage`] of a store of bytes that cannot read.
    pub fn last<'g>(&'g self, guard: &'g Guard) -> Result<Option<Found<'g, H>>, Error> {
        Ok(self.store(guard).last(guard)?.map(Found::new))
    }

    /// The key after the one with these bytes. Tables without order refuse keys they do not hold,
    /// unless they were there when the table was fixed.
    ///
    /// No key that was there throughout the call is passed over. O(log n) in tables with order,
    /// else O(1).
    ///
    /// # Errors
    /// [`Error::BadKey`] if a table without order does not know the key; [`Error::Storage`] of a
    /// store of bytes that cannot read.
    pub fn next<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Found<'g, H>>, Error> {
        self.walked(self.store(guard).next(key, guard)?)
    }

    /// The key before the one with these bytes; in tables without order, as [`next`](Table::next).
    ///
    /// # Errors
    /// Those of [`next`](Table::next).
    pub fn prev<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Found<'g, H>>, Error> {
        self.walked(self.store(guard).prev(key, guard)?)
    }

    /// The key next to the one with these bytes, in a direction; in tables without order, the one after it. As
    /// [`next`](Table::next) and [`prev`](Table::prev), but an object is only looked at if its key cannot be told without
    /// it.
    ///
    /// # Errors
    /// Those of [`next`](Table::next).
    pub fn next_key<'g>(
        &'g self,
        key: &[u8],
        direction: Direction,
        guard: &'g Guard,
    ) -> Result<Option<NextKey<'g, H>>, Error> {
        let number = Cell::new(None);
        let is_integer = |key: &ShortKey| {
            let (bytes, len) = key.to_bytes();
            number.set(order::number_of_order_key(&bytes[..len]));
            // After the key was found: a float that is there had been met before.
            number.get().is_some() && !self.has_met_float.load(Ordering::Relaxed)
        };
        let store = self.store(guard);
        match store.neighbour(key, direction, guard, &is_integer)? {
            Ok(Some(Neighbour::Key(_))) => Ok(number.get().map(NextKey::Integer)),
            Ok(Some(Neighbour::Record(record))) => Ok(Some(NextKey::Of(Found::new(record)))),
            Ok(None) => Ok(None),
            Err(NoSuchKey) => self.walk_of_lost_key().map(|()| None),
        }
    }

    fn walked<'g>(
        &'g self,
        step: Result<Option<&'g Rec<H>>, NoSuchKey>,
    ) -> Result<Option<Found<'g, H>>, Error> {
        match step {
            Ok(record) => Ok(record.map(Found::new)),
            Err(NoSuchKey) => self.walk_of_lost_key().map(|()| None),
        }
    }

    /// A walk whose key is gone ends if the table was cleared since it was fixed, else it fails.
    fn walk_of_lost_key(&self) -> Result<(), Error> {
        match self.admin().cleared {
            true => Ok(()),
            false => Err(Error::BadKey),
        }
    }

    /// Visits keys in the order of the table, after the one with these bytes (all, if `None`), until
    /// `visit` breaks. Not a snapshot. On tables without order, fix the table for the whole of a walk
    /// that consists of several calls.
    ///
    /// A key that is there throughout is visited once, one that is missing throughout is not.
    ///
    /// # Errors
    /// Those of [`next`](Table::next), for the key to begin behind.
    pub fn scan<'g>(
        &'g self,
        after: Option<&[u8]>,
        guard: &'g Guard,
        visit: &mut dyn FnMut(Found<'g, H>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let store = self.store(guard);
        match store.scan(after, guard, &mut |record| visit(Found::new(record)))? {
            Ok(()) => Ok(()),
            Err(NoSuchKey) => self.walk_of_lost_key(),
        }
    }

    /// Visits the keys of slot `index`, from 0. The slots divide the table: each object is in one of them, and
    /// while the table is fixed an object that stays, stays in its slot. In an `ordered_set` slot `index` is
    /// the object at that place; see [`nth`](Table::nth). In an ordered bag the objects of a key are in the slot of
    /// the place of the oldest one.
    ///
    /// # Errors
    /// [`Error::Storage`] of a store of bytes that cannot read.
    pub fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(Found<'g, H>),
    ) -> Result<SlotAnswer, Error> {
        let mut visit = |record| visit(Found::new(record));
        self.store(guard).slot(index, guard, &mut visit)
    }

    /// Shows the keys and the values of a table on a [store of bytes](Table::on_store), as the store has them, in a range
    /// and a direction, until `visit` breaks. What is written meanwhile is seen or not, key by key, unless the store is one
    /// that does not change.
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

    /// A bound within a range of bytes, as [`scan_bytes`](Table::scan_bytes) has them, that divides its records
    /// in two parts of about the same size; `None` if there are none, or the store cannot tell.
    ///
    /// # Errors
    /// Those of [`scan_bytes`](Table::scan_bytes).
    pub fn median_bytes(
        &self,
        key_range: ats_store::KeyRange<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.store(&ats_sync::pin()).median_bytes(key_range)
    }

    /// Number of objects at one moment between the begin and the end of the call, in the order of all that
    /// other calls do and see. O(locks of the table), which writers wait for if they are many; O(objects) of a bag [in a
    /// store of bytes](Table::on_store).
    ///
    /// # Errors
    /// [`Error::Storage`], of a table on a store that must read to tell. [`Error::Busy`], if the calling thread [must
    /// not wait](ats_sync::lock::set_may_wait) for long.
    pub fn len(&self) -> Result<usize, Error> {
        self.store(&ats_sync::pin()).objects()
    }

    /// Returns `true` if there is no object.
    ///
    /// # Errors
    /// As those of [`len`](Table::len).
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Bytes of memory the table takes, without what its objects share with others; at one moment, as
    /// [`len`](Table::len).
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

    /// Starts a period in which a walk meets every object that stays exactly once, and may go on from
    /// a key that was removed meanwhile. Nests.
    pub fn fix(&self) {
        let guard = ats_sync::pin();
        let mut admin = self.admin();
        admin.fixed += 1;
        if admin.fixed == 1 {
            admin.cleared = false;
            self.store(&guard).fix();
        }
    }

    /// Ends a period begun by [`fix`](Table::fix). Does nothing if none was begun.
    ///
    /// What was kept for the walks is removed a slice at a time: true if that is done, false if
    /// [`tidy`](Table::tidy) should be called until it says so.
    pub fn unfix(&self) -> bool {
        let guard = ats_sync::pin();
        let mut admin = self.admin();
        let Some(fixed) = admin.fixed.checked_sub(1) else {
            return true;
        };
        admin.fixed = fixed;
        if fixed == 0 {
            admin.cleared = false;
            self.store(&guard).unfix();
        }
        drop(admin);
        self.tidy()
    }

    /// Does a slice of the work that was put off; true when nothing is left, or the table is fixed.
    /// Takes well under a millisecond.
    pub fn tidy(&self) -> bool {
        let guard = ats_sync::pin();
        self.store(&guard).tidy(SLICE, &guard)
    }

    /// Removes all objects, at one moment for every reader and writer, and returns how many they were. O(1); the
    /// memory is freed by and by. The number is exact if no operation is running.
    ///
    /// # Errors
    /// [`Error::Storage`], after which nothing has changed.
    pub fn clear(&self) -> Result<usize, Error> {
        let guard = ats_sync::pin();
        // A store of bytes may fail to tell.
        let before = match self.is_portable {
            true => Some(self.store(&guard).objects()?),
            false => None,
        };
        let old = self.exchange(&guard)?;
        // SAFETY: unlinked under our guard, so it lives as long as that.
        let objects = before.map_or_else(|| unsafe { &*old }.objects(), Ok);
        // SAFETY: the old store has just been unlinked.
        unsafe { retire_store(old, &guard) };
        objects
    }

    /// Does what [`clear`](Table::clear) does, without counting the objects, which of a store of
    /// bytes takes long.
    ///
    /// # Errors
    /// As those of [`clear`](Table::clear).
    pub fn delete_all(&self) -> Result<(), Error> {
        let guard = ats_sync::pin();
        let old = self.exchange(&guard)?;
        // SAFETY: the old store has just been unlinked.
        unsafe { retire_store(old, &guard) };
        Ok(())
    }

    /// Calls a function that replaces all records of the [store of bytes](Table::on_store) that the
    /// table is on, which this does not see.
    ///
    /// # Errors
    /// Those of the function, which has changed nothing then.
    pub fn replace_all(&self, replace: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let keys_may_go = || {
            let mut admin = self.admin();
            admin.cleared |= admin.fixed > 0;
        };
        // Before as well, for walks that go on while the records are replaced: that takes too long for the lock.
        keys_may_go();
        replace()?;
        keys_may_go();
        Ok(())
    }

    /// Takes all the objects out, and returns the store that they are in. In memory that is the one which they were in:
    /// an empty one is put in its place, and operations that found the old one under a guard may still be in it.
    pub(crate) fn exchange(&self, guard: &Guard) -> Result<*mut Store<H>, Error> {
        let mut admin = self.admin();
        let fresh = match self.store(guard).cleared()? {
            Cleared::Fresh(fresh) => fresh,
            Cleared::Taken(taken) => {
                admin.cleared |= admin.fixed > 0;
                return Ok(into_raw(taken));
            }
        };
        if admin.fixed > 0 {
            fresh.fix();
            admin.cleared = true;
        }
        #[cfg(feature = "forcing")]
        fresh.force_adaptation(admin.forcing.0, admin.forcing.1);
        Ok(self.store.swap(into_raw(fresh), Ordering::AcqRel))
    }

    /// The adaptation of a table with an order to contention since it was made or cleared; `None`
    /// of others. Not exact while others write. O(base nodes).
    pub fn adaptation(&self) -> Option<Adaptation> {
        self.store(&ats_sync::pin()).adaptation()
    }

    /// The layout of a table without order, and its adaptation to contention since it was made or
    /// cleared;
    /// `None` of others. Not exact while others write. O(locks).
    pub fn buckets(&self) -> Option<Buckets> {
        self.store(&ats_sync::pin()).buckets()
    }

    /// For tests: from now on, also after [`clear`](Table::clear), one of `splits` writes forces the
    /// table to split a part of itself, or to double its locks, as contention would do, and one of `joins` to
    /// join two parts, or to halve its locks; 0 is never. Only [`adaptation`](Table::adaptation) and
    /// [`buckets`](Table::buckets) show a difference.
    #[cfg(feature = "forcing")]
    pub fn force_adaptation(&self, splits: u32, joins: u32) {
        let guard = ats_sync::pin();
        let mut admin = self.admin();
        admin.forcing = (splits, joins);
        // Under the lock, lest a store that `clear` has just made keeps the old numbers.
        self.store(&guard).force_adaptation(splits, joins);
    }

    fn admin(&self) -> MutexGuard<'_, Admin> {
        // Plain numbers, valid at every moment, so a panic elsewhere does not spoil them.
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: Host> Drop for Table<H> {
    fn drop(&mut self) {
        let store = *self.store.get_mut();
        // The store of what was taken may have been given up before.
        if !store.is_null() {
            // SAFETY: no other thread uses the table any more, so no thread is in its store.
            unsafe { free_store::<H>(store.cast()) };
        }
    }
}

/// Frees a store, which no thread can find any more, when no thread is in it any more.
///
/// # Safety
/// It was made by [`into_raw`], and is given up once.
pub(crate) unsafe fn retire_store<H: Host>(store: *mut Store<H>, guard: &Guard) {
    // SAFETY: handed on; the store is not freed before it is retired.
    unsafe {
        let bytes = size_of::<Store<H>>() + (*store).about_bytes();
        guard.retire(store.cast(), bytes, free_store::<H>);
    }
}

fn into_raw<H: Host>(store: Arc<Store<H>>) -> *mut Store<H> {
    Arc::into_raw(store).cast_mut()
}

/// Gives up a table's reference to a store that no thread can reach through the table.
unsafe fn free_store<H: Host>(raw: *mut u8) {
    // SAFETY: the caller hands over a store made by `into_raw`.
    let store = unsafe { Arc::from_raw(raw.cast::<Store<H>>().cast_const()) };
    store.release();
}

/// A record of an object that was built, in a table that packs its objects.
#[inline(never)]
fn packed_record<H: Host>(
    key: &[u8],
    built: Built<'_, H>,
    packer: &mut Packer,
) -> RecordBox<Values<H>> {
    record(key, packer.pack(built))
}
