//! Batches: changes that are made as one.

use crate::entry::{Kind, MAX_BYTES};
use crate::error::Error;
use ats_store::KeyRange;

/// The byte that a range delete begins with, beside those of [`Kind`].
const RANGE_DELETE: u8 = 4;
const HAS_LOW: u8 = 1;
const HAS_HIGH: u8 = 2;

/// Changes that are made as one: readers and crashes see all of them or none.
///
/// The changes of a key are made in the order in which they were added. A batch can be cleared and used again, which
/// keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The changes one behind the other, as they are in the journal.
    bytes: Vec<u8>,
    count: u32,
}

impl Batch {
    /// No changes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a key a value.
    ///
    /// # Errors
    /// [`Error::TooLong`] if either is longer than [`MAX_BYTES`], or the batch would be.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.add(Kind::Put, key, value)
    }

    /// Removes a key and its value, if it is there.
    ///
    /// # Errors
    /// As those of [`put`](Batch::put).
    pub fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        self.add(Kind::Delete, key, &[])
    }

    /// Merges an operand with the value of a key; if there is none, the operand is the value.
    ///
    /// # Errors
    /// As those of [`put`](Batch::put). A store without a merge operator refuses the batch.
    pub fn merge(&mut self, key: &[u8], operand: &[u8]) -> Result<(), Error> {
        self.add(Kind::Operand, key, operand)
    }

    /// Removes all keys in a range. O(1), however many there are.
    ///
    /// # Errors
    /// As those of [`put`](Batch::put).
    pub fn delete_range(&mut self, key_range: KeyRange<'_>) -> Result<(), Error> {
        let KeyRange { low, high } = key_range;
        if key_range.is_empty() {
            return Ok(());
        }
        self.check(low.map_or(0, <[u8]>::len), high.map_or(0, <[u8]>::len))?;
        let bounds = low.map_or(0, |_| HAS_LOW) | high.map_or(0, |_| HAS_HIGH);
        self.bytes.extend([RANGE_DELETE, bounds]);
        for bound in [low, high].into_iter().flatten() {
            put_bytes(&mut self.bytes, bound);
        }
        self.count += 1;
        Ok(())
    }

    fn add(&mut self, kind: Kind, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.check(key.len(), value.len())?;
        self.bytes.push(kind as u8);
        put_bytes(&mut self.bytes, key);
        if kind != Kind::Delete {
            put_bytes(&mut self.bytes, value);
        }
        self.count += 1;
        Ok(())
    }

    /// Whether two more fields of these lengths are not too long. A batch is one record of the journal, the
    /// length of which has 32 bits.
    fn check(&self, first: usize, second: usize) -> Result<(), Error> {
        let fits = first <= MAX_BYTES
            && second <= MAX_BYTES
            && self.bytes.len() + first + second <= MAX_BYTES + (1 << 15);
        fits.then_some(()).ok_or(Error::TooLong)
    }

    /// Forgets all changes.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.count = 0;
    }

    /// Number of changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes that the changes take in the journal.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn encoded(&self) -> &[u8] {
        &self.bytes
    }
}

/// A change of a batch, as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchItem<'a> {
    /// Of one key.
    Write {
        kind: Kind,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Of all keys in a range.
    DeleteRange(KeyRange<'a>),
}

/// The changes of an encoded batch. Ends with an error if the bytes are not those of a batch.
pub(crate) struct BatchItems<'a>(&'a [u8]);

impl<'a> BatchItems<'a> {
    pub(crate) fn new(encoded: &'a [u8]) -> Self {
        BatchItems(encoded)
    }

    fn item(&mut self) -> Option<BatchItem<'a>> {
        let tag = take_byte(&mut self.0)?;
        if tag == RANGE_DELETE {
            let bounds = take_byte(&mut self.0)?;
            let mut bound = |has: u8| match bounds & has {
                0 => Some(None),
                _ => take_bytes(&mut self.0).map(Some),
            };
            let (low, high) = (bound(HAS_LOW)?, bound(HAS_HIGH)?);
            return Some(BatchItem::DeleteRange(KeyRange { low, high }));
        }
        let kind = Kind::try_from(tag).ok()?;
        let key = take_bytes(&mut self.0)?;
        let value = match kind {
            Kind::Delete => &[],
            Kind::Put | Kind::Operand => take_bytes(&mut self.0)?,
        };
        Some(BatchItem::Write { kind, key, value })
    }
}

impl<'a> Iterator for BatchItems<'a> {
    type Item = Result<BatchItem<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let item = self.item();
        if item.is_none() {
            self.0 = &[];
        }
        Some(item.ok_or_else(|| Error::corrupt("a batch in the journal is not well-formed")))
    }
}

/// Appends a number: seven bits in each byte, the least significant first, all but the last with the highest bit set.
pub(crate) fn put_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number off the front; `None` if there is none.
pub(crate) fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(bytes)?;
        if shift == 63 && byte > 1 {
            return None;
        }
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Appends bytes behind their length.
pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    put_number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

/// Takes bytes and their length off the front; `None` if there are not so many.
pub(crate) fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(bytes)?).ok()?;
    bytes.split_off(..length)
}

pub(crate) fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    bytes.split_off_first().copied()
}
