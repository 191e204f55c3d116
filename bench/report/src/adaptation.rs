//! The adaptation of a tree: the number of its nodes over time, and the nodes themselves with a
//! slider.

use crate::data::Row;
use crate::view::View;
use serde_json::{Value, json};

/// The most trees that the slider goes through.
const MOST_TREES: usize = 90;
/// The colours from no contention to much.
const COLOURS: [(f64, &str); 3] = [(0.0, "#2f6fd0"), (0.57, "#b5b08f"), (1.0, "#d0302f")];

/// Returns the nodes over time, and the tree.
pub fn adaptation(rows: &[Row]) -> Vec<View> {
    let (trees, samples): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.text("kind") == "tree");
    let tree = slider(&trees);
    tree.into_iter().chain(over_time(&samples)).collect()
}

fn number(row: &Row, name: &str) -> f64 {
    row.0[name].as_f64().unwrap_or_default()
}

fn over_time(samples: &[&Row]) -> Option<View> {
    let column = |name: &str| -> Vec<f64> { samples.iter().map(|row| number(row, name)).collect() };
    let last = samples.last()?;
    let most = column("base_nodes").into_iter().fold(1.0, f64::max);
    let shows = format!(
        "The tree has up to {most} base nodes while processes contend, and {} in the end.",
        number(last, "base_nodes")
    );
    let seconds: Vec<f64> = column("ms").iter().map(|ms| ms / 1000.0).collect();
    let phases: Vec<&str> = samples.iter().map(|row| row.text("phase")).collect();
    let line = |name: &str, label: &str| {
        json!({ "type": "scatter", "mode": "lines", "name": label, "x": seconds,
                "y": column(name), "text": phases, "line": { "shape": "hv" } })
    };
    Some(View::new(
        "",
        "number of nodes over time",
        shows,
        vec![
            line("base_nodes", "base nodes"),
            line("route_nodes", "route nodes"),
        ],
        json!({ "xaxis": { "title": { "text": "seconds" } },
                "yaxis": { "title": { "text": "nodes" }, "type": "log", "dtick": 1 } }),
    ))
}

/// A node with its place: base nodes are side by side, a route node is above its children.
struct Node<'r> {
    depth: usize,
    x: f64,
    /// The statistics, waits, and turns without a wait of a base node.
    base: Option<&'r [Value]>,
    /// The route node above, as a place in the list of all.
    above: Option<usize>,
}

/// Returns the nodes of a tree in the order of their keys, route nodes before their children.
fn nodes_of(row: &Row) -> Vec<Node<'_>> {
    let listed = row.0["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    let listed = listed.iter().filter_map(|node| {
        let (depth, base) = node.as_array()?.split_first()?;
        Some((depth.as_u64()? as usize, base))
    });
    let mut nodes: Vec<Node<'_>> = Vec::new();
    // The last node of each depth that is above the next one.
    let mut path: Vec<usize> = Vec::new();
    let mut bases = 0_u32;
    for (depth, base) in listed {
        path.truncate(depth);
        let above = path.last().copied();
        path.push(nodes.len());
        let base = (!base.is_empty()).then_some(base);
        let x = f64::from(bases) + 0.5;
        bases += u32::from(base.is_some());
        nodes.push(Node {
            depth,
            x,
            base,
            above,
        });
    }
    for node in &mut nodes {
        node.x /= f64::from(bases.max(1));
    }
    // Places each node in the middle between its first and last child. Children come later in the
    // list.
    for at in (0..nodes.len()).rev() {
        let below = nodes.iter().filter(|node| node.above == Some(at));
        let places: Vec<f64> = below.map(|node| node.x).collect();
        if let (Some(first), Some(last)) = (places.first(), places.last()) {
            nodes[at].x = (first + last) / 2.0;
        }
    }
    nodes
}

