//! Objects with elements that change in place.
//!
//! The first change of a counter replaces the object by another one, whose form names the element
//! that is the counter ([`Form::WithCells`]). From then on the word of that element is a *cell*: a
//! change of the counter finds the record like a reader, without a lock, and exchanges the cell.
//! One counter costs a lookup and one atomic instruction.
//!
//! An element that is replaced by an immediate term changes in the same way: by `update_element`,
//! and by an insert of an object that differs from the old one in this element only. Such an insert
//! makes the object one with a cell if [most inserts](crate::terms::likelihood) into the table are
//! of this kind.
//!
//! # Several cells
//! If several elements change, together or in turn, all elements from the first to the last of them
//! are cells. A [latch](ats_sync::latch) changes them together: there are two copies of their
//! words, of which one is current. A change costs a lookup and two atomic instructions, and it
//! copies the words.
//!
//! ```text
//!  one cell        form | image, with the cell
//!  several cells   form | turn of the latch | image, with one copy | other copy
//! ```
//!
//! # Several writers
//! A writer that replaces or removes a record without reading its content ignores the cells. A
//! thread that still changes a cell had found the record before, so the change counts as done just
//! before the replacement, and so do all reads of it. This holds for inserts, too: the object of
//! the insert was in the table at that moment. But a writer that makes a new object out of an old
//! one, or returns the removed object, must not miss a change. So it first *stops* the cells, by
//! changing one bit of the cell or of the turn. No thread changes stopped cells. A thread that
//! wants to change them waits for the lock of the key, or gets the error that the key is busy. If
//! the record is replaced, the cells stay stopped, and the threads that wait find the new record.
//!
//! One read of the cell, or of the latch, reads the object at one moment.
//!
//! # Queries of an earlier moment
//! While [queries](crate::terms::TableReadPoint) run, and for a while after, an element is changed
//! by a new record. A thread that changes a cell is pinned from before it checks that no query runs
//! until it has changed the cell. So the first query waits until all threads have unpinned that
//! were pinned before. The protocol is that of [`gate`].
//!
//! # Invariants
//! - CELLS-1. The cells of a published record, and the turn of their latch, are accessed atomically
//!   only.
//! - CELLS-2. A cell that changes holds the word of an immediate term before and after the change.
//!   Without the bit [`RUNNING`] a single cell is stopped. Other elements among several cells keep
//!   their words, in both copies.
//! - CELLS-3. Stopped cells do not change. Only the writer with exclusive access to the key stops
//!   them: in the decision of [`Store::update`](crate::terms::store::Store::update), under the lock
//!   of the key, or in that of
//!   [`Store::update_alone`](crate::terms::store::Store::update_alone), which holds the key. It
//!   restarts them before it releases the key, unless it has replaced or removed the record.
//! - CELLS-4. A writer that replaces or removes a record depending on its value, or returns it, has
//!   stopped its cells.
//! - CELLS-5. All other words of the value never change. So a writer may compare them without a
//!   lock.

pub(crate) mod gate;

use crate::terms::cell_words::{self, RUNNING, words_before, words_behind};
use crate::terms::value::{Rec, Values, content_words};
use ats_mem::{Busy, RecordBox};
use ats_sync::Backoff;
use ats_sync::count::atomic::{AtomicU64, Ordering};
use ats_sync::latch::{self, Latch};
use ats_term::image::{
    Built, Form, Host, Immediate, Object, SMALL_MAX, SMALL_MIN, Span, cells_form_word, small_word,
};
use smallvec::SmallVec;

/// The most words of an object that becomes one with cells when elements are replaced. Each reader
/// copies the words of an object with cells.
pub(crate) const WORDS_MOST: usize = 32;

/// New words for elements of an object, by their index.
pub(crate) type NewWords = SmallVec<[(usize, u64); 4]>;

/// The cells of a record.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a> {
    span: Span,
    words: Words<'a>,
}

