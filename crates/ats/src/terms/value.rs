//! The value words of a record: one object, or the objects of a key.
//!
//! # Invariants
//! - VALUE-1. The values of this crate's records are built by this crate for host `H`, in the form
//!   that their first word gives, or the second one if the first is a [note](crate::terms::note).
//!   The word of the form never changes. Behind a note of [bytes](crate::terms::note) there is no
//!   form: these are words of a map, which own nothing and never change.
//! - VALUE-2. The word of the form [`Form::Large`] is followed by the address of an [`Elsewhere`],
//!   which begins the block of memory that the value owns.

use crate::terms::cell_words;
use ats_mem::{Record, RecordBox, Release, Weight};
use ats_sync::count::atomic::{AtomicU64, Ordering};
use ats_term::image::{
    Built, Form, Host, LARGE_WORD, ObjectList, Packer, begins_object, note_bits,
};
use ats_term::image::{kept_bytes, kept_bytes_beyond, release_all};
use std::marker::PhantomData;

/// The bit of a [note](crate::terms::note) that says that bytes follow.
pub(crate) const NOTE_OF_BYTES: usize = 1 << 43;

/// Values that are objects of host `H`, with the resources that these own.
pub(crate) struct Values<H>(PhantomData<fn() -> H>);

/// The header of a separate block of memory that a value owns: the functions that free and weigh
/// it.
#[repr(C)]
pub(crate) struct Elsewhere {
    /// Frees the block, with all resources it owns.
    pub(crate) release: unsafe fn(*mut Elsewhere),
    /// Returns the approximate number of bytes that are freed with the block.
    pub(crate) kept_bytes: unsafe fn(*const Elsewhere) -> usize,
    /// Returns the approximate number of these bytes that `later`, which belongs to a later value
    /// of the same key, does not share.
    pub(crate) held_bytes: unsafe fn(*const Elsewhere, later: *const Elsewhere) -> usize,
    /// Returns the number of objects in the block, and its bytes; they never change.
    pub(crate) weight: unsafe fn(*const Elsewhere) -> Weight,
}

/// Returns a value that owns the block at this address.
pub(crate) fn value_of(elsewhere: *mut Elsewhere) -> [u64; 2] {
    [LARGE_WORD, elsewhere.expose_provenance() as u64]
}

/// Returns the address of the block that a value owns. The value was made by [`value_of`].
pub(crate) fn elsewhere(value: &[u64]) -> *mut Elsewhere {
    debug_assert_eq!(value[0], LARGE_WORD);
    std::ptr::with_exposed_provenance_mut(value[1] as usize)
}

/// Returns the part of a value behind its note, if it begins with one.
///
/// # Safety
/// `value` points to `words` words: a value of this crate.
#[inline(always)]
unsafe fn behind_note(value: *const u64, words: usize) -> (*const u64, usize) {
    // SAFETY: a value has at least one word. A note is accessed atomically only (NOTE-1), and
    // another word follows it; other first words never change (VALUE-1).
    unsafe {
        let first = AtomicU64::from_ptr(value.cast_mut()).load(Ordering::Relaxed);
        match note_bits(first) {
            None => (value, words),
            Some(_) => (value.add(1), words - 1),
        }
    }
}

/// Returns the words of the image in a value, or the separate block that the value owns. The words
/// of an object with cells, which may change, are copied to `copy`.
///
/// # Safety
/// `value` points to `words` words: a value of this crate, in which the word of the form never
/// changes (VALUE-1).
unsafe fn image(
    (value, words): (*const u64, usize),
    copy: &mut Vec<u64>,
) -> Result<&[u64], *mut Elsewhere> {
    // SAFETY: the caller promises that these are the words of a value. The words of an object with
    // cells are copied, all others never change.
    unsafe {
        let (value, words) = behind_note(value, words);
        match Form::of(*value) {
            Form::WithCells(span) => {
                cell_words::copy_image(value, words, span, copy);
                Ok(copy)
            }
            Form::Large => Err(elsewhere(std::slice::from_raw_parts(value, words))),
            Form::Object | Form::Packed | Form::List => {
                Ok(std::slice::from_raw_parts(value, words))
            }
        }
    }
}

impl<H: Host> Release for Values<H> {
    unsafe fn release(value: &[u64]) {
        // SAFETY: these are the words of a value, which the caller promises not to use any more.
        // They were built for host `H` in the form that the first word gives (VALUE-1); in a large
        // value the word of the form is followed by the address of an `Elsewhere` (VALUE-2).
        unsafe {
            match image((value.as_ptr(), value.len()), &mut Vec::new()) {
                Ok(words) => release_all::<H>(words),
                Err(owned) => ((*owned).release)(owned),
            }
        }
    }

    unsafe fn kept_bytes(value: *const u64, words: usize) -> usize {
        // SAFETY: the caller promises that these are the words of an owning value, and in a large
        // value the word of the form is followed by the address of an `Elsewhere` (VALUE-2).
        unsafe {
            match image((value, words), &mut Vec::new()) {
                Ok(words) => kept_bytes::<H>(words),
                Err(owned) => ((*owned).kept_bytes)(owned),
            }
        }
    }

    unsafe fn held_bytes(value: (*const u64, usize), later: Option<(*const u64, usize)>) -> usize {
        let (mut copy, mut later_copy) = (Vec::new(), Vec::new());
        // SAFETY: the reasons of `kept_bytes` hold for both values. Each separate block is a large
        // bag.
        unsafe {
            let later = later.map(|later| image(later, &mut later_copy));
            match (image(value, &mut copy), later) {
                (Ok(words), Some(Ok(later))) => kept_bytes_beyond::<H>(words, later),
                (Err(owned), Some(Err(later))) => ((*owned).held_bytes)(owned, later),
                _ => Self::kept_bytes(value.0, value.1),
            }
        }
    }

