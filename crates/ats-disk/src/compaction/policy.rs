//! The choice of the runs that are compacted.
//!
//! Runs of about the same size are compacted `fan_in` at a time, so each record is written about
//! once for each power of `fan_in` that the store is larger than a memtable; and all runs are
//! compacted into the oldest when the others have become half as large as it is, so that a store in
//! which records are replaced takes at most about twice the space of its records. The same is done
//! when the others have deleted half of the oldest, however few they are. This is lazy levelling
//! (Dayan and Idreos, Dostoevsky, 2018), by the adjacent sizes of runs as in osmos and GskTable:
//! those of time neighbours only.
//!
//! Where writes pause, two runs of about the same size are compacted, and all of them when the
//! others have become a tenth of the oldest. So a store that was loaded, and is read, has one or
//! two runs.

use crate::state::back_pressure::most_runs;
use std::ops::Range;

/// A run, as far as the choice depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) bytes: u64,
    /// The approximate bytes of older runs that it has deleted.
    pub(crate) deleted: u64,
    /// `true` if no compaction reads it.
    pub(crate) is_free: bool,
}

/// A run belongs to a group if it is at most this much larger than the newer runs of the group
/// together, in percent.
const SIZE_RATIO_PERCENT: u64 = 120;
/// All is compacted if the newer runs are this much of the oldest, in percent.
const SPACE_PERCENT: u64 = 50;
/// The same where writes pause.
const LULL_PERCENT: u64 = 10;

/// The work that few runs are worth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// The number of runs of about the same size that are compacted.
    fan_in: usize,
    /// All is compacted if the newer runs are this much of the oldest, in percent.
    percent: u64,
}

impl Effort {
    /// Returns the effort that keeps up with writes.
    pub(super) fn due(fan_in: usize) -> Self {
        Effort {
            fan_in: fan_in.max(2),
            percent: SPACE_PERCENT,
        }
    }

    /// Returns the effort that makes reads fast, where there are no writes.
    pub(super) fn idle() -> Self {
        Effort {
            fan_in: 2,
            percent: LULL_PERCENT,
        }
    }
}

/// All is compacted if the newer runs have deleted this much of the oldest, in percent. Walks pass
/// deleted records again and again, and the deletes themselves may be small.
const DELETED_PERCENT: u64 = 50;

/// Returns the runs to be compacted, of those from the newest to the oldest; `None` if nothing is
/// to be done.
pub(super) fn choose(sizes: &[Size], effort: Effort) -> Option<Range<usize>> {
    let Effort { fan_in, percent } = effort;
    if sizes.len() < 2 {
        return None;
    }
    // All runs are compacted when the newer ones have grown large beside the oldest.
    let (oldest, newer) = sizes.split_last()?;
    let newer_bytes: u64 = newer.iter().map(|run| run.bytes).sum();
    let is_much = newer_bytes.saturating_mul(100) >= oldest.bytes.saturating_mul(percent);
    let deleted = newer.iter().map(|run| run.deleted);
    let deleted = deleted.fold(0, u64::saturating_add);
    let is_deleted =
        deleted > 0 && deleted.saturating_mul(100) >= oldest.bytes.saturating_mul(DELETED_PERCENT);
    let is_due = is_deleted || is_much && sizes.len() >= fan_in;
    if is_due && sizes.iter().all(|run| run.is_free) {
        return Some(0..sizes.len());
    }
    // The newest group of similar sizes.
    for start in 0..sizes.len() {
        let group = count_similar(&sizes[start..]);
        if group >= fan_in {
            return Some(start..start + group);
        }
    }
    // Sizes that are all different make groups that are too small. The cheapest compaction that
    // helps is done then.
    if sizes.len() < most_runs(fan_in) {
        return None;
    }
    let windows = sizes.windows(fan_in.min(sizes.len())).enumerate();
    let free = windows.filter(|(_, window)| window.iter().all(|run| run.is_free));
    let cheapest = free.min_by_key(|(_, window)| window.iter().map(|run| run.bytes).sum::<u64>());
    cheapest.map(|(start, window)| start..start + window.len())
}

