//! The rows of the tables, and the groups that measure them.

/// Rows that one child process measures one after the other, on one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Fills a new store.
    Load,
    /// Reads loaded records.
    Reads,
    /// Overwrites loaded records.
    Writes,
    /// Removes a part of it.
    Removals,
    /// Writes until the process is killed, and opens the store again.
    Kill,
    /// Adds to counters, in a store of their own.
    Merges,
    /// Merges much into one key, in a store of its own.
    OneKey,
    /// The benchmark of osmos, in a store of its own.
    Osmos,
}

impl Group {
    /// All of them, in the order in which they are measured.
    pub const ALL: [Group; 8] = [
        Group::Load,
        Group::Reads,
        Group::Writes,
        Group::Removals,
        Group::Kill,
        Group::Merges,
        Group::OneKey,
        Group::Osmos,
    ];

    /// Returns the name on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Group::Load => "load",
            Group::Reads => "reads",
            Group::Writes => "writes",
            Group::Removals => "removals",
            Group::Kill => "kill",
            Group::Merges => "merges",
            Group::OneKey => "one-key",
            Group::Osmos => "osmos",
        }
    }

    /// Returns `true` if it works on the store that [`Group::Load`] has filled.
    pub fn needs_load(self) -> bool {
        matches!(
            self,
            Group::Reads | Group::Writes | Group::Removals | Group::Kill
        )
    }
}

/// The direction in which a figure is better.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is.
    More,
    /// Less is.
    Less,
}

/// A line of a table.
pub struct Row {
    /// The name of the measurement.
    pub name: &'static str,
    /// The unit of its figures.
    pub unit: &'static str,
    /// The direction in which it is better.
    pub better: Better,
    /// The group that measures it.
    pub group: Group,
    /// `true` if an engine that loses writes has an advantage here.
    pub writes: bool,
}

const fn more(group: Group, name: &'static str, unit: &'static str) -> Row {
    Row {
        name,
        unit,
        better: Better::More,
        group,
        writes: !matches!(group, Group::Reads),
    }
}

const fn less(group: Group, name: &'static str, unit: &'static str) -> Row {
    Row {
        better: Better::Less,
        ..more(group, name, unit)
    }
}

macro_rules! rows {
    ($($id:ident = $kind:ident($group:ident, $name:literal, $unit:literal);)*) => {
        $(pub const $id: Row = $kind(Group::$group, $name, $unit);)*

        /// All rows, in the order of the tables.
        pub const ROWS: &[Row] = &[$($id),*];
    };
}

