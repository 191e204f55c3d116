//! Walks over an ordered store, from both ends.

use crate::map::bounds::ByteBounds;
use crate::map::key::KeyBytes;
use crate::map::piece::Piece;
use crate::map::records::{begin, break_if};
use crate::map::store::{MapStore, OrderedStore};
use crate::map::store_of_map::StoreOfMap;
use crate::map::words::unpack;
use ats_mem::{COUNTINGS, Record, Skipped, WalkFrom, When};
use ats_store::KeyRange;
use ats_sync::pin;
use std::ops::ControlFlow;

/// A walk from both ends: the part of a range that is not read yet, and the pieces that were read.
///
/// The pieces from the front are below the rest, the pieces from the back above it. So no record is
/// returned twice. When the rest is empty, each end continues with the piece of the other end.
pub(super) struct Walk {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    is_read: bool,
    front: Piece,
    back: Piece,
    /// The number of bytes of a value, if it is the same for all values of the type.
    len: Option<usize>,
}

impl Walk {
    pub(super) fn new(bounds: &ByteBounds, len: Option<usize>) -> Self {
        let bytes = |key: &KeyBytes| key.as_slice().to_vec();
        Walk {
            low: bounds.low.as_ref().map(bytes).unwrap_or_default(),
            high: bounds.high.as_ref().map(bytes),
            is_read: bounds.as_range().is_empty(),
            front: Piece::default(),
            back: Piece::default(),
            len,
        }
    }

    /// Returns the next record from the front.
    pub(super) fn next<S: MapStore>(
        &mut self,
        store: &StoreOfMap<S>,
        when: When,
    ) -> Option<(&[u8], &[u8])> {
        if self.front.is_empty() && !self.is_read {
            self.read_front(store, when);
        }
        if self.front.is_empty() {
            self.back.pop_back()
        } else {
            self.front.pop_front()
        }
    }

    /// Returns the next record from the back.
    pub(super) fn next_back<S: MapStore>(
        &mut self,
        store: &StoreOfMap<S>,
        when: When,
    ) -> Option<(&[u8], &[u8])> {
        if self.back.is_empty() && !self.is_read {
            self.read_back(store, when);
        }
        if self.back.is_empty() {
            self.front.pop_back()
        } else {
            self.back.pop_front()
        }
    }

    fn read_front<S: MapStore>(&mut self, store: &StoreOfMap<S>, when: When) {
        let Walk { high, front, .. } = self;
        front.begin();
        let (mut is_full, len) = (false, self.len);
        let guard = pin();
        let store = store.get(&guard);
        let walk = ats_mem::Walk::up(WalkFrom::Key(&self.low)).at(when);
        let walked = store.visit(walk, &guard, &mut |record| {
            if high.as_deref().is_some_and(|high| high <= record.key()) {
                return ControlFlow::Break(());
            }
            is_full = !front.push(record.key(), unpack(S::words(record), len));
            break_if(is_full)
        });
        debug_assert_eq!(walked, Ok(()), "any key will do");
        self.is_read = !is_full;
        if let Some(last) = front.last_key() {
            last.clone_into(&mut self.low);
            self.low.push(0);
        }
    }

    fn read_back<S: MapStore>(&mut self, store: &StoreOfMap<S>, when: When) {
        let Walk { low, back, .. } = self;
        back.begin();
        let (mut is_full, len) = (false, self.len);
        let guard = pin();
        let store = store.get(&guard);
        let from = self.high.as_deref();
        let from = from.map_or(WalkFrom::Start, WalkFrom::Behind);
        let walk = ats_mem::Walk::down(from).at(when);
        let walked = store.visit(walk, &guard, &mut |record| {
            if record.key() < &low[..] {
                return ControlFlow::Break(());
            }
            is_full = !back.push(record.key(), unpack(S::words(record), len));
            break_if(is_full)
        });
        debug_assert_eq!(walked, Ok(()), "any key will do");
        self.is_read = !is_full;
        if let Some(last) = back.last_key() {
            last.clone_into(self.high.get_or_insert_default());
        }
    }
}

/// The result of skipping records: the number of all records in the range, or the next record.
pub(super) enum Passed<T> {
    All(usize),
    At(T),
}

/// Nodes that are passed under one guard.
const NODES: usize = 200;
/// Records of a moment that are passed under one guard.
const RECORDS: usize = 1000;

/// Skips `most` records of a range, and passes the next one to `show`. All records are those of one
/// moment: that of the call, or an earlier one.
pub(super) fn pass<S: OrderedStore, T>(
    store: &StoreOfMap<S>,
    bounds: &ByteBounds,
    when: When,
    most: usize,
    show: impl FnOnce(&Record<S::Of>) -> T,
) -> Passed<T> {
    if !when.is_now() {
        return pass_records(store.keep().store(), bounds, when, most, show);
    }
    for _ in 0..COUNTINGS {
        let (range, guard) = (bounds.as_range(), pin());
        let skipped = store.get(&guard).skip_at_once(range, most, &guard);
        match skipped {
            Some(Skipped::At(record, _)) => return Passed::At(show(record)),
            Some(Skipped::All(skipped)) => return Passed::All(skipped),
            Some(Skipped::Paused { .. }) | None => {}
        }
        drop(guard);
        count_nodes(store, bounds, most);
    }
    let kept = store.keep();
    let read_point = begin(kept.store());
    let passed = pass_records(kept.store(), bounds, read_point.when(), most, show);
    kept.store().end(read_point);
    store.reclaim();
    passed
}

/// Skips records of a moment one by one, since the counts of nodes are current.
fn pass_records<S: OrderedStore, T>(
    store: &S,
    bounds: &ByteBounds,
    when: When,
    most: usize,
    show: impl FnOnce(&Record<S::Of>) -> T,
) -> Passed<T> {
    let KeyRange { low, high } = bounds.as_range();
    let mut low = low.unwrap_or_default().to_vec();
    let mut passed = 0;
    loop {
        let (guard, mut seen) = (pin(), 0);
        let (mut found, mut is_paused) = (None, false);
        let from = low.clone();
        let walk = ats_mem::Walk::up(WalkFrom::Key(&from)).at(when);
        let walked = store.visit(walk, &guard, &mut |record| {
            if high.is_some_and(|high| high <= record.key()) {
                return ControlFlow::Break(());
            }
            if passed == most {
                found = Some(record);
                return ControlFlow::Break(());
            }
            (passed, seen) = (passed + 1, seen + 1);
            if seen == RECORDS {
                is_paused = true;
                record.key().clone_into(&mut low);
                low.push(0);
            }
            break_if(is_paused)
        });
        debug_assert_eq!(walked, Ok(()), "any key will do");
        match found {
            Some(record) => return Passed::At(show(record)),
            None if is_paused => {}
            None => return Passed::All(passed),
        }
    }
}

/// Counts the records below the nodes of a range.
fn count_nodes<S: OrderedStore>(store: &StoreOfMap<S>, bounds: &ByteBounds, most: usize) {
    let (mut passed, mut low) = (0, None);
    loop {
        let mut range = bounds.as_range();
        if low.is_some() {
            range.low = low.as_deref();
        }
        let (guard, mut nodes) = (pin(), 0);
        let mut pause = || {
            nodes += 1;
            break_if(nodes > NODES)
        };
        let store = store.get(&guard);
        match store.skip(range, most - passed, &guard, &mut pause) {
            Skipped::At(..) | Skipped::All(_) => return,
            Skipped::Paused { skipped, bound } => {
                passed += skipped;
                low = Some(bound);
            }
        }
    }
}
