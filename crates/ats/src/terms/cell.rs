//! Objects with a counter that changes in place.
//!
//! The first change of a counter replaces the object by another one, whose form names the element
//! that is the counter ([`Form::Counted`]). From then on the word of that element is the *cell*: a
//! change of the counter finds the record like a reader, without a lock, and exchanges the cell.
//! One counter costs a lookup and one atomic instruction.
//!
//! # Several writers
//! A writer that replaces or removes a record without reading its content ignores the cell. A
//! thread that still changes the cell had found the record before, so the change counts as done
//! just before the replacement, and so do all reads of it. But a writer that makes a new object out
//! of an old one, or returns the removed object, must not miss a change. So it first *stops* the
//! cell, by clearing one bit of it. No thread changes a stopped cell. A thread that wants to change
//! it waits for the lock of the key, or gets the error that the key is busy. If the record is
//! replaced, the cell stays stopped, and the threads that wait find the new record.
//!
//! At most one element is a counter, so one read of the cell reads the object at one moment. If
//! several counters of an object change in turn, the object is replaced at each turn.
//!
//! # Queries of an earlier moment
//! While [queries](crate::terms::TableReadPoint) run a counter is changed like any other element,
//! by a new record. A thread that changes a counter in place is pinned from before it checks that
//! no query runs until it has changed the counter. So the first query waits until all threads have
//! unpinned that were pinned before.
//!
//! # Invariants
//! - COUNTER_CELL-1. The cell of a published record is accessed atomically only.
//! - COUNTER_CELL-2. It holds the word of a small integer; without the bit [`RUNNING`] it is
//!   stopped.
//! - COUNTER_CELL-3. A stopped cell is not changed. Only the writer with exclusive access to the
//!   key stops it: in the decision of [`Store::update`](crate::terms::store::Store::update), under
//!   the lock of the key, or in that of
//!   [`Store::update_alone`](crate::terms::store::Store::update_alone), which holds the key. It
//!   restarts the cell before it releases the key, unless it has replaced or removed the record.
//! - COUNTER_CELL-4. A writer that replaces or removes a record depending on its value, or returns
//!   it, has stopped its cell.

use crate::terms::counter_word::{self, RUNNING};
use crate::terms::value::{Rec, Values};
use ats_mem::{Busy, RecordBox};
use ats_sync::Backoff;
use ats_sync::count::atomic::{AtomicU64, Ordering};
use ats_term::image::{Built, Form, Host, SMALL_MAX, SMALL_MIN, counted_word, small_word};

/// The counter of a record.
#[derive(Clone, Copy)]
pub(crate) struct Counter<'a> {
    cell: &'a AtomicU64,
    /// The index of the element, from 0.
    pub(crate) index: usize,
}

impl<'a> Counter<'a> {
    /// Returns the counter of the object in this record of a set, if it has one.
    #[inline]
    pub(crate) fn of<H: Host>(record: &'a Rec<H>) -> Option<Self> {
        let (words, len) = record.value_words();
        debug_assert!(len > 0);
        // SAFETY: a value has at least one word, and the first one never changes.
        match Form::of(unsafe { *words }) {
            Form::Counted(index) => {
                debug_assert!(index + 1 < len);
                // SAFETY: an image follows the first word and has this element, whose word is
                // accessed atomically (COUNTER_CELL-1).
                let cell = unsafe { AtomicU64::from_ptr(words.add(1 + index).cast_mut()) };
                Some(Counter { cell, index })
            }
            _ => None,
        }
    }

    /// Changes the counter atomically and returns its new value. Returns `None` if the cell is
    /// stopped, if `change` returns `None`, or if the new value is not a small integer.
    #[inline]
    pub(crate) fn update(self, change: impl Fn(i64) -> Option<i64>) -> Option<i64> {
        let mut word = self.cell.load(Ordering::Relaxed);
        loop {
            if word & RUNNING == 0 {
                return None;
            }
            let value = change(word as i64 >> 4)?;
            let new = small_word(value)?;
            // Sequentially consistent, as the locked instruction is anyway.
            let exchanged =
                self.cell
                    .compare_exchange_weak(word, new, Ordering::SeqCst, Ordering::Relaxed);
            match exchanged {
                Ok(_) => return Some(value),
                Err(now) => word = now,
            }
        }
    }
}

/// A guard that keeps the counter of a record stopped, if the record has one.
pub(crate) struct Stopped<'a>(Option<&'a AtomicU64>);

/// Stops the counter of a record, if it has one. Only the writer with exclusive access to the key
/// calls this (COUNTER_CELL-3).
pub(crate) fn stop<H: Host>(record: &Rec<H>) -> Stopped<'_> {
    let cell = Counter::of(record).map(|counter| counter.cell);
    if let Some(cell) = cell {
        cell.fetch_and(!RUNNING, Ordering::AcqRel);
    }
    Stopped(cell)
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
        if let Some(cell) = self.0 {
            cell.fetch_or(RUNNING, Ordering::AcqRel);
        }
    }
}

/// Waits until all threads are done that were about to change a counter when this was called. The
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

/// Copies the image of an object with a counter as of one moment.
#[cold]
pub(crate) fn copy_image<H: Host>(record: &Rec<H>, counter: Counter<'_>, into: &mut Vec<u64>) {
    let (words, len) = record.value_words();
    // SAFETY: these are the words of a value with this counter.
    unsafe { counter_word::copy_words(words, len, counter.index, into) };
}

/// Returns a record of a newly built object with element `index`, a small integer, as its counter.
pub(crate) fn record<H: Host>(
    key: &[u8],
    built: Built<'_, H>,
    index: usize,
) -> RecordBox<Values<H>> {
    let parts = [&[counted_word(index)], built.words()];
    RecordBox::in_parts(key, parts, built.owns())
}

/// Returns `true` if an integer can be the value of a counter that changes in place.
pub(crate) fn fits(value: i64) -> bool {
    (SMALL_MIN..=SMALL_MAX).contains(&value)
}
