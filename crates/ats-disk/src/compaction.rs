//! Compaction: neighbouring runs become one.
//!
//! Only neighbours in time are merged, so a merge of values need only be associative. Which runs are merged is
//! decided by [`policy`]; how, by [`merge`].

mod merge;
mod policy;

use crate::core::Core;
use crate::error::Error;
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
    /// Merges some runs, if that is due. Whether it was.
    pub(crate) fn compact_one(&self) -> Result<bool, Error> {
        match self.claim(false) {
            Some((claim, begun)) => self.compact(&claim, begun, &mut |_| ControlFlow::Continue(())),
            None => Ok(false),
        }
    }

    /// Merges all runs into one, also if that is not due. Runs that another thread merges already are waited for by
    /// calling this again. Whether there was anything to do.
    pub(crate) fn compact_all(&self, on_progress: &mut OnProgress<'_>) -> Result<bool, Error> {
        match self.claim(true) {
            Some((claim, begun)) => self.compact(&claim, begun, on_progress),
            None => Ok(false),
        }
    }

    /// Chooses runs that are to be merged, and what was done of that merge already.
    fn claim(&self, all: bool) -> Option<(Claim<'_>, Option<MergeMeta>)> {
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
        let ids = match &resumed {
            Some(merge) => merge.inputs.clone(),
            None if all => match state.runs.iter().all(free) && state.runs.len() > 1 {
                true => state.runs.iter().map(|run| run.meta.id).collect(),
                false => return None,
            },
            None => {
                let sizes: Vec<_> = state
                    .runs
                    .iter()
                    .map(|run| Size {
                        bytes: run.meta.bytes(),
                        is_free: free(run),
                    })
                    .collect();
                let chosen = policy::choose(&sizes, self.options.fan_in)?;
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
