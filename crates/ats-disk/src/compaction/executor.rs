//! Execution of compactions: in the order of keys, a file at a time.
//!
//! Each complete file is noted in the manifest, so that a compaction of large runs goes on where it
//! was when the process ended. A file whose keys no other run of the compaction has or deletes is
//! taken as it is.

use crate::cursor::{MergeCursor, Source};
use crate::entry::Kind;
use crate::entry::collapse::{Chain, is_absent};
use crate::error::Error;
use crate::fault_injection::{InjectedFault, is_injected};
use crate::files::{Files, RunWriter, file_bytes};
use crate::flush::Flusher;
use crate::ids::RunId;
use crate::lifetime::{self, Lifetimes};
use crate::manifest::{CompactionMeta, Edit, RunMeta};
use crate::progress::{OnProgress, Progress};
use crate::range_deletes::{Deleted, RangeSet};
use crate::run_file::{FileMeta, Reserved, Run, RunFile};
use crate::state::{State, StoredRun};
use ats_store::{Direction, MayBlock, MergeOperator};
use std::collections::VecDeque;
use std::sync::Arc;

/// The bytes of a file that are read at a time.
const READ_AHEAD_BYTES: usize = 256 << 10;
/// Bytes of the buffers for a run, of blocks and of parts.
const RUN_BUFFER_BYTES: usize = READ_AHEAD_BYTES + READ_AHEAD_BYTES / 4;
/// After so many keys, or bytes of keys and values, it is looked whether something is more urgent.
const KEYS_PER_STEP: u32 = 4096;
const BYTES_PER_STEP: u64 = 16 << 20;
/// Bounds of files with fewer bytes are noted whenever a file is complete.
const BOUNDS_BYTES: u64 = 64 << 10;

/// The end of a piece of a compaction.
enum Piece {
    /// All is written.
    Complete,
    /// Other stores wait. The rest is left for another time.
    GaveWay,
    /// The same, because the caller, or a store that is being closed, wants no more.
    BrokenOff,
}

/// The runs that a compaction reads.
struct Inputs {
    /// The input runs, from the newest to the oldest.
    runs: Vec<Arc<StoredRun>>,
    /// `true` if nothing is older.
    is_bottom: bool,
    /// The ranges that the runs delete of older runs.
    range_deletes: Arc<RangeSet>,
    /// Files that are taken as they are, in the order of their keys.
    moved: VecDeque<Arc<RunFile>>,
    /// The time at which the compaction began, if records expire.
    moment: Option<u64>,
}

impl Inputs {
    /// Returns the bytes on disk.
    fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.meta.bytes()).sum()
    }

    /// Returns the bytes of keys and values.
    fn content_bytes(&self) -> u64 {
        let files = self.runs.iter().flat_map(|run| &run.meta.files);
        files.map(|file| file.key_bytes + file.value_bytes).sum()
    }

    /// Returns the entry left of a sole entry: the only one of its key in the inputs. While
    /// something older may exist, it stays as it was written, unless it has expired: then it
    /// becomes a delete. Otherwise it becomes the value, or vanishes if that counts as missing.
    fn only(
        &self,
        operator: Option<&dyn MergeOperator>,
        key: &[u8],
        kind: Kind,
        value: &[u8],
    ) -> Option<Kind> {
        match kind {
            Kind::Put if self.is_over(value) => (!self.is_bottom).then_some(Kind::Delete),
            _ if !self.is_bottom => Some(kind),
            Kind::Delete => None,
            _ => match is_absent(operator, key, value) {
                Ok(true) => None,
                Ok(false) => Some(Kind::Put),
                Err(_) => Some(kind),
            },
        }
    }

    /// Returns `true` if a value has expired.
    fn is_over(&self, value: &[u8]) -> bool {
        self.moment
            .is_some_and(|moment| lifetime::is_over(value, moment))
    }

    /// Returns `true` if a file is one of those that are compacted.
    fn has(&self, file: &FileMeta) -> bool {
        let mut files = self.runs.iter().flat_map(|run| &run.meta.files);
        files.any(|input| input.number == file.number)
    }
}

/// The part of a store that writes the run that others become.
pub(super) struct Executor {
    state: Arc<State>,
    files: Arc<Files>,
    flusher: Arc<Flusher>,
}

