//! Passing over the objects of a range one record after the other.

use crate::error::Error;
use crate::lookup_result::LookupResult;
use crate::value::{Rec, Values};
use ats_mem::Skipped;
use ats_store::{Direction, KeyRange, successor};
use ats_term::image::Host;
use std::ops::ControlFlow;

/// Called with each record.
pub(crate) type Visit<'a, 'g, H> = dyn FnMut(&'g Rec<H>) -> ControlFlow<()> + 'a;

/// The unit in which a walk counts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Objects,
    Keys,
}

/// Passes over `most` of the records that `scan` shows, which begins at the near end of the range,
/// or of their objects, as [`Ordered::skip`](ats_mem::Ordered::skip). O(records passed).
pub(super) fn pass_records<'g, H: Host>(
    key_range: KeyRange<'_>,
    direction: Direction,
    (most, unit): (usize, Unit),
    pause: &mut dyn FnMut() -> ControlFlow<()>,
    scan: impl FnOnce(&mut Visit<'_, 'g, H>) -> Result<(), Error>,
) -> Result<Skipped<'g, Values<H>>, Error> {
    let KeyRange { low, high } = key_range;
    let (mut skipped, mut ended) = (0, None);
    scan(&mut |record: &'g Rec<H>| {
        let is_inside = match direction {
            Direction::Up => high.is_none_or(|high| record.key() < high),
            Direction::Down => low.is_none_or(|low| record.key() >= low),
        };
        if !is_inside {
            return ControlFlow::Break(());
        }
        let weight = match unit {
            Unit::Objects => LookupResult::new(record).count(),
            Unit::Keys => 1,
        };
        let within = most - skipped;
        if within < weight {
            ended = Some(Skipped::At(record, within));
            return ControlFlow::Break(());
        }
        skipped += weight;
        if pause().is_continue() {
            return ControlFlow::Continue(());
        }
        let bound = match direction {
            Direction::Up => successor(record.key()),
            Direction::Down => record.key().to_vec(),
        };
        ended = Some(Skipped::Paused { skipped, bound });
        ControlFlow::Break(())
    })?;
    Ok(ended.unwrap_or(Skipped::All(skipped)))
}
