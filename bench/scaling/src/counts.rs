//! The cost of an operation to other processors: counted by threads, added up, and extrapolated to
//! more cores.

use crate::mixes::Mix;
use crate::tables::TableKind;

/// The numbers of cores that figures are given for.
pub const CORES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// Counts of one run, for each operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// The table.
    pub kind: TableKind,
    /// The operation.
    pub mix: Mix,
    /// The number of threads that did it.
    pub threads: usize,
    /// Into how many parts with a lock each the table had adapted.
    pub parts: usize,
    /// The figures, in the order of [`FIGURES`].
    pub figures: [f64; FIGURES.len()],
    /// Cache lines that come from the cache of another core, for each number of [`CORES`].
    pub fetched: [f64; CORES.len()],
}

/// The counts of each operation.
pub const FIGURES: [&str; 12] = [
    "atomic changes",
    "atomic stores",
    "locks taken",
    "waits for locks",
    "visits to the slab",
    "bytes allocated",
    "bytes moved",
    "calls of `membarrier`",
    "calls of `futex`",
    "lines written",
    "shared lines written",
    "hottest line written",
];

/// Place of the locks taken in [`Counts::figures`].
pub const LOCKS: usize = 2;
/// Place of the locks of the slab among [`LOCKS`].
pub const SLAB: usize = 4;
/// Place of the calls of `membarrier`.
pub const BARRIERS: usize = 7;
/// Place of the writes to lines that another thread accessed as well.
#[cfg(counted)]
pub const SHARED: usize = 10;

impl Counts {
    /// Returns a line of a file.
    #[cfg(any(counted, test))]
    pub fn to_csv(&self) -> String {
        let numbers = self.figures.iter().chain(&self.fetched);
        let numbers: Vec<String> = numbers.map(|number| format!("{number:.6}")).collect();
        format!(
            "counts,{},{},{},{},{}",
            self.kind.id(),
            self.mix.id(),
            self.threads,
            self.parts,
            numbers.join(",")
        )
    }

    /// Returns the counts in such a line; `None` of any other line.
    pub fn from_csv(line: &str) -> Option<Self> {
        let mut fields = line.strip_prefix("counts,")?.split(',');
        let mut field = || fields.next();
        let mut counts = Counts {
            kind: TableKind::of_id(field()?)?,
            mix: mix_of_id(field()?)?,
            threads: field()?.parse().ok()?,
            parts: field()?.parse().ok()?,
            figures: [0.0; FIGURES.len()],
            fetched: [0.0; CORES.len()],
        };
        for place in counts.figures.iter_mut().chain(&mut counts.fetched) {
            *place = field()?.parse().ok()?;
        }
        Some(counts)
    }

    /// Returns the lines fetched from other cores if `cores` of them work; between the numbers of
    /// [`CORES`], in proportion.
    pub fn fetched_lines(&self, cores: usize) -> f64 {
        let above = CORES.iter().position(|known| *known >= cores);
        let above = above.unwrap_or(CORES.len() - 1);
        let (Some(below), high) = (above.checked_sub(1), CORES[above]) else {
            return self.fetched[above];
        };
        let low = CORES[below];
        let part = (cores.min(high) - low) as f64 / (high - low) as f64;
        self.fetched[below] + part * (self.fetched[above] - self.fetched[below])
    }
}

/// Returns the mix that files call so.
pub fn mix_of_id(id: &str) -> Option<Mix> {
    Mix::ALL.into_iter().find(|mix| mix.id() == id)
}

/// The numbers of reads and writes of one line by a thread, and by the others.
#[cfg(any(counted, test))]
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// Operations of this thread that read the line.
    pub reads: f64,
    /// Operations of this thread that wrote the line.
    pub writes: f64,
    /// Operations of other threads that read or wrote the line.
    pub others: f64,
    /// Operations of other threads that wrote the line.
    pub others_writes: f64,
}

#[cfg(any(counted, test))]
impl Share {
    /// Returns the number of accesses of this thread that find the line in the cache of another
    /// core, if the others are `more` times as many as those that were counted.
    ///
    /// Accesses come in any order, each order as likely as any other. A read finds the line
    /// elsewhere if another thread has written it since this thread had it, a write if another
    /// thread has had it at all. The last access that matters is one of the others as often as
    /// theirs are among all that matter.
    pub fn fetches(&self, more: f64) -> f64 {
        let own = self.reads + self.writes;
        let part = |others: f64| {
            if others > 0.0 {
                more * others / (own + more * others)
            } else {
                0.0
            }
        };
        self.reads * part(self.others_writes) + self.writes * part(self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_all_write_is_mostly_elsewhere() {
        // One of eight threads that do the same.
        let share = Share {
            reads: 0.0,
            writes: 10.0,
            others: 70.0,
            others_writes: 70.0,
        };
        assert!((share.fetches(1.0) - 10.0 * 7.0 / 8.0).abs() < 1e-9);
        // The same with 128 threads.
        assert!((share.fetches(127.0 / 7.0) - 10.0 * 127.0 / 128.0).abs() < 1e-9);
        assert_eq!(share.fetches(0.0), 0.0);
    }

    #[test]
    fn what_is_only_read_is_never_elsewhere() {
        let share = Share {
            reads: 10.0,
            others: 1e6,
            ..Share::default()
        };
        assert_eq!(share.fetches(16.0), 0.0);
    }

    #[test]
    fn a_line_of_its_own_that_others_read_now_and_then_costs_little() {
        let share = Share {
            writes: 1e6,
            others: 10.0,
            ..Share::default()
        };
        assert!(share.fetches(1.0) < 10.0);
    }

    #[test]
    fn lines_of_files_come_back() {
        let mut counts = Counts {
            kind: TableKind::Hash,
            mix: Mix::Chains,
            threads: 8,
            parts: 3,
            figures: [0.5; FIGURES.len()],
            fetched: [0.25; CORES.len()],
        };
        counts.fetched[7] = 1.25;
        assert_eq!(Counts::from_csv(&counts.to_csv()), Some(counts.clone()));
        assert_eq!(Counts::from_csv("rate,set"), None);
        assert_eq!(counts.fetched_lines(1), 0.25);
        assert_eq!(counts.fetched_lines(96), 0.75);
        assert_eq!(counts.fetched_lines(200), 1.25);
    }
}
