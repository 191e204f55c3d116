//! Calls that fail. The lines of each function stand on the page as they stand here.
#![allow(
    clippy::unnecessary_wraps,
    reason = "all have the type of those that return errors"
)]

use crate::disk::Folder;
use ats::disk::{Durability, Lifetime, Options};
use ats::terms::{Table, TableType, Term, TermHost, Workspace};
use ats::{DiskMap, HashMap, Serde};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::panic::catch_unwind;
use std::path::Path;
use std::time::Duration;

type Outcome = Result<(), Box<dyn Error>>;

/// A value that its deserialization does not accept.
#[derive(Default, Serialize, Deserialize)]
struct Hidden {
    #[serde(skip_serializing)]
    _name: String,
}

fn two_maps_in_a_directory(folder: &Path) -> Outcome {
    let first: DiskMap<String, u64> = DiskMap::open(folder)?;
    let second: DiskMap<String, u64> = DiskMap::open(folder)?;
    drop((first, second));
    Ok(())
}

fn no_map_to_read(folder: &Path) -> Outcome {
    DiskMap::<String, u64>::open_with(folder, Options::new().create(false))?;
    Ok(())
}

fn merge_without_operator(folder: &Path) -> Outcome {
    let words: DiskMap<String, u64> = DiskMap::open(folder)?;
    words.merge("pear", 3)?;
    Ok(())
}

fn opened_without_its_merge(folder: &Path) -> Outcome {
    type Words = DiskMap<String, u64>;
    Words::open_merging(folder, Options::new(), "sum", 1, |a, b| a + b)?.close()?;
    Words::open(folder)?;
    Ok(())
}

fn opened_with_another_merge(folder: &Path) -> Outcome {
    type Words = DiskMap<String, u64>;
    Words::open_merging(folder, Options::new(), "sum", 1, |a, b| a + b)?.close()?;
    Words::open_merging(folder, Options::new(), "max", 1, |a, b| a.max(b))?;
    Ok(())
}

fn written_after_its_end(folder: &Path) -> Outcome {
    let words: DiskMap<String, u64> = DiskMap::open(folder)?;
    words.close()?;
    words.put("pear", 3)?;
    Ok(())
}

fn written_while_read_only(folder: &Path) -> Outcome {
    DiskMap::<String, u64>::open(folder)?.close()?;
    let words: DiskMap<String, u64> = DiskMap::open_with(folder, Options::new().read_only(true))?;
    words.put("pear", 3)?;
    Ok(())
}

fn opened_with_another_type(folder: &Path) -> Outcome {
    let ages: DiskMap<String, u64> = DiskMap::open(folder)?;
    ages.put("ann", 30)?;
    ages.close()?;
    drop(ages);
    let names: DiskMap<String, u32> = DiskMap::open(folder)?;
    names.get("ann")?;
    Ok(())
}

fn no_room(folder: &Path) -> Outcome {
    let options = Options::new().memtable_bytes(0);
    DiskMap::<String, u64>::open_with(folder, options)?;
    Ok(())
}

fn no_interval(folder: &Path) -> Outcome {
    let options = Options::new().durability(Durability::Interval(Duration::ZERO));
    DiskMap::<String, u64>::open_with(folder, options)?;
    Ok(())
}

fn pairs_that_expire(folder: &Path) -> Outcome {
    let lifetime = Lifetime::For(Duration::from_secs(60));
    DiskMap::<String, u64>::open_with(folder, Options::new().lifetime(lifetime))?;
    Ok(())
}

fn unreadable_value(folder: &Path) -> Outcome {
    let users: DiskMap<u64, Serde<Hidden>> = DiskMap::open(folder)?;
    users.put(1, Serde(Hidden::default()))?;
    Ok(())
}

fn unreadable_value_in_memory(_: &Path) -> Outcome {
    let users: HashMap<u64, Serde<Hidden>> = HashMap::new();
    users.insert(1, Serde(Hidden::default()));
    Ok(())
}

fn value_made_of_itself(_: &Path) -> Outcome {
    let sums: HashMap<u64, u64> = HashMap::new();
    sums.get_or_insert_with(7, || sums.get_or_insert_with(7, || 1) + 1);
    Ok(())
}

fn changed_beside_the_view(_: &Path) -> Outcome {
    let words: HashMap<String, u64> = HashMap::new();
    words.transact(|view| -> Result<(), std::fmt::Error> {
        let count = view.get("pear").unwrap_or(0);
        words.insert("pear", count + 1);
        view.insert("plum", count);
        Ok(())
    })?;
    Ok(())
}

fn changed_beside_the_view_on_disk(folder: &Path) -> Outcome {
    let words: DiskMap<String, u64> = DiskMap::open(folder)?;
    words.transact(|view| -> Result<(), ats::disk::Error> {
        let count = view.get("pear")?.unwrap_or(0);
        words.put("pear", count + 1)?;
        view.put("plum", count)
    })?;
    Ok(())
}

fn no_tuple(_: &Path) -> Outcome {
    let table = Table::<TermHost>::new(TableType::Set, 1);
    table.insert(&Term::from(5), &mut Workspace::new())?;
    Ok(())
}

fn no_element_for_the_key(_: &Path) -> Outcome {
    let table = Table::<TermHost>::new(TableType::Set, 2);
    table.insert(&Term::from((5,)), &mut Workspace::new())?;
    Ok(())
}

fn no_number_of_erlang(_: &Path) -> Outcome {
    Term::try_from(f64::NAN)?;
    Ok(())
}

/// The text of calls that do not fail.
pub(super) const SUCCESS: &str = "it succeeds";

macro_rules! outcomes {
    ($($name:ident)*) => {
        vec![$((code(stringify!($name)), outcome(stringify!($name), $name))),*]
    };
}

/// Returns the lines of each function, and the words of its failure.
pub(super) fn outcomes() -> Vec<(String, String)> {
    outcomes! {
        two_maps_in_a_directory
        no_map_to_read
        merge_without_operator
        opened_without_its_merge
        opened_with_another_merge
        written_after_its_end
        written_while_read_only
        opened_with_another_type
        no_room
        no_interval
        pairs_that_expire
        unreadable_value
        unreadable_value_in_memory
        value_made_of_itself
        changed_beside_the_view
        changed_beside_the_view_on_disk
        no_tuple
        no_element_for_the_key
        no_number_of_erlang
    }
}

fn outcome(name: &str, run: fn(&Path) -> Outcome) -> String {
    let folder = Folder::new();
    match catch_unwind(|| run(folder.path())) {
        Ok(Ok(())) => SUCCESS.into(),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => match panic.downcast_ref::<String>() {
            Some(text) => format!("panic: {text}"),
            None => panic!("{name} panics without a text"),
        },
    }
}

/// Returns the lines of a function, without those that every function has.
fn code(name: &str) -> String {
    let source = include_str!("calls.rs");
    let head = format!("\nfn {name}(");
    let (_, function) = source.split_once(&head).expect("the function is here");
    let (_, body) = function.split_once("-> Outcome {\n").expect("it begins");
    let (body, _) = body.split_once("\n}\n").expect("it ends");
    let lines = body
        .lines()
        .filter(|line| *line != "    Ok(())" && !line.starts_with("    drop(("));
    lines.collect::<Vec<_>>().join("\n")
}
