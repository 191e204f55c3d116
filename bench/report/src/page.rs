//! The report as one file of HTML.

use crate::charts::{Chart, charts};
use crate::data::{Report, Row};
use crate::published::{Claim, Kind, PUBLISHED, claims};
use crate::view::View;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The place of the script that draws.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// The page has it, and needs no network.
    Inside,
    /// The page loads it from its publisher: four megabytes less.
    Linked,
}

/// Returns the text of the page.
pub fn html(report: &Report, script: Script) -> String {
    let charts = charts(report);
    let data: Vec<Value> = charts.iter().map(json_of).collect();
    // A text in it must not end the script.
    let data = json!(data).to_string().replace('<', "\\u003c");
    let links: String = charts
        .iter()
        .map(|chart| format!("<a href=\"#{}\">{}</a>", chart.id, escaped(chart.title)))
        .collect();
    let sections: String = charts.iter().map(section).collect();
    let warning = if report.quick {
        "<p class=\"shows\">A quick run: it shows that everything works. Its figures are \
                 rough.</p>"
    } else {
        ""
    };
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\"><title>ats: all measurements</title>\
         <style>{css}</style></head><body><h1>ats: all measurements</h1>{warning}\
         <p class=\"soft\">{machine}</p>\
         <p>More than 1 means that ats is better, less that it is worse. A click on a name in a \
         legend hides or shows its line.</p>\
         <nav>{links}<a href=\"#published\">Published figures</a>\
         <a href=\"#runs\">The runs</a></nav>{sections}{published}{runs}\
         <script type=\"application/json\" id=\"charts\">{data}</script>{plotly}\
         <script>{js}</script></body></html>",
        css = include_str!("../page/report.css"),
        js = include_str!("../page/report.js"),
        plotly = plotly_script(script),
        machine = escaped(&machine(report)),
        published = published(report),
        runs = runs(report),
    )
}

/// Returns the script that draws, without the one for formulas that comes behind it.
fn plotly_script(script: Script) -> String {
    let scripts = plotly::Plot::offline_js_sources();
    if script == Script::Linked {
        let (_, behind) = scripts
            .split_once("plotly.js v")
            .expect("the script has a version");
        let is_of_version = |c: char| c.is_ascii_digit() || c == '.';
        let version = behind.split(|c| !is_of_version(c)).next();
        let version = version.expect("a text has a first part");
        return format!("<script src=\"https://cdn.plot.ly/plotly-{version}.min.js\"></script>");
    }
    let end = scripts.find("</script>").expect("a script has an end");
    scripts[..end + "</script>".len()].to_string()
}

fn json_of(chart: &Chart) -> Value {
    let views: Vec<Value> = chart.views.iter().map(View::to_json).collect();
    json!({ "id": chart.id, "ratio": chart.has_ratio, "views": views })
}

fn section(chart: &Chart) -> String {
    format!(
        "<section id=\"{}\"><h2>{}</h2><p>{}</p><p class=\"shows\"></p>\
         <div class=\"controls\"></div><div class=\"plot\"></div></section>",
        chart.id,
        escaped(chart.title),
        escaped(chart.done)
    )
}

/// Returns the machine as the first experiment that knows it tells.
fn machine(report: &Report) -> String {
    let mut facts = Vec::new();
    for one in &report.measured {
        let all = [&one.done["machine"], &one.machine];
        for (name, value) in all.into_iter().filter_map(Value::as_object).flatten() {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_string);
            if name != "kind" && !facts.iter().any(|(known, _)| known == name) {
                facts.push((name.clone(), text));
            }
        }
    }
    let facts: Vec<String> = facts
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    facts.join(" · ")
}

