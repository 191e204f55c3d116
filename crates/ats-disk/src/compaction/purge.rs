//! Purging: files of a run are written again without entries that newer runs hide.
//!
//! A compaction of all runs needs as much room as its result. Where there is less, files give room
//! one at a time, or a few small neighbours together: their new files are at most as large, and
//! then the old ones are removed.
//!
//! Newer runs hide a key of a file if one of them has a value or a delete of it, or deletes a range
//! with it. Then no reader comes to the file for this key. An operand hides nothing. So the purged
//! run is the same for all readers, and values are not merged.

use super::{Claim, Claims, Compactor};
use crate::cursor::{MergeCursor, Source};
use crate::error::Error;
use crate::manifest::{CompactionMeta, Edit, RunMeta};
use crate::range_deletes::{Deleted, RangeSet};
use crate::run_file::{FileMeta, Run, RunFile, file_name};
use crate::state::{StoredRun, Version};
use ats_store::{Direction, MayBlock};
use std::sync::Arc;

/// Bytes of a file that are read at a time.
const READ_AHEAD_BYTES: usize = 64 << 10;
/// A file is written again if at least this part of its content is hidden.
const LEAST_PART: u64 = 16;

/// Files to be purged, and the newer runs.
struct Purge {
    run: Arc<StoredRun>,
    /// Neighbours in the order of their keys, or one alone.
    files: Vec<Arc<RunFile>>,
    newer: Vec<Arc<StoredRun>>,
}

impl Compactor {
    /// Purges a file, or neighbours that together have not more bytes than this, from the oldest
    /// run on. Returns `true` if there were any that were not purged since the last memtable was
    /// written to a run.
    pub(crate) fn purge_some(&self, bytes: u64) -> Result<bool, Error> {
        let Some((claim, purge)) = self.claim_purge(bytes) else {
            return Ok(false);
        };
        let (hidden, content) = purge.hidden_bytes()?;
        if purge.files.len() > 1 || hidden > 0 && hidden >= content / LEAST_PART {
            self.purge(&purge)?;
        }
        drop(claim);
        Ok(true)
    }

    fn claim_purge(&self, bytes: u64) -> Option<(Claim<'_>, Purge)> {
        let mut claims = self.claims.lock();
        let version = self.state.versions.current();
        let purge = self.find_purge(&version, &claims, bytes)?;
        let ids = vec![purge.run.meta.id];
        claims.claimed.extend(&ids);
        Some((
            Claim {
                claims: &self.claims,
                ids,
            },
            purge,
        ))
    }

    fn find_purge(&self, version: &Version, claims: &Claims, most_bytes: u64) -> Option<Purge> {
        let older = version.runs.iter().enumerate().skip(1).rev();
        let free = older.filter(|(_, run)| claims.is_free(run));
        for (index, run) in free {
            let mut files: Vec<Arc<RunFile>> = Vec::new();
            let mut bytes = 0;
            for file in run.run.files() {
                bytes += file.meta().bytes;
                let fits = files.is_empty() || bytes <= most_bytes && is_keyed(&files[0]);
                if !fits || !self.files.reserve.mark_purged(file.meta().number) {
                    if files.is_empty() { bytes = 0 } else { break }
                } else {
                    files.push(Arc::clone(file));
                }
            }
            if !files.is_empty() {
                return Some(Purge {
                    run: Arc::clone(run),
                    files,
                    newer: version.runs[..index].to_vec(),
                });
            }
        }
        None
    }

    /// Writes the visible entries of the files to a new file, which replaces them.
    fn purge(&self, purge: &Purge) -> Result<(), Error> {
        let purged = self.write_purged(purge)?;
        let mut meta = purge.run.meta.clone();
        let is_purged = |file: &FileMeta| {
            let mut files = purge.files.iter();
            files.any(|purged| purged.meta().number == file.number)
        };
        meta.files.retain(|file| !is_purged(file));
        meta.files.extend(purged.clone());
        meta.id = self.files.new_run_id();
        let run = if meta.files.is_empty() {
            None
        } else {
            Some(self.files.open_run(&meta, purge.run.run.files())?)
        };
        if let Some(purged) = &purged {
            self.files.reserve.mark_purged(purged.number);
        }
        let removed = vec![purge.run.meta.id];
        let mut manifest = self.files.manifest.lock();
        let edit = Edit {
            removed: removed.clone(),
            added: run.is_some().then_some(meta).into_iter().collect(),
            ..Edit::default()
        };
        if let Err(error) = self.files.write_edit(&mut manifest, edit) {
            self.files.remove_unnamed(&purged);
            return Err(error);
        }
        self.files.exchange(None, &removed, run);
        Ok(())
    }

