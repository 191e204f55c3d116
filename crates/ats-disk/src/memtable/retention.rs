//! The versions that must stay readable when another one is written.

use crate::ids::Seq;
/// The versions that must stay readable when another one is written.
///
/// It is the same for all records of a group, which the leader of a commit applies and publishes
/// together. A snapshot that is taken after the list of snapshots was read, and before the group is
/// published, has the number `visible`, which is kept. Unless the group is alone: then no snapshot
/// may be taken meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention<'a> {
    /// The sequence number that was published last.
    pub visible: Seq,
    /// The sequence numbers of the snapshots that are open, ascending.
    pub snapshots: &'a [Seq],
    /// `true` if the group has one record only, and all before it are published. Then its version
    /// may be read before it is.
    pub alone: bool,
}

impl Retention<'_> {
    /// Returns the number of points below a sequence number. Two versions belong to one stripe if
    /// it is the same for both.
    #[inline]
    pub(super) fn points_below(&self, seq: Seq) -> usize {
        let is_above_visible = !self.alone && self.visible < seq;
        let snapshots = match self.snapshots {
            [] => 0,
            snapshots => snapshots.partition_point(|snapshot| *snapshot < seq),
        };
        snapshots + usize::from(is_above_visible)
    }
}
