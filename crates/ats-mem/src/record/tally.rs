//! What records count.

use std::ops::{AddAssign, Sub};

/// How many objects records stand for, and how many bytes they take; or by how much that changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Objects: one for each record, unless the owner of the values [says](super::Release::tally) otherwise.
    pub objects: i64,
    /// Bytes of memory, with what belongs to the records alone.
    pub bytes: i64,
}

impl Tally {
    /// What nothing counts.
    pub const NONE: Self = Tally {
        objects: 0,
        bytes: 0,
    };
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

impl Sub for Tally {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Tally {
            objects: self.objects - other.objects,
            bytes: self.bytes - other.bytes,
        }
    }
}
