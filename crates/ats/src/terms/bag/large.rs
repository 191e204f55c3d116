//! Large bags: keys with many objects.
//!
//! The record of the key only points to a persistent [`Sequence`] of the objects. A change copies a
//! few nodes of the sequence.
//!
//! ```text
//!   record  [ key | LARGE | pointer ] ---> Large { objects, index }
//!                                                     |        |
//!      one version for each record: Sequence <--------+        +----> Index, of all versions of the key
//! ```
//!
//! Objects have positions, which a walk can remember. An index from the hash of the content to
//! positions finds an object.
//!
//! # Invariants
//! - LARGE-1. Only the call that holds the key accesses the index: in the decision of `update` or
//!   of a batch about a settled record, or while a batch that holds the key builds its record.
//! - LARGE-2. Each object of the current version has its entry in the index. Batches that were
//!   undone may leave further entries, so each entry is verified against the version.
//! - LARGE-3. The successor takes over the nodes of a version that is replaced in `update`, since
//!   that version cannot come back. It does not take over a version that is replaced in a batch,
//!   which can come back, nor a version that queries of an earlier moment may read.

use super::buffers::{Buffers, KEEP_BYTES};
use super::decided::{Decided, put};
use super::rules::{OldVersion, Rules, TooMany};
use crate::background::{self, FreeInSlices};
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::{
    Elsewhere, Rec, Values, content, elsewhere, form, list as list_of, value_of,
};
use ats_mem::sequence::{Edit, Remains, Sequence};
use ats_mem::{Change, RecordBox, Weight};
use ats_store::Direction;
use ats_term::exact;
use ats_term::image::{Built, Form, Host, Object, ObjectList, Stored, image_eq, retain_all};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Objects of a released large bag that are freed at once; the rest is freed in the background.
const FREED_AT_ONCE: usize = 256;
/// References given up, or entries freed, in one slice of background work.
const SLICE: usize = 2_000;
/// Approximate bytes of an entry of the index: nodes of B-trees are between half full and full.
const ENTRY_BYTES: usize = 24;

/// A large bag, to which a record points: one version of the key's objects.
#[repr(C)]
pub(crate) struct Large<H: Host> {
    /// The first field, since the word of a value leads to it (VALUE-2).
    elsewhere: Elsewhere,
    objects: Sequence<Values<H>>,
    index: Arc<Index>,
}

