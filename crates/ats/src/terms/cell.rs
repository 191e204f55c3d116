//! Objects with an element that changes in place.
//!
//! The first change of a counter replaces the object by another one, whose form names the element
//! that is the counter ([`Form::WithCell`]). From then on the word of that element is the *cell*: a
//! change of the counter finds the record like a reader, without a lock, and exchanges the cell.
//! One counter costs a lookup and one atomic instruction.
//!
//! An element that is replaced by an immediate term changes in the same way: by `update_element`,
//! and by an insert of an object that differs from the old one in this element only. Such an insert
//! makes the object one with a cell if [most inserts](crate::terms::likelihood) into the table are
//! of this kind.
//!
//! # Several writers
//! A writer that replaces or removes a record without reading its content ignores the cell. A
//! thread that still changes the cell had found the record before, so the change counts as done
//! just before the replacement, and so do all reads of it. This holds for inserts, too: the object
//! of the insert was in the table at that moment. But a writer that makes a new object out of an
//! old one, or returns the removed object, must not miss a change. So it first *stops* the cell, by
//! clearing one bit of it. No thread changes a stopped cell. A thread that wants to change it waits
//! for the lock of the key, or gets the error that the key is busy. If the record is replaced, the
//! cell stays stopped, and the threads that wait find the new record.
//!
//! An object has at most one cell, so one read of the cell reads the object at one moment. If
//! several elements of an object change in turn, the object is replaced at each turn.
//!
//! # Queries of an earlier moment
//! While [queries](crate::terms::TableReadPoint) run an element is changed by a new record. A
//! thread that changes a cell is pinned from before it checks that no query runs until it has
//! changed the cell. So the first query waits until all threads have unpinned that were pinned
//! before.
//!
//! # Invariants
//! - CELL-1. The cell of a published record is accessed atomically only.
//! - CELL-2. It holds the word of an immediate term; without the bit [`RUNNING`] it is stopped.
//! - CELL-3. A stopped cell is not changed. Only the writer with exclusive access to the key stops
//!   it: in the decision of [`Store::update`](crate::terms::store::Store::update), under the lock
//!   of the key, or in that of
//!   [`Store::update_alone`](crate::terms::store::Store::update_alone), which holds the key. It
//!   restarts the cell before it releases the key, unless it has replaced or removed the record.
//! - CELL-4. A writer that replaces or removes a record depending on its value, or returns it, has
//!   stopped its cell.
//! - CELL-5. All other words of the object never change. So a writer may compare them without a
//!   lock.

use crate::terms::cell_word::{self, RUNNING};
use crate::terms::value::{Rec, Values};
use ats_mem::{Busy, RecordBox};
use ats_sync::Backoff;
use ats_sync::count::atomic::{AtomicU64, Ordering};
use ats_term::image::{
    Built, Form, Host, Immediate, Object, SMALL_MAX, SMALL_MIN, cell_form_word, small_word,
};

/// The cell of a record.
#[derive(Clone, Copy)]
pub(crate) struct Cell<'a> {
    word: &'a AtomicU64,
    /// The index of the element, from 0.
    pub(crate) index: usize,
}

impl<'a> Cell<'a> {
    /// Returns the cell of the object in this record of a set, if it has one.
    #[inline]
    pub(crate) fn of<H: Host>(record: &'a Rec<H>) -> Option<Self> {
        let (words, len) = record.value_words();
        debug_assert!(len > 0);
        // SAFETY: a value has at least one word, and the first one never changes.
        match Form::of(unsafe { *words }) {
            Form::WithCell(index) => {
                debug_assert!(index + 1 < len);
                // SAFETY: an image follows the first word and has this element, whose word is
                // accessed atomically (CELL-1).
                let word = unsafe { AtomicU64::from_ptr(words.add(1 + index).cast_mut()) };
                Some(Cell { word, index })
            }
            _ => None,
        }
    }

    /// Changes the counter atomically and returns its new value. Returns `None` if the cell is
    /// stopped, if it is no small integer, if `change` returns `None`, or if the new value is not a
    /// small integer.
    #[inline]
    pub(crate) fn update(self, change: impl Fn(i64) -> Option<i64>) -> Option<i64> {
        let mut new_value = None;
        let is_done = self.exchange(|word| {
            let Some(Immediate::Small(value)) = Immediate::from_word(word) else {
                return None;
            };
            new_value = change(value);
            small_word(new_value?)
        });
        new_value.filter(|_| is_done)
    }

    /// Replaces the element by an immediate term. Returns `false` if the cell is stopped.
    #[inline]
    pub(crate) fn replace(self, by: u64) -> bool {
        self.exchange(|_| Some(by))
    }

