//! The experiments: the name of each, the measurement of `make bench` that it is, and the time that
//! this takes.

use std::path::Path;

/// The measurements that have programs of their own, which are built before anything is measured.
pub const BUILT: [&str; 4] = ["stores", "maps", "disk", "curves"];

/// The experiments with mixes of operations on keys that are no integers.
pub const KINDS_OF_KEYS: [&str; 6] = [
    "short-tuples",
    "short-binaries",
    "atoms",
    "long-binaries",
    "paths",
    "long-tuples",
];

/// A measurement.
pub struct Experiment {
    /// The name of the experiment and of its folder.
    pub name: &'static str,
    /// The measurement of `make bench`.
    pub what: &'static str,
    /// The arguments of the measurement, without the folder of results.
    pub arguments: String,
    /// The seconds that it takes on two cores without other work.
    pub seconds: u64,
}

impl Experiment {
    /// Returns the command, which writes files of results into the folder of the experiment.
    pub fn command(&self, folder: &Path) -> Vec<String> {
        let results = folder.join(self.name);
        let option = match self.what {
            "trace" => "--folder",
            "curves" => "",
            _ => "--results",
        };
        let arguments = format!("{} {option} {}", self.arguments, results.display());
        let mut command = make_bench(self.what);
        command.push(format!("ARGS={}", arguments.trim()));
        command
    }

    /// Returns the command with which a person measures it alone.
    pub fn again(&self) -> String {
        match self.arguments.as_str() {
            "" => format!("make bench WHAT={}", self.what),
            arguments => format!("make bench WHAT={} ARGS='{arguments}'", self.what),
        }
    }
}

/// The command of a measurement. The application was built before.
pub fn make_bench(what: &str) -> Vec<String> {
    let words = ["make", "-s", "bench", "-o", "setup", "-o", "build"];
    let mut command: Vec<String> = words.into_iter().map(str::to_string).collect();
    command.push(format!("WHAT={what}"));
    command
}

/// The amount of a run.
#[derive(Clone, Copy)]
pub struct Amount {
    /// `true` if little is measured.
    pub quick: bool,
    /// Rounds, in place of those of the plan.
    pub rounds: Option<u64>,
    /// `true` for three times as many rounds as a full run has.
    pub long: bool,
}

/// Returns the experiments of a run.
pub fn experiments(amount: Amount) -> Vec<Experiment> {
    let lines = lines().into_iter();
    let chosen = lines.filter_map(|line| line.experiment(amount));
    chosen.collect()
}

