//! What must stay readable when a version is written.

/// What must stay readable when a version is written.
///
/// As long as a group of records is applied, the points at which may be read, or will be, must be those of its `Keep`.
/// So a snapshot is not taken between the moment at which the list of snapshots is read for a group and the moment
/// at which the group is published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keep<'a> {
    /// The sequence number that was published last.
    pub visible: u64,
    /// The sequence numbers of the snapshots that are open, ascending.
    pub snapshots: &'a [u64],
    /// Whether the group has one record only, and all before it are published. Then its version may be read before
    /// it is.
    pub alone: bool,
}

impl Keep<'_> {
    /// How many points there are below a sequence number. Two versions belong to one group if it is the same for both.
    #[inline]
    pub(super) fn points_below(&self, seq: u64) -> usize {
        let is_above_visible = !self.alone && self.visible < seq;
        let snapshots = match self.snapshots {
            [] => 0,
            snapshots => snapshots.partition_point(|snapshot| *snapshot < seq),
        };
        snapshots + usize::from(is_above_visible)
    }
}
