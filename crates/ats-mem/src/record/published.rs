//! Published records, as readers find them.

use super::entry::Entry;
use super::header::Header;
use super::version::{Version, When};

use crate::slab;
use ats_sync::Guard;
use std::marker::PhantomData;
use std::ptr;

/// The fixed part of a record; see [`record`](super) for the parts that follow in memory.
#[repr(transparent)]
pub struct Record<R> {
    pub(super) header: Header<Entry<Record<R>>>,
    release: PhantomData<R>,
}

impl<R> Record<R> {
    /// Returns the key.
    #[inline]
    pub fn key(&self) -> &[u8] {
        let shape = self.header.shape();
        // SAFETY: only `RecordBox::make` makes a record, and it allocates and fills the key bytes
        // behind the header; they never change (RECORD-1).
        unsafe {
            let start = self.words_from(shape.header_words()).cast();
            std::slice::from_raw_parts(start, shape.key_len as usize)
        }
    }

    /// Returns `true` if this is the key. Up to 16 bytes, the most common, are compared without a
    /// call.
    #[inline(always)]
    pub fn has_key(&self, key: &[u8]) -> bool {
        let own = self.key();
        let len = own.len();
        if len != key.len() {
            return false;
        }
        match len {
            0 => true,
            1..=3 => {
                own[0] == key[0] && own[len / 2] == key[len / 2] && own[len - 1] == key[len - 1]
            }
            4..=7 => own[..4] == key[..4] && own[len - 4..] == key[len - 4..],
            8..=16 => own[..8] == key[..8] && own[len - 8..] == key[len - 8..],
            _ => own == key,
        }
    }

    /// Returns the value. Not for values of which some words [change](Record::value_words).
    #[inline]
    pub fn value(&self) -> &[u64] {
        let (start, words) = self.value_words();
        // SAFETY: the shape in the header has the number of value words that follow the key in the
        // block of the record. They never change (RECORD-1).
        unsafe { std::slice::from_raw_parts(start, words) }
    }

    /// Returns the address of the value's words, and their number. For owners of values who change
    /// some words atomically, and so must not have a slice of them.
    #[inline]
    pub fn value_words(&self) -> (*const u64, usize) {
        let shape = self.header.shape();
        // SAFETY: the shape in the header has the numbers of words of the header and of the padded
        // key, and never changes (RECORD-1); the value follows them in the same block.
        let start = unsafe { self.words_from(shape.header_words() + shape.key_words()) };
        (start, shape.value_words as usize)
    }

    /// Returns `true` if the value owns resources.
    pub fn owns(&self) -> bool {
        self.header.shape().owns
    }

    /// Returns the bytes of memory of this record: its block of the slab.
    pub fn bytes(&self) -> usize {
        slab::block_size(self.header.shape().bytes())
    }

    /// # Safety
    /// The record must have at least `words` words.
    unsafe fn words_from(&self, words: usize) -> *const u64 {
        // SAFETY: the caller promises that the record has this many words, so the address lies
        // within its block or at its end.
        unsafe { ptr::from_ref(self).cast::<u64>().add(words) }
    }

    /// Returns the record that a reader sees who found this one in the store: itself, or, if its
    /// batch has not committed, the record before.
    #[inline]
    pub fn resolve<'g>(&'g self, guard: &'g Guard) -> Option<&'g Record<R>> {
        if !self.header.is_stamped() {
            return Some(self);
        }
        self.resolve_at(When::NOW, guard)
    }

    /// Returns the record that a query at this read point sees after it found this one in the
    /// store.
    ///
    /// For [`NOW`](When::NOW), that which a reader sees. Another moment is one that a query has
    /// [begun](crate::Records::begin) and not ended. O(log queries): see
    /// [`read_points`](crate::read_points).
    #[cold]
    pub fn resolve_at<'g>(&'g self, when: When, guard: &'g Guard) -> Option<&'g Record<R>> {
        let mut record = self;
        while let Some(before) = record.look_through(when, guard) {
            record = before?;
        }
        (!record.is_empty()).then_some(record)
    }