    /// Exchanges the word of the cell atomically. Returns `false` if the cell is stopped, or if
    /// `change` returns `None`.
    #[inline(always)]
    fn exchange(self, mut change: impl FnMut(u64) -> Option<u64>) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & RUNNING == 0 {
                return false;
            }
            let Some(new) = change(word) else {
                return false;
            };
            // Sequentially consistent, as the locked instruction is anyway.
            let exchanged =
                self.word
                    .compare_exchange_weak(word, new, Ordering::SeqCst, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }
}

/// The way in which an object can take the place of the one in a record.
pub(crate) enum Overwrite<'a> {
    /// Both are the same, and nothing is to be done.
    Same,
    /// The objects differ in the cell at most, which gets this word.
    InPlace(Cell<'a>, u64),
    /// The objects differ in this element, which is immediate in both, and the record has no cell
    /// there.
    OfElement(usize),
}

impl<'a> Overwrite<'a> {
    /// Compares the object in the record of a set with another one of the same key. Returns `None`
    /// if they differ in more than one element, or in one that is not immediate. O(words).
    #[inline]
    pub(crate) fn of<H: Host>(record: &'a Rec<H>, object: Object<'_, H>) -> Option<Self> {
        let (old, len) = record.value_words();
        let new = object.words();
        let cell = Cell::of(record);
        let skipped = usize::from(cell.is_some());
        if len != skipped + new.len() {
            return None;
        }
        // SAFETY: the value has as many words, and only the one of the cell changes (CELL-5), which
        // is not read here.
        let old_word = |at: usize| unsafe { *old.add(skipped + at) };
        let cell_index = cell.map(|cell| cell.index);
        let differs = |at: &usize| Some(*at) != cell_index && new[*at] != old_word(*at);
        let mut others = (0..new.len()).filter(differs);
        let is_immediate = |word| Immediate::from_word(word).is_some();
        match (cell, others.next()) {
            (None, None) => Some(Overwrite::Same),
            (Some(cell), None) => {
                let word = new[cell.index];
                is_immediate(word).then_some(Overwrite::InPlace(cell, word))
            }
            (None, Some(at)) if at < object.arity() && others.next().is_none() => {
                let are_immediate = is_immediate(new[at]) && is_immediate(old_word(at));
                are_immediate.then_some(Overwrite::OfElement(at))
            }
            _ => None,
        }
    }
}

/// A guard that keeps the cell of a record stopped, if the record has one.
pub(crate) struct Stopped<'a>(Option<&'a AtomicU64>);

/// Stops the cell of a record, if it has one. Only the writer with exclusive access to the key
/// calls this (CELL-3).
pub(crate) fn stop<H: Host>(record: &Rec<H>) -> Stopped<'_> {
    let word = Cell::of(record).map(|cell| cell.word);
    if let Some(word) = word {
        word.fetch_and(!RUNNING, Ordering::AcqRel);
    }
    Stopped(word)
}

impl Stopped<'_> {
    /// Leaves the cell stopped, because the record has been, or certainly will be, replaced or
    /// removed.
    pub(crate) fn for_ever(mut self) {
        self.0 = None;
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        if let Some(word) = self.0 {
            word.fetch_or(RUNNING, Ordering::AcqRel);
        }
    }
}

/// Waits until all threads are done that were about to change a cell when this was called. The
/// calling thread must not be pinned. Returns [`Busy`] if it must not wait that long.
#[cold]
pub(crate) fn wait_for_changes() -> Result<(), Busy> {
    let grace = ats_sync::pin().grace();
    let mut backoff = Backoff::new();
    while !grace.is_over() {
        if !backoff.wait() {
            return Err(Busy);
        }
    }
    Ok(())
}

/// Copies the image of an object with a cell as of one moment.
pub(crate) fn copy_image<H: Host>(record: &Rec<H>, cell: Cell<'_>, into: &mut Vec<u64>) {
    let (words, len) = record.value_words();
    // SAFETY: these are the words of a value with this cell.
    unsafe { cell_word::copy_words(words, len, cell.index, into) };
}

/// Returns a record of a newly built object with element `index`, which is immediate, as its cell.
pub(crate) fn record<H: Host>(
    key: &[u8],
    built: Built<'_, H>,
    index: usize,
) -> RecordBox<Values<H>> {
    let parts = [&[cell_form_word(index)], built.words()];
    RecordBox::in_parts(key, parts, built.owns())
}

/// Returns `true` if an integer can be the value of a counter that changes in place.
pub(crate) fn fits(value: i64) -> bool {
    (SMALL_MIN..=SMALL_MAX).contains(&value)
}