/// The objects of a record of a bag.
pub(super) enum Objects<'a, H: Host> {
    List(ObjectList<'a, H>),
    Large(&'a Large<H>),
}

impl<'a, H: Host> Objects<'a, H> {
    pub(super) fn of(record: &'a Rec<H>) -> Self {
        match form(record) {
            Form::Large => Objects::Large(Large::of(record)),
            _ => Objects::List(list_of(record)),
        }
    }
}

/// An index from the content of objects to their positions.
struct Index {
    entries: Mutex<Entries>,
    /// The hasher of this index alone, so that nobody can foresee which objects collide.
    hasher: RandomState,
}

#[derive(Default)]
struct Entries {
    /// Pairs of a hash and a position.
    set: BTreeSet<(u64, u64)>,
    /// The last entry that the search for entries without an object has checked.
    swept: (u64, u64),
}

impl<H: Host> Large<H> {
    fn new(objects: Sequence<Values<H>>, index: Arc<Index>) -> Self {
        Large {
            elsewhere: Elsewhere {
                release: release::<H>,
                kept_bytes: kept_bytes::<H>,
                held_bytes: held_bytes::<H>,
                weight: weight::<H>,
            },
            objects,
            index,
        }
    }

    pub(super) fn empty() -> Self {
        let index = Arc::new(Index {
            entries: Mutex::default(),
            hasher: RandomState::new(),
        });
        Self::new(Sequence::new(), index)
    }

    /// Returns the large bag of a record of this form.
    pub(crate) fn of(record: &Rec<H>) -> &Large<H> {
        debug_assert_eq!(form(record), Form::Large);
        // SAFETY: `into_record` makes all values of this form for this host (VALUE-1); the large
        // bag is freed with the record, which is borrowed.
        unsafe { &*elsewhere(content(record)).cast() }
    }

    pub(super) fn into_record(self, key: &[u8]) -> RecordBox<Values<H>> {
        let raw = Box::into_raw(Box::new(self));
        RecordBox::new(key, &value_of(raw.cast()), true)
    }

    /// Returns the number of objects. O(1).
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns the bytes of memory, without the record. O(1).
    pub(super) fn bytes(&self) -> usize {
        let fixed = size_of::<Self>() + size_of::<Index>();
        fixed + self.objects.bytes() + self.len() * ENTRY_BYTES
    }

    /// Iterates over the objects from a position on, with their positions.
    pub(crate) fn iter_from(&self, position: u64) -> impl Iterator<Item = (u64, Stored<'_, H>)> {
        objects_from(&self.objects, position)
    }

    /// Returns the object with `number` objects before it in a direction. O(number / 32).
    pub(crate) fn nth(&self, number: usize, direction: Direction) -> Option<Stored<'_, H>> {
        let mut values = match direction {
            Direction::Up => self.objects.iter_from(0),
            Direction::Down => self.objects.iter_before(u64::MAX),
        };
        // SAFETY: the values are objects that were built for this host, and own their resources.
        (values.nth(number)).map(|(_, words)| unsafe { Stored::from_words(words) })
    }

    /// Returns a position behind all objects.
    pub(crate) fn end(&self) -> u64 {
        self.iter_before(u64::MAX)
            .next()
            .map_or(0, |(last, _)| last + 1)
    }

    /// Iterates over the objects before a position, newest first, with their positions.
    pub(crate) fn iter_before(&self, position: u64) -> impl Iterator<Item = (u64, Stored<'_, H>)> {
        let values = self.objects.iter_before(position);
        // SAFETY: the values are objects that were built for this host, and own their resources.
        values.map(|(position, words)| (position, unsafe { Stored::from_words(words) }))
    }

    /// Shares the objects, so that they outlive the guard under which the record was found. Returns
    /// `None` if a newer version has replaced this version. O(1).
    pub(crate) fn share(&self) -> Option<Sequence<Values<H>>> {
        self.objects.share()
    }

    /// Returns the object at a position, if one exists. O(log positions).
    pub(super) fn object<'r>(
        &'r self,
        position: u64,
        unpacked: &'r mut UnpackBuffer,
    ) -> Option<Object<'r, H>> {
        self.stored(position).map(|stored| unpacked.object(stored))
    }

    /// Returns the object at a position in its stored form, if one exists. O(log positions).
    pub(super) fn stored(&self, position: u64) -> Option<Stored<'_, H>> {
        let (found, stored) = self.iter_from(position).next()?;
        (found == position).then_some(stored)
    }

    /// Begins a change of the objects.
    pub(super) fn draft<'a>(&'a self, rules: Rules, buffers: &'a mut Buffers<H>) -> Draft<'a, H> {
        Draft {
            rules,
            edit: self.objects.edit(),
            index: &self.index,
            // Entries are hints, so entries that a panic left are as good as others.
            entries: (self.index.entries.lock()).unwrap_or_else(PoisonError::into_inner),
            unpacked: &mut buffers.unpacked,
            second_unpacked: &mut buffers.second_unpacked,
            content: &mut buffers.content,
        }
    }
}

/// Iterates over the objects of a version from a position on, with their positions.
pub(crate) fn objects_from<H: Host>(
    objects: &Sequence<Values<H>>,
    position: u64,
) -> impl Iterator<Item = (u64, Stored<'_, H>)> {
    let values = objects.iter_from(position);
    // SAFETY: the values are objects that were built for this host, and own their resources.
    values.map(|(position, words)| (position, unsafe { Stored::from_words(words) }))
}

/// Returns the number of objects of a large bag, and its bytes of memory. O(1).
///
/// # Safety
/// `elsewhere` begins a large bag of this host.
unsafe fn weight<H: Host>(elsewhere: *const Elsewhere) -> Weight {
    // SAFETY: the caller promises that a large bag of this host begins here, which `into_record`
    // made of a box (VALUE-2).
    let large = unsafe { &*elsewhere.cast::<Large<H>>() };
    Weight {
        objects: large.len() as i64,
        bytes: large.bytes() as i64,
    }
}

/// Returns the approximate number of bytes that are freed with a large bag: few if a successor has
/// taken it over. O(1).
///
/// # Safety
/// `elsewhere` begins a large bag of this host.
unsafe fn kept_bytes<H: Host>(elsewhere: *const Elsewhere) -> usize {
    // SAFETY: the caller promises that a large bag of this host begins here, which `into_record`
    // made of a box (VALUE-2).
    let large = unsafe { &*elsewhere.cast::<Large<H>>() };
    match large.objects.kept_bytes() {
        0 => size_of::<Large<H>>(),
        bytes => bytes.saturating_add(large.len() * ENTRY_BYTES),
    }
}

