//! The charts of the figures, as plotly.js takes them. Each has sentences about the experiment and
//! its finding.

use crate::adaptation::adaptation;
use crate::data::{Report, Row};
use crate::plan::KINDS_OF_KEYS;
use crate::view::View;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Several views of one thing, of which one is shown at a time.
pub struct Chart {
    /// The anchor in the page.
    pub id: &'static str,
    /// The heading.
    pub title: &'static str,
    /// The work, in a sentence.
    pub done: &'static str,
    /// `true` if lines can be shown as ratios to the best at each place.
    pub has_ratio: bool,
    /// The views.
    pub views: Vec<View>,
}

/// Returns the experiments of `make bench`, which compare with `ets` and with options of it.
fn beside_ets() -> impl Iterator<Item = &'static str> {
    let integers = [
        "integers-wide",
        "integers-cache",
        "integers-hot",
        "one-counter",
    ];
    let others = ["insert-disjoint-ranges", "one-key", "small-tables"];
    integers.into_iter().chain(KINDS_OF_KEYS).chain(others)
}

/// Returns all charts that have something to show.
pub fn charts(report: &Report) -> Vec<Chart> {
    let beside: Vec<&Row> = beside_ets().flat_map(|name| report.rows(name)).collect();
    let of = |name| report.rows(name).iter().collect::<Vec<_>>();
    let throughput = beside_ets().filter(|name| *name != "insert-disjoint-ranges");
    let throughput: Vec<&Row> = throughput.flat_map(|name| report.rows(name)).collect();
    let selects = [of("select"), of("select-on-disk")].concat();
    let chart = |id, title, done, has_ratio, views| Chart {
        id,
        title,
        done,
        has_ratio,
        views,
    };
    let charts = [
        chart(
            "glance",
            "ats beside ets at a glance",
            "Every workload ran on ats, on a plain ets \
            table and on one with write_concurrency and read_concurrency, in turn; a point is the \
            median ratio of ats to the faster of the two.",
            false,
            ratios(&beside, &set_of),
        ),
        chart(
            "everyday",
            "Everyday calls on small tables",
            "One call of a random key in a loop, beside the \
            faster of a plain ets table and one with write_concurrency and read_concurrency.",
            false,
            ratios(&of("everyday-calls"), &set_of),
        ),
        chart(
            "values",
            "Objects as programs keep them",
            "1000 objects {{u,Int}, Value}, one call of a random \
            key in a loop.",
            false,
            ratios(&of("values"), &|row| row.text("name").to_string()),
        ),
        chart(
            "programs",
            "Everyday programs",
            "Ten programs of a few dozen lines on their tables, beside the \
            faster of plain ets tables and tuned ones.",
            false,
            ratios(&of("programs"), &|_| String::new()),
        ),
        chart(
            "throughput",
            "Throughput over processes",
            "Each process draws operations and keys \
            as it goes; lines are medians over the rounds, bars reach from the slowest to the \
            fastest round.",
            true,
            lines(&throughput),
        ),
        chart(
            "disjoint",
            "insert_disjoint_ranges: old and new",
            "P processes insert N integers \
            in ascending order, each into a range of its own, or all at one end; ets is the old \
            table, an AVL tree behind one lock, and ets wc the new one, a contention adapting \
            tree.",
            true,
            lines(&of("insert-disjoint-ranges")),
        ),
        chart(
            "options",
            "Options of ets",
            "Lookups with 0, 1 and 10 % updates, as in ets_bench, on \
            ets tables with every pair of options.",
            true,
            lines(&of("options-of-ets")),
        ),
        chart(
            "locks",
            "Number of locks of ets",
            "The same on ets hash tables with a fixed number \
            of locks, by an option for tests.",
            true,
            lines(&of("locks-of-ets")),
        ),
        chart(
            "counters",
            "Decentralized counters of ets",
            "The same with the counters of the size \
            in one place, and spread.",
            true,
            lines(&of("counters-of-ets")),
        ),
        chart(
            "stores",
            "Other stores under the same calls",
            "Tables of ats in its own store, and \
            in others that only builds for comparison have.",
            true,
            lines(&of("stores")),
        ),
        chart(
            "select",
            "Select over the number of objects",
            "Keys {foo, M div 10, M} were filled \
            in ascending order; a query asks for all, for a prefix, or for a range of a prefix by \
            guards. On disk, tables were closed and opened after they had been filled; dets, which \
            reads all objects each time, has at most 5^7; ets beside them is in memory.",
            false,
            select_curves(&selects),
        ),
        chart(
            "queries",
            "Other queries",
            "select and select_count beside a plain ets table, one \
            process.",
            false,
            ratios(&others_than_paths(&of("select")), &|_| String::new()),
        ),
        chart(
            "memory",
            "Bytes of an object",
            "Each table was filled in a virtual machine of its \
            own with half of 2^20 objects.",
            false,
            bytes(&of("memory")),
        ),
        chart(
            "latency",
            "Waits of others while one call works",
            "One process makes a long call on \
            a large table; another one looks up and exchanges a message ten thousand times a \
            second, and late answers count for all requests that would have come meanwhile.",
            false,
            latencies(&of("latency")),
        ),
        chart(
            "mnesia",
            "Transactions of mnesia",
            "mnesia_tpcb, the example of mnesia, on its own storage \
            types and on ours, each in a new database.",
            false,
            ratios_by_side(&of("mnesia"), &|_| String::new()),
        ),
        chart(
            "rust",
            "Stores in memory beside other Rust maps",
            "Threads of a Rust program, \
            without a virtual machine; a point is the ratio of ats to another map, and longer keys \
            differ in their last eight bytes.",
            false,
            ratios_by_side(&of("rust-maps"), &length_of),
        ),
        chart(
            "dets",
            "Tables on disk beside dets and bitcask",
            "The same work, one process; \
            bitcask keeps all keys in memory.",
            false,
            ratios_by_side(&of_kind(&of("tables-on-disk"), "disk"), &|_| String::new()),
        ),
        chart(
            "osmos",
            "The benchmark of osmos",
            "One process increments counters of keys that \
            come unevenly as fast as it can, another reads every ten milliseconds, two exchange \
            messages.",
            false,
            osmos(&of_kind(&of("tables-on-disk"), "disk_latency")),
        ),
        chart(
            "engines",
            "The engine on disk beside other engines",
            "The same data, memory and \
            durability for all; a point is how much better ats is.",
            false,
            ratios_by_side(&of("stores-on-disk"), &|_| String::new()),
        ),
        chart(
            "adaptation",
            "How an ordered_set adapts",
            "A table is written by two processes, \
            by eight, by one, read, written in one narrow range, and left alone. Its nodes are \
            those that it had at that moment, in the order of their keys: diamonds lead the way, \
            bars are parts with a lock of their own. The colour is the number by which such a \
            part adapts: a wait for its lock adds 250, an undisturbed write takes 1 away. Above \
            1000 (red) it is split. Below -1000 (blue) it is joined with a neighbour; a part that \
            was split more than once has to come further down.",
            false,
            adaptation(report.rows("adaptation")),
        ),
        chart(
            "scaling",
            "Prediction: more cores than were measured",
            "PREDICTION by a model, not \
            a measurement: computed from cache lines counted for each operation and from the speed \
            of one thread (docs/inside/scaling.md).",
            false,
            curves(report.rows("scaling")),
        ),
    ];
    charts
        .into_iter()
        .filter(|chart| !chart.views.is_empty())
        .collect()
}

