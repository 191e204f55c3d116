//! Batches: changes that are made as one.

use crate::coding::{Damaged, Decoder, put_bytes};
use crate::entry::{Kind, MAX_BYTES, check_len};
use crate::error::Error;
use crate::ids::Seq;
use crate::key_bounds::{HalfOpen, KeyBounds};
use crate::record_count::CountChange;
use ats_store::KeyRange;
use std::ops::Range;

/// The byte that a range delete begins with, beside those of [`Kind`].
const RANGE_DELETE: u8 = 4;
const HAS_LOW: u8 = 1;
const HAS_HIGH: u8 = 2;

/// Changes that are made as one: readers and crashes see all of them or none.
///
/// The changes of a key are made in the order in which they were added. A batch can be cleared and
/// used again, which keeps its memory.
///
/// ```
/// # use ats_disk::{Batch, DiskStore, Durability, Options};
/// # let directory = std::env::temp_dir().join(format!("ats-disk-batch-{}", std::process::id()));
/// # let store = DiskStore::open(&directory, Options::new())?;
/// let mut batch = Batch::new();
/// batch.put(b"pear", b"40")?;
/// batch.delete(b"apple")?;
/// assert_eq!(batch.len(), 2);
/// store.write(&batch)?;
///
/// batch.clear();
/// batch.put(b"plum", b"50")?;
/// store.write_with(&batch, Durability::Always)?; // on disk when this returns
/// assert_eq!(store.get(b"pear")?, Some(b"40".to_vec()));
/// # drop(store);
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), ats_disk::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The changes one behind the other, as they are in the journal.
    bytes: Vec<u8>,
    count: u32,
    /// Number of those that delete a key.
    deletes: u32,
    /// Range of the last key that is deleted.
    last_deleted: Range<usize>,
    /// The change of the number of records.
    count_change: CountChange,
    /// `true` if a key gets a value or an operand.
    writes: bool,
    /// Keys that end with the number of their change.
    numbered: Vec<Numbered>,
}

/// A key that ends with the sequence number of the change that writes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbered {
    /// Offset of the number among the bytes of the changes.
    pub(crate) at: usize,
    /// Index of the change.
    pub(crate) change: u32,
}

impl Numbered {
    /// Writes the number into the bytes of changes, of which the first has this sequence number.
    pub(crate) fn write(self, bytes: &mut [u8], first_seq: Seq) {
        let number = (first_seq + u64::from(self.change)).get();
        bytes[self.at..self.at + NUMBER_BYTES].copy_from_slice(&number.to_be_bytes());
    }
}

/// Bytes of the number at the end of a key. The most significant one comes first, so such keys are
/// in the order in which they were written.
pub(crate) const NUMBER_BYTES: usize = size_of::<u64>();