rows! {
    BULK = more(Load, "bulk load, batches of 1000", "rows/s");
    BULK_SETTLED = more(Load, "bulk load until settled", "rows/s");
    BULK_BATCH_P999 = less(Load, "bulk load: a batch, p99.9", "ms");
    BULK_BATCH_LONGEST = less(Load, "bulk load: longest batch", "ms");
    BULK_WRITTEN = less(Load, "bulk load: bytes written / logical", "x");
    BULK_SIZE = less(Load, "bulk load: size on disk / logical", "x");
    BULK_MEMORY = less(Load, "bulk load: memory at most", "MiB");

    OPEN_CLEAN = less(Reads, "open after a clean close, cold", "ms");
    READS_COLD = more(Reads, "point reads, cold", "1/s");
    READS_HOT = more(Reads, "point reads, hot (cache of the engine)", "1/s");
    READS_WARM = more(Reads, "point reads, all keys (cache of the system)", "1/s");
    READS_MISSING = more(Reads, "point reads, missing keys", "1/s");
    RANGES_10 = more(Reads, "ranges of 10", "1/s");
    RANGES_1000 = more(Reads, "ranges of 1000 (records)", "rows/s");
    READS_MEMORY = less(Reads, "memory after reads", "MiB");

    WRITES = more(Writes, "single writes", "1/s");
    WRITES_P999 = less(Writes, "single writes: p99.9", "us");
    WRITES_LONGEST = less(Writes, "single writes: longest", "ms");
    WRITES_WRITTEN = less(Writes, "single writes: bytes written / logical", "x");
    DURABLE = more(Writes, "durable single writes", "1/s");
    DURABLE_LONGEST = less(Writes, "durable single writes: longest", "ms");
    DURABLE_BY_2 = more(Writes, "durable single writes, 2 writers", "1/s");
    DURABLE_BY_8 = more(Writes, "durable single writes, 8 writers", "1/s");
    DURABLE_BY_64 = more(Writes, "durable single writes, 64 writers", "1/s");
    DURABLE_BATCHES = more(Writes, "durable batches of 1000", "rows/s");

    REMOVALS = more(Removals, "removals", "1/s");
    REMOVALS_SIZE = less(Removals, "size after removals / logical", "x");

    OPEN_KILLED = less(Kill, "open after a kill", "ms");

    MERGES = more(Merges, "merges: counters, +1", "1/s");
    MERGES_LONGEST = less(Merges, "merges: longest", "ms");
    MERGES_READS = more(Merges, "merges: counters read after", "1/s");
    MERGES_WRITTEN = less(Merges, "merges: bytes written / logical", "x");

    OPERANDS = less(OneKey, "50,000 operands of 72 bytes: append", "ms");
    OPERANDS_READ = less(OneKey, "50,000 operands of 72 bytes: first read", "ms");
    OPERANDS_SETTLED = less(OneKey, "50,000 operands of 72 bytes: read, settled", "ms");
    HOT_COUNTER = more(OneKey, "hot counter: increments", "1/s");
    HOT_COUNTER_READ = less(OneKey, "hot counter: first read", "us");

    OSMOS = more(Osmos, "osmos: writes", "1/s");
    OSMOS_1 = more(Osmos, "osmos: writes, 1st tenth", "1/s");
    OSMOS_2 = more(Osmos, "osmos: writes, 2nd tenth", "1/s");
    OSMOS_3 = more(Osmos, "osmos: writes, 3rd tenth", "1/s");
    OSMOS_4 = more(Osmos, "osmos: writes, 4th tenth", "1/s");
    OSMOS_5 = more(Osmos, "osmos: writes, 5th tenth", "1/s");
    OSMOS_6 = more(Osmos, "osmos: writes, 6th tenth", "1/s");
    OSMOS_7 = more(Osmos, "osmos: writes, 7th tenth", "1/s");
    OSMOS_8 = more(Osmos, "osmos: writes, 8th tenth", "1/s");
    OSMOS_9 = more(Osmos, "osmos: writes, 9th tenth", "1/s");
    OSMOS_10 = more(Osmos, "osmos: writes, 10th tenth", "1/s");
    OSMOS_WRITE_P50 = less(Osmos, "osmos: a write, p50", "us");
    OSMOS_WRITE_P99 = less(Osmos, "osmos: a write, p99", "us");
    OSMOS_WRITE_P999 = less(Osmos, "osmos: a write, p99.9", "us");
    OSMOS_WRITE_LONGEST = less(Osmos, "osmos: longest write", "ms");
    OSMOS_READ_P50 = less(Osmos, "osmos: a read, p50", "us");
    OSMOS_READ_P90 = less(Osmos, "osmos: a read, p90", "us");
    OSMOS_READ_P99 = less(Osmos, "osmos: a read, p99", "us");
    OSMOS_READ_LONGEST = less(Osmos, "osmos: longest read", "ms");
    OSMOS_SIZE = less(Osmos, "osmos: size on disk", "MiB");
    OSMOS_MEMORY = less(Osmos, "osmos: memory at most", "MiB");
}

/// The writes of the tenths of a run of osmos.
pub const OSMOS_TENTHS: [Row; 10] = [
    OSMOS_1, OSMOS_2, OSMOS_3, OSMOS_4, OSMOS_5, OSMOS_6, OSMOS_7, OSMOS_8, OSMOS_9, OSMOS_10,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(
                ROWS[..at].iter().all(|other| other.name != row.name),
                "{}",
                row.name
            );
        }
    }
}