fn of_kind<'a>(rows: &[&'a Row], kind: &str) -> Vec<&'a Row> {
    rows.iter()
        .copied()
        .filter(|row| row.text("kind") == kind)
        .collect()
}

fn set_of(row: &Row) -> String {
    match row.text("set") {
        "one" => "one key",
        "few" => "few: 10 keys",
        "hot" => "hot: 1000 keys",
        "warm" => "warm: 10,000 keys",
        "cache" => "as large as a cache: 2^17 keys",
        "wide" => "wide: 2^20 keys",
        _ => "new tables",
    }
    .to_string()
}

fn length_of(row: &Row) -> String {
    match row.text("name").split_once(": ") {
        Some((prefix, _)) => prefix.to_string(),
        None => "peers with numbers as keys".to_string(),
    }
}

/// Returns workload, keys and type, as far as the row has them.
fn title_of(row: &Row) -> String {
    let parts = [
        row.text("name"),
        row.text("keys"),
        row.text("type"),
        row.text("objects"),
    ];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// Rows in groups, which have the order of their first rows.
fn grouped<'a>(rows: &[&'a Row], key: &dyn Fn(&Row) -> String) -> Vec<(String, Vec<&'a Row>)> {
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let key = key(row);
        match groups.iter_mut().find(|(name, _)| *name == key) {
            Some((_, group)) => group.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    groups
}

/// Returns the number of places in which we are ahead, and those in which we are furthest behind.
fn sentence_of_ratios(ratios: &[(String, f64)]) -> String {
    let ahead = ratios.iter().filter(|(_, ratio)| *ratio > 1.0).count();
    let mut text = format!("ats is ahead in {ahead} of {} points", ratios.len());
    let order = |a: &&(String, f64), b: &&(String, f64)| a.1.total_cmp(&b.1);
    if let Some((name, ratio)) = ratios.iter().max_by(order) {
        text += &format!(", furthest with {} in \"{name}\"", short(*ratio));
    }
    let mut behind: Vec<_> = ratios.iter().filter(|(_, ratio)| *ratio <= 1.0).collect();
    behind.sort_by(|a, b| a.1.total_cmp(&b.1));
    let behind: Vec<String> = behind
        .iter()
        .take(4)
        .map(|(name, ratio)| format!("\"{name}\" ({})", short(*ratio)))
        .collect();
    if behind.is_empty() {
        text + "."
    } else {
        format!("{text}; it is furthest behind in {}.", behind.join(", "))
    }
}

fn short(number: f64) -> String {
    match number {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

/// Returns a layout whose x axis is a ratio, and whose rows are named.
fn layout_of_ratios(rows: usize, title: &str) -> Value {
    json!({
        "rows": rows,
        "xaxis": { "type": "log", "title": { "text": title }, "dtick": "D2" },
        "yaxis": { "type": "category", "autorange": "reversed", "automargin": true },
        "shapes": [{ "type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1,
                     "line": { "width": 2, "dash": "dot" } }],
    })
}

fn points(name: String, ratios: &[(String, f64)]) -> Value {
    let (places, values): (Vec<_>, Vec<_>) = ratios.iter().cloned().unzip();
    json!({ "type": "scatter", "mode": "markers", "name": name, "x": values, "y": places,
            "marker": { "size": 10 } })
}

/// Points for the ratio to the best of the others, a trace for each number of processes.
fn ratios(rows: &[&Row], key: &dyn Fn(&Row) -> String) -> Vec<View> {
    let views = grouped(rows, key).into_iter().map(|(group, rows)| {
        let mut all = Vec::new();
        let of_processes = grouped(&rows, &|row| row.processes().to_string());
        let traces = of_processes.iter().map(|(processes, rows)| {
            let points_of = rows
                .iter()
                .filter_map(|row| Some((title_of(row), row.ratio_to_best()?)));
            let these: Vec<_> = points_of.collect();
            all.extend(
                these
                    .iter()
                    .map(|(name, ratio)| (format!("{name}, {processes}"), *ratio)),
            );
            let plural = if processes == "1" { "" } else { "es" };
            points(format!("{processes} process{plural}"), &these)
        });
        let traces: Vec<_> = traces.collect();
        let rows = grouped(&rows, &title_of).len();
        let layout = layout_of_ratios(rows, "ats over the best of the others (log)");
        View::new("", &group, sentence_of_ratios(&all), traces, layout)
    });
    views.collect()
}

/// Points for the ratios to each of the others.
fn ratios_by_side(rows: &[&Row], key: &dyn Fn(&Row) -> String) -> Vec<View> {
    let key = |row: &Row| {
        let key = key(row);
        match row.processes() {
            1 => key,
            more => format!("{key} ({more} threads)"),
        }
    };
    let views = grouped(rows, &key).into_iter().map(|(group, rows)| {
        let mut sides: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
        for row in &rows {
            for side in row.sides().iter().skip(1) {
                if let Some(ratio) = row.ratio(side) {
                    let title = title_of(row);
                    let title = title
                        .split_once(": ")
                        .map_or(title.as_str(), |(_, rest)| rest);
                    let side = sides.entry(side.clone()).or_default();
                    side.push((title.to_string(), ratio));
                }
            }
        }
        let all: Vec<_> = sides
            .iter()
            .flat_map(|(side, of)| {
                of.iter()
                    .map(move |(name, at)| (format!("{name}, {side}"), *at))
            })
            .collect();
        let traces = sides
            .iter()
            .map(|(side, ratios)| points(format!("over {side}"), ratios));
        let layout = layout_of_ratios(
            grouped(&rows, &title_of).len(),
            "how many times as good (log)",
        );
        View::new(
            "",
            &group,
            sentence_of_ratios(&all),
            traces.collect(),
            layout,
        )
    });
    views.filter(|view| !view.traces.is_empty()).collect()
}

/// Lines of throughput over processes, a view for each workload.
fn lines(rows: &[&Row]) -> Vec<View> {
    let key = |row: &Row| format!("{}|{}, {}", set_of(row), title_of(row), row.text("field"));
    let views = grouped(rows, &key).into_iter().filter_map(|(_, rows)| {
        let first = rows.first()?;
        let traces = first.sides().into_iter().map(|side| {
            let of_side = rows.iter().filter_map(|row| {
                let samples = row.samples(&side);
                let most = samples.iter().copied().reduce(f64::max)?;
                let least = samples.iter().copied().reduce(f64::min)?;
                let middle = row.median(&side)?;
                let rates = [middle, most - middle, middle - least];
                Some((row.processes(), rates.map(|rate| rate / 1e6)))
            });
            let of_side: Vec<(u64, [f64; 3])> = of_side.collect();
            let column =
                |at: usize| -> Vec<f64> { of_side.iter().map(|(_, rates)| rates[at]).collect() };
            json!({
                "type": "scatter", "mode": "lines+markers", "name": side,
                "x": of_side.iter().map(|point| point.0).collect::<Vec<_>>(),
                "y": column(0),
                "error_y": {
                    "type": "data", "symmetric": false, "thickness": 1,
                    "array": column(1),
                    "arrayminus": column(2),
                },
            })
        });
        let at_most = rows.iter().max_by_key(|row| row.processes())?;
        let group = format!(
            "{}, {}, {}",
            first.text("type"),
            first.text("keys"),
            set_of(first)
        );
        let mut shows = match at_most.ratio_to_best() {
            Some(ratio) => format!(
                "{group}: with {} processes ats has {} times the throughput of the best other",
                at_most.processes(),
                short(ratio)
            ),
            None => format!("{group}: ats alone"),
        };
        if let Some(loop_ns) = first.0["loop_ns"].as_f64() {
            shows += &format!(
                "; drawing operations and keys takes {} ns of each",
                short(loop_ns)
            );
        }
        let layout = json!({
            "xaxis": { "title": { "text": "processes" }, "type": "log", "tickmode": "array",
                       "tickvals": [1, 2, 4, 8, 16, 32, 64, 128] },
            "yaxis": { "title": { "text": "million operations/s" }, "rangemode": "tozero" },
        });
        let traces = traces.collect();
        Some(View::new(
            &group,
            first.text("name"),
            shows + ".",
            traces,
            layout,
        ))
    });
    views.collect()
}

/// Returns the number of objects of a row of [`select_curves`].
fn paths_of(row: &Row) -> Option<(&str, f64)> {
    let (bound, rest) = row.text("name").split_once(", 5^")?;
    let power: i32 = rest.strip_suffix(" paths")?.parse().ok()?;
    Some((bound, 5_f64.powi(power)))
}

fn others_than_paths<'a>(rows: &[&'a Row]) -> Vec<&'a Row> {
    rows.iter()
        .copied()
        .filter(|row| paths_of(row).is_none())
        .collect()
}

