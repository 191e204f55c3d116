//! The objects of a list, collected and sorted before they are written.

use crate::terms::value::Values;
use ats_mem::RecordBox;
use ats_term::image::Host;
use std::ops::Range;

/// The objects to insert, each in its own record, sorted by key. Objects with the same key keep the
/// order of the list. The buffers are reused.
pub(crate) struct SortedBatch<H: Host> {
    pub(crate) keys: Keys,
    pub(crate) objects: Vec<One<H>>,
    /// The ranges of objects with the same key.
    pub(crate) groups: Vec<Range<usize>>,
}

/// An object of the batch.
pub(crate) struct One<H: Host> {
    /// The offset of its key in [`Keys`].
    pub(crate) key: usize,
    /// The record, until it is written.
    pub(crate) record: Option<RecordBox<Values<H>>>,
}

/// Keys one after the other, each preceded by its length, so that an object stores only one number
/// for its key.
pub(crate) struct Keys(Vec<u8>);

const LENGTH_BYTES: usize = size_of::<u32>();

impl Keys {
    /// Appends a key. Returns its offset.
    fn push(&mut self, key: &[u8]) -> usize {
        let at = self.0.len();
        let len = u32::try_from(key.len()).expect("a key is shorter than 4 GiB");
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(key);
        at
    }

    /// Returns the key at an offset.
    pub(crate) fn get(&self, at: usize) -> &[u8] {
        let (len, rest) = self.0[at..].split_at(LENGTH_BYTES);
        let len = u32::from_ne_bytes(len.try_into().expect("so many bytes"));
        &rest[..len as usize]
    }
}

/// Maximum number of objects whose buffers are retained.
const KEEP_OBJECTS: usize = 1 << 10;
/// Maximum capacity of a buffer of keys that is retained.
const KEEP_BYTES: usize = 1 << 16;
impl<H: Host> SortedBatch<H> {
    /// Returns an empty batch. Does not allocate.
    pub(crate) const fn new() -> Self {
        SortedBatch {
            keys: Keys(Vec::new()),
            objects: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Appends an object.
    pub(crate) fn push(&mut self, record: RecordBox<Values<H>>) {
        self.objects.push(One {
            key: self.keys.push(record.key()),
            record: Some(record),
        });
    }

    /// Sorts the objects by key, and groups objects with the same key.
    pub(crate) fn sort(&mut self) {
        let SortedBatch {
            keys,
            objects,
            groups,
        } = self;
        let key = |object: &One<H>| keys.get(object.key);
        // The sort is stable, so objects with the same key stay in their order.
        objects.sort_by(|a, b| key(a).cmp(key(b)));
        let mut start = 0;
        for run in objects.chunk_by(|a, b| key(a) == key(b)) {
            groups.push(start..start + run.len());
            start += run.len();
        }
    }

    /// Drops objects that were not written, and buffers that a huge list has enlarged.
    pub(crate) fn clear(&mut self) {
        self.keys.0.clear();
        self.objects.clear();
        self.groups.clear();
        let objects = self.objects.capacity().max(self.groups.capacity());
        if objects > KEEP_OBJECTS || self.keys.0.capacity() > KEEP_BYTES {
            *self = SortedBatch::new();
        }
    }
}
