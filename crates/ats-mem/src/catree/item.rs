//! Items: records being moved from one leaf to another.

use super::heads::{HEAD_MAX, Head, PREFIX_MAX, common_prefix, head_at};
use super::link::copy_for_any_release;
use super::slot::Word;
use crate::record::{Record, Release};

/// A record being moved from one leaf to another.
pub(super) struct Item<'r, R: Release> {
    record: &'r Record<R>,
    /// The word of its slot.
    word: Word<R>,
    head: Head,
    /// Start of the head in the key, if it is known.
    start: Option<usize>,
}

copy_for_any_release!(Item);

impl<'r, R: Release> Item<'r, R> {
    /// Creates the item of a record that comes from no leaf.
    pub(super) fn new(record: &'r Record<R>) -> Self {
        Item {
            record,
            word: Word::of(record),
            head: 0,
            start: None,
        }
    }

    /// Creates the item of a word from a leaf in which heads begin at `start`, if the word has a
    /// record.
    ///
    /// # Safety
    /// The same as for [`Word::record`].
    pub(super) unsafe fn of_leaf(word: Word<R>, head: Head, start: usize) -> Option<Self> {
        Some(Item {
            // SAFETY: the caller promises that the word is from a leaf that lives as long as `'r`,
            // as `Word::record` demands (CATREE-6).
            record: unsafe { word.any_record() }?,
            word,
            head,
            start: Some(start),
        })
    }

    /// Returns the word of its slot.
    pub(super) fn word(&self) -> Word<R> {
        self.word
    }

    /// Returns the key.
    pub(super) fn key(&self) -> &'r [u8] {
        self.record.key()
    }
}

/// Reuses the heads that items had in their leaves, if they begin at the same offset and
/// distinguish the keys, all of which begin with `skip` bytes that are not compared. Then the
/// records, which are rarely in the cache, need not be read. Returns the start of the heads, and
/// the heads.
pub(super) fn reuse_heads<R: Release, const N: usize>(
    skip: usize,
    items: &[Item<'_, R>],
) -> Option<(usize, [Head; N])> {
    let start = items.iter().find_map(|item| item.start)?;
    let fits = (skip..=skip + PREFIX_MAX).contains(&start);
    let (first, last) = (items.first()?, items.last()?);
    // Items of two leaves can have heads at the same offset after different prefixes.
    if !fits || common_prefix(first.key(), last.key()) < start {
        return None;
    }
    let mut heads = [HEAD_MAX; N];
    for (head, item) in heads.iter_mut().zip(items) {
        *head = match item.start {
            Some(other) if other != start => return None,
            Some(_) => item.head,
            None => head_at(item.key(), start),
        };
    }
    let told_apart = heads[..items.len()].windows(2).all(|two| two[0] < two[1]);
    told_apart.then_some((start, heads))
}