    /// Gives up compactions that were begun and are not going on, with the files that they have
    /// written. Returns `true` if there were any.
    pub(crate) fn give_up_compactions(&self) -> Result<bool, Error> {
        let mut manifest = self.files.manifest.lock();
        let claimed = self.claims.lock().claimed.clone();
        let is_idle = |compaction: &&CompactionMeta| {
            !compaction.files.is_empty()
                && compaction.inputs.iter().all(|run| !claimed.contains(run))
        };
        let idle: Vec<_> = manifest
            .contents()
            .compactions
            .iter()
            .filter(is_idle)
            .cloned()
            .collect();
        if idle.is_empty() {
            return Ok(false);
        }
        let edit = Edit {
            compactions: idle.iter().map(CompactionMeta::restart).collect(),
            ..Edit::default()
        };
        self.files.write_edit(&mut manifest, edit)?;
        let is_named = |file: &&FileMeta| manifest.contents().files().any(|it| it == file.number);
        let written = idle.iter().flat_map(|compaction| &compaction.files);
        self.files
            .remove_unnamed(written.filter(|file| !is_named(file)));
        Ok(true)
    }

    /// Writes the visible entries of the files, if there are any.
    fn write_purged(&self, purge: &Purge) -> Result<Option<FileMeta>, Error> {
        let deletes = purge
            .files
            .iter()
            .flat_map(|file| file.range_deletes().iter());
        let deletes: RangeSet = deletes.collect();
        let mut cursor = purge.cursor()?;
        let number = self.files.new_file_number();
        let mut writer = self.files.begin_file(number)?;
        let written = (|| {
            let mut is_empty = true;
            while let Some(key) = purge.key(&cursor) {
                if let Some(source) = cursor.visible_source() {
                    for entry in 0..source.entries() {
                        let (kind, value) = source.entry(entry);
                        writer.add(key, kind, value)?;
                        is_empty = false;
                    }
                }
                cursor.advance(Some(MayBlock::here()))?;
            }
            if is_empty && deletes.is_empty() {
                Ok(None)
            } else {
                let RunMeta {
                    first_seq,
                    last_seq,
                    ..
                } = purge.run.meta;
                let written = writer.finish(first_seq, last_seq, &deletes, purge.bounds());
                written.map(Some)
            }
        })();
        if !matches!(written, Ok(Some(_))) {
            let _ = self.state.directory.remove(&file_name(number));
        }
        written
    }
}

/// Returns `true` if a file has keys, and not only deletes of ranges.
fn is_keyed(file: &RunFile) -> bool {
    file.meta().bounds().is_some()
}

impl Purge {
    /// Returns the bounds of the neighbours of the files, between which there is nothing else.
    fn bounds(&self) -> (Option<&[u8]>, Option<&[u8]>) {
        let all = self.run.run.files();
        let number = |file: &Arc<RunFile>| file.meta().number;
        let rank = |file| all.iter().position(|other| number(other) == number(file));
        let first = self.files.first().and_then(rank);
        let last = self.files.last().and_then(rank);
        let before = first.and_then(|first| all[..first].last());
        let behind = last.and_then(|last| all.get(last + 1));
        (
            before
                .and_then(|file| file.meta().bounds())
                .map(|(_, last)| last),
            behind
                .and_then(|file| file.meta().bounds())
                .map(|(first, _)| first),
        )
    }

    /// Returns a walk over the newer runs and the files, from the first key of the files on.
    fn cursor(&self) -> Result<MergeCursor, Error> {
        let mut sources: Vec<_> = self
            .newer
            .iter()
            .map(|run| Source {
                range_deletes: run.run.range_deletes().cloned().map(Deleted::Set),
                cursor: Box::new(run.run.cursor(false, READ_AHEAD_BYTES)),
            })
            .collect();
        let files = Arc::new(Run::new(self.files.clone())?);
        sources.push(Source {
            range_deletes: None,
            cursor: Box::new(files.cursor(false, READ_AHEAD_BYTES)),
        });
        let mut cursor = MergeCursor::new(sources);
        let first = self
            .files
            .first()
            .and_then(|file| file.meta().first_key.as_deref());
        cursor.seek(Some(MayBlock::here()), Direction::Up, first)?;
        Ok(cursor)
    }

    /// Returns the key on which the walk stands, up to the last one of the files.
    fn key<'c>(&self, cursor: &'c MergeCursor) -> Option<&'c [u8]> {
        let last = self.files.last()?.meta().last_key.as_deref()?;
        cursor.key().filter(|key| *key <= last)
    }

    /// Returns the bytes of keys and values of the files that are hidden, and of all.
    fn hidden_bytes(&self) -> Result<(u64, u64), Error> {
        let metas = self.files.iter().map(|file| file.meta());
        let content = metas
            .map(|meta| meta.key_bytes + meta.value_bytes)
            .sum::<u64>();
        let mut left = 0;
        let mut cursor = self.cursor()?;
        while let Some(key) = self.key(&cursor) {
            if let Some(source) = cursor.visible_source() {
                for entry in 0..source.entries() {
                    left += (key.len() + source.entry(entry).1.len()) as u64;
                }
            }
            cursor.advance(Some(MayBlock::here()))?;
        }
        Ok((content.saturating_sub(left), content))
    }
}
