//! The state of writing, which one thread has at a time.

use super::group::Batches;
use crate::ids::Seq;
use crate::journal::Journal;
use crate::record_count::RecordCount;

/// The state that only the leader of a group touches.
pub(crate) struct WriteState {
    pub(crate) journal: Journal,
    /// The sequence number of the last change.
    pub(crate) last_seq: Seq,
    /// The sequence number of the last change before those in the active memtable.
    pub(crate) sealed_seq: Seq,
    pub(crate) count: RecordCount,
    /// `true` if a turn is going to find out when there are no more writes.
    pub(crate) is_watched: bool,
    /// `true` if the journal is going to be synced after an interval.
    pub(crate) is_sync_due: bool,
    /// The memory of groups of callers that do not wait.
    pub(crate) at_once: Batches,
}

impl WriteState {
    /// Nothing was written to the journal yet; the last change had this sequence number.
    pub(crate) fn new(journal: Journal, last_seq: Seq) -> Self {
        WriteState {
            journal,
            last_seq,
            sealed_seq: last_seq,
            count: RecordCount::default(),
            is_watched: true,
            is_sync_due: false,
            at_once: Batches::default(),
        }
    }

    /// Returns `true` if there are changes in the active memtable.
    pub(crate) fn has_unsealed(&self) -> bool {
        self.last_seq != self.sealed_seq
    }
}
