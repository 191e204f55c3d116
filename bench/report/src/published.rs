//! Published figures of the works, beside those measured here.
//!
//! - K. Winblad, K. Sagonas, B. Jonsson: *Lock-free contention adapting search trees* (SPAA 2018).
//! - K. Winblad: *The new scalable ETS ordered_set* (Erlang/OTP blog, 2019): integer keys, a range
//!   of a million, half of them in the table; two Xeon E5-2673 v4 with 32 cores and 64 threads. The
//!   old table is an AVL tree behind one lock (OTP 21), the new one a contention adapting tree (OTP
//!   22, `write_concurrency`). `insert_disjoint_ranges` ran on two cores of an i7-7500U.
//! - K. Winblad: *Decentralized ETS counters for better scalability* (Erlang/OTP blog, 2021).
//! - P. Mineiro: *Ets ordered set select efficiency* (2009), with the module `etsselect`, and the
//!   TPC-B of tcerl.
//! - R. Radford's `osmos_benchmark_1` (2009), on a MacBook with two cores of 2.2 GHz.
//! - The `README` of masstree 0.9.5, and that of redb (August 2026; Ryzen 9950X3D, NVMe).

use crate::data::{Report, Row};

/// One mix of operations.
pub struct Published {
    /// The name of the workload in our benchmark.
    pub workload: &'static str,
    /// Thousand operations a second of the old table: with one process, and with 64.
    pub old: [f64; 2],
    /// The same of the new table.
    pub new: [f64; 2],
}

const fn published(workload: &'static str, old: [f64; 2], new: [f64; 2]) -> Published {
    Published { workload, old, new }
}

/// The mixes of the blog.
pub const PUBLISHED: [Published; 8] = [
    published("50 % insert, 50 delete", [932.0, 25.5], [772.0, 20_250.0]),
    published(
        "80 % lookup, 10 insert, 10 delete",
        [949.0, 79.0],
        [761.0, 21_270.0],
    ),
    published(
        "98 % lookup, 1 insert, 1 delete",
        [997.0, 220.0],
        [812.0, 25_120.0],
    ),
    published("100 % lookup", [1000.0, 5120.0], [848.0, 30_250.0]),
    published(
        "40 % lookup, 20 updates, 40 chains of 10 next",
        [590.0, 37.7],
        [393.0, 6930.0],
    ),
    published(
        "40 % lookup, 20 updates, 40 chains of 1000 next",
        [17.2, 7.6],
        [8.86, 255.0],
    ),
    published(
        "79 % lookup, 20 updates, 1 count of all",
        [2.69, 15.9],
        [2.56, 111.0],
    ),
    published(
        "79 % lookup, 20 updates, 1 count of 1000",
        [2.37, 16.3],
        [2.33, 79.6],
    ),
];

/// The kind of a published number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A ratio, which another machine can have, too.
    Ratio,
    /// A ratio that is larger elsewhere, or may be.
    AtLeast,
    /// A ratio that is smaller elsewhere, or may be.
    AtMost,
    /// A figure of which more is better.
    More,
    /// A figure of which less is better.
    Less,
}

/// A published statement, and the figure of this machine.
pub struct Claim {
    /// The kind of the number.
    pub kind: Kind,
    /// The work.
    pub work: &'static str,
    /// The thing that was compared.
    pub what: String,
    /// The published number.
    pub published: f64,
    /// The number here, if it was measured.
    pub here: Option<f64>,
    /// The reason for which both may differ.
    pub why: &'static str,
}

