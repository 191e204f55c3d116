//! Checks that the house is as `docs/inside/house.md` says: no two files of a crate point at each
//! other, not even by way of others, and crates point down only, in the order that is drawn there.
//! The rooms of a crate are its modules with all that is below them, and those of a folder
//! likewise. Rooms of one folder do not point at each other either, so they have an order, which
//! nobody draws: given the name of a crate behind the root, this prints its rooms, floor by floor.
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

/// Crates whose rooms still point at each other.
const WITHOUT_ORDER: [&str; 2] = ["ats", "ats-term"];

fn main() -> ExitCode {
    let root = env::args().nth(1).unwrap_or_else(|| ".".into());
    if let Some(name) = env::args().nth(2) {
        let source = Path::new(&root).join("crates").join(name).join("src");
        return match imports::read(&source) {
            Ok(imports) => {
                for floor in floors(&imports) {
                    println!("{}", floor.join("  "));
                }
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
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
        let circles = circles(name, imports);
        // A circle of files is one of rooms as well, and is told once.
        if circles.is_empty() && !WITHOUT_ORDER.contains(&&name[..]) {
            faults.extend(rooms(name, imports));
        }
        faults.extend(circles);
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

/// The imports between the rooms of a folder: the files that they lead from and to.
type Between<'i> = BTreeMap<(&'i str, &'i str), BTreeSet<(usize, usize)>>;

/// The circles between the rooms of each folder of a crate. A room of a folder is a module in it,
/// with all that is below: its folders are the floors, so nobody has to draw them.
fn rooms(name: &str, imports: &Imports) -> Vec<String> {
    let mut folders: BTreeMap<&str, Between<'_>> = BTreeMap::new();
    let paths: Vec<_> = (imports.files.iter())
        .map(|path| path.trim_end_matches(".rs").trim_end_matches("/mod"))
        .collect();
    for &(from, to) in imports.between.keys() {
        if let Some((folder, rooms)) = part(paths[from], paths[to]) {
            let between = folders.entry(folder).or_default();
            between.entry(rooms).or_default().insert((from, to));
        }
    }
    let faults = folders.iter().flat_map(|(folder, between)| {
        let graph: DiGraphMap<&str, ()> = between.keys().copied().collect();
        let circles = tarjan_scc(&graph).into_iter();
        let circles: Vec<_> = circles.filter(|circle| circle.len() > 1).collect();
        circles.into_iter().map(move |mut circle| {
            circle.sort_unstable();
            let rooms = circle.join(", ");
            let mut text = format!("circle of rooms in crates/{name}/src/{folder}: {rooms}");
            let within = |(from, to): &(&str, &str)| circle.contains(from) && circle.contains(to);
            for (from, to) in between
                .iter()
                .filter(|(pair, _)| within(pair))
                .flat_map(|(_, of)| of)
            {
                let (from, to) = (&imports.files[*from], &imports.files[*to]);
                text += &format!("\n  {from} -> {to}");
            }
            text
        })
    });
    faults.collect()
}

/// The rooms of a crate, from the top floor to the lowest: each is above all that it uses.
fn floors(imports: &Imports) -> Vec<Vec<&str>> {
    let room = |file: usize| imports.files[file].split(['/', '.']).next().unwrap_or("");
    let mut left: BTreeSet<_> = (0..imports.files.len()).map(room).collect();
    left.retain(|room| !matches!(*room, "lib" | "main"));
    let pairs = imports
        .between
        .keys()
        .map(|&(from, to)| (room(from), room(to)));
    let pairs: BTreeSet<_> = pairs.filter(|(from, to)| from != to).collect();
    let mut floors = Vec::new();
    while !left.is_empty() {
        let uses_none = |one: &&str| {
            let mut used = pairs.iter().filter(|(from, _)| from == one);
            used.all(|(_, to)| !left.contains(to))
        };
        let floor: Vec<_> = left.iter().copied().filter(uses_none).collect();
        if floor.is_empty() {
            // A circle, which has no order.
            floors.push(left.iter().copied().collect());
            break;
        }
        left.retain(|room| !floor.contains(room));
        floors.push(floor);
    }
    floors.reverse();
    floors
}

/// The folder in which two paths part, and the rooms of it that they lead to; `None` if one of them
/// is above the other.
fn part<'p>(from: &'p str, to: &'p str) -> Option<(&'p str, (&'p str, &'p str))> {
    let mut folder = 0;
    loop {
        let rest = (&from[folder..], &to[folder..]);
        let room = |path: &'p str| path.split('/').next().unwrap_or(path);
        let rooms = (room(rest.0), room(rest.1));
        if rooms.0 != rooms.1 {
            return Some((from[..folder].trim_end_matches('/'), rooms));
        }
        folder += rooms.0.len() + 1;
        if folder > from.len() || folder > to.len() {
            return None;
        }
    }
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
