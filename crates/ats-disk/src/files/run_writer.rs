//! Writing a run: files of about the same size, one after the other.

use super::Files;
use crate::entry::Kind;
use crate::entry::collapse::Chain;
use crate::error::Error;
use crate::ids::{FileNumber, Seq};
use crate::range_deletes::RangeSet;
use crate::run_file::{FileMeta, FileWriter, Reserved, file_name, lower};
use ats_store::KeyRange;
use std::mem;
use std::sync::Arc;

/// A run of some size has about so many files: the [reserve](super::reserve) is as large as the
/// largest file, and a compaction loses the file that it is writing when the process ends.
const FILES: u64 = 16;
/// A run has about so many files at most, so that large stores do not need many.
const MOST_FILES: u64 = 64;
/// Files of a run are not smaller than this just so that there are some.
const LEAST_BYTES: u64 = 2 << 20;

/// Returns about how large the files become of a run of so many bytes: `most` is the
/// [setting](crate::Options::file_bytes).
pub(crate) fn file_bytes(run_bytes: u64, most: u64) -> u64 {
    let few = (run_bytes / FILES).max(LEAST_BYTES).min(most);
    few.max(run_bytes / MOST_FILES)
}

/// Writes the files of a run.
pub(crate) struct RunWriter<'a> {
    files: &'a Files,
    first_seq: Seq,
    last_seq: Seq,
    /// A file that is so large is followed by another.
    file_bytes: u64,
    /// The ranges that the run deletes of older ones.
    range_deletes: Arc<RangeSet>,
    /// The lowest key that the present file answers for; `None` is the least of all.
    low: Option<Vec<u8>>,
    /// The upper bound of the keys of the last file that has some.
    upper: Option<Arc<[u8]>>,
    file: Option<FileWriter>,
    /// The memory of the file.
    memory: Reserved,
    /// Files that were completed and not taken.
    complete: Vec<FileMeta>,
    /// The numbers of the files that were begun and not taken.
    begun: Vec<FileNumber>,
}

impl<'a> RunWriter<'a> {
    /// Makes the writer of a run with these changes, of about so many bytes. `low` is the lowest
    /// key still to be written, if a part of the run is written already.
    pub(crate) fn new(
        files: &'a Files,
        seqs: (Seq, Seq),
        range_deletes: Arc<RangeSet>,
        low: Option<Vec<u8>>,
        run_bytes: u64,
    ) -> Self {
        RunWriter {
            files,
            first_seq: seqs.0,
            last_seq: seqs.1,
            file_bytes: file_bytes(run_bytes, files.state.options.file_bytes),
            range_deletes,
            low,
            upper: None,
            file: None,
            memory: Reserved::new(&files.cache, 0),
            complete: Vec::new(),
            begun: Vec::new(),
        }
    }

    /// Says which files of the run are complete already.
    pub(crate) fn set_complete(&mut self, files: &[FileMeta]) {
        self.upper = files.iter().rev().find_map(|file| file.last_key.clone());
    }

    /// Adds the entries of a key. Keys ascend.
    pub(crate) fn add(&mut self, key: &[u8], chain: &Chain) -> Result<(), Error> {
        self.finish_if_full(key)?;
        for index in 0..chain.len() {
            let (kind, value) = chain.entry(index);
            self.add_entry(key, kind, value)?;
        }
        Ok(())
    }

    /// Adds the only entry of a key.
    pub(crate) fn add_only(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<(), Error> {
        self.finish_if_full(key)?;
        self.add_entry(key, kind, value)
    }

    fn finish_if_full(&mut self, key: &[u8]) -> Result<(), Error> {
        let limit = self.file_bytes;
        if let Some(file) = &self.file {
            self.memory.set(file.memory());
            if file.bytes() >= limit {
                self.finish_file(Some(key))?;
            }
        }
        Ok(())
    }

    fn add_entry(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<(), Error> {
        if self.file.is_none() {
            self.begin()?;
        }
        match &mut self.file {
            Some(file) => file.add(key, kind, value),
            None => Ok(()),
        }
    }

    fn begin(&mut self) -> Result<(), Error> {
        let number = self.files.new_file_number();
        self.begun.push(number);
        self.file = Some(self.files.begin_file(number)?);
        Ok(())
    }

    /// Finishes the present file, which answers for all keys below `high`, or for all that are
    /// left. The next keys are not below `high`, and keys between those of the file and them may be
    /// in either file.
    pub(crate) fn finish_file(&mut self, high: Option<&[u8]>) -> Result<(), Error> {
        let upper = self.file.as_ref().and_then(|file| file.upper(high));
        let above = upper.as_deref().or(self.upper.as_deref());
        // A part of a long key does as well.
        let high = high.map(|high| lower(high, above.max(self.low.as_deref())).to_vec());
        let high = high.as_deref();
        let deletes = self.range_deletes.clip(KeyRange {
            low: self.low.as_deref(),
            high,
        });
        if self.file.is_none() && !deletes.is_empty() {
            self.begin()?;
        }
        if let Some(file) = self.file.take() {
            let between = (self.upper.as_deref(), high);
            let meta = file.finish(self.first_seq, self.last_seq, &deletes, between)?;
            self.add_file(meta);
            self.memory.set(0);
        }
        self.low = high.map(<[u8]>::to_vec);
        Ok(())
    }

    /// Adds a file that is complete. One of a run that is compacted may be added as it is: the
    /// present file was finished at its first key.
    pub(crate) fn add_file(&mut self, file: FileMeta) {
        if file.last_key.is_some() {
            self.upper.clone_from(&file.last_key);
        }
        self.complete.push(file);
    }

    /// Returns `true` if there are files to be taken.
    pub(crate) fn has_complete(&self) -> bool {
        !self.complete.is_empty()
    }

    /// Returns the files that are complete and were not taken.
    pub(crate) fn complete(&self) -> &[FileMeta] {
        &self.complete
    }

    /// Takes the files that are complete, for an edit of the manifest that names them.
    pub(crate) fn take_complete(&mut self) -> Vec<FileMeta> {
        let files = mem::take(&mut self.complete);
        self.begun
            .retain(|number| !files.iter().any(|file| file.number == *number));
        files
    }

    /// Returns the lowest key that the files taken or to be taken do not answer for.
    pub(crate) fn low(&self) -> Option<&[u8]> {
        self.low.as_deref()
    }
}

impl Drop for RunWriter<'_> {
    /// Removes the files that were begun in vain. Those that cannot be removed now are when the
    /// store is opened.
    fn drop(&mut self) {
        self.file = None;
        for number in &self.begun {
            let _ = self.files.state.directory.remove(&file_name(*number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn small_runs_have_small_files_and_large_runs_few() {
        let most = 64 * MIB;
        for (run, file) in [(0, 2), (30, 2), (80, 5), (512, 32), (4096, 64), (8192, 128)] {
            assert_eq!(file_bytes(run * MIB, most), file * MIB, "{run} MiB");
        }
        assert_eq!(file_bytes(30 * MIB, 1 << 20), MIB);
        assert_eq!(file_bytes(6400, 10), 100);
    }
}
