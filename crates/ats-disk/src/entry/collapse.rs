//! The entries of one key, and their collapse to fewer.
//!
//! A key may have several entries, in a memtable and in several runs. A [`Chain`] gathers them,
//! from the newest to the oldest, up to the first that is a base. Together they give the value of
//! the key ([`Chain::value`]), or as few entries as possible with the same value
//! ([`Chain::collapse`]).
//!
//! # How much is copied
//! Merging a long value with one short value after the other copies the long one each time. So
//! values wait on a stack until the next is at least half as long, as runs do in the α-stack sort
//! of N. Auger, C. Nicaud and C. Pivoteau (*Merge strategies: from merge sort to timsort*, 2015),
//! with α = 2. Of `n` operands that are put one behind the other each byte is copied O(log n)
//! times.
//!
//! # When the operator fails
//! It may refuse values, and it may panic: both is [`Error::Merge`] here. Operands that could not
//! be merged stay as they were.

use crate::entry::{Kind, MAX_BYTES};
use crate::error::Error;
use crate::lifetime;
use ats_store::{MergeOperator, Merged};
use std::borrow::Cow;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[cfg(test)]
pub(crate) mod tests;

/// Merges two values of a key, of which `earlier` is older.
///
/// # Errors
/// [`Error::Merge`] if the operator refuses or panics, or if the result is longer than a value may
/// be.
pub(crate) fn merge(
    operator: &dyn MergeOperator,
    key: &[u8],
    earlier: &[u8],
    later: &[u8],
) -> Result<Merged, Error> {
    match catch(|| operator.merge(key, earlier, later))? {
        Ok(Merged::New(value)) if value.len() > MAX_BYTES => Err(Error::Merge),
        merged => merged.map_err(|_| Error::Merge),
    }
}

/// Merges more than two values of a key at once, if the operator can; the oldest comes first.
///
/// # Errors
/// The errors of [`merge`].
fn merge_all(
    operator: &dyn MergeOperator,
    key: &[u8],
    values: &[&[u8]],
) -> Result<Option<Vec<u8>>, Error> {
    match catch(|| operator.merge_all(key, values))? {
        Ok(Some(value)) if value.len() > MAX_BYTES => Err(Error::Merge),
        merged => merged.map_err(|_| Error::Merge),
    }
}

/// Returns `true` if nothing older than this value can matter.
///
/// # Errors
/// [`Error::Merge`] if the operator panics.
pub(crate) fn is_base(
    operator: &dyn MergeOperator,
    key: &[u8],
    value: &[u8],
) -> Result<bool, Error> {
    catch(|| operator.is_base(key, value))
}

/// Returns `true` if a key with this value, than which there is nothing older, counts as missing.
pub(crate) fn is_absent(
    operator: Option<&dyn MergeOperator>,
    key: &[u8],
    value: &[u8],
) -> Result<bool, Error> {
    operator.map_or(Ok(false), |operator| {
        catch(|| operator.is_absent(key, value))
    })
}

/// Calls the operator. It has no state that a panic could leave unfinished, so far as it keeps to
/// its contract.
fn catch<T>(call: impl FnOnce() -> T) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| Error::Merge)
}

/// The entries of one key, from the newest to the oldest. Those after a base do not matter and are
/// not taken.
///
/// It is meant to be used for many keys: it keeps its buffers.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    entries: Vec<Entry>,
    /// The values of the entries, one behind the other.
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    kind: Kind,
    range: Range<usize>,
}