#[derive(Clone, Copy)]
enum Words<'a> {
    One(&'a AtomicU64),
    Several(Latch<'a>),
}

fn is_immediate(word: u64) -> bool {
    Immediate::from_word(word).is_some()
}

/// Changes the word of a small integer; returns the new value as well.
#[inline]
fn changed_integer(word: u64, change: impl Fn(i64) -> Option<i64>) -> Option<(u64, i64)> {
    let Some(Immediate::Small(value)) = Immediate::from_word(word) else {
        return None;
    };
    let value = change(value)?;
    Some((small_word(value)?, value))
}

impl<'a> Cells<'a> {
    /// Returns the cells of the object in this record of a set, if it has some.
    #[inline]
    pub(crate) fn of<H: Host>(record: &'a Rec<H>) -> Option<Self> {
        let (words, len) = content_words(record);
        debug_assert!(len > 0);
        // SAFETY: a value has a word of its form, which never changes.
        let Form::WithCells(span) = Form::of(unsafe { *words }) else {
            return None;
        };
        debug_assert!(words_before(span) + span.end() + words_behind(span) <= len);
        // SAFETY: the first word says that the value is an object with these cells. The record,
        // which is borrowed, keeps it alive.
        let words = unsafe {
            match span.count {
                1 => Words::One(cell_words::single(words, span.first)),
                _ => Words::Several(cell_words::latch(words, len, span)),
            }
        };
        Some(Cells { span, words })
    }

    /// Returns the place of an element among the cells.
    #[inline]
    fn place(self, index: usize) -> Option<usize> {
        let place = index.checked_sub(self.span.first)?;
        (place < self.span.count).then_some(place)
    }

    /// Changes a counter atomically and returns its new value. Returns `None`, and changes nothing,
    /// if the element is no cell or no small integer, if the cells are stopped, if `change` returns
    /// `None`, or if the new value is not a small integer.
    #[inline]
    pub(crate) fn update(self, index: usize, change: impl Fn(i64) -> Option<i64>) -> Option<i64> {
        let mut new_value = None;
        let is_done = self.change(|words, cells| {
            let word = &mut words[cells.place(index)?];
            let (new, value) = changed_integer(*word, &change)?;
            (*word, new_value) = (new, Some(value));
            Some(())
        });
        new_value.filter(|_| is_done)
    }

    /// Replaces elements by immediate terms at one moment. Returns `false`, and changes nothing, if
    /// one of them is no cell or not immediate, or if the cells are stopped.
    #[inline]
    pub(crate) fn replace(self, by: &[(usize, u64)]) -> bool {
        self.change(|words, cells| {
            for (index, new) in by {
                let word = &mut words[cells.place(*index)?];
                if !is_immediate(*word) {
                    return None;
                }
                *word = *new;
            }
            Some(())
        })
    }

    /// Replaces the cells by the words of these elements of an object, which
    /// [`Overwrite::of`] has compared. Returns `false` if the cells are stopped.
    #[inline]
    pub(crate) fn overwrite<H: Host>(self, object: Object<'_, H>) -> bool {
        let new = &object.words()[self.span.first..self.span.end()];
        self.change(|words, _| {
            words.copy_from_slice(new);
            Some(())
        })
    }

    /// Changes the words of the cells at one moment. Returns `false` if they stay as they were:
    /// because `change` returns `None`, or because the cells are stopped. `change` may be called
    /// again if another thread changes the cells meanwhile.
    #[inline(always)]
    fn change(self, mut change: impl FnMut(&mut [u64], Cells<'a>) -> Option<()>) -> bool {
        let word = match self.words {
            Words::One(word) => word,
            Words::Several(latch) => return latch.change(|words| change(words, self).is_some()),
        };
        let mut old = word.load(Ordering::Relaxed);
        loop {
            let mut new = [old];
            if old & RUNNING == 0 || change(&mut new, self).is_none() {
                return false;
            }
            // Sequentially consistent, as the locked instruction is anyway.
            let exchanged =
                word.compare_exchange_weak(old, new[0], Ordering::SeqCst, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return true,
                Err(now) => old = now,
            }
        }
    }

    /// Applies changes to small integers, one after the other and all at one moment, and returns
    /// the value after each of them. Returns `None`, and changes nothing, for the reasons of
    /// [`update`](Cells::update).
    #[inline]
    pub(crate) fn update_several<C>(
        self,
        changes: &[C],
        apply: impl Fn(&C, i64) -> Option<i64>,
        index: impl Fn(&C) -> usize,
    ) -> Option<SmallVec<[i64; 4]>> {
        let mut values = SmallVec::new();
        let is_done = self.change(|words, cells| {
            values.clear();
            for op in changes {
                let word = &mut words[cells.place(index(op))?];
                let (new, value) = changed_integer(*word, |value| apply(op, value))?;
                *word = new;
                values.push(value);
            }
            Some(())
        });
        is_done.then_some(values)
    }
}

/// The way in which an object can take the place of the one in a record.
pub(crate) enum Overwrite<'a> {
    /// Both are the same, and nothing is to be done.
    Same,
    /// The objects differ in cells at most.
    InPlace(Cells<'a>),
    /// The objects differ in elements of this span, which are immediate in both, and not all of
    /// which are cells.
    OfElements(Span),
}

impl<'a> Overwrite<'a> {
    /// Compares the object in the record of a set with another one of the same key. Returns `None`
    /// if they differ in elements that are not immediate, or that are too far apart. O(words). The
    /// record has no note.
    #[inline]
    pub(crate) fn of<H: Host>(record: &'a Rec<H>, object: Object<'_, H>) -> Option<Self> {
        let (old, len) = record.value_words();
        let new = object.words();
        let cells = Cells::of(record);
        let span = cells.map(|cells| cells.span);
        let before = span.map_or(0, words_before);
        if len != before + new.len() + span.map_or(0, words_behind) {
            return None;
        }
        let (arity, mut changed) = (object.arity(), span);
        for (at, &word) in new.iter().enumerate() {
            // SAFETY: the image begins behind these words and has as many as the other one. A cell
            // is accessed atomically (CELLS-1), all others never change (CELLS-5).
            let old = unsafe {
                let old = old.add(before + at);
                match cells.and_then(|cells| cells.place(at)) {
                    Some(_) => AtomicU64::from_ptr(old.cast_mut()).load(Ordering::Relaxed),
                    None => *old,
                }
            };
            if old == word {
                continue;
            }
            // A single cell that is stopped is immediate, too.
            let is_single = span == Some(Span::one(at));
            if at >= arity || !is_immediate(word) || !(is_immediate(old) || is_single) {
                return None;
            }
            let element = Span::one(at);
            changed = Some(changed.map_or(element, |changed| changed.and(element)));
        }
        let Some(changed) = changed else {
            return Some(Overwrite::Same);
        };
        match cells {
            Some(cells) if changed == cells.span => Some(Overwrite::InPlace(cells)),
            _ => can_be_cells(changed, object).then_some(Overwrite::OfElements(changed)),
        }
    }
}

/// Cells that are stopped, if a record has some, until this is dropped.
pub(crate) struct Stopped<'a>(Option<Words<'a>>);

/// Stops the cells of a record, if it has some. Only the writer with exclusive access to the key
/// calls this (CELLS-3). Cells that the writer has stopped before are left to the first call.
pub(crate) fn stop<H: Host>(record: &Rec<H>) -> Stopped<'_> {
    let words = Cells::of(record).map(|cells| cells.words);
    Stopped(words.filter(|words| match words {
        Words::One(word) => word.fetch_and(!RUNNING, Ordering::AcqRel) & RUNNING != 0,
        Words::Several(latch) => latch.stop(),
    }))
}