/// Returns the number of the first runs that are free and of similar sizes.
fn count_similar(sizes: &[Size]) -> usize {
    let mut bytes = 0;
    let belongs = |run: &&Size| {
        let fits =
            bytes == 0 || run.bytes.saturating_mul(100) <= SIZE_RATIO_PERCENT.saturating_mul(bytes);
        bytes += run.bytes;
        run.is_free && fits
    };
    sizes.iter().take_while(belongs).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::back_pressure::debt;

    const DUE: Effort = Effort {
        fan_in: 4,
        percent: SPACE_PERCENT,
    };

    fn free(bytes: &[u64]) -> Vec<Size> {
        let size = |bytes: &u64| Size {
            bytes: *bytes,
            deleted: 0,
            is_free: true,
        };
        bytes.iter().map(size).collect()
    }

    #[test]
    fn runs_of_a_size_are_compacted() {
        assert_eq!(choose(&free(&[1, 1, 1, 100]), DUE), None);
        assert_eq!(choose(&free(&[1, 1, 1, 1, 100]), DUE), Some(0..4));
        assert_eq!(choose(&free(&[1, 8, 8, 8, 8, 1000]), DUE), Some(1..5));
    }

    #[test]
    fn much_that_is_new_goes_into_the_oldest() {
        assert_eq!(choose(&free(&[5, 20, 30, 100]), DUE), Some(0..4));
        assert_eq!(choose(&free(&[5, 20, 20, 100]), DUE), None);
    }

    #[test]
    fn many_deletes_cause_compaction() {
        let mut sizes = free(&[1, 1, 100]);
        sizes[1].deleted = 49;
        assert_eq!(choose(&sizes, DUE), None);
        sizes[0].deleted = 1;
        assert_eq!(choose(&sizes, DUE), Some(0..3));
        sizes[2].is_free = false;
        assert_eq!(choose(&sizes, DUE), None);
        // The deletes of the oldest run are gone.
        let mut sizes = free(&[1, 100]);
        sizes[1].deleted = 100;
        assert_eq!(choose(&sizes, DUE), None);
    }

    #[test]
    fn no_number_is_too_large() {
        let mut sizes = free(&[u64::MAX / 2, u64::MAX / 2]);
        sizes[0].deleted = u64::MAX;
        assert_eq!(choose(&sizes, Effort::due(usize::MAX)), Some(0..2));
        assert_eq!(debt(usize::MAX, usize::MAX), 0);
    }

    #[test]
    fn runs_that_are_read_are_left_alone() {
        let mut sizes = free(&[1, 1, 1, 1, 1, 100]);
        sizes[0].is_free = false;
        assert_eq!(choose(&sizes, DUE), Some(1..5));
        sizes[2].is_free = false;
        assert_eq!(choose(&sizes, DUE), None);
    }

    #[test]
    fn too_many_runs_are_compacted_whatever_their_sizes() {
        let sizes: Vec<u64> = (0..12).map(|power| 10_u64.pow(power)).collect();
        assert_eq!(choose(&free(&sizes[..11]), DUE), None);
        assert_eq!(choose(&free(&sizes), DUE), Some(0..4));
        assert_eq!((debt(12, 4), debt(15, 4)), (0, 3));
    }

    #[test]
    fn idle_compaction_leaves_few_runs_of_a_load() {
        let idle = Effort::idle();
        assert_eq!(choose(&free(&[64, 64, 64, 640]), idle), Some(0..4));
        assert_eq!(choose(&free(&[10, 20, 640]), idle), None);
        assert_eq!(choose(&free(&[20, 20, 640]), idle), Some(0..2));
        assert_eq!(choose(&free(&[64, 640]), idle), Some(0..2));
        assert_eq!(choose(&free(&[64, 641]), idle), None);
        assert_eq!(choose(&free(&[640]), idle), None);
    }

    /// The number of runs and the rewritten bytes stay small in any order of writes.
    #[test]
    fn work_is_proportional_to_writes() {
        // Writes with a pause after each memtable, and without pauses.
        let efforts = [(DUE, 12, 8.0), (Effort::idle(), 6, 15.0)];
        for (effort, most_runs, most_written) in efforts {
            let (mut runs, mut written) = (Vec::new(), 0);
            for flush in 1..=1000 {
                runs.insert(0, 64);
                while let Some(chosen) = choose(&free(&runs), effort) {
                    let bytes: u64 = runs[chosen.clone()].iter().sum();
                    written += bytes;
                    runs.splice(chosen, [bytes]);
                }
                assert!(
                    runs.len() <= most_runs,
                    "{} runs after {flush} flushes",
                    runs.len()
                );
            }
            let per_byte = written as f64 / (1000.0 * 64.0);
            assert!(
                per_byte < most_written,
                "each byte was compacted {per_byte} times"
            );
        }
    }
}