/// Returns the approximate number of bytes that a large bag keeps and a later version of it does
/// not. O(1).
///
/// # Safety
/// Both pointers begin large bags of this host.
unsafe fn held_bytes<H: Host>(elsewhere: *const Elsewhere, later: *const Elsewhere) -> usize {
    // SAFETY: the caller promises that large bags of this host begin at both, which `into_record`
    // made of boxes (VALUE-2).
    let (large, later) = unsafe { (&*elsewhere.cast::<Large<H>>(), &*later.cast::<Large<H>>()) };
    // All versions of a bag have one index.
    let held = if Arc::ptr_eq(&large.index, &later.index) {
        large.objects.held_bytes(&later.objects)
    } else {
        large.objects.kept_bytes()
    };
    held.saturating_add(size_of::<Large<H>>())
}

/// Frees a large bag.
///
/// # Safety
/// `elsewhere` begins a large bag of this host, which is not used any more.
unsafe fn release<H: Host>(elsewhere: *mut Elsewhere) {
    // SAFETY: the caller promises that a large bag of this host begins here, which `into_record`
    // made of a box (VALUE-2), and that no code uses it any more.
    let large = *unsafe { Box::from_raw(elsewhere.cast::<Large<H>>()) };
    let mut objects = large.objects.into_remains();
    if !objects.free_some(FREED_AT_ONCE) {
        let index = Arc::into_inner(large.index);
        background::free(Box::new(Going { objects, index }));
    }
}

/// A large bag that is freed in the background.
struct Going<H: Host> {
    objects: Remains<Values<H>>,
    /// The index, unless another version uses it.
    index: Option<Index>,
}

impl<H: Host> FreeInSlices for Going<H> {
    fn free_slice(&mut self) -> bool {
        if !self.objects.free_some(SLICE) {
            return false;
        }
        let Some(index) = &mut self.index else {
            return true;
        };
        let entries = index.entries.get_mut();
        let set = &mut entries.unwrap_or_else(PoisonError::into_inner).set;
        !(0..SLICE).all(|_| set.pop_first().is_some())
    }
}

/// A new version of a large bag, not finished yet.
pub(super) struct Draft<'a, H: Host> {
    rules: Rules,
    edit: Edit<'a, Values<H>>,
    index: &'a Arc<Index>,
    entries: MutexGuard<'a, Entries>,
    unpacked: &'a mut UnpackBuffer,
    second_unpacked: &'a mut UnpackBuffer,
    content: &'a mut Vec<u8>,
}

