//! The records of a store as they were at a moment, for tables that show it.

pub(crate) use super::passing::Visit;
use super::passing::{Unit, pass_records};
use crate::error::Error;
use crate::value::{Rec, Values};
use ats_mem::{BatchPlan, Change, NoSuchKey, Skipped, When};
use ats_store::{Direction, End, KeyRange, ScanPosition, SlotAnswer};
use ats_sync::Guard;
use ats_term::image::Host;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The records of a store at a moment. They do not change, and cannot be changed.
pub(crate) struct Past<H: Host> {
    records: Arc<dyn PastRecords<H>>,
    is_ordered: bool,
}

/// Says what becomes of a key.
type Decide<'a, 'g, H> = dyn FnMut(Option<&'g Rec<H>>) -> Change<Values<H>> + 'a;

/// The records of a store at a moment, as they are found there. All fail if the moment has ended.
pub(crate) trait PastRecords<H: Host>: Send + Sync {
    /// Number of objects.
    fn objects(&self) -> usize;

    /// The record of a key.
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error>;

    /// Visits the records behind a key, if there is an order.
    fn scan_behind<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error>;

    /// Visits the records from a key on, if there is an order.
    fn scan_from<'g>(
        &'g self,
        from: &[u8],
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error>;

    /// Visits the records below a key downwards, if there is an order.
    fn scan_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error>;

    /// Visits the records behind a position, in the order of the store.
    fn resume_scan<'g>(
        &'g self,
        from: ScanPosition<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, Error>;
}

impl<H: Host> Past<H> {
    pub(crate) fn new(records: Arc<dyn PastRecords<H>>, is_ordered: bool) -> Self {
        Past {
            records,
            is_ordered,
        }
    }

    /// Number of objects.
    pub(crate) fn objects(&self) -> usize {
        self.records.objects()
    }

    /// Bytes of memory without what is kept of the store.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.records)
    }

    pub(crate) fn get<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        self.records.get(key, guard)
    }

    /// Visits all records behind a position of a store without order.
    fn resume<'g>(
        &'g self,
        from: ScanPosition<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error> {
        let go_on = &mut || ControlFlow::Continue(());
        let scanned = self.records.resume_scan(from, guard, visit, go_on);
        scanned.map(|_never_paused| ())
    }

    /// The first record that a scan visits.
    fn first_of<'g>(
        scan: impl FnOnce(&mut Visit<'_, 'g, H>) -> Result<(), Error>,
    ) -> Result<Option<&'g Rec<H>>, Error> {
        let mut first = None;
        scan(&mut |record| {
            first = Some(record);
            ControlFlow::Break(())
        })?;
        Ok(first)
    }

    pub(crate) fn first<'g>(&'g self, guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        Self::first_of(|visit| match self.is_ordered {
            true => self.records.scan_from(&[], guard, visit),
            false => self.resume(ScanPosition::Start, guard, visit),
        })
    }

    pub(crate) fn last<'g>(&'g self, guard: &'g Guard) -> Result<Option<&'g Rec<H>>, Error> {
        match self.is_ordered {
            true => Self::first_of(|visit| self.records.scan_down(None, guard, visit)),
            false => self.first(guard),
        }
    }

    /// Checks that a walk may go on from this key.
    fn check_step(&self, key: &[u8], guard: &Guard) -> Result<Result<(), NoSuchKey>, Error> {
        Ok(match self.is_ordered || self.get(key, guard)?.is_some() {
            true => Ok(()),
            false => Err(NoSuchKey),
        })
    }

    pub(crate) fn next<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Result<Option<&'g Rec<H>>, NoSuchKey>, Error> {
        let mut first = None;
        let scanned = self.scan(Some(key), When::NOW, guard, &mut |record| {
            first = Some(record);
            ControlFlow::Break(())
        })?;
        Ok(scanned.map(|()| first))
    }

    pub(crate) fn prev<'g>(
        &'g self,
        key: &[u8],
        guard: &'g Guard,
    ) -> Result<Result<Option<&'g Rec<H>>, NoSuchKey>, Error> {
        match self.is_ordered {
            true => Self::first_of(|visit| self.records.scan_down(Some(key), guard, visit)).map(Ok),
            false => self.next(key, guard),
        }
    }

    pub(crate) fn scan<'g>(
        &'g self,
        after: Option<&[u8]>,
        _when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<Result<(), NoSuchKey>, Error> {
        if let Some(key) = after
            && self.check_step(key, guard)?.is_err()
        {
            return Ok(Err(NoSuchKey));
        }
        match (self.is_ordered, after) {
            (true, None) => self.records.scan_from(&[], guard, visit),
            (true, Some(key)) => self.records.scan_behind(key, guard, visit),
            (false, None) => self.resume(ScanPosition::Start, guard, visit),
            (false, Some(key)) => self.resume(ScanPosition::Behind(key), guard, visit),
        }
        .map(Ok)
    }

    pub(crate) fn scan_from<'g>(
        &'g self,
        from: &[u8],
        _when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error> {
        self.records.scan_from(from, guard, visit)
    }

    pub(crate) fn scan_down<'g>(
        &'g self,
        below: Option<&[u8]>,
        _when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
    ) -> Result<(), Error> {
        self.records.scan_down(below, guard, visit)
    }

    pub(crate) fn resume_scan<'g>(
        &'g self,
        from: ScanPosition<'_>,
        _when: When,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g, H>,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Option<u64>, Error> {
        self.records.resume_scan(from, guard, visit, pause)
    }

    /// The slots of a store without order are its keys, one by one; of one that has an order, the
    /// places of objects. O(index).
    pub(crate) fn slot<'g>(
        &'g self,
        index: usize,
        guard: &'g Guard,
        visit: &mut dyn FnMut(&'g Rec<H>),
    ) -> Result<SlotAnswer, Error> {
        let go_on = &mut || ControlFlow::Continue(());
        let skipped = self.skip(KeyRange::default(), Direction::Up, index, guard, go_on)?;
        Ok(skipped.slot(index, visit))
    }

    /// O(objects passed).
    pub(crate) fn skip<'g>(
        &'g self,
        key_range: KeyRange<'_>,
        direction: Direction,
        most: usize,
        guard: &'g Guard,
        pause: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<Skipped<'g, Values<H>>, Error> {
        let KeyRange { low, high } = key_range;
        if !self.is_ordered {
            // Any store can be scanned from its begin.
            let scan = |visit: &mut Visit<'_, 'g, H>| {
                let scanned = self.scan(None, When::NOW, guard, visit);
                scanned.map(|_known| ())
            };
            return pass_records(key_range, direction, (most, Unit::Keys), pause, scan);
        }
        let scan = |visit: &mut Visit<'_, 'g, H>| match direction {
            Direction::Up => self
                .records
                .scan_from(low.unwrap_or_default(), guard, visit),
            Direction::Down => self.records.scan_down(high, guard, visit),
        };
        pass_records(key_range, direction, (most, Unit::Objects), pause, scan)
    }

    pub(crate) fn update<'g>(
        &'g self,
        _key: &[u8],
        _guard: &'g Guard,
        _decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        Err(Error::Snapshot)
    }

    pub(crate) fn update_alone<'g>(
        &'g self,
        _key: &[u8],
        _guard: &'g Guard,
        _decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        Err(Error::Snapshot)
    }

    pub(crate) fn update_batch(
        &self,
        _keys: &[&[u8]],
        _guard: &Guard,
        _plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        Err(Error::Snapshot)
    }

    pub(crate) fn update_long_batch(
        &self,
        _keys: &[&[u8]],
        _plan: &mut dyn BatchPlan<Values<H>>,
    ) -> Result<bool, Error> {
        Err(Error::Snapshot)
    }

    pub(crate) fn update_end<'g>(
        &'g self,
        _end: End,
        _guard: &'g Guard,
        _decide: &mut Decide<'_, 'g, H>,
    ) -> Result<(), Error> {
        Err(Error::Snapshot)
    }

    /// Nothing is to be done for walks: no key goes.
    pub(crate) fn fix(&self) {}

    pub(crate) fn unfix(&self) {}
}
