//! Layers: the data of one time of a store.
//!
//! A store is read from the newest layer to the oldest: changes in journals, then runs. Where
//! entries of a key are lost, newer ones can only be used if they do not need older ones: a value
//! or a delete, but no operand. So such operands are left out, and the key is as it was before.

use super::journal::Journals;
use super::run::{ScanCursor, ScannedFile};
use super::survey::Survey;
use super::{Fault, LostKeys};
use crate::cursor::Cursor;
use crate::entry::collapse::Chain;
use crate::error::Error;
use crate::ids::Seq;
use crate::memtable::MemtableCursor;
use crate::range_deletes::RangeSet;
use crate::run_file::file_name;
use crate::run_file::{FileMeta, Identity};
use ats_store::{Direction, MayBlock};
use std::sync::Arc;

/// The sequence numbers of the first and the last of some changes.
type Seqs = (Seq, Seq);

/// Returns the distance between the first and the last number.
fn span((first, last): Seqs) -> u64 {
    last.get() - first.get()
}

/// The data of one time.
pub(super) struct Layer {
    /// Nothing, if it is only known that something is lost.
    pub(super) cursor: Option<Box<dyn Cursor>>,
    range_deletes: Vec<Arc<RangeSet>>,
    files: Vec<Arc<ScannedFile>>,
    /// `true` if something older, of any key, is lost.
    is_above_gap: bool,
    /// The sequence numbers of its changes. Only known without a manifest.
    seqs: Seqs,
    /// The numbers of layers that were made of this one and others, and answer for the keys that
    /// they have.
    merged_to: Vec<usize>,
}

/// All layers of a store, and their faults.
pub(super) struct Layers {
    /// The layers, from the newest to the oldest.
    pub(super) layers: Vec<Layer>,
    pub(super) faults: Vec<Fault>,
    /// Entries of runs that are lost, as far as that is known.
    pub(super) lost_entries: u64,
    /// The largest sequence number that was read.
    pub(super) last_seq: Seq,
}

impl Layer {
    fn of_files(files: Vec<Arc<ScannedFile>>) -> Self {
        let deletes = files.iter().map(|file| &file.range_deletes);
        Layer {
            range_deletes: deletes
                .filter(|deletes| !deletes.is_empty())
                .cloned()
                .collect(),
            is_above_gap: files.iter().any(|file| file.has_lost_ranges),
            cursor: Some(Box::new(ScanCursor::new(files.clone()))),
            files,
            seqs: (Seq::ZERO, Seq::ZERO),
            merged_to: Vec::new(),
        }
    }

    /// Returns `true` if something of a key is lost here, or between this layer and the next older
    /// one.
    fn has_lost(&self, key: &[u8]) -> bool {
        let mut lost = self.files.iter().flat_map(|file| &file.lost);
        self.is_above_gap || lost.any(|lost| lost.has(key))
    }

    /// Returns `true` if it answers for a key instead of the layers that it was made of.
    fn answers_for(&self, key: &[u8]) -> bool {
        let mut extents = self.files.iter().filter_map(|file| file.extent());
        extents.any(|(low, high)| low <= key && key <= high) && !self.has_lost(key)
    }
}

