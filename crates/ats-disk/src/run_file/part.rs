//! Parts: about a hundred neighbouring blocks, by the index and the filter that say which of them
//! has a key.
//!
//! Both are one frame, read by one access of the disk and found by one lookup in the cache. See
//! [`index`](super::index) for why a file is divided like that.

use super::filter::{Filter, FilterSize, key_hash};
use super::index::{Index, IndexBuilder};
use crate::coding::{Damaged, Decoder};

/// A part gets about as large as this, in bytes.
pub(super) const PART_BYTES: usize = 4 << 10;

/// The index and the filter of a part.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) filter: Filter,
    pub(crate) blocks: Index,
}

impl Part {
    pub(crate) fn new(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut decoder = Decoder::new(bytes);
        let blocks = Index::decode(&mut decoder)?;
        let filter = Filter::decode(&mut decoder)?;
        decoder.end()?;
        Ok(Part { filter, blocks })
    }

    /// Returns the bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + self.filter.memory() + self.blocks.memory()
    }
}

/// Collects one part after the other.
pub(crate) struct PartBuilder {
    filter_size: FilterSize,
    /// The offset of the first block.
    offset: u64,
    blocks: IndexBuilder,
    hashes: Vec<u64>,
}

impl PartBuilder {
    pub(crate) fn new(filter_size: FilterSize) -> Self {
        PartBuilder {
            filter_size,
            offset: 0,
            blocks: IndexBuilder::default(),
            hashes: Vec::new(),
        }
    }

    /// Adds a key of the next block.
    pub(crate) fn add_key(&mut self, key: &[u8]) {
        if self.filter_size.makes_filters() {
            self.hashes.push(key_hash(key));
        }
    }

    /// Adds the block that has the keys.
    pub(crate) fn add_block(&mut self, offset: u64, length: u64) {
        if self.blocks.is_empty() {
            self.offset = offset;
        }
        self.blocks.add(length);
    }

    /// The separator between the last block and the next one of the part.
    pub(crate) fn separate(&mut self, separator: &[u8]) {
        self.blocks.separate(separator);
    }

    /// Returns the bytes that it takes in the file, about.
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.bytes() + self.filter_size.bytes(self.hashes.len())
    }

    /// Ends the part, and appends it to `out`.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        self.blocks.encode(self.offset, out);
        Filter::new(&self.hashes, self.filter_size).encode(out);
        self.blocks.clear();
        self.hashes.clear();
    }
}
