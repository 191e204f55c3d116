//! The builder of maps with limits.

use super::kind::Limited;
use crate::terms::{Limits, Ttl};
use std::marker::PhantomData;
use std::time::Duration;

/// A builder of a map with limits: see [`HashMap::builder`](crate::HashMap::builder) and
/// [`OrderedMap::builder`](crate::OrderedMap::builder). `M` is the type of the map.
///
/// Without a call of [`ttl`](MapBuilder::ttl) or [`idle`](MapBuilder::idle) pairs expire only if
/// they are inserted for a time of their own. Without a bound, pairs are removed only when they
/// expire.
///
/// ```
/// use ats::{HashMap, Limited};
/// use std::time::Duration;
///
/// let pages: HashMap<String, String, Limited> = HashMap::builder()
///     .ttl(Duration::from_secs(300))
///     .max_bytes(100 << 20)
///     .build();
/// pages.insert("/", "<h1>Welcome</h1>");
/// assert_eq!(pages.get("/").as_deref(), Some("<h1>Welcome</h1>"));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing unless it builds a map"]
pub struct MapBuilder<M> {
    pub(super) limits: Limits,
    map: PhantomData<fn() -> (M, Limited)>,
}

impl<M> MapBuilder<M> {
    pub(super) fn new() -> Self {
        MapBuilder {
            limits: Limits::default(),
            map: PhantomData,
        }
    }

    /// Sets the time from the insertion of a pair until it expires, at least a millisecond.
    /// `compute`, `update` and `merge` keep the deadline of the pair that they change; all other
    /// functions insert a pair anew. Replaces a time of [`idle`](MapBuilder::idle).
    pub fn ttl(mut self, time: Duration) -> Self {
        self.limits.ttl = Ttl::Written(time);
        self
    }

    /// Sets the time from the last read or change of a pair until it expires, at least a
    /// millisecond. `get`, and changes that find the pair, are reads; `contains_key`, `time_left`,
    /// iterators, snapshots, and the functions of ends and ranks are not. A read within the first
    /// sixteenth of the time may not put the deadline off. Replaces a time of
    /// [`ttl`](MapBuilder::ttl).
    pub fn idle(mut self, time: Duration) -> Self {
        self.limits.ttl = Ttl::Idle(time);
        self
    }

    /// Sets the most pairs.
    ///
    /// An insert that brings more removes others before it returns: those that were not read, or
    /// not read for longest, by S3-FIFO (Yang and others, 2023). Writers that are under way at the
    /// same time may each bring one pair more. `insert_many` inserts all its pairs, and then pairs
    /// are removed.
    pub fn max_len(mut self, pairs: usize) -> Self {
        self.limits.objects = Some(pairs);
        self
    }

    /// Sets the most bytes of memory, as the function `memory` of the map returns them: keys,
    /// values and all that the map needs besides. Pairs are removed as for
    /// [`max_len`](MapBuilder::max_len). A pair for which an empty map has no room is not kept: it
    /// is removed as soon as it is inserted, with the old pair of the key, and counts as evicted.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.limits.bytes = Some(bytes);
        self
    }
}
