//! Pieces of walks: records that were copied while the thread was pinned.
//!
//! A walk pins for one piece at a time, so even a long walk does not keep memory from being freed.
//! Pieces begin small, since many walks end after a few records, and grow.

use std::collections::VecDeque;

/// Number of records of the first piece, and of the largest pieces.
const FIRST: usize = 8;
const MOST: usize = 256;
/// Number of bytes after which a piece gets no further record.
const ENOUGH_BYTES: usize = 1 << 15;

/// Records that were read and are not yet returned.
#[derive(Default)]
pub(super) struct Piece {
    bytes: Vec<u8>,
    /// The beginning of the key of each record, its end, and the end of its value.
    records: VecDeque<[usize; 3]>,
    room: usize,
}

impl Piece {
    /// Empties the piece, and prepares it for the next records.
    pub(super) fn begin(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.room = (self.room * 2).clamp(FIRST, MOST);
    }

    /// Adds a record. Returns `true` if the piece has room for another one.
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) -> bool {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.records.push_back([begin, middle, self.bytes.len()]);
        self.records.len() < self.room && self.bytes.len() < ENOUGH_BYTES
    }

    /// Returns the key that was added last.
    pub(super) fn last_key(&self) -> Option<&[u8]> {
        let [begin, middle, _] = *self.records.back()?;
        Some(&self.bytes[begin..middle])
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    fn record(&self, [begin, middle, end]: [usize; 3]) -> (&[u8], &[u8]) {
        (&self.bytes[begin..middle], &self.bytes[middle..end])
    }

    /// Takes the oldest record that is left.
    pub(super) fn pop_front(&mut self) -> Option<(&[u8], &[u8])> {
        let record = self.records.pop_front()?;
        Some(self.record(record))
    }

    /// Takes the newest record.
    pub(super) fn pop_back(&mut self) -> Option<(&[u8], &[u8])> {
        let record = self.records.pop_back()?;
        Some(self.record(record))
    }
}