/// Published figures of the works beside those here: which hold, which do not, and why.
fn published(report: &Report) -> String {
    let claims = claims(report);
    let measured = claims
        .iter()
        .filter(|claim| !matches!(claim.kind, Kind::More | Kind::Less) && claim.here.is_some());
    let holds = measured.clone().filter(|claim| claim.verdict() == "holds");
    let mut table = format!(
        "<section id=\"published\"><h2>Published figures</h2><p class=\"shows\">{} of {} published \
         ratios that were measured hold within a factor of one and a half.</p><p>A ratio on the \
         same side of 1 holds more or less so. Other figures are of the machines of their time.</p>\
         <div class=\"scroll claims\"><table><tr><th>work<th>figure\
         <th class=n>published<th class=n>here<th>outcome<th>why they may differ",
        holds.count(),
        measured.count()
    );
    for claim in &claims {
        let here = claim.here.map_or("–".to_string(), shown);
        let _ = write!(
            table,
            "<tr><td>{}<td>{}<td class=n>{}<td class=n>{here}<td>{}<td>{}",
            escaped(claim.work),
            escaped(&claim.what),
            shown(claim.published),
            claim.verdict(),
            escaped(claim.why)
        );
    }
    table + "</table></div>" + &mixes(report) + "</section>"
}

fn shown(number: f64) -> String {
    match number {
        100.0.. => format!("{number:.0}"),
        _ => format!("{number:.2}"),
    }
}

/// Returns the mixes of the Erlang/OTP blog.
fn mixes(report: &Report) -> String {
    let mut table = String::from(
        "<h2>Mixes of the throughput benchmark of ets</h2><p>The published figures are \
         those of the Erlang/OTP blog for 2 sockets of 16 cores with two threads each, in thousand \
         operations a second; those of this machine are medians for an ordered_set of 2^20 integer \
         keys and one process. What holds on both machines is the ratio.</p><div class=\"scroll\">\
         <table><tr><th>mix<th class=n>old, 1<th class=n>old, 64<th class=n>new, 1\
         <th class=n>new, 64<th class=n>ets here<th class=n>ets wc here<th class=n>ats here\
         <th class=n>new/old published<th class=n>wc/plain here<th>outcome",
    );
    for row in &PUBLISHED {
        let of_mix = |found: &&Row| {
            found.text("name") == row.workload
                && found.text("type") == "ordered_set"
                && found.text("keys") == "Int"
                && found.processes() == 1
        };
        let here = report.rows("integers-wide").iter().find(of_mix);
        let rate = |side: &str| here.and_then(|row| row.median(side)).map(|rate| rate / 1e3);
        let ratio = rate("ets wc")
            .zip(rate("ets"))
            .map(|(wc, plain)| wc / plain);
        let _ = write!(table, "<tr><td>{}", escaped(row.workload));
        let published = [row.old[0], row.old[1], row.new[0], row.new[1]].map(Some);
        let ours = [
            rate("ets"),
            rate("ets wc"),
            rate("ats"),
            Some(row.new[0] / row.old[0]),
            ratio,
        ];
        for number in published.into_iter().chain(ours) {
            let text = number.map_or("–".to_string(), shown);
            let _ = write!(table, "<td class=n>{text}");
        }
        let claim = Claim {
            kind: Kind::Ratio,
            work: "",
            what: String::new(),
            published: row.new[0] / row.old[0],
            here: ratio,
            why: "",
        };
        let _ = write!(table, "<td>{}", claim.verdict());
    }
    table + "</table></div>"
}

/// Returns the runs, and the other work of the machine meanwhile.
fn runs(report: &Report) -> String {
    let mut table = String::from(
        "<section id=\"runs\"><h2>The runs</h2><p>The load is that before a run began; 0 is a \
         machine with nothing else to do. Spread is the median over the rows of the distance \
         between the slowest and the fastest round of ats, over its median.</p>\
         <div class=\"scroll\"><table><tr><th>experiment<th>command<th class=n>seconds\
         <th class=n>load before<th class=n>stolen %<th class=n>spread %",
    );
    for one in &report.measured {
        let spreads = one.rows.iter().filter_map(Row::spread).collect();
        let spread = ats_bench_common::median(spreads);
        let spread = spread.map_or("–".to_string(), |spread| format!("{:.0}", 100.0 * spread));
        let _ = write!(
            table,
            "<tr><td>{}<td><code>{}</code><td class=n>{}<td class=n>{}<td class=n>{}<td class=n>{}",
            escaped(one.name),
            escaped(&one.command),
            one.done["seconds"],
            one.done["load_before"],
            one.done["stolen_percent"],
            spread
        );
    }
    table + "</table></div></section>"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