    /// Takes O(objects) for a list, which has few.
    #[inline]
    fn weight(record: &Rec<H>) -> Weight {
        if plain_image(record).is_some() {
            let bytes = record.bytes() as i64;
            return Weight { objects: 1, bytes };
        }
        if is_bytes(record) {
            let bytes = record.bytes() as i64;
            return Weight { objects: 1, bytes };
        }
        let mut weight = match form(record) {
            Form::Object | Form::Packed | Form::WithCells(_) => Weight {
                objects: 1,
                bytes: 0,
            },
            Form::List => Weight {
                objects: list(record).iter().count() as i64,
                bytes: 0,
            },
            Form::Large => {
                let owned = elsewhere(content(record));
                // SAFETY: the word of this form is followed by the address of an `Elsewhere`
                // (VALUE-2), which the record owns; and the record is borrowed.
                unsafe { ((*owned).weight)(owned) }
            }
        };
        weight.bytes += record.bytes() as i64;
        weight
    }
}

/// A record of this crate.
pub(crate) type Rec<H> = Record<Values<H>>;

/// Returns the stored form of a newly built object: packed if the table packs its objects.
pub(crate) fn pack_for_store<'a, H: Host>(
    built: Built<'a, H>,
    packer: &'a mut Packer,
    packs: bool,
) -> Built<'a, H> {
    if packs { packer.pack(built) } else { built }
}

/// Returns a record of a newly built object or list.
#[inline(always)]
pub(crate) fn record<H: Host>(key: &[u8], built: Built<'_, H>) -> RecordBox<Values<H>> {
    RecordBox::new(key, built.words(), built.owns())
}

/// Returns a record like [`record`], whose value begins with this note if there is one.
#[inline(always)]
pub(crate) fn record_behind<H: Host>(
    key: &[u8],
    built: Built<'_, H>,
    note: Option<u64>,
) -> RecordBox<Values<H>> {
    match note {
        None => record(key, built),
        Some(note) => record_with_note(key, &built, note),
    }
}

#[cold]
fn record_with_note<H: Host>(key: &[u8], built: &Built<'_, H>, note: u64) -> RecordBox<Values<H>> {
    RecordBox::in_parts(key, [&[note], built.words()], built.owns())
}

/// Returns the form of the value of a record (VALUE-1). The record is borrowed, so its resources
/// are not released.
#[inline]
pub(crate) fn form<H: Host>(record: &Rec<H>) -> Form {
    let (words, len) = content_words(record);
    debug_assert!(len > 0);
    // SAFETY: a value has a word of its form, which never changes.
    Form::of(unsafe { *words })
}

/// Returns the words of the value of a record that is an image without a note, as most are.
#[inline(always)]
pub(crate) fn plain_image<H: Host>(record: &Rec<H>) -> Option<&[u64]> {
    let (words, len) = record.value_words();
    debug_assert!(len > 0);
    // SAFETY: a value has at least one word. A note is accessed atomically only (NOTE-1), and other
    // first words never change (VALUE-1), nor do the others of an image.
    unsafe {
        let first = AtomicU64::from_ptr(words.cast_mut()).load(Ordering::Relaxed);
        begins_object(first).then(|| std::slice::from_raw_parts(words, len))
    }
}

/// Returns the address of the words of the value of a record behind its note, and their number.
/// Some of them change if the object has cells.
#[inline(always)]
pub(crate) fn content_words<H: Host>(record: &Rec<H>) -> (*const u64, usize) {
    let (value, words) = record.value_words();
    // SAFETY: these are the words of a value.
    unsafe { behind_note(value, words) }
}

/// Returns the words of the value of a record behind its note. Not for objects with cells.
#[inline(always)]
pub(crate) fn content<H: Host>(record: &Rec<H>) -> &[u64] {
    let (words, len) = content_words(record);
    // SAFETY: the words belong to the value of the record, which is borrowed, and without cells
    // they never change.
    unsafe { std::slice::from_raw_parts(words, len) }
}

/// Returns the word of the note of a record, if it has one.
#[inline]
pub(crate) fn note_cell<H: Host>(record: &Rec<H>) -> Option<&AtomicU64> {
    let (value, _) = record.value_words();
    // SAFETY: a value has at least one word. A note is accessed atomically only (NOTE-1), and other
    // first words never change.
    let first = unsafe { AtomicU64::from_ptr(value.cast_mut()) };
    note_bits(first.load(Ordering::Relaxed)).map(|_| first)
}

/// Returns `true` if bytes follow the note of a record.
pub(crate) fn is_bytes<H: Host>(record: &Rec<H>) -> bool {
    let note = note_cell(record).and_then(|cell| note_bits(cell.load(Ordering::Relaxed)));
    note.is_some_and(|bits| bits & NOTE_OF_BYTES != 0)
}

/// Returns the objects of a record whose value is a list.
pub(crate) fn list<H: Host>(record: &Rec<H>) -> ObjectList<'_, H> {
    debug_assert_eq!(form(record), Form::List);
    // SAFETY: the form says that the value is a list of objects that were built for host `H`
    // (VALUE-1).
    unsafe { ObjectList::from_words(content(record)) }
}
