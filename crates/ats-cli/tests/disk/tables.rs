//! Tables of `dats`: stores with a file that describes them.

use crate::common::{Directory, ats, code, contents, json, spoil, text};
use ats::terms::salvage::parse_merge;
use ats::terms::{
    BTreeStore, Codec, Description, ObjectIdentity, ObjectMerge, Table, TableType, TermCodec,
    TermHost, Workspace, Zeros,
};
use ats_disk::{BagStore, DiskStore, Lifetime, Options};
use ats_store::{Direction, KeyRange, StoreHandle};
use ats_term::{Term, etf, order};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ALL_TYPES: [TableType; 6] = [
    TableType::Set,
    TableType::OrderedSet,
    TableType::Bag,
    TableType::DuplicateBag,
    TableType::OrderedBag,
    TableType::OrderedDuplicateBag,
];
const RECORDS: i64 = 1000;

fn description(table_type: TableType, key_position: usize, merge: &str) -> Description {
    let merge = parse_merge(merge);
    Description {
        table_type,
        key_position,
        zeros: Zeros::Distinct,
        merge: merge.unwrap_or_default(),
        has_shared: false,
        format: Vec::new(),
        lifetime: None,
    }
}

fn store(path: &Path, description: &Description) -> DiskStore {
    let mut options = Options::new().block_bytes(100).background(false);
    if let Some(merge) = ObjectMerge::of(description) {
        options = options.operator(Arc::new(merge));
    }
    options.lifetime = description.lifetime;
    DiskStore::open(path, options).expect("opened")
}

/// A table as `dats` makes it, with keys that are no values.
fn make(path: &Path, description: &Description) {
    let zeros = description.zeros;
    let (table_type, position) = (description.table_type, description.key_position);
    let codec = Arc::new(TermCodec { zeros });
    let has_objects =
        table_type.is_bag() && !description.has_shared && description.lifetime.is_none();
    let files = store(path, description);
    let records: Box<dyn StoreHandle> = if has_objects {
        let identity = ObjectIdentity::new(Arc::clone(&codec) as Arc<dyn Codec<TermHost>>, zeros);
        Box::new(BagStore::new(files.clone(), Arc::new(identity), false))
    } else {
        Box::new(BTreeStore::new())
    };
    let table = Table::<TermHost>::on_store(records, || true, codec, table_type, position, zeros);
    for number in 0..RECORDS {
        let mut elements = vec![Term::from("other"); position - 1];
        elements.extend([number.into(), 7.into()]);
        let object = Term::Tuple(ats_term::term::Tuple::new(elements));
        let mut work = Workspace::new();
        table.insert(&object, &mut work).expect("written");
        if table_type.is_bag() && !table_type.is_distinct_bag() {
            table.insert(&object, &mut work).expect("written");
        }
    }
    let mut write = |key: &[u8], value: &[u8]| {
        let written = if description.lifetime.is_some() {
            files.put(key, &Lifetime::Forever.before(value))
        } else if description.merge.is_empty() {
            files.put(key, value)
        } else {
            files.merge(key, value)
        };
        written.expect("written");
        ControlFlow::Continue(())
    };
    if !has_objects {
        let shown = table.scan_bytes(KeyRange::default(), Direction::Up, &mut write);
        shown.expect("in memory");
    }
    let file = description.encode();
    files
        .replace_file(Description::FILE, &file)
        .expect("written");
    files.close().expect("closed");
}

/// Returns the description that a directory has.
fn description_in(path: &Path) -> Option<Description> {
    let bytes = fs::read(path.join(Description::FILE)).ok()?;
    Some(Description::decode(&bytes).expect("it is whole"))
}

#[test]
fn a_table_is_shown() {
    let directory = Directory::new();
    let path = directory.path("table");
    make(
        &path,
        &description(TableType::OrderedSet, 1, "{prune, sum}"),
    );
    let before = contents(&path);
    for (command, shown) in [
        (
            "stat",
            "table            ordered_set, keypos 1, merge {prune,sum}",
        ),
        ("verify", "table: ordered_set, keypos 1, merge {prune,sum}"),
    ] {
        let output = ats(&["disk", command], &[&path]);
        assert_eq!(code(&output), 0);
        assert!(text(&output.stdout).contains(shown), "{command}");
        let table = json(&ats(&["disk", command, "--json"], &[&path]))["table"].clone();
        assert_eq!(
            (&table["type"], &table["keypos"]),
            (&"ordered_set".into(), &1.into())
        );
        assert_eq!(table["merge"], "{prune,sum}");
    }
    assert!(contents(&path) == before);
}

