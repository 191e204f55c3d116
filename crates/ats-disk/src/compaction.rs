//! Compaction: neighbouring runs become one.
//!
//! Only neighbours in time are compacted, so a merge of values need only be associative. [`policy`]
//! decides which runs are compacted, [`executor`] compacts them. Where there is too little room for
//! that, files are purged: see [`purge`].
//!
//! A caller that wants all to be compacted that was there when it began must come to an end while
//! others write. So it holds a [`Reservation`]: until it ends, the background compacts newer runs
//! only. Each compaction of such callers makes the runs that are reserved fewer, and no other
//! compaction brings newer ones among them.

mod executor;
mod policy;
mod purge;

use crate::error::Error;
use crate::files::Files;
use crate::flush::Flusher;
use crate::ids::{RunId, Seq};
use crate::manifest::CompactionMeta;
use crate::progress::OnProgress;
use crate::run_file::FileMeta;
use crate::state::{State, StoredRun};
use executor::Executor;
use parking_lot::Mutex;
use policy::Size;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The runs that compactions read, and those that are reserved.
#[derive(Default)]
struct Claims {
    /// The ids of the runs that compactions read.
    claimed: Vec<RunId>,
    /// The last sequence number of each reservation.
    reserved: Vec<Seq>,
}

impl Claims {
    /// Returns `true` if no compaction reads a run.
    fn is_free(&self, run: &StoredRun) -> bool {
        !self.claimed.contains(&run.meta.id)
    }

    /// Returns `true` if a run is reserved.
    fn is_reserved(&self, run: &StoredRun) -> bool {
        self.reserved.iter().any(|up_to| has_up_to(run, *up_to))
    }

    /// Returns the compaction that goes on: one that was begun, before the store was opened or
    /// until it was broken off, if all that it reads is free, and is wanted.
    fn find_begun<'b>(
        &self,
        begun: &'b [CompactionMeta],
        runs: &[Arc<StoredRun>],
        wanted: Wanted,
    ) -> Option<&'b CompactionMeta> {
        if matches!(wanted, Wanted::Small(_)) {
            return None;
        }
        begun.iter().find(|compaction| {
            let of_compaction = |run: &&Arc<StoredRun>| compaction.inputs.contains(&run.meta.id);
            let inputs = runs.iter().filter(of_compaction);
            let is_wanted = match wanted.up_to() {
                Some(up_to) => inputs.clone().any(|run| has_up_to(run, up_to)),
                None => !inputs.clone().any(|run| self.is_reserved(run)),
            };
            let is_free = inputs.clone().all(|run| self.is_free(run));
            is_wanted
                && is_free
                && !compaction.inputs.is_empty()
                && inputs.count() == compaction.inputs.len()
        })
    }
}

/// Returns `true` if a run has changes up to a sequence number.
fn has_up_to(run: &StoredRun, up_to: Seq) -> bool {
    run.meta.first_seq <= up_to
}

/// Selects the runs to be compacted.
#[derive(Clone, Copy)]
enum Wanted {
    /// The runs whose compaction keeps up with writes.
    Due,
    /// The runs whose compaction makes reads fast, where there are no writes.
    Idle,
    /// The runs of at most so many bytes whose compaction keeps up with writes.
    Small(u64),
    /// Like [`Idle`](Wanted::Idle), of the runs that have changes up to a sequence number.
    Settled(Seq),
    /// All that have changes up to a sequence number.
    All(Seq),
}

impl Wanted {
    /// Returns the sequence number up to which the runs have changes; `None` if that does not
    /// matter.
    fn up_to(self) -> Option<Seq> {
        match self {
            Wanted::Due | Wanted::Idle | Wanted::Small(_) => None,
            Wanted::Settled(up_to) | Wanted::All(up_to) => Some(up_to),
        }
    }

    /// Returns the runs without those that are newer, which are as if they were not there.
    fn of(self, runs: &[Arc<StoredRun>]) -> &[Arc<StoredRun>] {
        let up_to = self.up_to().unwrap_or(Seq::MAX);
        &runs[runs.partition_point(|run| !has_up_to(run, up_to))..]
    }

