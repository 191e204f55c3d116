//! The size of a store as it is told.

/// The bytes that [`Store::bytes`](super::Store::bytes) has told.
///
/// The structure of a store adapts to its writers: locks are divided and joined, buckets are moved,
/// and so the memory for them becomes less now and then, also while objects are only added. A
/// number that is to tell how the objects add up must not. So the structure counts as large as it
/// was when objects took no more than now, until some are removed or become smaller.
#[derive(Default)]
pub(super) struct Reported {
    /// Bytes of objects.
    objects: usize,
    /// Bytes of all else.
    structure: usize,
}

impl Reported {
    /// The sum to report.
    pub(super) fn report(&mut self, objects: usize, structure: usize) -> usize {
        if objects < self.objects {
            self.structure = 0;
        }
        self.objects = objects;
        self.structure = self.structure.max(structure);
        self.objects + self.structure
    }
}