/// Returns the traces of a tree.
fn traces_of(nodes: &[Node<'_>]) -> Vec<Value> {
    let y = |node: &Node<'_>| -(node.depth as f64);
    let (mut edge_x, mut edge_y) = (Vec::new(), Vec::new());
    for node in nodes {
        if let Some(above) = node.above.map(|above| &nodes[above]) {
            edge_x.extend([json!(above.x), json!(node.x), Value::Null]);
            edge_y.extend([json!(y(above)), json!(y(node) + 0.2), Value::Null]);
        }
    }
    let routes = nodes.iter().filter(|node| node.base.is_none());
    let (route_x, route_y): (Vec<f64>, Vec<f64>) = routes.map(|node| (node.x, y(node))).unzip();
    let bases: Vec<(&Node<'_>, &[Value])> = nodes
        .iter()
        .filter_map(|node| Some((node, node.base?)))
        .collect();
    let width = 0.9 / bases.len().max(1) as f64;
    let statistics = |base: &[Value]| base.first().and_then(Value::as_f64).unwrap_or_default();
    let texts = bases.iter().map(|(_, base)| {
        let number = |at: usize| base.get(at).and_then(Value::as_u64).unwrap_or_default();
        format!(
            "statistics {},<br>{} waits, {} turns without",
            statistics(base),
            number(1),
            number(2)
        )
    });
    // Colours by orders of magnitude: statistics of quiet nodes go far below zero before they are
    // joined.
    let colours = bases.iter().map(|(_, base)| {
        let statistics = statistics(base);
        statistics.signum() * (1.0 + statistics.abs()).log10()
    });
    vec![
        json!({ "type": "scatter", "mode": "lines", "x": edge_x, "y": edge_y, "hoverinfo": "skip",
                "line": { "width": 1, "color": "#888" } }),
        json!({ "type": "bar", "name": "base node",
                "x": bases.iter().map(|(node, _)| node.x).collect::<Vec<_>>(),
                "y": vec![0.5; bases.len()],
                "base": bases.iter().map(|(node, _)| y(node) - 0.3).collect::<Vec<_>>(),
                "width": vec![width; bases.len()],
                "hovertext": texts.collect::<Vec<_>>(), "hoverinfo": "text",
                "marker": {
                    "color": colours.collect::<Vec<_>>(), "line": { "width": 0 },
                    "cmin": -4, "cmax": 3, "colorscale": COLOURS, "showscale": true,
                    "colorbar": { "title": { "text": "statistics" }, "thickness": 10,
                                  "orientation": "h", "x": 0.5, "y": 1.0, "yanchor": "bottom",
                                  "tickvals": [-4, -3, -2, 0, 2, 3],
                                  "ticktext": ["-10000", "-1000", "-100", "0", "100", "1000"] }
                } }),
        json!({ "type": "scatter", "mode": "markers", "name": "route node", "x": route_x,
                "y": route_y, "hovertext": "route node", "hoverinfo": "text",
                "marker": { "size": 12, "symbol": "diamond", "color": "#888" } }),
    ]
}

/// Returns the trees with a slider, beginning with the largest.
fn slider(trees: &[&Row]) -> Option<View> {
    let step = trees.len().div_ceil(MOST_TREES).max(1);
    let trees: Vec<(String, Vec<Node<'_>>)> = trees
        .iter()
        .step_by(step)
        .map(|row| {
            let seconds = number(row, "ms") / 1000.0;
            let phase = row.text("phase").replace('_', " ");
            (format!("{seconds:.2} s, {phase}"), nodes_of(row))
        })
        .collect();
    let bases = |nodes: &[Node<'_>]| nodes.iter().filter(|node| node.base.is_some()).count();
    let (at, (name, most)) = trees
        .iter()
        .enumerate()
        .max_by_key(|(_, (_, nodes))| bases(nodes))?;
    let deepest = trees.iter().flat_map(|(_, nodes)| nodes);
    let deepest = deepest.map(|node| node.depth).max()? as f64;
    let shows = format!(
        "Most base nodes at {name}: {}, and {} above them; the slider goes through the phases.",
        bases(most),
        most.len() - bases(most)
    );
    let steps = trees.iter().map(|(name, _)| {
        json!({ "label": name, "method": "animate",
                "args": [[name], { "mode": "immediate", "transition": { "duration": 0 },
                                   "frame": { "duration": 0, "redraw": true } }] })
    });
    let layout = json!({
        "xaxis": { "visible": false, "range": [0, 1], "fixedrange": true },
        "yaxis": { "visible": false, "range": [-deepest - 0.5, 0.5], "fixedrange": true },
        "showlegend": false,
        "barmode": "overlay",
        "sliders": [{ "active": at, "steps": steps.collect::<Vec<_>>(), "pad": { "t": 20 },
                      "ticklen": 0, "font": { "size": 1, "color": "rgba(0,0,0,0)" },
                      "minorticklen": 0,
                      "currentvalue": { "prefix": "", "font": { "size": 14, "color": "#888" } } }],
    });
    let mut view = View::new(
        "",
        "the tree, with a slider",
        shows,
        traces_of(most),
        layout,
    );
    let frames = trees
        .iter()
        .map(|(name, nodes)| json!({ "name": name, "data": traces_of(nodes) }));
    view.frames = frames.collect();
    Some(view)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_hang_from_the_route_node_before_them() {
        let nodes = json!({ "nodes": [
            [0], [1], [2, 0, 1, 2], [2, 5, 1, 2], [1, -7, 1, 2]] });
        let row = Row(nodes);
        let nodes = nodes_of(&row);
        let above: Vec<_> = nodes.iter().map(|node| node.above).collect();
        assert_eq!(above, [None, Some(0), Some(1), Some(1), Some(0)]);
        let places: Vec<_> = nodes.iter().map(|node| (node.x * 6.0).round()).collect();
        assert_eq!(places, [4.0, 2.0, 1.0, 3.0, 5.0]);
    }
}
