//! Weights of records.

use std::ops::{AddAssign, Sub};

/// The number of objects that records stand for, and of bytes that they take; or the change of
/// these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Objects: one for each record, unless the owner of the values [says](super::Release::weight)
    /// otherwise.
    pub objects: i64,
    /// Bytes of memory, with what belongs to the records alone.
    pub bytes: i64,
}

impl Weight {
    /// The weight of nothing.
    pub const NONE: Self = Weight {
        objects: 0,
        bytes: 0,
    };
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.objects += other.objects;
        self.bytes += other.bytes;
    }
}

impl Sub for Weight {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Weight {
            objects: self.objects - other.objects,
            bytes: self.bytes - other.bytes,
        }
    }
}