/// Microseconds of a call over the number of objects.
fn select_curves(rows: &[&Row]) -> Vec<View> {
    let rows: Vec<&Row> = rows
        .iter()
        .copied()
        .filter(|row| paths_of(row).is_some())
        .collect();
    let bound = |row: &Row| paths_of(row).map_or(String::new(), |(bound, _)| bound.to_string());
    let views = grouped(&rows, &bound).into_iter().filter_map(|(bound, mut rows)| {
        rows.sort_by(|a, b| paths_of(a).partial_cmp(&paths_of(b)).expect("numbers"));
        let first = rows.first()?;
        let traces = first.sides().into_iter().map(|side| {
            let (x, y): (Vec<f64>, Vec<f64>) = rows
                .iter()
                .filter_map(|row| Some((paths_of(row)?.1, 1e6 / row.median(&side)?)))
                .unzip();
            json!({ "type": "scatter", "mode": "lines+markers", "name": side, "x": x, "y": y })
        });
        // Some sides were measured only up to a number of objects.
        let mut shows = String::new();
        for side in first.sides().iter().skip(1) {
            let most = rows.iter().rev().find(|row| row.ratio(side).is_some())?;
            shows += &format!(
                "Of {} objects, {} answers {} times as fast as {side}. ",
                paths_of(most)?.1,
                first.sides()[0],
                short(most.ratio(side)?)
            );
        }
        let layout = json!({
            "xaxis": { "type": "log", "title": { "text": "objects" }, "dtick": 1 },
            "yaxis": { "type": "log", "title": { "text": "microseconds of a call" }, "dtick": 1 },
        });
        Some(View::new("", &bound, shows, traces.collect(), layout))
    });
    views.collect()
}

