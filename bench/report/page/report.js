"use strict";
// Draws the charts of the page with plotly.js, in the colours of the page.
const charts = JSON.parse(document.getElementById("charts").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const colours = ["#2f86d6", "#e0862c", "#3fa65f", "#b45fc8", "#d04f5f", "#97972a", "#2aa5a8"];
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Names break into lines where there is little room.
function broken(text, width) {
  if (typeof text !== "string") return text;
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines[lines.length - 1];
    if (last && last.length + word.length >= width) lines.push(word);
    else lines[lines.length - 1] = last ? last + " " + word : word;
  }
  return lines.join("<br>");
}

// Each line over the highest at the same place.
function relative(traces) {
  const best = {};
  for (const t of traces) t.x.forEach((x, i) => { best[x] = Math.max(best[x] || 0, t.y[i]); });
  return traces.map((t) => ({ ...t, error_y: undefined, y: t.y.map((y, i) => y / best[t.x[i]]) }));
}

function draw(chart, state) {
  const narrow = state.plot.clientWidth < 640;
  const view = chart.views[state.at];
  const axis = { gridcolor: style("--line"), zerolinecolor: style("--line"), automargin: true };
  const { rows, ...own } = view.layout;
  const named = own.yaxis && own.yaxis.type === "category";
  let traces = view.traces;
  if (state.ratio) traces = relative(traces);
  const wrap = (values) => values.map((value) => broken(value, narrow ? 22 : Infinity));
  traces = traces.map((t) => ({ ...t, ...(named ? { y: wrap(t.y) } : {}) }));
  // All rows, without room before the first and behind the last.
  const last = new Set(traces.flatMap((t) => t.y)).size - 0.5;
  const whole = { autorange: false, range: [last, -0.5] };
  // The numbers stand where reading begins.
  const ratios = traces.flatMap((t) => t.x);
  const decades = Math.log10(Math.max(...ratios) / Math.min(...ratios));
  const top = { side: "top", title: narrow ? {} : { ...(own.xaxis || {}).title, standoff: 6 },
                ...(narrow && decades > 2 ? { dtick: 1 } : {}) };
  const lines = Math.max(...traces.flatMap((t) => t.y.map((y) => String(y).split("<br>").length)));
  const room = named ? Math.max(320, 140 + rows * (10 + 14 * lines)) : narrow ? 420 : 460;
  const layout = {
    ...own, height: room, colorway: colours, paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)", font: { color: style("--ink"), size: narrow ? 11 : 13 },
    margin: { l: narrow ? 8 : 60, r: 12, t: 16, b: 40 },
    legend: { orientation: "h", y: named ? 1 + (narrow ? 30 : 52) / room : -0.25, x: 0,
              yanchor: named ? "bottom" : "top" },
    hoverlabel: { namelength: -1 },
    xaxis: { ...axis, ...own.xaxis, ...(named ? top : {}) },
    yaxis: { ...axis, ...own.yaxis, ...(named ? whole : {}) },
    shapes: (own.shapes || []).map((s) => ({ ...s, line: { ...s.line, color: style("--soft") } })),
  };
  if (state.ratio) layout.yaxis.title = { text: "over the best" };
  state.shows.textContent = view.shows;
  const options = { responsive: true, displaylogo: false, displayModeBar: false };
  return Plotly.newPlot(state.plot, traces, layout, options).then(() => {
    if (view.frames.length) return Plotly.addFrames(state.plot, view.frames);
  });
}

function control(name, element, parent) {
  const label = document.createElement("label");
  label.append(name, " ", element);
  parent.append(label);
}

function setUp(chart) {
  const section = document.getElementById(chart.id);
  const state = { at: 0, ratio: false, plot: section.querySelector(".plot"),
                  shows: section.querySelector(".shows") };
  const controls = section.querySelector(".controls");
  if (chart.views.length > 1) {
    const select = document.createElement("select");
    const groups = new Map();
    chart.views.forEach((view, at) => {
      const option = new Option(view.name, at);
      if (!view.group) return select.append(option);
      if (!groups.has(view.group)) {
        const group = document.createElement("optgroup");
        group.label = view.group;
        groups.set(view.group, group);
        select.append(group);
      }
      groups.get(view.group).append(option);
    });
    select.onchange = () => { state.at = Number(select.value); return draw(chart, state); };
    control("show", select, controls);
  }
  if (chart.ratio) {
    const box = Object.assign(document.createElement("input"), { type: "checkbox" });
    box.onchange = () => { state.ratio = box.checked; return draw(chart, state); };
    control("as ratios to the best", box, controls);
  }
  dark.addEventListener("change", () => draw(chart, state));
  return draw(chart, state);
}

Promise.all(charts.map(setUp)).then(() => { document.body.dataset.drawn = charts.length; });
