//! Snapshots as stores that nothing changes.

use super::lending_scan::LendingScan;
use super::snapshot::Snapshot;
use crate::blocking;
use crate::error::Error;
use ats_store::store::{DecideEnd, Visit};
use ats_store::{BatchPlan, Direction, End, KeyRange, MayBlock, Store};
use std::ops::ControlFlow;

/// A way in which the records of a snapshot are seen.
pub(crate) trait SnapshotView: Send + Sync {
    /// Returns the snapshot itself.
    fn snapshot(&self) -> &Snapshot;

    /// Lends the value of a key to `read`. Returns `true` if there is one.
    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error>;

    /// Visits the keys of a range until `visit` breaks.
    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error>;
}

/// The view in which each record is a key with its value.
impl SnapshotView for Snapshot {
    fn snapshot(&self) -> &Snapshot {
        self
    }

    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        self.read(may_block, key, read)
    }

    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        visit_each(may_block, self.scan_lending(key_range, direction)?, visit)
    }
}

/// Visits the records of a walk until `visit` breaks.
pub(crate) fn visit_each(
    may_block: Option<MayBlock>,
    mut scan: LendingScan,
    visit: &mut Visit<'_>,
) -> Result<(), Error> {
    while let Some((key, value)) = scan.advance(may_block)? {
        if let ControlFlow::Break(()) = visit(key, value) {
            break;
        }
    }
    Ok(())
}

impl Snapshot {
    /// Returns the records as a store that nothing changes.
    #[must_use]
    pub fn into_store(self) -> Box<dyn Store> {
        Box::new(SnapshotStore(self))
    }
}

/// The store that a view of a snapshot is.
pub(crate) struct SnapshotStore<V>(pub(crate) V);

impl<V: SnapshotView> Store for SnapshotStore<V> {
    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, ats_store::Error> {
        Ok(self.0.get(may_block, key, read)?)
    }

    fn update(
        &self,
        _: Option<MayBlock>,
        _keys: &[&[u8]],
        _plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, ats_store::Error> {
        Err(ats_store::Error::Unsupported)
    }

    fn update_end(
        &self,
        _: Option<MayBlock>,
        _end: End,
        _decide: &mut DecideEnd<'_>,
    ) -> Result<(), ats_store::Error> {
        Err(ats_store::Error::Unsupported)
    }

    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), ats_store::Error> {
        Ok(self.0.scan(may_block, key_range, direction, visit)?)
    }

    /// Returns the bound that divides the records, which divides the keys as well.
    fn median(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
    ) -> Result<Option<Vec<u8>>, ats_store::Error> {
        Ok(self.0.snapshot().find_median(may_block, key_range)?)
    }

    /// Returns the number of keys. O(n).
    fn len(&self, may_block: Option<MayBlock>) -> Result<usize, ats_store::Error> {
        self.sum(may_block, &|_| 1)
    }

    fn sum(
        &self,
        may_block: Option<MayBlock>,
        weigh: &dyn Fn(&[u8]) -> usize,
    ) -> Result<usize, ats_store::Error> {
        // However little of it is on disk, it takes long.
        blocking::check(may_block)?;
        let mut sum = 0;
        self.scan(
            may_block,
            KeyRange::default(),
            Direction::Up,
            &mut |_, value| {
                sum += weigh(value);
                ControlFlow::Continue(())
            },
        )?;
        Ok(sum)
    }

    fn take_all(&self, _: Option<MayBlock>) -> Result<Box<dyn Store>, ats_store::Error> {
        Err(ats_store::Error::Unsupported)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}
