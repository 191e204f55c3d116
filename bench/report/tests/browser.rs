//! Looks at the report in Chromium: everything is drawn and can be clicked, nothing is wider than
//! the page, and no error comes up; on narrow and on wide pages, in dark and in light colours.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Notes errors, from the first line of the page on.
const NOTE: &str = r#"<script>
const problems = [];
addEventListener("error", (event) => problems.push(String(event.message)));
addEventListener("unhandledrejection", (event) => problems.push(String(event.reason)));
for (const level of ["error", "warn"]) {
  const said = console[level];
  console[level] = (...all) => { problems.push(all.join(" ")); said(...all); };
}
</script>"#;

/// Clicks on everything once all is drawn, and tells the page around.
const CLICK: &str = r#"<script>
const pause = () => new Promise((go) => setTimeout(go, 50));
async function click() {
  while (!document.body.dataset.drawn) await pause();
  for (const select of document.querySelectorAll("select")) {
    for (const option of [...select.options].reverse()) {
      select.value = option.value;
      await select.onchange();
      const plot = select.closest("section").querySelector(".plot");
      if (!plot.querySelector(".main-svg")) problems.push("not drawn: " + option.label);
      if (!plot._fullLayout.sliders || !plot._fullLayout.sliders.length) continue;
      const steps = plot._fullLayout.sliders[0].steps;
      await Plotly.animate(plot, ...steps[steps.length - 1].args);
    }
  }
  for (const box of document.querySelectorAll("input[type=checkbox]")) {
    box.checked = true;
    await box.onchange();
    box.checked = false;
    await box.onchange();
  }
  let hidden = 0;
  for (const plot of document.querySelectorAll(".plot")) {
    await Plotly.restyle(plot, { visible: "legendonly" }, [0]);
    await Plotly.restyle(plot, { visible: true }, [0]);
    hidden += 1;
  }
  for (const { name } of performance.getEntriesByType("resource")) {
    if (!name.startsWith("data:")) problems.push("needs " + name);
  }
  const page = document.documentElement;
  for (const part of document.body.querySelectorAll("*")) {
    if (page.scrollWidth <= page.clientWidth || part.closest(".scroll, svg, .plot")) continue;
    const right = part.getBoundingClientRect().right;
    if (right > page.clientWidth) problems.push("too wide: " + part.outerHTML.slice(0, 200));
  }
  if (page.scrollWidth > page.clientWidth) problems.push("too wide: " + page.scrollWidth);
  const drawn = document.querySelectorAll(".plot .main-svg").length;
  parent.postMessage({ problems, drawn, hidden, width: page.clientWidth,
                       dark: matchMedia("(prefers-color-scheme: dark)").matches }, "*");
}
click().catch((error) => parent.postMessage({ problems: [...problems, String(error)] }, "*"));
</script>"#;

#[test]
fn every_chart_is_drawn_and_can_be_clicked() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    let _ = fs::remove_dir_all(&folder);
    write_figures(&folder);
    let drawn = Command::new(env!("CARGO_BIN_EXE_ats-bench-report"))
        .args(["--quick", "--draw", "--folder"])
        .arg(&folder)
        .status();
    assert!(drawn.expect("the report runs").success());
    let page = fs::read_to_string(folder.join("report.html")).expect("a report");
    let watched = page.replacen("<head>", &format!("<head>{NOTE}"), 1);
    let watched = watched.replacen("</body>", &format!("{CLICK}</body>"), 1);
    fs::write(folder.join("watched.html"), watched).expect("a page");
    for width in [400, 1600] {
        for dark in [false, true] {
            let result = look(&folder, width, dark);
            assert_eq!(
                result["problems"],
                json!([]),
                "{width} pixels, dark: {dark}"
            );
            assert_eq!(result["width"], json!(width));
            assert_eq!(result["dark"], json!(dark));
            assert!(result["hidden"].as_u64() > Some(10), "{result}");
        }
    }
}