impl Chain {
    /// Makes a chain without entries.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Forgets all entries.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
    }

    /// Takes the next older entry. If there is a base already, nothing happens. Amortised O(bytes).
    pub(crate) fn push(&mut self, kind: Kind, value: &[u8]) {
        if self.is_complete() {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.entries.push(Entry {
            kind,
            range: start..self.bytes.len(),
        });
    }

    /// Returns `true` if the oldest entry is a base, so that nothing older matters.
    pub(crate) fn is_complete(&self) -> bool {
        self.entries
            .last()
            .is_some_and(|entry| entry.kind.is_base())
    }

    /// Returns `true` if there are no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the entry with this number, from the newest, 0, to the oldest.
    pub(crate) fn entry(&self, index: usize) -> (Kind, &[u8]) {
        let entry = &self.entries[index];
        (entry.kind, &self.bytes[entry.range.clone()])
    }

    /// Returns the value of the key if nothing older than these entries exists; `None` if it is
    /// missing.
    ///
    /// A lone operand is the value. O(n log n) for `n` bytes in all, if merging takes time in
    /// proportion to its arguments.
    ///
    /// # Errors
    /// [`Error::Merge`] if the entries cannot be merged, and [`Error::NoOperator`] if they are to
    /// be merged without an operator.
    pub(crate) fn value(
        &self,
        key: &[u8],
        operator: Option<&dyn MergeOperator>,
    ) -> Result<Option<Cow<'_, [u8]>>, Error> {
        let Some(value) = self.merge_values(key, operator)? else {
            return Ok(None);
        };
        let is_absent = is_absent(operator, key, &value)?;
        Ok((!is_absent).then_some(value))
    }

    /// Makes as few entries as possible of these, with the same meaning: one, or none.
    ///
    /// `is_bottom` says that nothing older exists. Then an operand becomes a [`Kind::Put`], and an
    /// entry that makes the key missing vanishes. Elsewhere an operand that needs nothing older
    /// becomes a `Put`, and so do operands on a [`Kind::Delete`]. It takes as long as
    /// [`value`](Chain::value).
    ///
    /// # Errors
    /// The errors of [`value`](Chain::value). The entries stay exactly as they were then, at the
    /// bottom, too.
    pub(crate) fn collapse(
        &mut self,
        key: &[u8],
        operator: Option<&dyn MergeOperator>,
        is_bottom: bool,
    ) -> Result<(), Error> {
        let Some(value) = self.merge_values(key, operator)? else {
            if is_bottom {
                self.clear();
            }
            return Ok(());
        };
        let is_whole = is_bottom || self.is_complete();
        let kind = match operator {
            Some(operator) if !is_whole && !is_base(operator, key, &value)? => Kind::Operand,
            None if !is_whole => Kind::Operand,
            _ => Kind::Put,
        };
        if is_bottom && is_absent(operator, key, &value)? {
            self.clear();
            return Ok(());
        }
        if self.entries.len() == 1 {
            drop(value);
            self.entries[0].kind = kind;
            return Ok(());
        }
        let value = value.into_owned();
        self.clear();
        self.push(kind, &value);
        Ok(())
    }

    /// Makes a delete of a value that has expired at this time, so that nothing older comes back,
    /// or forgets it if nothing older exists. For a chain of a store whose records expire. Returns
    /// `true` if the newest value has expired.
    pub(crate) fn expire(&mut self, time: u64, is_bottom: bool) -> bool {
        let is_value = |entry: &Entry| entry.kind == Kind::Put;
        let Some(newest) = self.entries.first().filter(|entry| is_value(entry)) else {
            return false;
        };
        let is_over = lifetime::is_over(&self.bytes[newest.range.clone()], time);
        if is_over {
            self.clear();
            if !is_bottom {
                self.push(Kind::Delete, &[]);
            }
        }
        is_over
    }

    /// Returns all values merged; `None` if there are none. A [`Kind::Delete`] has no value.
    fn merge_values(
        &self,
        key: &[u8],
        operator: Option<&dyn MergeOperator>,
    ) -> Result<Option<Cow<'_, [u8]>>, Error> {
        let values = match self.entries.split_last() {
            Some((last, newer)) if last.kind == Kind::Delete => newer,
            _ => &self.entries[..],
        };
        let bytes = |entry: &Entry| &self.bytes[entry.range.clone()];
        let mut values = values.iter();
        let Some(newest) = values.next() else {
            return Ok(None);
        };
        let newest = bytes(newest);
        if values.len() == 0 {
            return Ok(Some(Cow::Borrowed(newest)));
        }
        let operator = operator.ok_or(Error::NoOperator)?;
        if values.len() > 1 {
            let oldest_first: Vec<_> = values.clone().rev().map(bytes).chain([newest]).collect();
            if let Some(value) = merge_all(operator, key, &oldest_first)? {
                return Ok(Some(Cow::Owned(value)));
            }
        }
        let values = values.map(|entry| Cow::Borrowed(bytes(entry)));
        let mut stack = Stack::new(operator, key, Cow::Borrowed(newest));
        for value in values {
            stack.push(value)?;
        }
        stack.finish().map(Some)
    }
}

/// Returns `true` if an older value of this length is merged with a newer one of that length, and
/// does not wait.
pub(crate) fn is_similar(waiting: usize, next: usize) -> bool {
    waiting / 2 <= next
}

/// Values that wait to be merged, the newest at the bottom. Each is more than twice as long as the
/// next.
struct Stack<'c, 'v> {
    operator: &'c dyn MergeOperator,
    key: &'c [u8],
    waiting: Vec<Cow<'v, [u8]>>,
    /// The oldest.
    top: Cow<'v, [u8]>,
}

impl<'c, 'v> Stack<'c, 'v> {
    fn new(operator: &'c dyn MergeOperator, key: &'c [u8], newest: Cow<'v, [u8]>) -> Self {
        Stack {
            operator,
            key,
            waiting: Vec::new(),
            top: newest,
        }
    }

    fn push(&mut self, value: Cow<'v, [u8]>) -> Result<(), Error> {
        let newer = std::mem::replace(&mut self.top, value);
        self.waiting.push(newer);
        while self
            .waiting
            .last()
            .is_some_and(|newer| is_similar(newer.len(), self.top.len()))
        {
            self.merge_top()?;
        }
        Ok(())
    }

    /// Merges the two oldest, if there are two.
    fn merge_top(&mut self) -> Result<(), Error> {
        let Some(newer) = self.waiting.pop() else {
            return Ok(());
        };
        match merge(self.operator, self.key, &self.top, &newer)? {
            Merged::Earlier => {}
            Merged::Later => self.top = newer,
            Merged::New(value) => self.top = Cow::Owned(value),
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Cow<'v, [u8]>, Error> {
        while !self.waiting.is_empty() {
            self.merge_top()?;
        }
        Ok(self.top)
    }
}