impl Layers {
    /// Reads the layers of a store. `on_file` is told the length of each file that is read next,
    /// and may break off.
    pub(super) fn read(
        survey: &Survey,
        on_file: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Self, Error> {
        let mut all = Layers {
            layers: Vec::new(),
            faults: survey.faults.clone(),
            lost_entries: 0,
            last_seq: Seq::ZERO,
        };
        let (runs, flushed) = match &survey.contents {
            Some(contents) => {
                let runs = contents.runs.iter().map(|run| {
                    let files = run
                        .files
                        .iter()
                        .map(|meta| all.file_of(survey, meta, on_file));
                    Layer::of_files(files.collect())
                });
                (runs.collect(), contents.flushed)
            }
            None => all.runs_without_manifest(survey, on_file),
        };
        let journals = Journals::read(survey, flushed);
        all.last_seq = journals.last_seq.max(flushed);
        all.faults.extend(journals.faults);
        all.faults.extend(journals.unfinished);
        for segment in journals.segments.into_iter().rev() {
            let deletes = segment.memtable.range_deletes(Seq::MAX);
            all.layers.push(Layer {
                range_deletes: (!deletes.is_empty())
                    .then_some(deletes)
                    .into_iter()
                    .collect(),
                cursor: Some(Box::new(MemtableCursor::new(
                    Arc::clone(&segment.memtable),
                    Seq::MAX,
                    true,
                ))),
                files: Vec::new(),
                is_above_gap: segment.follows_gap,
                seqs: (segment.first_seq, segment.first_seq),
                merged_to: Vec::new(),
            });
        }
        let journal_layers = all.layers.len();
        all.layers.extend(runs);
        if survey.contents.is_none() {
            all.find_merged(journal_layers);
        }
        for layer in &mut all.layers {
            if let Some(cursor) = &mut layer.cursor {
                cursor.seek(Some(MayBlock::here()), Direction::Up, None)?;
            }
        }
        Ok(all)
    }

    /// Notes the faults of a file.
    fn note(&mut self, file: ScannedFile) -> Arc<ScannedFile> {
        self.faults.extend(file.faults.iter().cloned());
        self.lost_entries += file.lost_entries().unwrap_or(0);
        Arc::new(file)
    }

    /// A file that the manifest names.
    fn file_of(
        &mut self,
        survey: &Survey,
        meta: &FileMeta,
        on_file: &mut dyn FnMut(u64) -> bool,
    ) -> Arc<ScannedFile> {
        let identity = Identity {
            store: survey.store.unwrap_or(0),
            number: meta.number,
        };
        let found = survey.run_files.get(&meta.number);
        let found = found
            .filter(|_| on_file(meta.bytes))
            .map(|found| found.as_of(meta));
        let opened = found.and_then(|found| Some((survey.open(&found.name).ok()?, found)));
        let scanned = match opened {
            Some((file, found)) => ScannedFile::read(&found, Arc::from(file), identity, Some(meta)),
            None => {
                let missing = ScannedFile::new_missing(&file_name(meta.number), meta);
                self.name_lost_keys(&missing);
                missing
            }
        };
        self.note(scanned)
    }

    /// Says of a file that is missing which keys are lost with it.
    fn name_lost_keys(&mut self, missing: &ScannedFile) {
        let keys = if missing.has_lost_ranges {
            Some(LostKeys::ALL)
        } else {
            missing.lost.first().cloned()
        };
        let mut faults = self.faults.iter_mut();
        if let Some(fault) = faults.find(|fault| fault.file == missing.name()) {
            fault.keys = keys;
        }
    }

    /// The runs of the files that are there, from the newest to the oldest, and the last change in
    /// them.
    fn runs_without_manifest(
        &mut self,
        survey: &Survey,
        on_file: &mut dyn FnMut(u64) -> bool,
    ) -> (Vec<Layer>, Seq) {
        let Some(store) = survey.store else {
            return (Vec::new(), Seq::ZERO);
        };
        let mut files = Vec::new();
        // A file without a footer does not say of which time it is.
        let mut has_unknown = false;
        for (number, found) in &survey.run_files {
            if !on_file(found.bytes) {
                break;
            }
            let file = survey.open(&found.name);
            let (Some(footer), Ok(file)) = (&found.footer, file) else {
                has_unknown = true;
                continue;
            };
            let identity = Identity {
                store,
                number: *number,
            };
            let scanned = ScannedFile::read(found, Arc::from(file), identity, None);
            let seqs = (footer.meta.first_seq, footer.meta.last_seq);
            files.push((seqs, self.note(scanned)));
        }
        let flushed = files
            .iter()
            .map(|((_, last), _)| *last)
            .max()
            .unwrap_or_default();
        // The newest first; of several with the same last change, the one that was made of the
        // others.
        files.sort_by_key(|((first, last), file)| {
            (
                std::cmp::Reverse(*last),
                *first,
                file.extent().map(|(low, _)| low.to_vec()),
            )
        });
        let mut layers: Vec<(Seqs, Vec<Arc<ScannedFile>>)> = Vec::new();
        for (seqs, file) in files {
            match layers.last_mut() {
                Some((last_seqs, files)) if *last_seqs == seqs && follows(files, &file) => {
                    files.push(file);
                }
                _ => layers.push((seqs, vec![file])),
            }
        }
        let layers = layers.into_iter().map(|(seqs, files)| {
            let layer = Layer::of_files(files);
            Layer {
                is_above_gap: layer.is_above_gap || has_unknown,
                seqs,
                ..layer
            }
        });
        (layers.collect(), flushed)
    }

    /// Finds which layers were made of which, and where changes are missing.
    fn find_merged(&mut self, journal_layers: usize) {
        let seqs: Vec<_> = self.layers.iter().map(|layer| layer.seqs).collect();
        for (index, layer) in self.layers.iter_mut().enumerate() {
            let (first, last) = seqs[index];
            let is_there = |seq: Seq| {
                let mut others = seqs.iter().enumerate();
                others.any(|(number, (first, last))| {
                    number >= journal_layers && *first <= seq && seq <= *last
                })
            };
            layer.is_above_gap |= first > Seq::new(1) && !is_there(first - 1);
            if index < journal_layers {
                continue;
            }
            let mut merged = seqs.iter().enumerate().skip(journal_layers);
            let merged = merged
                .by_ref()
                .filter(|(number, (other_first, other_last))| {
                    let overlaps = *other_first <= last && first <= *other_last;
                    let is_larger =
                        (span((*other_first, *other_last)), index) > (span((first, last)), *number);
                    *number != index && overlaps && is_larger
                });
            layer.merged_to = merged.map(|(number, _)| number).collect();
        }
    }

    /// Returns the bytes of the keys and values of the files, as far as that is known.
    pub(super) fn content_bytes(&self) -> u64 {
        let files = self.layers.iter().flat_map(|layer| &layer.files);
        let metas = files.filter_map(|file| file.meta.as_ref());
        metas.map(|meta| meta.key_bytes + meta.value_bytes).sum()
    }

    /// Returns the lowest key on which a layer stands.
    pub(super) fn key(&self) -> Option<&[u8]> {
        let cursors = self.layers.iter().filter_map(|layer| layer.cursor.as_ref());
        cursors.filter_map(|cursor| cursor.key()).min()
    }

    /// Gathers the entries of the lowest key, and goes on to the next one. Returns `true` if newer
    /// operands were left out because something older is lost.
    pub(super) fn gather(&mut self, key: &[u8], chain: &mut Chain) -> Result<bool, Error> {
        chain.clear();
        let mut is_outdated = false;
        for index in 0..self.layers.len() {
            let layer = &self.layers[index];
            let mut merged = layer.merged_to.iter().map(|number| &self.layers[*number]);
            if merged.any(|merged| merged.answers_for(key)) {
                continue;
            }
            let cursor = layer
                .cursor
                .as_ref()
                .filter(|cursor| cursor.key() == Some(key));
            if let Some(cursor) = cursor {
                for entry in 0..cursor.entries() {
                    let (kind, value) = cursor.entry(entry);
                    chain.push(kind, value);
                }
            }
            if chain.is_complete() {
                break;
            }
            if layer.has_lost(key) {
                is_outdated |= !chain.is_empty();
                chain.clear();
            }
            if layer
                .range_deletes
                .iter()
                .any(|deletes| deletes.covers(key))
            {
                chain.push(crate::entry::Kind::Delete, &[]);
                break;
            }
        }
        for layer in &mut self.layers {
            if let Some(cursor) = &mut layer.cursor
                && cursor.key() == Some(key)
            {
                cursor.advance(Some(MayBlock::here()))?;
            }
        }
        Ok(is_outdated)
    }
}

/// Returns `true` if the keys of a file are above those of the others.
fn follows(files: &[Arc<ScannedFile>], file: &ScannedFile) -> bool {
    let last = files
        .iter()
        .filter_map(|file| file.extent())
        .map(|(_, last)| last)
        .max();
    match (last, file.extent()) {
        (Some(last), Some((first, _))) => last < first,
        _ => true,
    }
}