/// Opens the page in a frame of a width, takes a picture of it, and returns its report.
fn look(folder: &Path, width: u32, dark: bool) -> Value {
    let frame = folder.join(format!("frame-{width}.html"));
    let text = format!(
        "<body style=\"margin:0\"><iframe src=\"watched.html\" width={width} height=9000 \
         style=\"border:0\" scrolling=no></iframe><pre id=result></pre><script>\
         const result = document.getElementById('result');\
         onmessage = (event) => {{ result.textContent = JSON.stringify(event.data); }};</script>"
    );
    fs::write(&frame, text).expect("a frame");
    let scheme = if dark { 0 } else { 1 };
    let name = if dark { "dark" } else { "light" };
    let run = |last: &str| {
        let output = Command::new("chromium")
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
            ])
            .args(["--window-size=1700,9000", "--virtual-time-budget=120000"])
            .arg("--host-resolver-rules=MAP * ~NOTFOUND")
            .arg(format!("--blink-settings=preferredColorScheme={scheme}"))
            .args([last.to_string(), format!("file://{}", frame.display())])
            .output();
        output.expect("chromium is there (Debian: chromium)").stdout
    };
    let picture: PathBuf = folder.join(format!("{width}-{name}.png"));
    run(&format!("--screenshot={}", picture.display()));
    let page = String::from_utf8(run("--dump-dom")).expect("a text");
    let result = page.split_once("<pre id=\"result\">").map(|(_, rest)| rest);
    let result = result
        .and_then(|rest| rest.split_once("</pre>"))
        .map(|(result, _)| result);
    let result = result
        .unwrap_or_default()
        .replace("&lt;", "<")
        .replace("&gt;", ">");
    serde_json::from_str(&result.replace("&amp;", "&"))
        .unwrap_or_else(|_| panic!("no result: {page}"))
}