#[test]
fn objects_are_printed_as_terms() {
    let directory = Directory::new();
    for (number, table_type) in ALL_TYPES.into_iter().enumerate() {
        for lifetime in [None, Some(Lifetime::Forever)] {
            let path = directory.path(&format!("{number}-{}", lifetime.is_some()));
            make(
                &path,
                &Description {
                    lifetime,
                    ..description(table_type, 2, "")
                },
            );
            let dump = ats(&["disk", "dump", "--format", "term"], &[&path]);
            assert_eq!(code(&dump), 0);
            let shown = text(&dump.stdout);
            let mut lines: Vec<_> = shown.lines().collect();
            lines.sort_unstable();
            let times = if table_type.is_bag() && !table_type.is_distinct_bag() {
                2
            } else {
                1
            };
            let object = |number| format!("{{<<\"other\">>,{number},7}}.");
            let mut expected: Vec<_> = (0..RECORDS).flat_map(|n| vec![object(n); times]).collect();
            expected.sort_unstable();
            assert!(lines == expected, "{table_type:?}: {:?}", lines.first());
        }
    }
    let one = ["disk", "dump", "--format", "term", "--json", "--limit", "1"];
    let record = json(&ats(&one, &[&directory.path("1-false")]));
    assert_eq!(record["objects"][0], "{<<\"other\">>,0,7}");
}

/// Missing, empty, spoilt, or that of another table.
#[test]
fn a_bad_description_is_a_fault() {
    let directory = Directory::new();
    for (number, merge) in ["", "sum"].into_iter().enumerate() {
        let path = directory.path(&number.to_string());
        let table = description(TableType::Set, 2, merge);
        make(&path, &table);
        let file = path.join(Description::FILE);
        let verify = |why: &str| {
            let output = ats(&["disk", "verify"], &[&path]);
            assert_eq!(code(&output), 1, "{why}");
            let shown = text(&output.stdout);
            assert!(shown.contains("table: not described"), "{shown}");
            assert!(shown.contains(&format!("  table: {why}")), "{shown}");
        };
        fs::remove_file(&file).expect("it was there");
        verify("it is missing");
        fs::write(&file, b"").expect("written");
        verify("it is empty");
        let mut bytes = table.encode();
        bytes[20] ^= 1;
        fs::write(&file, &bytes).expect("written");
        verify("it was spoilt");
        let other = description(TableType::OrderedSet, 1, "max");
        fs::write(&file, other.encode()).expect("written");
        verify("it asks for the merge operator ats.max of element 2, version 1, and the store has");
        fs::remove_file(&file).expect("it was there");
        fs::create_dir(&file).expect("made");
        verify("");
    }
    let path = directory.path("0");
    let file = path.join(Description::FILE);
    fs::remove_dir(&file).expect("it was there");
    let other = description(TableType::OrderedSet, 2, "");
    fs::write(&file, other.encode()).expect("written");
    let output = ats(&["disk", "verify"], &[&path]);
    assert_eq!(code(&output), 1);
    let shown = text(&output.stdout);
    assert!(
        shown.contains("it says ordered_set, keypos 2, and the records"),
        "{shown}"
    );
}

/// A table on a store, made by a Rust program, has no file, and is told from one of `dats` by an
/// option only.
#[test]
fn other_programs_need_no_description() {
    let directory = Directory::new();
    let (path, target) = (directory.path("store"), directory.path("saved"));
    make(&path, &description(TableType::Set, 1, ""));
    fs::remove_file(path.join(Description::FILE)).expect("it was there");
    assert_eq!(code(&ats(&["disk", "verify"], &[&path])), 1);
    let verify = ats(&["disk", "verify", "--no-table"], &[&path]);
    assert_eq!(code(&verify), 0);
    assert!(text(&verify.stdout).contains("table: none of dats"));
    let saved = ats(&["disk", "salvage", "--no-table"], &[&path, &target]);
    assert_eq!(code(&saved), 0);
    assert_eq!(description_in(&target), None);
}