impl Claim {
    /// Returns the outcome of the comparison.
    pub fn verdict(&self) -> String {
        let Some(here) = self.here else {
            return "not measured in this run".to_string();
        };
        let times = here / self.published;
        let is_near = (0.67..=1.5).contains(&times);
        let verdict = match self.kind {
            Kind::More => return format!("{times:.1} times as good here"),
            Kind::Less => return format!("{:.1} times as good here", 1.0 / times),
            _ if is_near => "holds",
            Kind::AtLeast if times > 1.0 => "holds",
            Kind::AtMost if times < 1.0 => "holds",
            Kind::Ratio if (here - 1.0) * (self.published - 1.0) > 0.0 => {
                if here.ln() / self.published.ln() > 1.0 {
                    "holds, and more so"
                } else {
                    "holds, but less so"
                }
            }
            _ => "does not hold here",
        };
        verdict.to_string()
    }
}

/// Returns the rows of an experiment with a name, a set and a type; an empty text stands for all.
fn rows_of<'r>(report: &'r Report, experiment: &str, labels: [&str; 3]) -> Vec<&'r Row> {
    let names = ["name", "set", "type"];
    let has = |row: &Row| {
        let mut pairs = names.iter().zip(labels);
        pairs.all(|(name, label)| label.is_empty() || row.text(name) == label)
    };
    report
        .rows(experiment)
        .iter()
        .filter(|row| has(row))
        .collect()
}

/// Returns the row with most processes.
fn busiest<'r>(report: &'r Report, experiment: &str, labels: [&str; 3]) -> Option<&'r Row> {
    let rows = rows_of(report, experiment, labels).into_iter();
    rows.max_by_key(|row| row.processes())
}

/// Returns a rate of one side over that of another, as medians.
fn over(row: &Row, one: &str, other: &str) -> Option<f64> {
    // A side may have done nothing in a short run on a busy machine.
    let rates = [row.median(one)?, row.median(other)?];
    let [one, other] = (rates[0].min(rates[1]) > 0.0).then_some(rates)?;
    Some(if row.is_more_better() {
        one / other
    } else {
        other / one
    })
}

/// Returns the part of [`Row`] that a percentile of a latency has.
fn time_at(row: &Row, part: f64) -> Option<f64> {
    let pairs = row.0["times"].as_array()?;
    pairs.iter().find(|pair| pair[0].as_f64() == Some(part))?[1].as_f64()
}

/// Returns all statements that are no rows of [`PUBLISHED`].
pub fn claims(report: &Report) -> Vec<Claim> {
    let parts = [
        disjoint(report),
        trees(report),
        options(report),
        selects(report),
        disk(report),
        peers(report),
    ];
    parts.into_iter().flatten().collect()
}

/// Seconds of ten million inserts by 1, 2 and 4 processes.
const OLD_SECONDS: [f64; 3] = [3.35, 3.96, 6.38];
const NEW_SECONDS: [f64; 3] = [3.83, 2.11, 1.67];

fn disjoint(report: &Report) -> Vec<Claim> {
    let all = report.rows("insert-disjoint-ranges").iter();
    let rows: Vec<&Row> = all
        .filter(|row| row.text("name").ends_with("disjoint ranges"))
        .collect();
    // The last ones have most integers.
    let row = |processes: u64| {
        let mut rows = rows.iter().rev();
        rows.find(|row| row.processes() == processes).copied()
    };
    let gain = |side: &str, most: u64| Some(row(most)?.median(side)? / row(1)?.median(side)?);
    let why = "Ours is run on Erlang/OTP 25, with two schedulers; four processes take turns.";
    let claim = |what: String, published, here| Claim {
        kind: Kind::Ratio,
        work: "insert_disjoint_ranges",
        what,
        published,
        here,
        why,
    };
    let mut claims = Vec::new();
    for (at, most) in [(1, 2), (2, 4)] {
        for (name, side, seconds) in [("old", "ets", OLD_SECONDS), ("new", "ets wc", NEW_SECONDS)] {
            claims.push(claim(
                format!(
                    "{name} table: {most} processes over 1 ({} s and {} s)",
                    seconds[at], seconds[0]
                ),
                seconds[0] / seconds[at],
                gain(side, most),
            ));
        }
    }
    for (at, processes) in [1, 2, 4].into_iter().enumerate() {
        claims.push(claim(
            format!("new over old, {processes} processes"),
            OLD_SECONDS[at] / NEW_SECONDS[at],
            row(processes).and_then(|row| over(row, "ets wc", "ets")),
        ));
    }
    claims
}