/// Bars of bytes.
fn bytes(rows: &[&Row]) -> Vec<View> {
    let views = ["rates", "resident"].into_iter().filter_map(|what| {
        let bytes = |row: &Row, side: &str| {
            let all = row.0[what][side]
                .as_array()?
                .iter()
                .filter_map(Value::as_f64)
                .collect();
            ats_bench_common::median(all)
        };
        let first = rows.first()?;
        let traces = first.sides().into_iter().map(|side| {
            json!({
                "type": "bar", "name": side,
                "x": rows.iter().map(|row| title_of(row)).collect::<Vec<_>>(),
                "y": rows.iter().map(|row| bytes(row, &side)).collect::<Vec<_>>(),
            })
        });
        let (ours, theirs) = (bytes(first, "ats")?, bytes(first, "ets")?);
        let shows = format!(
            "{}: {} bytes with ats, {} with ets.",
            title_of(first),
            short(ours),
            short(theirs)
        );
        let name = match what {
            "rates" => "as info(Table, memory) says",
            _ => "as is resident in the machine",
        };
        let layout = json!({ "yaxis": { "title": { "text": "bytes" } }, "barmode": "group" });
        Some(View::new("", name, shows, traces.collect(), layout))
    });
    views.collect()
}

/// Returns the part of calls that took at most this time.
fn distribution(name: &str, times: &Value) -> Value {
    let pairs: Vec<(f64, f64)> = times
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pair| Some((pair[0].as_f64()?, pair[1].as_f64()?)))
        .collect();
    let labels: Vec<String> = pairs.iter().map(|(part, _)| percent(*part)).collect();
    let times: Vec<f64> = pairs.iter().map(|(_, time)| *time).collect();
    json!({ "type": "bar", "name": name, "x": labels, "y": times })
}