impl Batch {
    /// Makes a batch without changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a key a value.
    ///
    /// # Errors
    /// [`Error::TooLong`] if either is longer than [`MAX_BYTES`], or the batch would be.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.add(Kind::Put, key, value).map(drop)
    }

    /// Gives a value to a key that ends with the sequence number of this change, behind the bytes
    /// that are given. No other change of the store has that number, and later changes have larger
    /// ones, also after the store was opened anew.
    ///
    /// # Errors
    /// The errors of [`put`](Batch::put).
    pub(crate) fn put_numbered(&mut self, key: &mut Vec<u8>, value: &[u8]) -> Result<(), Error> {
        key.extend_from_slice(&[0; NUMBER_BYTES]);
        let change = self.count;
        let end = self.add(Kind::Put, key, value)?;
        let at = end - NUMBER_BYTES;
        self.numbered.push(Numbered { at, change });
        Ok(())
    }

    /// Keys that end with the number of their change.
    pub(crate) fn numbered_keys(&self) -> &[Numbered] {
        &self.numbered
    }

    /// Removes a key and its value, if it is there.
    ///
    /// # Errors
    /// The errors of [`put`](Batch::put).
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.add(Kind::Delete, key, &[]).map(drop)
    }

    /// Merges an operand with the value of a key; if there is none, the operand is the value.
    ///
    /// # Errors
    /// The errors of [`put`](Batch::put). A store without a merge operator refuses the batch.
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<(), Error> {
        self.add(Kind::Operand, key, operand).map(drop)
    }

    /// Removes all keys in a range. O(1), however many there are.
    ///
    /// # Errors
    /// The errors of [`put`](Batch::put).
    pub fn delete_range(&mut self, keys: impl KeyBounds) -> Result<(), Error> {
        let half_open = HalfOpen::new(&keys);
        let key_range @ KeyRange { low, high } = half_open.as_range();
        if key_range.is_empty() {
            return Ok(());
        }
        let bound = |bound: Option<&[u8]>| ("a bound of a range", bound.map_or(0, <[u8]>::len));
        self.check([bound(low), bound(high)])?;
        let bounds = low.map_or(0, |_| HAS_LOW) | high.map_or(0, |_| HAS_HIGH);
        self.bytes.extend([RANGE_DELETE, bounds]);
        for bound in [low, high].into_iter().flatten() {
            put_bytes(&mut self.bytes, bound);
        }
        self.count += 1;
        Ok(())
    }

    /// Adds a change. Returns the offset at which its key ends.
    fn add(&mut self, kind: Kind, key: &[u8], value: &[u8]) -> Result<usize, Error> {
        self.check([("a key", key.len()), ("a value", value.len())])?;
        self.bytes.push(kind as u8);
        put_bytes(&mut self.bytes, key);
        let key_end = self.bytes.len();
        match kind {
            Kind::Delete => {
                self.deletes += 1;
                self.last_deleted = key_end - key.len()..key_end;
            }
            Kind::Put | Kind::Operand => {
                put_bytes(&mut self.bytes, value);
                self.writes = true;
            }
        }
        self.count += 1;
        Ok(key_end)
    }

    /// Checks the lengths of fields that are to be added, before they are copied. A batch is one
    /// record of the journal, the length of which has 32 bits.
    fn check(&self, fields: [(&'static str, usize); 2]) -> Result<(), Error> {
        let mut batch = self.bytes.len();
        for (what, len) in fields {
            check_len(what, len, MAX_BYTES)?;
            batch += len;
        }
        check_len("a batch", batch, MAX_BYTES + (1 << 15))
    }

    /// Forgets all changes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
        self.deletes = 0;
        self.last_deleted = 0..0;
        self.writes = false;
        self.numbered.clear();
        self.count_change = CountChange::default();
    }

    /// Returns the number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns `true` if there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the bytes that the changes take in the journal.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Sets the effect on the number of records, which is unknown otherwise.
    pub(crate) fn set_count_change(&mut self, change: CountChange) {
        self.count_change = change;
    }

    /// Returns the change of the number of records.
    pub(crate) fn count_change(&self) -> CountChange {
        self.count_change
    }

    /// Returns the number of changes that delete a key, and the last such key.
    pub(crate) fn deleted_keys(&self) -> (u32, &[u8]) {
        (self.deletes, &self.bytes[self.last_deleted.clone()])
    }

    /// Returns `true` if nothing else is done but to delete.
    pub(crate) fn only_deletes(&self) -> bool {
        !self.writes
    }

    /// Returns the keys that get a value or an operand.
    pub(crate) fn written_keys(&self) -> impl Iterator<Item = &[u8]> + Clone {
        BatchItems::new(&self.bytes).filter_map(|item| match item {
            Ok(BatchItem::Write { kind, key, .. }) if kind != Kind::Delete => Some(key),
            _ => None,
        })
    }

    /// Returns the keys that are changed, unless a range is.
    pub(crate) fn changed_keys(&self) -> Option<Vec<&[u8]>> {
        let keys = BatchItems::new(&self.bytes).map(|item| match item {
            Ok(BatchItem::Write { key, .. }) => Some(key),
            _ => None,
        });
        keys.collect()
    }

    pub(crate) fn encoding(&self) -> &[u8] {
        &self.bytes
    }
}

/// A change of a batch, as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchItem<'a> {
    /// Write of one key.
    Write {
        kind: Kind,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Delete of all keys in a range.
    DeleteRange(KeyRange<'a>),
}

/// The changes of an encoded batch. Ends with an error if the bytes are not those of a batch.
#[derive(Clone)]
pub(crate) struct BatchItems<'a>(Decoder<'a>);

impl<'a> BatchItems<'a> {
    pub(crate) fn new(encoded: &'a [u8]) -> Self {
        BatchItems(Decoder::new(encoded))
    }

    fn item(&mut self) -> Result<BatchItem<'a>, Damaged> {
        let tag = self.0.byte()?;
        if tag == RANGE_DELETE {
            let bounds = self.0.byte()?;
            let mut bound = |has: u8| match bounds & has {
                0 => Ok(None),
                _ => self.0.bytes().map(Some),
            };
            let (low, high) = (bound(HAS_LOW)?, bound(HAS_HIGH)?);
            return Ok(BatchItem::DeleteRange(KeyRange { low, high }));
        }
        let kind = Kind::try_from(tag).map_err(|()| Damaged("has an unknown kind of change"))?;
        let key = self.0.bytes()?;
        let value = match kind {
            Kind::Delete => &[],
            Kind::Put | Kind::Operand => self.0.bytes()?,
        };
        Ok(BatchItem::Write { kind, key, value })
    }
}

impl<'a> Iterator for BatchItems<'a> {
    type Item = Result<BatchItem<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let item = self.item();
        if item.is_err() {
            self.0 = Decoder::new(&[]);
        }
        Some(item.map_err(|why| Error::corrupt(format_args!("a batch in the journal {why}"))))
    }
}
