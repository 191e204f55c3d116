//! The reported size of a store.

/// The bytes that [`Store::bytes`](super::Store::bytes) has reported.
///
/// The structure of a store adapts to its writers: locks are divided and joined, buckets are moved.
/// So its memory decreases now and then, even while objects are only added. The reported number
/// must not, since it shows how objects add up. So the structure counts with the largest size it
/// has had since objects were last removed or became smaller.
#[derive(Default)]
pub(super) struct Reported {
    /// Bytes of objects.
    objects: usize,
    /// Bytes of the structure.
    structure: usize,
}

impl Reported {
    /// Returns the sum to report.
    pub(super) fn report(&mut self, objects: usize, structure: usize) -> usize {
        if objects < self.objects {
            self.structure = 0;
        }
        self.objects = objects;
        self.structure = self.structure.max(structure);
        self.objects + self.structure
    }
}