fn percent(part: f64) -> String {
    match part {
        1.0 => "longest".to_string(),
        _ => format!("p{}", (part * 1e6).round() / 1e4),
    }
}

fn layout_of_times() -> Value {
    json!({
        "xaxis": { "type": "category", "title": { "text": "part of the calls" } },
        "yaxis": { "type": "log", "title": { "text": "microseconds at most" }, "dtick": 1 },
        "barmode": "group",
    })
}

/// Returns the time that this part of the calls took at most.
fn time_at(times: &Value, part: f64) -> Option<f64> {
    let all = times.as_array()?;
    all.iter().find(|pair| pair[0].as_f64() == Some(part))?[1].as_f64()
}

fn latencies(rows: &[&Row]) -> Vec<View> {
    let key = |row: &Row| format!("{} on a {}", row.text("name"), row.text("type"));
    let views = grouped(rows, &key).into_iter().flat_map(|(call, rows)| {
        ["lookup", "message"].map(|what| {
            let traces = rows
                .iter()
                .map(|row| distribution(row.text("side"), &row.0[what]));
            let shows = rows.iter().filter_map(|row| {
                let time = time_at(&row.0[what], 0.999)?;
                Some(format!("{} us with {}", short(time), row.text("side")))
            });
            let shows: Vec<String> = shows.collect();
            let shows = format!("999 of 1000 took at most {}.", shows.join(", "));
            View::new(what, &call, shows, traces.collect(), layout_of_times())
        })
    });
    views.collect()
}

