//! Building blocks, of which [`block`](super::block) has the layout.

use super::block::{COUNTS_BYTES, KIND_BITS, RESTART_BYTES, RESTART_ENTRIES};
use crate::coding::put_varint;
use crate::entry::Kind;

/// Bytes of a record besides its key and its value, about.
const RECORD_BYTES: usize = 4;

/// Writes one block after the other.
#[derive(Default)]
pub(super) struct BlockBuilder {
    /// The beginning of the block, and of the region of its values.
    start: usize,
    records: Vec<u8>,
    restarts: Vec<[u32; 2]>,
    since_restart: usize,
    /// The offset of the tag of the last entry in `records`.
    tag_at: usize,
}

impl BlockBuilder {
    /// Begins a block at the end of `out`.
    pub(super) fn begin(&mut self, out: &[u8]) {
        self.start = out.len();
        self.records.clear();
        self.restarts.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.restarts.is_empty()
    }

    /// Returns `true` if a record with a key and a value of these lengths makes the block longer
    /// than `limit`.
    pub(super) fn is_full(&self, out: &[u8], limit: usize, key: usize, value: usize) -> bool {
        let restarts = RESTART_BYTES * self.restarts.len() + COUNTS_BYTES;
        let bytes = out.len() - self.start + self.records.len() + restarts;
        bytes + RECORD_BYTES + key + value > limit
    }

    /// Adds a record, with its newest entry. The key is above that of the record before, with which
    /// it has `shared` bytes in common.
    pub(super) fn add(
        &mut self,
        out: &mut Vec<u8>,
        mut shared: usize,
        key: &[u8],
        kind: Kind,
        value: &[u8],
    ) {
        if self.restarts.is_empty() || self.since_restart >= RESTART_ENTRIES {
            // A block with a record stays within its limit, which is less than 4 GiB.
            let offsets = [self.records.len(), out.len() - self.start];
            self.restarts.push(offsets.map(|offset| offset as u32));
            self.since_restart = 0;
            shared = 0;
        }
        put_varint(&mut self.records, shared as u64);
        put_varint(&mut self.records, (key.len() - shared) as u64);
        self.put_tag(kind, value);
        self.records.extend_from_slice(&key[shared..]);
        out.extend_from_slice(value);
    }

    /// Adds an entry to the last record, the next older one. The last entry there is an operand.
    pub(super) fn add_older(&mut self, out: &mut Vec<u8>, kind: Kind, value: &[u8]) {
        self.records[self.tag_at] &= !((1 << KIND_BITS) - 1);
        self.put_tag(kind, value);
        out.extend_from_slice(value);
    }

    fn put_tag(&mut self, kind: Kind, value: &[u8]) {
        self.since_restart += 1;
        self.tag_at = self.records.len();
        put_varint(
            &mut self.records,
            (value.len() as u64) << KIND_BITS | kind as u64,
        );
    }

    /// Returns `true` if another entry may be added to the last record. The length of a region has
    /// 32 bits.
    pub(super) fn has_room_for_older(&self) -> bool {
        self.records.len() < u32::MAX as usize - 16
    }

    /// Ends the block. Returns its offset.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(&self.records);
        let counts = [self.records.len() as u32, self.restarts.len() as u32];
        let numbers = self.restarts.iter().chain([&counts]).flatten();
        out.extend(numbers.flat_map(|number| number.to_le_bytes()));
        // Memory that a long key has needed is not kept.
        self.records.clear();
        self.records.shrink_to(1 << 20);
        self.restarts.clear();
        self.start
    }

    /// Returns the bytes of the block that are not behind the values yet.
    pub(super) fn record_bytes(&self) -> usize {
        self.records.len()
    }
}
