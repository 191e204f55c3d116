//! Snapshots: the store as it was at a moment.

use super::lending_scan::LendingScan;
use super::median::median;
use super::pinned::Pinned;
use super::scan::Scan;
use super::{ReadPoint, get_in, get_stored};
use crate::error::Error;
use crate::key_bounds::{HalfOpen, KeyBounds};
use crate::state::State;
use crate::state::expiry::{Ending, Pin};
use ats_store::lifetime::{NEVER_MS, milliseconds};
use ats_store::{Direction, KeyRange, Lifetime, MayBlock};
use std::sync::Arc;
use std::time::Duration;

/// The store as it was when this was taken.
///
/// It blocks no other thread. It keeps the memtables and the files from being freed that it reads:
/// see [`Info::pinned_bytes`](crate::Info::pinned_bytes). Clones share them.
///
/// ```
/// # use ats_disk::{DiskStore, Options};
/// # let directory = std::env::temp_dir().join(format!("ats-disk-snapshot-{}", std::process::id()));
/// # let store = DiskStore::open(&directory, Options::new())?;
/// store.put(b"pear", b"40")?;
/// let snapshot = store.snapshot();
/// store.put(b"pear", b"45")?;
/// assert_eq!(snapshot.get(b"pear")?, Some(b"40".to_vec()));
/// assert_eq!(store.get(b"pear")?, Some(b"45".to_vec()));
/// # drop((snapshot, store));
/// # std::fs::remove_dir_all(&directory).ok();
/// # Ok::<(), ats_disk::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot {
    pinned: Arc<Pinned>,
}

impl Snapshot {
    pub(crate) fn new(state: &Arc<State>) -> Self {
        let pinned = Arc::new(Pinned::new(Arc::clone(state)));
        pinned.watch();
        Snapshot { pinned }
    }

    /// Makes one that is kept for so long, or until it ends otherwise, whether it is read or not.
    pub(crate) fn keep(state: &Arc<State>, age: Option<Duration>) -> Self {
        let pinned = Arc::new(Pinned::with_count(state));
        pinned.keep(age);
        Snapshot { pinned }
    }

    /// Makes it one of those that are this many at most: of more, those [end](Self::end) that were
    /// not used for longest.
    pub fn limit(&self, most: usize) {
        self.pinned.note_use();
        let state = self.pinned.state();
        state.expiry.limit(most);
        state.background.wake_if(|| state.obsolete.is_due());
    }

    /// Ends the snapshot and its clones: their readers get [`Error::Expired`], and they keep
    /// nothing.
    pub fn end(&self) {
        self.pinned.end(Ending::Ended);
        let state = self.pinned.state();
        state.background.wake_if(|| state.obsolete.is_due());
    }

    /// Sets a number of the program that holds it, by which
    /// [`kept_snapshots_of`](crate::DiskStore::kept_snapshots_of) knows it. Not 0.
    pub fn set_holder(&self, holder: u64) {
        self.pinned.set_holder(holder);
    }

