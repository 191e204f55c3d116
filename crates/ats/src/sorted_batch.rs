//! The objects of a list, gathered and sorted before they are written.

use crate::value::Values;
use ats_mem::RecordBox;
use ats_term::image::Host;
use std::ops::Range;

/// The objects to insert, each in a record of its own, in the order of their keys; those with the
/// same key in the order they were given. Keeps its buffers.
pub(crate) struct SortedBatch<H: Host> {
    pub(crate) keys: Keys,
    pub(crate) objects: Vec<One<H>>,
    /// The groups of objects with the same key.
    pub(crate) groups: Vec<Range<usize>>,
}

/// One of them.
pub(crate) struct One<H: Host> {
    /// The place of its key among the keys.
    pub(crate) key: usize,
    /// Until it is written.
    pub(crate) record: Option<RecordBox<Values<H>>>,
}

/// Keys one after the other, each behind its length: of an object only one number tells where its
/// key is.
pub(crate) struct Keys(Vec<u8>);

const LENGTH_BYTES: usize = size_of::<u32>();

impl Keys {
    /// Appends a key. Returns where it is.
    fn push(&mut self, key: &[u8]) -> usize {
        let at = self.0.len();
        let len = u32::try_from(key.len()).expect("a key is shorter than 4 GiB");
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(key);
        at
    }

    /// The key at a place.
    pub(crate) fn get(&self, at: usize) -> &[u8] {
        let (len, rest) = self.0[at..].split_at(LENGTH_BYTES);
        let len = u32::from_ne_bytes(len.try_into().expect("so many bytes"));
        &rest[..len as usize]
    }
}

/// Buffers for more objects than this are given back.
const KEEP_OBJECTS: usize = 1 << 10;
/// A buffer for keys with more room than this is given back.
const KEEP_BYTES: usize = 1 << 16;
impl<H: Host> SortedBatch<H> {
    /// Nothing yet; does not allocate.
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

    /// Sorts the objects by key, and finds out which have the same one.
    pub(crate) fn sort(&mut self) {
        let SortedBatch {
            keys,
            objects,
            groups,
        } = self;
        let key = |object: &One<H>| keys.get(object.key);
        // Stable, so that objects with the same key stay in their order.
        objects.sort_by(|a, b| key(a).cmp(key(b)));
        let mut start = 0;
        for run in objects.chunk_by(|a, b| key(a) == key(b)) {
            groups.push(start..start + run.len());
            start += run.len();
        }
    }

    /// Gives up what was not written, and buffers that something huge blew up.
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
