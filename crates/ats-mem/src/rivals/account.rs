//! The numbers of a store: how many records there are, and how large they are.
//!
//! They lie behind the lock of the store, and are changed together with its map. So they are exact for each
//! thread that has the lock.

use super::record_map::Kept;
use crate::record::Release;

/// What a map holds, records of open batches included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) records: usize,
    pub(super) bytes: usize,
}

impl Account {
    /// Notes that the map has `new` where it had `old` (V3).
    pub(super) fn exchange<R: Release>(&mut self, old: Option<&Kept<R>>, new: Option<&Kept<R>>) {
        let bytes = |kept: Option<&Kept<R>>| kept.map_or(0, |kept| kept.get().bytes());
        self.records = self.records + usize::from(new.is_some()) - usize::from(old.is_some());
        self.bytes = self.bytes + bytes(new) - bytes(old);
    }
}
