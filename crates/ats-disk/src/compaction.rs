//! Compaction: neighbouring runs become one.
//!
//! Only neighbours in time are merged, so a merge of values need only be associative. Which runs are merged is
//! decided by [`policy`]; how, by [`merge`].

mod merge;
mod policy;

use crate::core::Core;
use crate::error::Error;
use crate::file::FileMeta;
use crate::manifest::MergeMeta;
use crate::progress::OnProgress;
use crate::state::StoredRun;
use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) use policy::Size;

/// The runs that one merge reads. While this lives, no other merge reads them.
struct Claim<'a> {
    core: &'a Core,
    ids: Vec<u64>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.core.merging.lock().retain(|id| !self.ids.contains(id));
    }
}

impl Core {
    /// Merges some runs, if that is due, or if `is_lull`, worth while. Whether it was.
    pub(crate) fn compact_one(&self, is_lull: bool) -> Result<bool, Error> {
        let effort = match is_lull {
            true => policy::Effort::in_lull(),
            false => policy::Effort::due(self.options.fan_in),
        };
        match self.claim(Some(effort)) {
            Some((claim, begun)) => self.compact(&claim, begun, &mut |_| ControlFlow::Continue(())),
            None => Ok(false),
        }
    }

    /// Merges all runs into one, also if that is not due. Runs that another thread merges already are waited for by
    /// calling this again. Whether there was anything to do.
    pub(crate) fn compact_all(&self, on_progress: &mut OnProgress<'_>) -> Result<bool, Error> {
        match self.claim(None) {
            Some((claim, begun)) => self.compact(&claim, begun, on_progress),
            None => Ok(false),
        }
    }

    /// Chooses runs that are to be merged, all without an effort, and what was done of that merge already.
    fn claim(&self, effort: Option<policy::Effort>) -> Option<(Claim<'_>, Option<MergeMeta>)> {
        // Before `merging` is locked, since `manifest` may be held for long.
        let begun = self.manifest.lock().contents().merges.clone();
        let mut merging = self.merging.lock();
        let state = self.state.load();
        let free = |run: &Arc<StoredRun>| !merging.contains(&run.meta.id);
        // A merge that was begun before the store was opened goes on.
        let resumed = begun.into_iter().find(|merge| {
            let of_merge = |id: &u64| state.runs.iter().any(|run| run.meta.id == *id && free(run));
            !merge.inputs.is_empty() && merge.inputs.iter().all(of_merge)
        });
        let ids = match (&resumed, effort) {
            (Some(merge), _) => merge.inputs.clone(),
            (None, None) => match state.runs.iter().all(free) && state.runs.len() > 1 {
                true => state.runs.iter().map(|run| run.meta.id).collect(),
                false => return None,
            },
            (None, Some(effort)) => {
                let runs = state.runs.iter().enumerate();
                let sizes: Vec<_> = runs
                    .map(|(index, run)| Size {
                        bytes: run.meta.bytes(),
                        deleted: deleted(run, &state.runs[index + 1..]),
                        is_free: free(run),
                    })
                    .collect();
                let chosen = policy::choose(&sizes, effort)?;
                state.runs[chosen].iter().map(|run| run.meta.id).collect()
            }
        };
        merging.extend(&ids);
        Some((Claim { core: self, ids }, resumed))
    }

    /// How much more the runs are than they should be: see [`policy::debt`].
    pub(crate) fn debt(&self) -> usize {
        policy::debt(self.state.load().runs.len(), self.options.fan_in)
    }
}

/// How much of older runs a run has deleted, about, in bytes: of each delete of a key a record of the oldest, and the
/// files of which all keys are in a deleted range.
fn deleted(run: &StoredRun, older: &[Arc<StoredRun>]) -> u64 {
    let Some(oldest) = older.last() else {
        return 0;
    };
    let deletes: u64 = run.meta.files.iter().map(|file| file.deletes).sum();
    let entries: u64 = oldest.meta.files.iter().map(|file| file.entries).sum();
    let of_keys = match entries {
        0 => 0,
        _ => deletes
            .min(entries)
            .saturating_mul(oldest.meta.bytes() / entries),
    };
    let is_deleted = |file: &&FileMeta| {
        let (deletes, bounds) = (run.run.range_deletes(), file.bounds());
        deletes.zip(bounds).is_some_and(|(deletes, (first, last))| {
            let range = deletes.covering(first);
            range.is_some_and(|range| range.has(last))
        })
    };
    let files = older.iter().flat_map(|run| &run.meta.files);
    let of_ranges: u64 = files.filter(is_deleted).map(|file| file.bytes).sum();
    of_keys.saturating_add(of_ranges)
}