fn trees(report: &Report) -> Vec<Claim> {
    let updates = ["50 % insert, 50 delete", "", "ordered_set"];
    let row = busiest(report, "stores", updates);
    vec![Claim {
        kind: Kind::AtLeast,
        work: "lock-free CA trees (SPAA 2018)",
        what: "the lock-free CA tree over a lock-free skip list, 50/50: more than 2".to_string(),
        published: 2.0,
        here: row.and_then(|row| over(row, "lock_free_tree", "skip_list")),
        why: "Published for 32 and 64 cores of Java, where peers queue for a lock or a word; two \
              cores contend little. Ours are our own programs of these designs.",
    }]
}

fn options(report: &Report) -> Vec<Claim> {
    let counters = busiest(
        report,
        "counters-of-ets",
        ["50 % insert, 50 delete", "hot", "set"],
    );
    let locks = busiest(
        report,
        "locks-of-ets",
        ["50 % insert, 50 delete", "", "set"],
    );
    vec![
        Claim {
            kind: Kind::AtLeast,
            work: "decentralized counters (blog, 2021)",
            what: "decentralized over central, 50/50 on a set, few processes: no great loss"
                .to_string(),
            published: 1.0,
            here: counters.and_then(|row| over(row, "ets decentralized", "ets central")),
            why: "The gain, which is published as a curve for 64 threads of hardware, needs many \
                  cores that write to one counter.",
        },
        Claim {
            kind: Kind::Ratio,
            work: "ets_impl_project (2013)",
            what: "256 locks over 64, updates of 1024 keys by 64 schedulers (11.1 s and 4.0 s)"
                .to_string(),
            published: 11.1 / 4.0,
            here: locks.and_then(|row| over(row, "ets 256 locks", "ets 64 locks")),
            why: "Two schedulers hardly ever want the same of 64 locks.",
        },
    ]
}

fn selects(report: &Report) -> Vec<Claim> {
    let median = |experiment: &str, bound: &str, power: u32, side: &str| {
        let name = format!("{bound}, 5^{power} paths");
        busiest(report, experiment, [&name, "", ""])?.median(side)
    };
    // The time of a call over that of another one.
    let over = |experiment, side, one: (&str, u32), other: (&str, u32)| {
        let other = median(experiment, other.0, other.1, side)?;
        Some(other / median(experiment, one.0, one.1, side)?)
    };
    let prefix = "prefix bound";
    let range = "prefix range bound";
    let all = "unconstrained";
    let (range_on_disk, memory, disk) = ("prefix range bound on disk", "select", "select-on-disk");
    let tpcb = |name: &str, side: &str| busiest(report, "mnesia", [name, "", ""])?.median(side);
    let claim = |kind, work, what: &str, published, here, why| Claim {
        kind,
        work,
        what: what.to_string(),
        published,
        here,
        why,
    };
    let flat = "Published as a curve that stays flat; deeper trees cost a little.";
    vec![
        claim(
            Kind::AtMost,
            "etsselect (2009)",
            "ets: time of a prefix, 5^9 objects over 5^5: only the prefix is read",
            1.0,
            over(memory, "ets", (prefix, 9), (prefix, 5)),
            flat,
        ),
        claim(
            Kind::Ratio,
            "etsselect (2009)",
            "ets: time of a range of a prefix by guards over that of all, 5^9: all are read",
            1.0,
            over(memory, "ets", (range, 9), (all, 9)),
            "All are read still; but few match, so that few are copied.",
        ),
        claim(
            Kind::AtMost,
            "tcerl (2009)",
            "ats: time of a range of a prefix by guards, 5^9 objects over 5^5: guards bound it",
            1.0,
            over(memory, "ats", (range, 9), (range, 5)),
            flat,
        ),
        claim(
            Kind::AtMost,
            "tcerl (2009)",
            "dats: the same on disk",
            1.0,
            over(disk, "dats", (range_on_disk, 9), (range_on_disk, 5)),
            flat,
        ),
        claim(
            Kind::Ratio,
            "tcerl (2009)",
            "TPC-B by mnesia: on disk over in memory (2300 and 5500 transactions a second)",
            2300.0 / 5500.0,
            tpcb("TPC-B, database on disk: dats_disc", "dats_disc")
                .zip(tpcb("TPC-B, database on memory: ats_ram", "ram_copies"))
                .map(|(disk, memory)| disk / memory),
            "dats_disc over ram_copies; disks and processors are others than in 2009.",
        ),
    ]
}