    /// Returns the reason why it has ended, if it has. That is known before the first read fails.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        self.pinned.ending()
    }

    /// Returns the time since it was taken.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.pinned.age()
    }

    /// Returns the number of records, if it is one that is [kept](crate::DiskStore::keep_snapshot),
    /// and the store knew it at that moment. O(1).
    #[must_use]
    pub fn known_len(&self) -> Option<usize> {
        self.pinned.records().get().copied()
    }

    /// Returns the resources that it reads.
    pub(super) fn pinned(&self) -> &Arc<Pinned> {
        &self.pinned
    }

    /// Returns the value of a key.
    ///
    /// # Errors
    /// The errors of [`DiskStore::get`](crate::DiskStore::get), and [`Error::Expired`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let mut value = None;
        self.get_with(key, &mut |bytes| value = Some(bytes.to_vec()))?;
        Ok(value)
    }

    /// Lends the value of a key to `read`. Returns `true` if there is one.
    ///
    /// # Errors
    /// The errors of [`get`](Snapshot::get).
    pub fn get_with(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        self.read(Some(MayBlock::here()), key, read)
    }

    /// Like [`get_with`](Snapshot::get_with), but does not block.
    ///
    /// # Errors
    /// The errors of [`get`](Snapshot::get), and [`Error::WouldBlock`].
    pub fn try_get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        self.read(None, key, read)
    }

    /// Lends the value of a key to `read`, and blocks only if it may. Returns `true` if there is
    /// one.
    pub(crate) fn read(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        let version = self.pinned.version()?;
        let read_point = ReadPoint::At(self.pinned.read_point(), self.pinned.moment());
        get_in(
            may_block,
            self.pinned.state(),
            &version,
            key,
            read_point,
            read,
        )
    }

    /// Like [`read`](Snapshot::read). Returns the deadline of the record, in milliseconds since
    /// 1970, or a greater time than that of any deadline.
    pub(super) fn read_with_deadline(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<u64, Error> {
        let state = self.pinned.state();
        if state.lifetimes.is_none() {
            return self.read(may_block, key, read).map(|_| NEVER_MS);
        }
        let version = self.pinned.version()?;
        let (read_point, moment) = (self.pinned.read_point(), self.pinned.moment());
        let mut deadline = Ok(NEVER_MS);
        let read_point = ReadPoint::At(read_point, moment);
        get_stored(may_block, state, &version, key, read_point, &mut |value| {
            deadline = state.content(value, moment).map(|content| {
                let Some(content) = content else {
                    return NEVER_MS;
                };
                read(content);
                match Lifetime::split(value) {
                    Some((Lifetime::Until(deadline), _)) => milliseconds(deadline),
                    _ => NEVER_MS,
                }
            });
        })?;
        deadline
    }

    /// Returns the sum of `weigh` over all values.
    pub(crate) fn sum(
        &self,
        may_block: Option<MayBlock>,
        weigh: &dyn Fn(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        let mut scan = self.scan_lending(.., Direction::Up)?;
        let mut sum = 0;
        while let Some((_, value)) = scan.advance(may_block)? {
            sum += weigh(value);
        }
        Ok(sum)
    }

    /// Returns a bound that divides the records of a range in two parts, of about the same size if
    /// few of them were deleted; `None` if there are none. It is above the low end of the range, or
    /// the key of the first record, and below the high end. It need not be a key.
    ///
    /// # Errors
    /// The errors of [`get`](Snapshot::get).
    pub fn median(&self, keys: impl KeyBounds) -> Result<Option<Vec<u8>>, Error> {
        self.find_median(Some(MayBlock::here()), HalfOpen::new(&keys).as_range())
    }

    /// Like [`median`](Snapshot::median), but does not block.
    ///
    /// # Errors
    /// The errors of [`get`](Snapshot::get), and [`Error::WouldBlock`].
    pub fn try_median(&self, keys: impl KeyBounds) -> Result<Option<Vec<u8>>, Error> {
        self.find_median(None, HalfOpen::new(&keys).as_range())
    }

    /// Returns a median of a range, and blocks only if it may.
    pub(crate) fn find_median(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let version = self.pinned.version()?;
        if key_range.is_empty() {
            Ok(None)
        } else {
            median(may_block, &self.pinned, &version, key_range)
        }
    }

    /// Iterates over the records of a range.
    pub fn scan(&self, keys: impl KeyBounds) -> Scan {
        Scan::new(Arc::clone(&self.pinned), &keys)
    }

    /// Returns a walk over the records of a range in one direction. It lends each record and copies
    /// none.
    ///
    /// # Errors
    /// The errors of [`get`](Snapshot::get).
    pub fn scan_lending(
        &self,
        keys: impl KeyBounds,
        direction: Direction,
    ) -> Result<LendingScan, Error> {
        let range = HalfOpen::new(&keys);
        LendingScan::new(Arc::clone(&self.pinned), range.as_range(), direction)
    }
}