    /// Returns `true` if all of them are compacted, also if that is not due.
    fn is_all(self) -> bool {
        matches!(self, Wanted::All(_))
    }

    /// Returns the most bytes of a run.
    fn most_bytes(self) -> u64 {
        match self {
            Wanted::Small(bytes) => bytes,
            Wanted::Due | Wanted::Idle | Wanted::Settled(_) | Wanted::All(_) => u64::MAX,
        }
    }

    /// Returns the work that few runs are worth; `None` if all are compacted.
    fn effort(self, fan_in: usize) -> Option<policy::Effort> {
        match self {
            Wanted::Due => Some(policy::Effort::due(fan_in)),
            Wanted::Small(_) => Some(policy::Effort::due(2)),
            Wanted::Idle | Wanted::Settled(_) => Some(policy::Effort::idle()),
            Wanted::All(_) => None,
        }
    }
}

/// Keeps the background from compacting the runs that have changes up to a sequence number.
pub(crate) struct Reservation<'a> {
    claims: &'a Mutex<Claims>,
    up_to: Seq,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let reserved = &mut self.claims.lock().reserved;
        if let Some(index) = reserved.iter().position(|up_to| *up_to == self.up_to) {
            reserved.swap_remove(index);
        }
    }
}

/// The runs that one compaction reads. While this lives, no other reads them.
struct Claim<'a> {
    claims: &'a Mutex<Claims>,
    ids: Vec<RunId>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let claimed = &mut self.claims.lock().claimed;
        claimed.retain(|id| !self.ids.contains(id));
    }
}

/// The part of a store that compacts runs.
pub(crate) struct Compactor {
    state: Arc<State>,
    files: Arc<Files>,
    executor: Executor,
    claims: Mutex<Claims>,
}

impl Compactor {
    pub(crate) fn new(files: Arc<Files>, flusher: Arc<Flusher>) -> Self {
        Compactor {
            state: Arc::clone(&files.state),
            executor: Executor::new(Arc::clone(&files), flusher),
            files,
            claims: Mutex::default(),
        }
    }

    /// Returns the number of runs that compactions read.
    pub(crate) fn runs(&self) -> usize {
        self.claims.lock().claimed.len()
    }

    /// Compacts some runs, if that is due, or if `is_idle`, worth while. Returns `true` if it was.
    pub(crate) fn compact_one(&self, is_idle: bool) -> Result<bool, Error> {
        let wanted = if is_idle { Wanted::Idle } else { Wanted::Due };
        self.compact_claimed(wanted, &mut |_| ControlFlow::Continue(()))
    }

    /// Compacts some runs that have at most so many bytes each, if that is due. Returns `true` if
    /// it was.
    pub(crate) fn compact_small(&self, bytes: u64) -> Result<bool, Error> {
        let each = bytes / self.state.options.fan_in as u64;
        self.compact_claimed(Wanted::Small(each), &mut |_| ControlFlow::Continue(()))
    }