fn osmos(rows: &[&Row]) -> Vec<View> {
    if rows.is_empty() {
        return Vec::new();
    }
    let traces = rows
        .iter()
        .map(|row| distribution(row.text("name"), &row.0["times"]));
    let shows = rows.iter().filter_map(|row| {
        let time = time_at(&row.0["times"], 0.999)?;
        Some(format!("{}: {} us", row.text("name"), short(time)))
    });
    let shows: Vec<String> = shows.collect();
    let shows = format!("999 of 1000 took at most: {}.", shows.join("; "));
    vec![View::new(
        "",
        "",
        shows,
        traces.collect(),
        layout_of_times(),
    )]
}

/// Returns the curves of the model.
fn curves(rows: &[Row]) -> Vec<View> {
    let views = rows.iter().map(|row| {
        let series = row.0["series"].as_array().into_iter().flatten();
        let traces = series.flat_map(|series| {
            let points = |name: &str, mode: &str| {
                let pairs = series[name].as_array().into_iter().flatten();
                let (x, y): (Vec<_>, Vec<_>) =
                    pairs.map(|pair| (pair[0].clone(), pair[1].clone())).unzip();
                let dash = if series["dashed"] == json!(true) {
                    "dash"
                } else {
                    "solid"
                };
                json!({ "type": "scatter", "mode": mode, "name": series["name"], "x": x, "y": y,
                        "legendgroup": series["name"], "showlegend": mode == "lines",
                        "line": { "dash": dash } })
            };
            [points("line", "lines"), points("dots", "markers")]
        });
        let log = |title: &str| {
            json!({ "type": "log", "title": { "text": title }, "tickmode": "array",
                    "tickvals": [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] })
        };
        let layout =
            json!({ "xaxis": log(row.text("x_title")), "yaxis": log(row.text("y_title")) });
        let shows = format!("{}: lines are the model.", row.text("title"));
        View::new("", row.text("title"), shows, traces.collect(), layout)
    });
    views.collect()
}
