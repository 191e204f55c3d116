//! Runs, and compactions that are under way, as the manifest has them.

use crate::ids::{RunId, Seq};
use crate::run_file::FileMeta;

/// A run: files with disjoint keys in ascending order, of the changes with these sequence numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunMeta {
    pub(crate) id: RunId,
    pub(crate) first_seq: Seq,
    pub(crate) last_seq: Seq,
    pub(crate) files: Vec<FileMeta>,
}

impl RunMeta {
    /// Returns the bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// A compaction that has written a part.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CompactionMeta {
    /// The id that the run will have.
    pub(crate) id: RunId,
    /// The runs that it reads, from the newest to the oldest.
    pub(crate) inputs: Vec<RunId>,
    /// The files that are complete.
    pub(crate) files: Vec<FileMeta>,
    /// The key at which the compaction resumes: the complete files answer for all keys below it.
    /// `None` if nothing was done.
    pub(crate) resume: Option<Vec<u8>>,
}

impl CompactionMeta {
    /// Makes the same compaction before anything of it is written.
    pub(crate) fn restart(&self) -> Self {
        CompactionMeta {
            id: self.id,
            inputs: self.inputs.clone(),
            files: Vec::new(),
            resume: None,
        }
    }
}
