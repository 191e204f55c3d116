//! Walks over a range of keys, in pieces that are found at once.

use ats_mem::record::{Record, Release};
use ats_mem::{Direction, KeyRange, Skipped};
use ats_store::successor;
use ats_sync::Guard;
pub(super) use ats_sync::model::RANGE_PIECE as PIECE;
use std::ops::ControlFlow;

/// A store that finds the records of a range.
pub(super) trait Pieces<R: Release> {
    /// The first records of a range that is not empty, or the last ones in descending order:
    /// [`PIECE`], if there are so many.
    fn piece<'g>(
        &'g self,
        range: KeyRange<'_>,
        direction: Direction,
        guard: &'g Guard,
    ) -> Vec<&'g Record<R>>;
}

/// Visits the records of a range, from its low end upwards or from its high end downwards, until
/// `visit` breaks.
pub(super) fn visit_in<'g, R: Release>(
    store: &'g impl Pieces<R>,
    range: KeyRange<'_>,
    direction: Direction,
    guard: &'g Guard,
    visit: &mut dyn FnMut(&'g Record<R>) -> ControlFlow<()>,
) {
    let [mut low, mut high] = [range.low, range.high].map(|end| end.map(<[u8]>::to_vec));
    loop {
        let left = KeyRange {
            low: low.as_deref(),
            high: high.as_deref(),
        };
        if left.is_empty() {
            return;
        }
        let found = store.piece(left, direction, guard);
        let last = found.last().copied();
        let is_end = found.len() < PIECE;
        let mut visible = found.into_iter().filter_map(|record| record.resolve(guard));
        if visible.try_for_each(&mut *visit).is_break() || is_end {
            return;
        }
        let end = match direction {
            Direction::Up => &mut low,
            Direction::Down => &mut high,
        };
        *end = last.map(|last| end_of_passed(last.key(), direction));
    }
}

/// [`Ordered::skip`](ats_mem::Ordered::skip) by looking at each record. O(records passed).
pub(super) fn skip_in<'g, R: Release>(
    store: &'g impl Pieces<R>,
    key_range: KeyRange<'_>,
    direction: Direction,
    most: usize,
    guard: &'g Guard,
    pause: &mut dyn FnMut() -> ControlFlow<()>,
) -> Skipped<'g, R> {
    let (mut skipped, mut next, mut bound) = (0, None, None);
    visit_in(store, key_range, direction, guard, &mut |record| {
        if skipped == most {
            next = Some(record);
            return ControlFlow::Break(());
        }
        skipped += 1;
        if skipped.is_multiple_of(PIECE) && pause().is_break() {
            bound = Some(record.key());
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    match (next, bound) {
        (Some(next), _) => Skipped::At(next, 0),
        (None, None) => Skipped::All(skipped),
        (None, Some(last)) => Skipped::Paused {
            skipped,
            bound: end_of_passed(last, direction),
        },
    }
}

/// The end of the part of a range that was passed, up to this key and with it.
fn end_of_passed(key: &[u8], direction: Direction) -> Vec<u8> {
    match direction {
        Direction::Up => successor(key),
        Direction::Down => key.to_vec(),
    }
}
