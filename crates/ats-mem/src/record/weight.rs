//! Weights of records.

use std::ops::{AddAssign, Sub};

/// The numbers of objects and bytes that records count as; or a change of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Number of objects: one for each record, unless [`weight`](super::Release::weight) returns
    /// another number.
    pub objects: i64,
    /// Bytes of memory, with data that belong to the records alone.
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
