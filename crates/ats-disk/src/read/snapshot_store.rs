//! Snapshots as stores that nothing changes.

use super::scan::Scan;
use super::snapshot::Snapshot;
use crate::error::Error;
use crate::waiting;
use ats_store::store::{DecideEnd, Visit};
use ats_store::{BatchPlan, Direction, End, KeyRange, Store};
use std::ops::ControlFlow;

/// A way in which the records of a snapshot are seen.
pub(crate) trait SnapshotView: Send + Sync {
    /// The snapshot itself.
    fn snapshot(&self) -> &Snapshot;

    /// Lends the value of a key to `read`. Returns `true` if there is one.
    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error>;

    /// Visits the keys of a range until `visit` breaks.
    fn scan(
        &self,
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

    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        self.get_with(key, read)
    }

    fn scan(
        &self,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        visit_each(self.scan(key_range, direction)?, visit)
    }
}

/// Visits the records of a walk until `visit` breaks.
pub(crate) fn visit_each(mut scan: Scan, visit: &mut Visit<'_>) -> Result<(), Error> {
    while let Some((key, value)) = scan.next()? {
        if let ControlFlow::Break(()) = visit(key, value) {
            break;
        }
    }
    Ok(())
}

impl Snapshot {
    /// The records as a store that nothing changes.
    #[must_use]
    pub fn into_store(self) -> Box<dyn Store> {
        Box::new(SnapshotStore(self))
    }
}

/// The store that a view of a snapshot is.
pub(crate) struct SnapshotStore<V>(pub(crate) V);

impl<V: SnapshotView> Store for SnapshotStore<V> {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, ats_store::Error> {
        Ok(self.0.get(key, read)?)
    }

    fn update(
        &self,
        _keys: &[&[u8]],
        _plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, ats_store::Error> {
        Err(ats_store::Error::Unsupported)
    }

    fn update_end(&self, _end: End, _decide: &mut DecideEnd<'_>) -> Result<(), ats_store::Error> {
        Err(ats_store::Error::Unsupported)
    }

    fn scan(
        &self,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), ats_store::Error> {
        Ok(self.0.scan(key_range, direction, visit)?)
    }

    /// The bound that divides the records, which divides the keys as well.
    fn median(&self, key_range: KeyRange<'_>) -> Result<Option<Vec<u8>>, ats_store::Error> {
        Ok(self.0.snapshot().median(key_range)?)
    }

    /// Number of keys. O(n).
    fn len(&self) -> Result<usize, ats_store::Error> {
        self.sum(&|_| 1)
    }

    fn sum(&self, weigh: &dyn Fn(&[u8]) -> usize) -> Result<usize, ats_store::Error> {
        // However little of it is on disk, it takes long.
        waiting::check()?;
        let mut sum = 0;
        self.scan(KeyRange::default(), Direction::Up, &mut |_, value| {
            sum += weigh(value);
            ControlFlow::Continue(())
        })?;
        Ok(sum)
    }

    fn take_all(&self) -> Result<Box<dyn Store>, ats_store::Error> {
        Err(ats_store::Error::Unsupported)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
    }
}