    /// Reserves the runs that have changes up to a sequence number.
    pub(crate) fn reserve_runs(&self, up_to: Seq) -> Reservation<'_> {
        self.claims.lock().reserved.push(up_to);
        Reservation {
            claims: &self.claims,
            up_to,
        }
    }

    /// Compacts all reserved runs into one, also if that is not due. Runs that another thread
    /// compacts already are waited for by calling this again. Returns `true` if there was anything
    /// to do.
    pub(crate) fn compact_reserved(
        &self,
        reservation: &Reservation<'_>,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<bool, Error> {
        self.compact_claimed(Wanted::All(reservation.up_to), on_progress)
    }

    /// Compacts some of the reserved runs, if that is worth while where there are no writes.
    /// Returns `true` if it was.
    pub(crate) fn settle_reserved(&self, reservation: &Reservation<'_>) -> Result<bool, Error> {
        let wanted = Wanted::Settled(reservation.up_to);
        self.compact_claimed(wanted, &mut |_| ControlFlow::Continue(()))
    }

    /// Returns the number of reserved runs, and whether a compaction reads some of them.
    pub(crate) fn reserved_runs(&self, reservation: &Reservation<'_>) -> (usize, bool) {
        let claims = self.claims.lock();
        let version = self.state.versions.current();
        let runs = version.runs.iter();
        let reserved = runs.filter(|run| has_up_to(run, reservation.up_to));
        let is_claimed = |run: &Arc<StoredRun>| claims.claimed.contains(&run.meta.id);
        (reserved.clone().count(), reserved.clone().any(is_claimed))
    }

    fn compact_claimed(
        &self,
        wanted: Wanted,
        on_progress: &mut OnProgress<'_>,
    ) -> Result<bool, Error> {
        match self.claim(wanted) {
            Some((claim, begun)) => self.executor.compact(&claim.ids, begun, on_progress),
            None => Ok(false),
        }
    }

    /// Claims runs that are to be compacted. Returns the state of that compaction, too, if it was
    /// begun before.
    fn claim(&self, wanted: Wanted) -> Option<(Claim<'_>, Option<CompactionMeta>)> {
        // Before `claims` is locked, since `manifest` may be held for long.
        let begun = self.files.manifest.lock().contents().compactions.clone();
        let mut claims = self.claims.lock();
        let version = self.state.versions.current();
        let resumed = claims.find_begun(&begun, &version.runs, wanted);
        let ids = match resumed {
            Some(compaction) => compaction.inputs.clone(),
            None => self.choose(&claims, &begun, wanted.of(&version.runs), wanted)?,
        };
        let chosen = version.runs.iter().filter(|run| ids.contains(&run.meta.id));
        if !wanted.is_all()
            && !self
                .files
                .reserve
                .may_compact(chosen.map(|run| run.meta.bytes()).sum())
        {
            return None;
        }
        claims.claimed.extend(&ids);
        Some((
            Claim {
                claims: &self.claims,
                ids,
            },
            resumed.cloned(),
        ))
    }

    /// Returns the least number of runs that are worth being compacted into one. Where records
    /// expire, one run may have some that have.
    fn least_runs(&self) -> usize {
        if self.state.lifetimes.is_some() { 1 } else { 2 }
    }

    /// Chooses among the runs that are wanted those of a new compaction.
    fn choose(
        &self,
        claims: &Claims,
        begun: &[CompactionMeta],
        runs: &[Arc<StoredRun>],
        wanted: Wanted,
    ) -> Option<Vec<RunId>> {
        let is_begun = |run: &StoredRun| {
            let mut compactions = begun.iter();
            compactions.any(|compaction| compaction.inputs.contains(&run.meta.id))
        };
        let most_bytes = wanted.most_bytes();
        let is_free = |run: &Arc<StoredRun>| {
            run.meta.bytes() <= most_bytes
                && claims.is_free(run)
                && (wanted.up_to().is_some() || !claims.is_reserved(run) && !is_begun(run))
        };
        let chosen = match wanted.effort(self.state.options.fan_in) {
            None => (runs.len() >= self.least_runs() && runs.iter().all(is_free))
                .then_some(0..runs.len()),
            Some(effort) => {
                let sizes: Vec<_> = runs
                    .iter()
                    .enumerate()
                    .map(|(index, run)| Size {
                        bytes: run.meta.bytes(),
                        deleted: deleted_bytes(run, &runs[index + 1..]),
                        is_free: is_free(run),
                    })
                    .collect();
                policy::choose(&sizes, effort)
            }
        }?;
        Some(runs[chosen].iter().map(|run| run.meta.id).collect())
    }
}

/// Returns the approximate bytes of older runs that a run has deleted: of each delete of a key a
/// record of the oldest, and the files of which all keys are in a deleted range.
fn deleted_bytes(run: &StoredRun, older: &[Arc<StoredRun>]) -> u64 {
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
            let range = deletes.find_covering(first);
            range.is_some_and(|range| range.has(last))
        })
    };
    let files = older.iter().flat_map(|run| &run.meta.files);
    let of_ranges: u64 = files.filter(is_deleted).map(|file| file.bytes).sum();
    of_keys.saturating_add(of_ranges)
}