impl<H: Host> Draft<'_, H> {
    /// Returns the number of objects.
    pub(super) fn len(&self) -> usize {
        self.edit.len()
    }

    /// Returns the hash of the content of an object. Equal objects have the same hash.
    pub(super) fn hash(&mut self, object: Object<'_, H>) -> u64 {
        hash(self.index, self.rules, object, self.content)
    }

    /// Iterates in ascending order over the positions of the objects that equal `object`, which has
    /// this hash.
    pub(super) fn equal(&mut self, hash: u64, object: Object<'_, H>) -> impl Iterator<Item = u64> {
        let Draft {
            rules,
            edit,
            entries,
            unpacked,
            ..
        } = self;
        let entries = entries.set.range((hash, 0)..=(hash, u64::MAX));
        entries.map(|entry| entry.1).filter(move |position| {
            edit.get(*position).is_some_and(|words| {
                // SAFETY: the values are objects that were built for this host, and own their
                // resources.
                let stored = unsafe { Stored::from_words(words) };
                image_eq(unpacked.object(stored), object, rules.zeros)
            })
        })
    }

    /// Appends an object with this hash.
    pub(super) fn push(&mut self, hash: u64, built: Built<'_, H>) {
        self.push_words(hash, built.words(), built.owns());
    }

    fn push_words(&mut self, hash: u64, words: &[u64], owns: bool) {
        let position = self.edit.push(words, owns);
        self.entries.set.insert((hash, position));
    }

    /// Appends a copy of an object.
    pub(super) fn push_copy(&mut self, stored: Stored<'_, H>) {
        let object = self.second_unpacked.object(stored);
        let hash = hash(self.index, self.rules, object, self.content);
        self.push_hashed(hash, stored);
    }

    /// Appends a copy of an object, unless an equal object exists and the rules forbid two.
    pub(super) fn push_allowed(&mut self, stored: Stored<'_, H>) {
        if !self.rules.distinct {
            return self.push_copy(stored);
        }
        let mut second_unpacked = std::mem::take(self.second_unpacked);
        let object = second_unpacked.object(stored);
        let hash = self.hash(object);
        let is_new = self.equal(hash, object).next().is_none();
        *self.second_unpacked = second_unpacked;
        if is_new {
            self.push_hashed(hash, stored);
        }
    }

    fn push_hashed(&mut self, hash: u64, stored: Stored<'_, H>) {
        // SAFETY: the code that made the `Stored` has promised that its words are a stored object.
        let owns = unsafe { retain_all::<H>(stored.words()) };
        self.push_words(hash, stored.words(), owns);
    }

    /// Removes the object at a position. `hash` is the hash of the object.
    pub(super) fn remove(&mut self, hash: u64, position: u64) {
        let was_there = self.edit.remove(position);
        debug_assert!(was_there);
        self.forget(hash, position);
    }

    /// Removes the entry of an object that was removed, unless that may be undone: then it becomes
    /// a stale entry if it is not (LARGE-2).
    fn forget(&mut self, hash: u64, position: u64) {
        if self.rules.old_version != OldVersion::MayComeBack {
            self.entries.set.remove(&(hash, position));
        }
    }

    /// Removes all objects that equal `unwanted`, if there are at most `most`. Returns their
    /// number.
    pub(super) fn remove_equal(
        &mut self,
        unwanted: Object<'_, H>,
        most: usize,
    ) -> Result<usize, TooMany> {
        let hash = self.hash(unwanted);
        let equal = self.equal(hash, unwanted).take(most.saturating_add(1));
        let positions: Vec<u64> = equal.collect();
        if positions.len() > most {
            return Err(TooMany);
        }
        for position in &positions {
            self.remove(hash, *position);
        }
        Ok(positions.len())
    }

    /// Replaces the object at a position. `hash` is the hash of the old object, `new_hash` the hash
    /// of the new object.
    pub(super) fn replace(&mut self, position: u64, hash: u64, new_hash: u64, built: Built<'_, H>) {
        let was_there = self.edit.replace(position, built.words(), built.owns());
        debug_assert!(was_there);
        self.forget(hash, position);
        self.entries.set.insert((new_hash, position));
    }

    /// Returns the new version. The old version stays usable, so the change can be undone.
    pub(super) fn finish(mut self) -> Large<H> {
        self.drop_stale_entries();
        Large::new(self.edit.finish(), Arc::clone(self.index))
    }

    /// Replaces the old version for good.
    ///
    /// # Safety
    /// The contract of [`Rules::insert`] holds, the draft was made of the objects of `current`, and
    /// the decision returns the result.
    pub(super) unsafe fn put(mut self, key: &[u8], rules: Rules) -> Decided<H> {
        if rules.old_version != OldVersion::Ends {
            return put(self.finish().into_record(key));
        }
        self.drop_stale_entries();
        // SAFETY: `update_bag` makes the change for certain, after which no reader that pins finds
        // the old version; readers that found it before hold guards. The decision runs under the
        // lock of the key, and its record is not part of an open batch, so no other writer edits
        // the version. No writer will edit it later, as it does not come back (LARGE-3).
        let (objects, leftovers) = unsafe { self.edit.finish_taking_over() };
        let large = Large::new(objects, Arc::clone(self.index));
        (Change::Put(large.into_record(key)), Some(leftovers))
    }

    /// Removes entries without an object, if the number of entries shows that such entries exist.
    /// Checks two entries in each change, so that batches that are undone repeatedly do not fill
    /// the index.
    fn drop_stale_entries(&mut self) {
        for _ in 0..2 {
            let may_come_back = self.rules.old_version == OldVersion::MayComeBack;
            if may_come_back || self.entries.set.len() <= self.edit.len() {
                return;
            }
            let Entries { set, swept } = &mut *self.entries;
            let rest = set.range((Bound::Excluded(*swept), Bound::Unbounded));
            *swept = rest.copied().next().unwrap_or((0, 0));
            let entry = *swept;
            if !self.is_entry(entry) {
                self.entries.set.remove(&entry);
            }
        }
    }

    /// Returns `true` if an entry has an object.
    fn is_entry(&mut self, (hashed, position): (u64, u64)) -> bool {
        self.edit.get(position).is_some_and(|words| {
            // SAFETY: the values are objects that were built for this host (VALUE-1), and the edit
            // keeps them alive.
            let object = self
                .unpacked
                .object(unsafe { Stored::<H>::from_words(words) });
            hash(self.index, self.rules, object, self.content) == hashed
        })
    }
}

/// Returns the hash of the content of an object. O(size).
fn hash<H: Host>(index: &Index, rules: Rules, object: Object<'_, H>, content: &mut Vec<u8>) -> u64 {
    content.clear();
    content.shrink_to(KEEP_BYTES);
    let options = exact::Options {
        zeros: rules.zeros,
        atoms: exact::Atoms::Word,
    };
    exact::exact_key(object.term(), content, options);
    index.hasher.hash_one(&content[..])
}