impl Executor {
    pub(super) fn new(files: Arc<Files>, flusher: Arc<Flusher>) -> Self {
        Executor {
            state: Arc::clone(&files.state),
            files,
            flusher,
        }
    }

    /// Compacts the runs with these ids, which the caller has claimed, or a part of them. Returns
    /// `false` if that was broken off.
    pub(super) fn compact(
        &self,
        ids: &[RunId],
        begun: Option<CompactionMeta>,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<bool, Error> {
        self.state.status.check_writable()?;
        let mut inputs = self.inputs(ids);
        let mut compaction = begun.unwrap_or_else(|| CompactionMeta {
            id: self.files.new_run_id(),
            inputs: ids.to_vec(),
            files: Vec::new(),
            resume: None,
        });
        let bytes = inputs.bytes();
        let compacted = match self.compact_runs(&mut inputs, &mut compaction, on_progress) {
            Ok(Piece::Complete) => self.install(&inputs, compaction).map(|()| true),
            Ok(Piece::GaveWay) => Ok(true),
            Ok(Piece::BrokenOff) => Ok(false),
            Err(error) => Err(error),
        };
        compacted.inspect_err(|error| {
            if error.is_full() {
                self.files.reserve.on_full_compaction(bytes);
            }
        })
    }

    fn inputs(&self, ids: &[RunId]) -> Inputs {
        let version = self.state.versions.current();
        let of_claim = |run: &&Arc<StoredRun>| ids.contains(&run.meta.id);
        let runs: Vec<_> = version.runs.iter().filter(of_claim).cloned().collect();
        let oldest = runs.last().map(|run| run.meta.id);
        let is_bottom = version.runs.last().map(|run| run.meta.id) == oldest
            || is_injected(InjectedFault::EarlyDrop);
        let deletes = if is_bottom {
            // Nothing is left for them to delete.
            RangeSet::default()
        } else {
            let sets = runs.iter().filter_map(|run| run.run.range_deletes());
            sets.flat_map(|deletes| deletes.iter()).collect()
        };
        let lifetimes = self.state.lifetimes.as_ref();
        let mut inputs = Inputs {
            moment: lifetimes.map(Lifetimes::now),
            is_bottom,
            range_deletes: Arc::new(deletes),
            moved: VecDeque::new(),
            runs,
        };
        let least_bytes = file_bytes(inputs.bytes(), self.state.options.file_bytes) / 4;
        inputs.moved = movable(&inputs, least_bytes);
        inputs
    }

    /// Writes the files of the run that the inputs become.
    fn compact_runs(
        &self,
        inputs: &mut Inputs,
        compaction: &mut CompactionMeta,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<Piece, Error> {
        let (Some(newest), Some(oldest)) = (inputs.runs.first(), inputs.runs.last()) else {
            return Ok(Piece::BrokenOff);
        };
        let seqs = (oldest.meta.first_seq, newest.meta.last_seq);
        // A compaction that was begun under other options may have taken other files as they are.
        let is_taken = |file: &Arc<RunFile>| {
            let number = file.meta().number;
            compaction.files.iter().any(|meta| meta.number == number)
        };
        inputs.moved.retain(|file| {
            let is_begun = compaction.resume.as_deref() > file.meta().first_key.as_deref();
            !is_taken(file) && !is_begun
        });
        let _buffers = Reserved::new(&self.files.cache, inputs.runs.len() * RUN_BUFFER_BYTES);
        let mut cursor = MergeCursor::new(sources(inputs, &is_taken)?);
        cursor.seek(
            Some(MayBlock::here()),
            Direction::Up,
            compaction.resume.as_deref(),
        )?;
        let deletes = Arc::clone(&inputs.range_deletes);
        let (resume, bytes) = (compaction.resume.clone(), inputs.bytes());
        let mut writer = RunWriter::new(&self.files, seqs, deletes, resume, bytes);
        writer.set_complete(&compaction.files);
        let mut progress = Progress {
            done: 0,
            total: inputs.content_bytes(),
        };
        let operator = self.state.options.operator.as_deref();
        let was_short = self.files.reserve.is_short();
        let mut chain = Chain::new();
        let mut steps = 0_u32;
        let mut last_step = 0_u64;
        while let Some(key) = cursor.key() {
            while inputs
                .moved
                .front()
                .is_some_and(|file| is_before(file.meta(), key))
            {
                move_file(&mut writer, inputs.moved.pop_front())?;
            }
            match cursor.only_entry() {
                Some((kind, value)) => {
                    progress.done += (key.len() + value.len()) as u64;
                    let left = inputs.only(operator, key, kind, value);
                    if kind == Kind::Put && inputs.is_over(value) {
                        self.state.stats.on_expired();
                    }
                    if let Some(left) = left {
                        let value = if left == Kind::Delete { &[] } else { value };
                        writer.add_only(key, left, value)?;
                    }
                }
                None => {
                    progress.done += cursor.content_bytes();
                    cursor.gather(operator, &mut chain);
                    if chain.collapse(key, operator, inputs.is_bottom).is_err() {
                        self.state.stats.on_refused_merges(1);
                    }
                    if let Some(moment) = inputs.moment
                        && chain.expire(moment, inputs.is_bottom)
                    {
                        self.state.stats.on_expired();
                    }
                    if !chain.is_empty() {
                        writer.add(key, &chain)?;
                    }
                }
            }
            cursor.advance(Some(MayBlock::here()))?;
            steps += 1;
            let mut is_step = steps.is_multiple_of(KEYS_PER_STEP)
                || progress.done >= last_step.saturating_add(BYTES_PER_STEP);
            let is_noted = writer.has_complete() && is_worth_noting(&writer, compaction);
            if is_noted {
                self.note_progress(inputs, &mut writer, compaction)?;
                is_step = true;
            }
            if is_step {
                last_step = progress.done;
                // Memtables that have become full while this was written need the room.
                let is_in_the_way = self.files.reserve.is_short() && !was_short;
                let ends = self.state.status.is_closing() || is_in_the_way;
                if ends || on_progress(progress).is_break() {
                    return Ok(Piece::BrokenOff);
                }
                // Nothing is lost of a compaction that ends where it was noted.
                if is_noted && self.state.background.is_waited_for() {
                    return Ok(Piece::GaveWay);
                }
                self.flusher.do_urgent()?;
            }
        }
        while !inputs.moved.is_empty() {
            move_file(&mut writer, inputs.moved.pop_front())?;
        }
        writer.finish_file(None)?;
        compaction.files.extend(writer.take_complete());
        Ok(Piece::Complete)
    }

    /// Notes the files that are complete.
    fn note_progress(
        &self,
        inputs: &Inputs,
        writer: &mut RunWriter<'_>,
        compaction: &mut CompactionMeta,
    ) -> Result<(), Error> {
        let low = writer.low().map(<[u8]>::to_vec);
        let files = writer.take_complete();
        let mut noted = compaction.clone();
        noted.files.extend(files.iter().cloned());
        noted.resume = low;
        let edit = Edit {
            compactions: vec![noted.clone()],
            ..Edit::default()
        };
        if let Err(error) = self.files.write_edit(&mut self.files.manifest.lock(), edit) {
            self.files
                .remove_unnamed(files.iter().filter(|file| !inputs.has(file)));
            return Err(error);
        }
        *compaction = noted;
        Ok(())
    }

    /// Replaces the runs that were read by the run that was made of them.
    fn install(&self, inputs: &Inputs, compaction: CompactionMeta) -> Result<(), Error> {
        let (Some(newest), Some(oldest)) = (inputs.runs.first(), inputs.runs.last()) else {
            return Ok(());
        };
        let meta = RunMeta {
            id: compaction.id,
            first_seq: oldest.meta.first_seq,
            last_seq: newest.meta.last_seq,
            files: compaction.files,
        };
        let all = inputs.runs.iter().flat_map(|run| run.run.files());
        let open: Vec<_> = all.cloned().collect();
        let run = if meta.files.is_empty() {
            None
        } else {
            Some(self.files.open_run(&meta, &open)?)
        };
        let new: Vec<_> = meta
            .files
            .iter()
            .filter(|file| !inputs.has(file))
            .cloned()
            .collect();
        let written: u64 = new.iter().map(|file| file.bytes).sum();
        let read = inputs.bytes();
        let mut manifest = self.files.manifest.lock();
        let edit = Edit {
            removed: compaction.inputs.clone(),
            added: run.is_some().then_some(meta).into_iter().collect(),
            ..Edit::default()
        };
        if let Err(error) = self.files.write_edit(&mut manifest, edit) {
            // Compactions that were noted remain in the manifest, and this one goes on with them.
            let compactions = &manifest.contents().compactions;
            let noted = |file: &&FileMeta| {
                compactions
                    .iter()
                    .any(|compaction| compaction.files.contains(file))
            };
            self.files
                .remove_unnamed(new.iter().filter(|file| !noted(file)));
            return Err(error);
        }
        self.files.exchange(None, &compaction.inputs, run);
        self.state.stats.on_compaction(read, written);
        Ok(())
    }
}

/// Returns `true` if files that are complete are to be noted. All files are, each time: where their
/// bounds are long, that waits until four times as much was written.
fn is_worth_noting(writer: &RunWriter<'_>, compaction: &CompactionMeta) -> bool {
    let bytes = |key: &Option<Arc<[u8]>>| key.as_ref().map_or(0, |key| key.len() as u64);
    let files = compaction.files.iter().chain(writer.complete());
    let bounds: u64 = files
        .map(|file| bytes(&file.first_key) + bytes(&file.last_key))
        .sum();
    let written = writer.complete().iter().map(|file| file.bytes);
    bounds <= BOUNDS_BYTES || written.sum::<u64>() >= 4 * bounds
}

/// Returns `true` if all keys of a file are below this one.
fn is_before(file: &FileMeta, key: &[u8]) -> bool {
    file.last_key.as_deref().is_some_and(|last| last < key)
}

/// Goes on with a file that is taken as it is.
fn move_file(writer: &mut RunWriter<'_>, file: Option<Arc<RunFile>>) -> Result<(), Error> {
    if let Some(file) = file {
        writer.finish_file(file.meta().first_key.as_deref())?;
        writer.add_file(file.meta().clone());
    }
    Ok(())
}

/// The walks over the inputs, without the files that are taken as they are.
fn sources(
    inputs: &Inputs,
    is_taken: &dyn Fn(&Arc<RunFile>) -> bool,
) -> Result<Vec<Source>, Error> {
    let is_moved = |file: &Arc<RunFile>| {
        is_taken(file) || inputs.moved.iter().any(|moved| Arc::ptr_eq(moved, file))
    };
    let sources = inputs.runs.iter().map(|run| {
        let files = run
            .run
            .files()
            .iter()
            .filter(|file| !is_moved(file))
            .cloned()
            .collect();
        let rest = Arc::new(Run::new(files)?);
        Ok(Source {
            range_deletes: run.run.range_deletes().cloned().map(Deleted::Set),
            cursor: Box::new(rest.cursor(false, READ_AHEAD_BYTES)),
        })
    });
    sources.collect()
}

/// Returns the files whose keys no other file of these runs has or deletes, in the order of their
/// keys. Small files are not worth being kept apart. At the bottom, deletes are to vanish and
/// operands to become values, so a file that has some is written again; and so is any file of a
/// store whose records expire, since it may have some that have.
fn movable(inputs: &Inputs, least_bytes: u64) -> VecDeque<Arc<RunFile>> {
    let runs = &inputs.runs;
    let has_deletes = runs.iter().any(|run| run.run.range_deletes().is_some());
    if has_deletes {
        return VecDeque::new();
    }
    let mut files: Vec<_> = runs
        .iter()
        .flat_map(|run| run.run.files())
        .cloned()
        .collect();
    files.sort_by(|one, other| one.meta().first_key.cmp(&other.meta().first_key));
    let mut moved = VecDeque::new();
    let mut last_before: Option<&[u8]> = None;
    for (index, file) in files.iter().enumerate() {
        let meta = file.meta();
        let alone_below = last_before.is_none_or(|last| Some(last) < meta.first_key.as_deref());
        let next = files
            .get(index + 1)
            .and_then(|next| next.meta().first_key.as_deref());
        let alone_above = next.is_none_or(|next| meta.last_key.as_deref() < Some(next));
        let expires = inputs.moment.is_some();
        let changes = inputs.is_bottom && (meta.deletes > 0 || meta.operands > 0 || expires);
        if alone_below && alone_above && !changes && meta.bytes >= least_bytes {
            moved.push_back(Arc::clone(file));
        }
        last_before = last_before.max(meta.last_key.as_deref());
    }
    moved
}