#[test]
fn a_salvaged_table_is_a_table() {
    let directory = Directory::new();
    for (number, (table_type, merge)) in [
        (TableType::Set, ""),
        (TableType::OrderedSet, ""),
        (TableType::Bag, ""),
        (TableType::DuplicateBag, ""),
        (TableType::OrderedBag, ""),
        (TableType::OrderedDuplicateBag, ""),
        (TableType::Set, "sum"),
        (TableType::OrderedSet, "{vector, [sum, max]}"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = directory.path(&number.to_string());
        let target = directory.path(&format!("{number} saved"));
        let table = description(table_type, 2, merge);
        make(&path, &table);
        let _name = spoil(&path);
        // The description tells the operator where the manifest does not.
        fs::remove_file(path.join("manifest")).expect("it was there");
        let verified = text(&ats(&["disk", "verify"], &[&path]).stdout);
        assert!(!verified.contains("  table: "), "{verified}");
        let saved = ats(&["disk", "salvage"], &[&path, &target]);
        assert_eq!(code(&saved), 1);
        assert!(text(&saved.stdout).contains(&format!("table: {table}\n")));
        assert_eq!(description_in(&target), Some(table.clone()));
        assert_eq!(code(&ats(&["disk", "verify"], &[&target])), 0);
        // The store has the operator of the table.
        let opened = store(&target, &table);
        let records: Result<Vec<_>, _> = opened.scan(..).collect();
        let records = records.expect("readable").len() as i64;
        let objects = if table_type.is_bag() && !table_type.is_distinct_bag() {
            2 * RECORDS
        } else {
            RECORDS
        };
        assert!((objects / 2..objects).contains(&records), "{records}");
    }
}

/// Returns the description that is made again of a bag, of which the records are not known.
fn reconstruct(table: Description) -> Description {
    Description {
        has_shared: table.table_type.is_bag(),
        ..table
    }
}

/// Options need not repeat the records and the operator, and are refused if they contradict them.
#[test]
fn a_description_is_made_again() {
    let directory = Directory::new();
    let mut number = 0;
    let mut salvage = |table: &Description, options: &[&str]| {
        number += 1;
        let path = directory.path(&number.to_string());
        let target = directory.path(&format!("{number} saved"));
        make(&path, table);
        fs::write(path.join(Description::FILE), b"").expect("written");
        let arguments = [&["disk", "salvage"][..], options].concat();
        let saved = ats(&arguments, &[&path, &target]);
        let made = description_in(&target);
        assert_eq!(made.is_some(), code(&saved) == 1, "{}", text(&saved.stderr));
        (made, text(&saved.stderr), target)
    };
    for table in [
        description(TableType::OrderedSet, 1, ""),
        description(TableType::DuplicateBag, 2, ""),
        reconstruct(description(TableType::DuplicateBag, 2, "")),
        description(TableType::OrderedDuplicateBag, 1, ""),
    ] {
        let (made, _, target) = salvage(&table, &[]);
        assert_eq!(made, Some(reconstruct(table)));
        assert_eq!(code(&ats(&["disk", "verify"], &[&target])), 0);
    }
    for merge in ["sum", "{prune, append}", "{last, 2}"] {
        for table_type in [TableType::Set, TableType::OrderedSet] {
            let table = description(table_type, 2, merge);
            assert_eq!(salvage(&table, &[]).0, Some(table));
        }
    }
    for table_type in ALL_TYPES {
        let table = description(table_type, 2, "");
        let options = ["--type", table_type.name(), "--keypos", "2"];
        assert_eq!(salvage(&table, &options).0, Some(reconstruct(table)));
    }
    let set = description(TableType::Set, 2, "");
    let (made, why, target) = salvage(&set, &[]);
    assert_eq!(made, None);
    let asked = "--type bag or duplicate_bag or set and --keypos 2 fit the records";
    assert!(why.contains(asked), "{why}");
    assert!(!target.exists());
    for options in [
        ["--type", "ordered_set"],
        ["--keypos", "1"],
        ["--merge", "sum"],
    ] {
        let (made, why, target) = salvage(&set, &options);
        assert_eq!(made, None);
        assert!(why.contains("the options do not fit"), "{why}");
        assert!(!target.exists());
    }
    let sum = description(TableType::Set, 1, "sum");
    let (made, why, _) = salvage(&sum, &["--merge", "max"]);
    assert_eq!(made, None);
    assert!(why.contains("the options do not fit"), "{why}");
}

/// Tables whose objects expire are known by the mark of their stores, with any merge and none.
#[test]
fn a_table_whose_objects_expire_is_known() {
    let directory = Directory::new();
    let minute = Lifetime::For(Duration::from_secs(60));
    for (number, (table_type, merge)) in [
        (TableType::Set, ""),
        (TableType::OrderedSet, "sum"),
        (TableType::Bag, ""),
        (TableType::OrderedDuplicateBag, ""),
    ]
    .into_iter()
    .enumerate()
    {
        let [path, target, again] =
            ["", " saved", " again"].map(|name| directory.path(&format!("{number}{name}")));
        let table = Description {
            lifetime: Some(minute),
            ..description(table_type, 2, merge)
        };
        make(&path, &table);
        let opened = store(&path, &table);
        for (key, deadline) in [(b"expired", 7), (b"present", 1 << 45)] {
            let deadline = Lifetime::Until(Duration::from_millis(deadline));
            opened
                .put(key, &deadline.before(b"value"))
                .expect("written");
        }
        // Closing it would write a run, without the record that has expired.
        drop(opened);
        let verified = ats(&["disk", "verify"], &[&path]);
        assert_eq!(code(&verified), 0, "{}", text(&verified.stdout));
        assert!(text(&verified.stdout).contains(", ttl 60000\n"));
        let dumped = text(&ats(&["disk", "dump"], &[&path]).stdout);
        let rows = dumped.lines().filter(|row| row.contains("until"));
        let rows: Vec<_> = rows
            .map(|row| row.split('\t').collect::<Vec<_>>())
            .collect();
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert_eq!(
            (rows[0][2], rows[1][2]),
            ("until 7", "until 35184372088832")
        );
        let dumped = text(&ats(&["disk", "dump", "--json"], &[&path]).stdout);
        assert!(dumped.contains("\"deadline\":7"), "{dumped}");
        let saved = ats(&["disk", "salvage"], &[&path, &target]);
        assert_eq!(code(&saved), 0, "{}", text(&saved.stderr));
        assert_eq!(description_in(&target), Some(table.clone()));
        // The time of a table that is not described is unknown.
        fs::write(path.join(Description::FILE), b"").expect("written");
        let options = ["--type", table_type.name(), "--keypos", "2"];
        let arguments = [&["disk", "salvage"][..], &options].concat();
        let saved = ats(&arguments, &[&path, &again]);
        assert_eq!(code(&saved), 1, "{}", text(&saved.stderr));
        let made = reconstruct(Description {
            lifetime: Some(Lifetime::Forever),
            ..table.clone()
        });
        assert_eq!(description_in(&again), Some(made));
        // Compactions give the room of expired objects back.
        for _ in 0..2 {
            assert_eq!(code(&ats(&["disk", "compact"], &[&target])), 0);
        }
        let dumped = text(&ats(&["disk", "dump"], &[&target]).stdout);
        assert!(!dumped.contains("until 7\n"), "{dumped}");
        let opened = store(&target, &table);
        assert_eq!(opened.get(b"present"), Ok(Some(b"value".to_vec())));
        assert_eq!(opened.len(), Ok(RECORDS as usize + 1));
        drop(opened);
        // A store of another program has no description.
        fs::remove_file(target.join(Description::FILE)).expect("it was there");
        let verify = ats(&["disk", "verify", "--no-table"], &[&target]);
        assert_eq!(code(&verify), 0);
    }
}

/// A process was killed before anything was in a run, and the manifest and the description are
/// lost.
#[test]
fn the_merge_can_be_told() {
    let directory = Directory::new();
    let (path, target) = (directory.path("table"), directory.path("saved"));
    let table = description(TableType::OrderedSet, 1, "sum");
    let opened = store(&path, &table);
    let object = etf::encode(&Term::from((1, 7))).expect("short");
    let value = [&(object.len() as u32).to_le_bytes()[..], &object].concat();
    let mut key = Vec::new();
    order::order_key(&Term::from(1), &mut key, Zeros::Distinct);
    opened.merge(&key, &value).expect("written");
    let snapshot = opened.snapshot();
    opened.merge(&key, &value).expect("written");
    drop((snapshot, opened));
    fs::remove_file(path.join("manifest")).expect("it was there");
    let saved = ats(&["disk", "salvage"], &[&path, &target]);
    assert_eq!(code(&saved), 3);
    let why = text(&saved.stderr);
    assert!(why.contains("tell it by --merge"), "{why}");
    let saved = ats(&["disk", "salvage", "--merge", "sum"], &[&path, &target]);
    assert_eq!(code(&saved), 1, "{}", text(&saved.stderr));
    assert_eq!(description_in(&target), Some(table.clone()));
    let read = store(&target, &table).get(&key).expect("merged");
    let object = etf::encode(&Term::from((1, 14))).expect("short");
    assert_eq!(read.as_deref().map(|value| &value[4..]), Some(&object[..]));
}

/// Options do not change a description that exists.
#[test]
fn options_do_not_contradict_a_description() {
    let directory = Directory::new();
    let (path, target) = (directory.path("table"), directory.path("saved"));
    let table = description(TableType::Set, 1, "");
    make(&path, &table);
    let saved = ats(&["disk", "salvage", "--type", "bag"], &[&path, &target]);
    assert_eq!(code(&saved), 3);
    assert!(text(&saved.stderr).contains("described: set, keypos 1"));
    assert!(!target.exists());
    for arguments in [
        ["--type", "list"],
        ["--keypos", "0"],
        ["--merge", "add"],
        ["--merge", "{module, m}"],
    ] {
        let arguments = [&["disk", "salvage"][..], &arguments].concat();
        assert_eq!(
            code(&ats(&arguments, &[&path, &target])),
            2,
            "{arguments:?}"
        );
    }
    let saved = ats(&["disk", "salvage", "--type", "set"], &[&path, &target]);
    assert_eq!(code(&saved), 0);
    assert_eq!(description_in(&target), Some(table));
}