impl Stopped<'_> {
    /// Leaves the cells stopped, because the record has been, or certainly will be, replaced or
    /// removed.
    pub(crate) fn for_ever(mut self) {
        self.0 = None;
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        match self.0 {
            Some(Words::One(word)) => {
                word.fetch_or(RUNNING, Ordering::AcqRel);
            }
            Some(Words::Several(latch)) => latch.restart(),
            None => (),
        }
    }
}

/// Waits until all threads are done that were about to change a cell when this was called. The
/// calling thread must not be pinned. Returns [`Busy`] if it must not wait that long.
#[cold]
fn wait_for_changes() -> Result<(), Busy> {
    let grace = ats_sync::pin().grace();
    let mut backoff = Backoff::new();
    while !grace.is_over() {
        if !backoff.wait() {
            return Err(Busy);
        }
    }
    Ok(())
}

/// Copies the image of an object with cells as of one moment.
pub(crate) fn copy_image<H: Host>(record: &Rec<H>, span: Span, into: &mut Vec<u64>) {
    let (words, len) = content_words(record);
    // SAFETY: these are the words of a value with these cells.
    unsafe { cell_words::copy_image(words, len, span, into) };
}

/// Returns `true` if an object may get these cells.
pub(crate) fn can_be_cells<H: Host>(span: Span, object: Object<'_, H>) -> bool {
    span.count <= latch::WORDS_MOST && object.len_words() <= WORDS_MOST
}

/// Returns a record of a newly built object with these cells, which [may be some](can_be_cells).
pub(crate) fn record<H: Host>(key: &[u8], built: Built<'_, H>, span: Span) -> RecordBox<Values<H>> {
    let (form, words) = (cells_form_word(span), built.words());
    if span.count == 1 {
        return RecordBox::in_parts(key, [&[form], words], built.owns());
    }
    let other = &words[span.first..span.end()];
    RecordBox::in_parts(key, [&[form, 0], words, other], built.owns())
}

/// Returns the cells of the object that takes the place of `current`, of which elements in `span`
/// change: the old cells as well, if that is possible.
pub(crate) fn with_cells_of<H: Host>(current: Option<&Rec<H>>, span: Span) -> Span {
    let old = current.and_then(Cells::of).map(|cells| cells.span);
    let both = old.map_or(span, |old| old.and(span));
    if both.count <= latch::WORDS_MOST {
        both
    } else {
        span
    }
}

/// Returns `true` if an integer can be the value of a counter that changes in place.
pub(crate) fn fits(value: i64) -> bool {
    (SMALL_MIN..=SMALL_MAX).contains(&value)
}