fn disk(report: &Report) -> Vec<Claim> {
    let osmos = |name: &str| busiest(report, "tables-on-disk", [name, "", ""]);
    let why = "A laptop with a disk that turned; and osmos writes its files in the process of the \
               table.";
    let claim = |kind, what: &str, published, here| Claim {
        kind,
        work: "osmos_benchmark_1 (2009)",
        what: what.to_string(),
        published,
        here,
        why,
    };
    vec![
        claim(
            Kind::More,
            "writes a second, in the first 15 minutes (2396 after two hours)",
            5587.0,
            osmos("osmos: writes").and_then(|row| row.median("dats")),
        ),
        claim(
            Kind::Less,
            "median of a write, microseconds",
            30.0,
            osmos("osmos: write").and_then(|row| time_at(row, 0.5)),
        ),
        claim(
            Kind::Less,
            "median of a read every 10 ms, microseconds",
            979.0,
            osmos("osmos: read").and_then(|row| time_at(row, 0.5)),
        ),
        claim(
            Kind::Less,
            "p90 of such a read, microseconds",
            2567.0,
            osmos("osmos: read").and_then(|row| time_at(row, 0.9)),
        ),
    ]
}

fn peers(report: &Report) -> Vec<Claim> {
    let maps = |name: &str| busiest(report, "rust-maps", [name, "", ""]);
    let masstree = |what: &str, published, name: &str| Claim {
        kind: Kind::Ratio,
        work: "masstree (README)",
        what: what.to_string(),
        published,
        here: maps(name).and_then(|row| over(row, "masstree", "TreeIndex")),
        why: "Other keys, and more threads than two.",
    };
    let redb = |what: &str, published, name: &str| Claim {
        kind: Kind::Ratio,
        work: "redb (README)",
        what: format!("rocksdb over redb: {what}"),
        published,
        here: busiest(report, "stores-on-disk", [name, "", ""])
            .and_then(|row| over(row, "rocksdb", "redb")),
        why: "Here redb writes without a sync where nothing is durable, one call is one \
              transaction, and caches have 256 MiB, not 4 GiB.",
    };
    vec![
        masstree(
            "over TreeIndex, reads",
            1.9,
            "8 bytes: mix with 0 % updates",
        ),
        masstree(
            "over TreeIndex, 50/50",
            3.7,
            "8 bytes: mix with 50 % updates",
        ),
        redb("bulk load", 17.06 / 13.97, "bulk load, batches of 1000"),
        redb(
            "durable single writes",
            0.920 / 2.432,
            "durable single writes",
        ),
        redb(
            "durable batches of 1000",
            1.595 / 0.451,
            "durable batches of 1000",
        ),
        redb(
            "random reads",
            1.138 / 2.911,
            "point reads, all keys (cache of the system)",
        ),
        redb("ranges of 10", 1.174 / 2.734, "ranges of 10"),
        redb("removals", 23.3 / 6.9, "removals"),
    ]
}
