//! Checks that the crates follow `docs/inside/house.md`: no two files of a crate import each other,
//! not even indirectly, and crates import only downwards, in the order drawn there. So do the rooms
//! of a crate that are drawn there.
//!
//! An import is a `use` or another path that leads to an item of another file, outside of code that
//! is compiled for tests only. An import through a re-export counts for the file that defines the
//! item. `mod` and `pub use` alone are no imports.

mod imports;
#[cfg(test)]
mod tests;

use imports::Imports;
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    let root = env::args().nth(1).unwrap_or_else(|| ".".into());
    match faults(Path::new(&root)) {
        Ok(faults) if faults.is_empty() => {
            println!("no circles, and nothing points up");
            ExitCode::SUCCESS
        }
        Ok(faults) => {
            println!("{}", faults.join("\n"));
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the faults of a house as sentences.
fn faults(root: &Path) -> io::Result<Vec<String>> {
    let house = fs::read_to_string(root.join("docs/inside/house.md"))?;
    let mut crates = BTreeMap::new();
    for entry in fs::read_dir(root.join("crates"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        crates.insert(name.to_string(), imports::read(&path.join("src"))?);
    }
    let mut faults = Vec::new();
    let drawn = levels(
        &house,
        "crates",
        &crates.keys().map(|name| &name[..]).collect(),
    );
    for (name, imports) in &crates {
        let others = imports
            .crates
            .iter()
            .map(|(file, other)| (*file, other.replace('_', "-")));
        let up = others.filter(|(_, other)| crates.contains_key(other) && other != name);
        for (file, other) in up {
            let from = format!("crates/{name}/src/{}", imports.files[file]);
            faults.extend(upwards(&drawn, (name, &from), (&other, &other)));
        }
        faults.extend(circles(name, imports));
        faults.extend(rooms(&house, name, imports));
    }
    Ok(faults)
}

/// Returns the levels of rooms as a drawing has them, from the top. It is the first block of code
/// that names the folder; a line names the rooms of a level in columns, which are apart by two
/// spaces or more.
fn levels(house: &str, folder: &str, rooms: &BTreeSet<&str>) -> BTreeMap<String, usize> {
    let mut blocks = house.split("```").skip(1).step_by(2);
    let names = |line: &str| -> Vec<String> {
        let columns = line.split("  ").map(|column| column.trim());
        let columns = columns.map(|column| column.strip_prefix("crates/").unwrap_or(column));
        let is_room = |column: &&str| column.split(", ").all(|name| rooms.contains(name));
        let named = columns
            .filter(is_room)
            .flat_map(|column| column.split(", "));
        named.map(str::to_string).collect()
    };
    let is_of = |block: &&str| {
        block
            .lines()
            .any(|line| line.trim_start().starts_with(folder))
    };
    let lines = blocks.find(is_of).unwrap_or_default().lines().enumerate();
    let drawn =
        lines.flat_map(|(level, line)| names(line).into_iter().map(move |name| (name, level)));
    drawn.collect()
}

/// Returns the fault of an import, each end of which is a room and its name for readers.
fn upwards(
    drawn: &BTreeMap<String, usize>,
    (from, shown): (&str, &str),
    (to, to_shown): (&str, &str),
) -> Option<String> {
    match (drawn.get(from), drawn.get(to)) {
        (Some(above), Some(below)) if above < below => None,
        (Some(_), Some(_)) => Some(format!("points up: {shown} -> {to_shown}")),
        (known, _) => {
            let missing = if known.is_none() { from } else { to };
            Some(format!(
                "docs/inside/house.md does not draw {missing}: {shown} -> {to_shown}"
            ))
        }
    }
}

/// Returns the rooms of a crate that point up, if the rooms are drawn. A part of a room may be
/// drawn as a room of its own, which others then may stand on.
fn rooms(house: &str, name: &str, imports: &Imports) -> BTreeSet<String> {
    let paths = imports
        .files
        .iter()
        .map(|path| path.trim_end_matches(".rs"));
    let paths: Vec<_> = paths.collect();
    let all = paths.iter().flat_map(|path| prefixes(path)).collect();
    let drawn = levels(house, &format!("crates/{name}/src"), &all);
    if drawn.is_empty() {
        return BTreeSet::new();
    }
    let room = |file: usize| {
        let path = paths[file];
        let outer = path.split('/').next().unwrap_or(path);
        let mut inner = prefixes(path);
        inner
            .rfind(|part| drawn.contains_key(*part))
            .unwrap_or(outer)
    };
    let pairs = imports
        .between
        .keys()
        .filter(|(from, to)| room(*from) != room(*to));
    let pairs = pairs.filter(|(from, _)| room(*from) != "lib");
    let shown = |file: usize| format!("crates/{name}/src/{}", imports.files[file]);
    pairs
        .filter_map(|&(from, to)| {
            upwards(&drawn, (room(from), &shown(from)), (room(to), &shown(to)))
        })
        .collect()
}

/// Returns the folders that a path leads through, from the outermost, and the path itself.
fn prefixes(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    let ends = path.match_indices('/').map(|(end, _)| end);
    ends.chain([path.len()]).map(|end| &path[..end])
}

/// Returns the circles of a crate.
fn circles(name: &str, imports: &Imports) -> Vec<String> {
    let graph: DiGraphMap<usize, ()> = imports.between.keys().copied().collect();
    let circles = tarjan_scc(&graph)
        .into_iter()
        .filter(|circle| circle.len() > 1);
    circles
        .map(|circle| {
            let mut text = format!("circle of {} files in crates/{name}/src:", circle.len());
            for ((from, to), names) in &imports.between {
                if circle.contains(from) && circle.contains(to) {
                    let names: Vec<_> = names.iter().map(String::as_str).collect();
                    let (from, to) = (&imports.files[*from], &imports.files[*to]);
                    text += &format!("\n  {from} -> {to}: {}", names.join(", "));
                }
            }
            text
        })
        .collect()
}