/// The arguments, the rounds, and the seconds that they take. Without rounds it is done once.
type Cost = (&'static str, Option<u64>, u64);

/// An experiment with the amounts of work that it can have.
struct Line {
    name: &'static str,
    what: &'static str,
    /// The cost of a quick run; `None` leaves the experiment out.
    quick: Option<Cost>,
    full: Cost,
}

impl Line {
    fn experiment(self, amount: Amount) -> Option<Experiment> {
        let (arguments, planned, seconds) = if amount.quick { self.quick? } else { self.full };
        let longer = planned.map(|rounds| if amount.long { 3 * rounds } else { rounds });
        let rounds = planned.and(amount.rounds).or(longer);
        let repeated = rounds.map_or(String::new(), |rounds| format!(" --rounds {rounds}"));
        Some(Experiment {
            name: self.name,
            what: self.what,
            arguments: format!("{arguments}{repeated}").trim().to_string(),
            seconds: match rounds.zip(planned) {
                Some((rounds, planned)) => (seconds * rounds).div_ceil(planned),
                None => seconds,
            },
        })
    }

    fn of(name: &'static str, what: &'static str, full: Cost) -> Self {
        Line {
            name,
            what,
            quick: None,
            full,
        }
    }

    fn quickly(mut self, arguments: &'static str, rounds: Option<u64>, seconds: u64) -> Self {
        self.quick = Some((arguments, rounds, seconds));
        self
    }
}

fn lines() -> Vec<Line> {
    let bench = |name, arguments, rounds, seconds| {
        Line::of(name, "memory", (arguments, Some(rounds), seconds))
    };
    let wide = "--processes 1,2,4 --ms 250 --only Int,\\ wide";
    let cache = "--processes 1,2,4 --ms 150 --only Int,\\ cache";
    let hot = "--processes 1,2,4 --ms 150 --only Int,\\ hot";
    let one = "--processes 1,2,4 --ms 300 --only Int,\\ one";
    let disjoint = "--disjoint 100000,1000000,10000000 --only integers,";
    let backends = ("--processes 1,2,4 --ms 100", Some(3), 220);
    let engines = "--records 1500000 --limit-seconds 20 --osmos-seconds 30";
    vec![
        bench("integers-wide", wide, 5, 560).quickly("--quick --only Int,\\ wide", Some(3), 40),
        bench("integers-cache", cache, 5, 320),
        bench("integers-hot", hot, 5, 300).quickly("--quick --only Int,\\ hot", Some(3), 20),
        bench("one-counter", one, 5, 30).quickly("--quick --only Int,\\ one", Some(3), 2),
        bench(
            "everyday-calls",
            "--field everyday --ms 40 --only set",
            3,
            180,
        )
        .quickly(
            "--quick --field everyday --only Int,\\ hot,\\ set",
            Some(3),
            5,
        ),
        bench("values", "--field values --ms 40", 3, 80).quickly(
            "--quick --field values --only list",
            Some(3),
            6,
        ),
        bench(
            "programs",
            "--field everyday --ms 200 --only program:",
            3,
            60,
        )
        .quickly("--quick --field everyday --only program:", Some(3), 5),
        bench("short-tuples", "--ms 200 --only {a,Int},", 5, 200).quickly(
            "--quick --only {a,Int},\\ hot",
            Some(3),
            5,
        ),
        bench("short-binaries", "--ms 200 --only Bin8,", 5, 200).quickly(
            "--quick --only Bin8,\\ hot",
            Some(3),
            5,
        ),
        bench("atoms", "--ms 200 --only Atom,", 5, 200).quickly(
            "--quick --only Atom,\\ hot",
            Some(3),
            5,
        ),
        bench("long-binaries", "--ms 200 --only Bin16..40,", 5, 90),
        bench("paths", "--ms 200 --only Path16..39,", 5, 70),
        bench("long-tuples", "--ms 200 --only {a,Int,Int},", 5, 70),
        bench("insert-disjoint-ranges", disjoint, 3, 300).quickly(
            "--quick --disjoint 20000,200000 --only integers,",
            Some(3),
            8,
        ),
        bench("one-key", "--only of\\ one\\ key", 5, 30).quickly(
            "--quick --only of\\ one\\ key",
            Some(3),
            2,
        ),
        bench("small-tables", "--ms 300 --only new\\,\\ insert", 5, 40).quickly(
            "--quick --only new\\,\\ insert",
            Some(3),
            2,
        ),
        bench("select", "--only select:", 3, 130).quickly("--quick --only select:", Some(1), 25),
        bench("select-on-disk", "--only select\\ on\\ disk:", 3, 150).quickly(
            "--quick --only select\\ on\\ disk:",
            Some(1),
            20,
        ),
        Line::of(
            "memory",
            "memory",
            ("--only bytes\\ an\\ object", None, 120),
        )
        .quickly("--quick --only object,\\ {Int,Int}", None, 15),
        bench(
            "options-of-ets",
            "--processes 1,2 --ms 200 --field options",
            5,
            200,
        )
        .quickly("--quick --field options --only hot", Some(3), 5),
        bench(
            "locks-of-ets",
            "--processes 1,2 --ms 200 --field locks",
            5,
            120,
        )
        .quickly("--quick --field locks --only hot", Some(3), 4),
        bench(
            "counters-of-ets",
            "--processes 1,2 --ms 200 --field counters",
            5,
            127,
        )
        .quickly("--quick --field counters --only hot", Some(3), 4),
        Line::of("stores", "stores", backends).quickly(
            "--quick --only hot,\\ ordered_set",
            Some(3),
            5,
        ),
        Line::of("latency", "latency", ("", None, 400)).quickly(
            "--quick --only ordered_set,\\ tab2list",
            None,
            16,
        ),
        Line::of("rust-maps", "maps", ("--ms 200", Some(3), 600)).quickly(
            "--quick --ms 20",
            Some(1),
            30,
        ),
        Line::of(
            "tables-on-disk",
            "tables",
            ("--objects 500000", Some(2), 300),
        )
        .quickly("--quick", Some(1), 30),
        Line::of("mnesia", "mnesia", ("--seconds 5", Some(2), 110)),
        Line::of("stores-on-disk", "disk", (engines, Some(2), 700)).quickly(
            "--records 100000 --only writes,merges --limit-seconds 2",
            Some(1),
            30,
        ),
        Line::of("adaptation", "trace", ("--trees", None, 30)).quickly("--ms 500 --trees", None, 8),
        Line::of("scaling", "curves", ("", None, 1)).quickly("", None, 1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Amount = Amount {
        quick: false,
        rounds: None,
        long: false,
    };

    fn seconds(amount: Amount) -> u64 {
        experiments(amount).iter().map(|one| one.seconds).sum()
    }

    #[test]
    fn the_plan_keeps_its_promises() {
        assert!(seconds(FULL) <= 100 * 60, "{}", seconds(FULL));
        let quick = Amount {
            quick: true,
            ..FULL
        };
        assert!(seconds(quick) <= 300, "{}", seconds(quick));
        assert!(seconds(Amount { long: true, ..FULL }) > 2 * seconds(FULL));
    }

    #[test]
    fn rounds_replace_those_of_the_plan() {
        let rounds = Some(10);
        let all = experiments(Amount { rounds, ..FULL });
        let find = |name| {
            all.iter()
                .find(|one| one.name == name)
                .expect("it is there")
        };
        assert_eq!(find("integers-wide").seconds, 2 * 560);
        assert!(find("select").arguments.ends_with("--rounds 10"));
        assert!(!find("latency").arguments.contains("--rounds"));
    }
}