/// Writes figures of all experiments as their commands do.
fn write_figures(folder: &Path) {
    let workload = |name: &str, set: &str, kind: &str, field: &str, sides: &[&str]| {
        let rows = [1, 2, 4].map(|processes| {
            let rates = sides.iter().enumerate().map(|(at, side)| {
                let rate = 1e6 * f64::from(processes) / (1.0 + at as f64);
                (side.to_string(), json!([rate, 1.1 * rate, 0.9 * rate]))
            });
            json!({ "kind": "workload", "name": name, "field": field, "keys": "Int", "set": set,
                    "type": kind, "processes": processes, "sides": sides, "better": "more",
                    "loop_ns": 20.5, "rates": rates.collect::<serde_json::Map<_, _>>() })
        });
        rows.to_vec()
    };
    let ets = ["ats", "ets", "ets wc"];
    let mixes = [
        "100 % lookup",
        "50 % insert, 50 delete",
        "40 % lookup, 20 updates, 40 chains of 10 next",
    ];
    let both = ["set", "ordered_set"];
    let of_set = |set: &str, field: &str| -> Vec<Value> {
        let all = mixes
            .iter()
            .flat_map(|mix| both.map(|kind| workload(mix, set, kind, field, &ets)));
        all.flatten().collect()
    };
    let selects = ["unconstrained", "prefix bound"].iter().flat_map(|bound| {
        (1..6).map(move |power| {
            json!({
            "kind": "workload", "name": format!("{bound}, 5^{power} paths"), "field": "select",
            "set": "new", "keys": "Term", "type": "ordered_set", "processes": 1, "better": "more",
            "sides": ["ats", "ets"], "rates": { "ats": [1e6], "ets": [2e5] } })
        })
    });
    let mut selects: Vec<Value> = selects.collect();
    selects.extend(workload("a point", "new", "set", "select", &["ats", "ets"]));
    let on_disk = (1..6).map(|power| {
        json!({
        "kind": "workload", "name": format!("prefix bound on disk, 5^{power} paths"),
        "field": "select", "set": "new", "keys": "Term", "type": "ordered_set", "processes": 1,
        "better": "more", "sides": ["dats", "dets", "ets"],
        "rates": { "dats": [1e5], "dets": [2e2], "ets": [5e5] } })
    });
    let disjoint = workload(
        "insert 1000 integers, disjoint ranges",
        "new",
        "ordered_set",
        "ets",
        &ets,
    );
    let times = json!([[0.5, 1.5], [0.99, 20.0], [0.999, 900.0], [1.0, 2000.0]]);
    let latency = ["ats", "ets"].map(|side| {
        json!({
        "kind": "latency", "name": "tab2list", "side": side, "type": "set", "lookup": times,
        "message": times })
    });
    let memory = both.map(|kind| {
        json!({
        "kind": "memory", "objects": "{Int,Int}", "type": kind, "better": "less", "sides": ets,
        "rates": { "ats": [55.0], "ets": [64.0], "ets wc": [64.0] },
        "resident": { "ats": [56.0], "ets": [72.0], "ets wc": [null] } })
    });
    let maps = ["random inserts", "8 bytes: random inserts"].map(|name| {
        json!({
        "kind": "native", "name": name, "threads": 2,
        "rates": { "ats": [2e6, 3e6], "masstree": [3e6, 3e6] } })
    });
    let disk = [
        json!({ "kind": "disk", "name": "lookup", "unit": "s", "better": "less",
                "sides": ["dets", "dats", "bitcask"],
                "rates": { "dets": [3.0], "dats": [1.0], "bitcask": [0.5] } }),
        json!({ "kind": "disk_latency", "name": "osmos: write", "times": times }),
    ];
    let engines = [
        json!({ "kind": "disk", "name": "merges", "unit": "1/s", "better": "more",
                           "rates": { "ats": [9e5], "redb": [1e4], "rocksdb": [4e5] } }),
    ];
    let trees = (0..40_i64).map(|at| {
        let mut nodes = vec![json!([0])];
        for base in 0..=at {
            if base % 10 == 0 {
                nodes.push(json!([1]));
            }
            nodes.push(json!([2, 300 * (base % 9) - 1200, base, 1000 * base]));
        }
        json!({ "kind": "tree", "ms": 100 * at, "phase": "two_writers", "nodes": nodes })
    });
    let trace = (0..200).map(|at| {
        json!({
        "ms": 20 * at, "phase": "two_writers", "route_nodes": at / 40, "base_nodes": 1 + at,
        "contended": 10 * at, "uncontended": 1000 * at })
    });
    let curves = [json!({
        "kind": "curves", "title": "by the model", "x_title": "cores", "y_title": "speed",
        "series": [{ "name": "set", "line": [[1, 1], [128, 90]], "dots": [], "dashed": true }] })];
    let experiments: Vec<(&str, Vec<Value>)> = vec![
        ("integers-wide", of_set("wide", "ets")),
        ("integers-hot", of_set("hot", "ets")),
        ("options-of-ets", of_set("wide", "options")),
        ("locks-of-ets", of_set("wide", "locks")),
        ("counters-of-ets", of_set("hot", "counters")),
        ("stores", of_set("hot", "stores")),
        ("select", selects),
        ("select-on-disk", on_disk.collect()),
        ("insert-disjoint-ranges", disjoint),
        ("memory", memory.to_vec()),
        ("latency", latency.to_vec()),
        ("rust-maps", maps.to_vec()),
        ("tables-on-disk", disk.to_vec()),
        ("stores-on-disk", engines.to_vec()),
        ("adaptation", trace.chain(trees).collect()),
        ("scaling", curves.to_vec()),
    ];
    for (name, rows) in experiments {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        fs::write(folder.join("figures.jsonl"), lines).expect("figures");
        let done = json!({ "seconds": 1, "load_before": 0.1, "stolen_percent": 0.0,
                           "machine": { "processor": "a <fast> one" } });
        fs::write(folder.join("done.json"), done.to_string()).expect("a note");
    }
}