    /// Returns an earlier record, or `None` if there was none, in case a query at this read point
    /// does not see this one.
    #[inline(always)]
    #[expect(
        clippy::option_option,
        reason = "a record seen differs from none before it"
    )]
    fn look_through<'g>(&'g self, when: When, guard: &'g Guard) -> Option<Option<&'g Record<R>>> {
        let entry = self.header.stamp();
        if entry.is_null() {
            let version = self.version(guard)?;
            return (!when.sees(version.time)).then(|| version.before_at(when, guard));
        }
        // SAFETY: a batch retires its entries after it has cleared every stamp with them (BATCH-4),
        // so an entry read from a stamp under a guard lives as long as the guard.
        let entry = unsafe { &*entry };
        // SAFETY: the record before is retired only after the batch has committed (BATCH-3), hence
        // after this guard was made if the batch is seen uncommitted under it. If the record is one
        // that only holds its key, it was taken out of the store before the record before could be
        // replaced, and this guard is older than that.
        (!entry.shows(self, when)).then(|| unsafe { entry.before() })
    }

    /// Returns the version in the stamp, if it is one (READ_POINTS-3).
    pub(crate) fn version<'g>(&self, _guard: &'g Guard) -> Option<&'g Version<Record<R>>> {
        let address = self.header.version();
        // SAFETY: a version is retired after it was cleared from the stamp of every record that is
        // not retired (READ_POINTS-3), so one read from a stamp under a guard lives as long as the
        // guard.
        unsafe { ptr::with_exposed_provenance::<Version<Record<R>>>(address).as_ref() }
    }

    /// Returns the version like [`version`](Self::version), for code that has exclusive use of the
    /// store.
    ///
    /// # Safety
    /// No other code may use the store of the record, and its moments must not have been dropped.
    pub(crate) unsafe fn version_alone(&self) -> Option<&Version<Record<R>>> {
        let address = self.header.version();
        // SAFETY: the version in the stamp of a record that is in a store is in the list of its
        // moments (READ_POINTS-3), and the caller promises that no other code frees it.
        unsafe { ptr::with_exposed_provenance::<Version<Record<R>>>(address).as_ref() }
    }

    /// Stamps a record with a version. The record is not published, or its batch has committed and
    /// calls this.
    pub(crate) fn set_version(&self, version: &Version<Record<R>>) {
        self.header
            .set_version(ptr::from_ref(version).expose_provenance());
    }

    /// Clears the stamp if it is this version.
    pub(crate) fn clear_version(&self, version: &Version<Record<R>>) {
        self.header.clear_version(ptr::from_ref(version).addr());
    }

    /// Returns `true` if the record has no value: it only holds its key, or is a removal.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.header.shape().value_words == 0
    }

    /// Returns `true` if this is a [removal](crate::read_points).
    #[inline]
    pub(crate) fn is_removal(&self) -> bool {
        self.is_empty() && !self.is_held()
    }

    /// Returns `true` if a batch holds the key of this record. The caller found it in a store under
    /// the lock of its key.
    #[inline]
    pub fn is_held(&self) -> bool {
        !self.header.stamp().is_null()
    }

    /// Returns `true` if this record holds a key that has a record before, also if its batch has
    /// removed the key. The caller found it in a store.
    #[cold]
    pub(crate) fn holds_known_key(&self, guard: &Guard) -> bool {
        // SAFETY: an entry read from a stamp under a guard lives as long as the guard (BATCH-4).
        let entry = unsafe { self.header.stamp().as_ref() };
        // SAFETY: the record before is retired after the key was released, hence after this guard
        // was made (BATCH-3).
        let before = entry.and_then(|entry| unsafe { entry.before() });
        self.is_empty() && before.is_some_and(|before| before.resolve(guard).is_some())
    }

    /// Returns `true` if the header has room for the address of this entry.
    pub(crate) fn has_room_for(&self, entry: *const Entry<Self>) -> bool {
        self.header.has_room_for(entry)
    }

    /// Stamps a record that has [room](Record::has_room_for) for the entry and no stamp, by the
    /// rule of RECORD-1. With null, clears the stamp.
    pub(crate) fn set_stamp(&self, entry: *mut Entry<Self>) {
        if entry.is_null() {
            self.header.clear_stamp();
        } else {
            self.header.set_stamp(entry);
        }
    }
}
