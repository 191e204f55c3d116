//! A store in which keys have several values, beside a tree that has all values of a key in one
//! record.

use crate::BLOCK;
use crate::cases;
use crate::directory::Directory;
use crate::open;
use ats_disk::fs::RealFs;
use ats_disk::offline::{Survey, salvage};
use ats_disk::{AtomicStore, BagStore, Options};
use ats_store::bags::{push_value, split_values};
use ats_store::{
    AddRule, BTreeStore, BagValues, Bags, Change, Direction, End, Error, KeyRange, Store,
};
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Text in which case means nothing. Many texts have the same hash.
struct Text;

impl BagValues for Text {
    fn hash(&self, value: &[u8]) -> Result<u64, Error> {
        let first = value.first().map_or(0, u8::to_ascii_lowercase);
        Ok(match first % 3 {
            0 => u64::MAX,
            number => u64::from(number),
        })
    }

    fn is_equal(&self, one: &[u8], other: &[u8]) -> Result<bool, Error> {
        Ok(one.eq_ignore_ascii_case(other))
    }
}

#[derive(Clone, Debug)]
enum Op {
    Get(Vec<u8>),
    Add(Vec<(Vec<u8>, Vec<u8>)>, bool, bool),
    Remove(Vec<u8>, Vec<u8>, usize),
    /// Each key gets those of its values of which the bit is set, and then these.
    Update(Vec<(Vec<u8>, u8, Vec<Vec<u8>>)>),
    Delete(Vec<u8>),
    UpdateEnd(bool, bool),
    Scan(Option<Vec<u8>>, Option<Vec<u8>>, bool, usize),
    Len,
    TakeAll,
    Replace(Vec<(Vec<u8>, Vec<u8>)>),
    Rewrite,
    Flush,
    Work,
    Compact,
    Open,
}

/// Keys that go on with a large byte where they begin with others.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => (b'a'..b'e').prop_map(|letter| vec![letter]),
        1 => (b'a'..b'e').prop_map(|letter| vec![letter, 0xFE, 1]),
        1 => (b'a'..b'e').prop_map(|letter| vec![letter, 0xFF]),
    ]
}

fn bound() -> impl Strategy<Value = Option<Vec<u8>>> {
    let tail = prop::collection::vec(prop_oneof![Just(0), Just(1), Just(2), Just(0xFE)], 0..3);
    prop::option::of((key(), tail).prop_map(|(key, tail)| [key, tail].concat()))
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop_oneof![b'a'..b'e', Just(b'A'), Just(b'B')];
    prop::collection::vec(letter, 0..4)
}

fn op() -> impl Strategy<Value = Op> {
    let pairs = |most| prop::collection::vec((key(), value()), 1..most);
    let kept = (key(), any::<u8>(), prop::collection::vec(value(), 0..3));
    prop_oneof![
        2 => key().prop_map(Op::Get),
        8 => (pairs(3), any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(pairs, distinct, new)| Op::Add(pairs, distinct, new)),
        1 => (pairs(40), any::<bool>())
            .prop_map(|(pairs, distinct)| Op::Add(pairs, distinct, false)),
        4 => (key(), value(), 0_usize..4)
            .prop_map(|(key, value, most)| Op::Remove(key, value, most)),
        3 => prop::collection::vec(kept, 1..4).prop_map(Op::Update),
        2 => key().prop_map(Op::Delete),
        2 => (any::<bool>(), any::<bool>())
            .prop_map(|(first, removes)| Op::UpdateEnd(first, removes)),
        4 => (bound(), bound(), any::<bool>(), 0_usize..6)
            .prop_map(|(low, high, up, most)| Op::Scan(low, high, up, most)),
        2 => Just(Op::Len),
        1 => Just(Op::TakeAll),
        1 => pairs(20).prop_map(Op::Replace),
        1 => Just(Op::Rewrite),
        1 => Just(Op::Flush),
        1 => Just(Op::Work),
        1 => Just(Op::Compact),
        1 => Just(Op::Open),
    ]
}

fn sort_pairs(pairs: &[(Vec<u8>, Vec<u8>)]) -> Vec<(&[u8], &[u8])> {
    let mut sorted: Vec<_> = pairs
        .iter()
        .map(|(key, value)| (&key[..], &value[..]))
        .collect();
    sorted.sort_by_key(|(key, _)| *key);
    sorted
}

fn join_values<'v>(values: impl Iterator<Item = &'v [u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    values.for_each(|value| push_value(&mut joined, value).expect("it is short"));
    joined
}

fn put(values: Vec<u8>) -> Change<Vec<u8>> {
    if values.is_empty() {
        Change::Remove
    } else {
        Change::Put(values)
    }
}

fn texts(values: &[u8]) -> Vec<String> {
    let text = |value: Result<&[u8], Error>| String::from_utf8(value.expect("one").to_vec());
    split_values(values)
        .map(|value| text(value).expect("letters"))
        .collect()
}

fn records(
    store: &dyn Store,
    range: KeyRange<'_>,
    direction: Direction,
    most: usize,
) -> Vec<(Vec<u8>, Vec<String>)> {
    let mut found = Vec::new();
    let scanned = store.scan(BLOCK, range, direction, &mut |key, values| {
        found.push((key.to_vec(), texts(values)));
        if found.len() > most {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    assert_eq!(scanned, Ok(()));
    found
}

fn all(store: &dyn Store) -> Vec<(Vec<u8>, Vec<String>)> {
    records(store, KeyRange::default(), Direction::Up, usize::MAX)
}

/// Adds values to a tree, in which they are one record.
fn add(tree: &BTreeStore, values: &[(&[u8], &[u8])], rule: AddRule) -> Result<bool, Error> {
    let groups: Vec<_> = values.chunk_by(|one, other| one.0 == other.0).collect();
    let keys: Vec<_> = groups.iter().map(|group| group[0].0).collect();
    tree.update(BLOCK, &keys, &mut |index: usize, current: Option<&[u8]>| {
        if rule.only_to_new_keys && current.is_some() {
            return Change::Abort;
        }
        let current = current.unwrap_or_default();
        let mut all: Vec<_> = split_values(current)
            .map(|value| value.expect("a value"))
            .collect();
        for (_, value) in groups[index] {
            if !rule.distinct || !all.iter().any(|other| value.eq_ignore_ascii_case(other)) {
                all.push(value);
            }
        }
        Change::Put(join_values(all.into_iter()))
    })
}

fn remove(
    tree: &BTreeStore,
    key: &[u8],
    value: &[u8],
    most: usize,
) -> Result<Option<usize>, Error> {
    let mut removed = 0;
    tree.update(BLOCK, &[key], &mut |_: usize, current: Option<&[u8]>| {
        let all: Vec<_> = split_values(current.unwrap_or_default())
            .map(Result::unwrap)
            .collect();
        let rest = all
            .iter()
            .filter(|other| !value.eq_ignore_ascii_case(other));
        let rest: Vec<_> = rest.copied().collect();
        removed = all.len() - rest.len();
        match removed {
            0 => Change::Keep,
            _ if removed > most => Change::Keep,
            _ => put(join_values(rest.into_iter())),
        }
    })?;
    Ok((removed <= most).then_some(removed))
}

/// Returns the answer of an operation, and all that it has seen.
fn run(store: &dyn Store, op: &Op) -> String {
    match op {
        Op::Get(key) => {
            let mut found = None;
            let read = store.get(BLOCK, key, &mut |values| found = Some(texts(values)));
            format!("{read:?} {found:?}")
        }
        Op::Update(changes) => {
            let mut changes = changes.clone();
            changes.sort_by(|one, other| one.0.cmp(&other.0));
            changes.dedup_by(|one, other| one.0 == other.0);
            let keys: Vec<&[u8]> = changes.iter().map(|(key, ..)| &key[..]).collect();
            let mut seen = Vec::new();
            let updated =
                store.update(BLOCK, &keys, &mut |index: usize, current: Option<&[u8]>| {
                    let current = current.unwrap_or_default();
                    seen.push(texts(current));
                    let (_, bits, new) = &changes[index];
                    let old = split_values(current)
                        .map(|value| value.expect("a value"))
                        .enumerate();
                    let kept = old.filter(|(index, _)| bits & 1 << (index % 8) != 0);
                    put(join_values(
                        kept.map(|(_, value)| value)
                            .chain(new.iter().map(Vec::as_slice)),
                    ))
                });
            format!("{updated:?} {seen:?}")
        }
        Op::Delete(key) => {
            let deleted =
                store.update(
                    BLOCK,
                    &[key],
                    &mut |_: usize, current: Option<&[u8]>| match current {
                        Some(_) => Change::Remove,
                        None => Change::Keep,
                    },
                );
            format!("{deleted:?}")
        }
        Op::UpdateEnd(first, removes) => {
            let end = if *first { End::First } else { End::Last };
            let mut seen = None;
            let updated = store.update_end(BLOCK, end, &mut |record| {
                seen = record.map(|(key, values)| (key.to_vec(), texts(values)));
                let rest = record.map_or(&[][..], |(_, values)| values);
                let mut rest = split_values(rest).map(|value| value.expect("a value"));
                match rest.next() {
                    Some(_) if *removes => put(join_values(rest)),
                    _ => Change::Keep,
                }
            });
            format!("{updated:?} {seen:?}")
        }
        Op::Scan(low, high, up, most) => {
            let direction = if *up { Direction::Up } else { Direction::Down };
            let (low, high) = (low.as_deref(), high.as_deref());
            format!(
                "{:?}",
                records(store, KeyRange { low, high }, direction, *most)
            )
        }
        Op::Len => format!(
            "{:?} {:?}",
            store.len(BLOCK),
            store.sum(BLOCK, &<[u8]>::len)
        ),
        Op::TakeAll => {
            let taken = store.take_all(BLOCK).expect("it has room");
            format!("{:?} {:?} {:?}", all(store), all(&*taken), taken.len(BLOCK))
        }
        _ => String::new(),
    }
}

fn options() -> Options {
    Options::new()
        .memtable_bytes(2_000)
        .block_bytes(64)
        .file_bytes(500)
        .fan_in(2)
        .background(false)
}

fn bags(directory: &Path, has_shared: bool) -> BagStore {
    BagStore::new(open(directory, &options()), Arc::new(Text), has_shared)
}

fn count(store: &dyn Store) -> usize {
    let count = store.sum(BLOCK, &|values| split_values(values).count());
    count.expect("it can be read")
}

proptest! {
    #![proptest_config(cases::config(300))]

    #[test]
    fn programs_do_as_they_do_on_a_tree(
        old in prop::collection::vec((key(), value()), 0..20),
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let directory = Directory::new();
        let tree = BTreeStore::new();
        let any = AddRule { distinct: false, only_to_new_keys: false };
        add(&tree, &sort_pairs(&old), any).expect("there is room");
        // The store is written in the older form, in which all values of a key are one record.
        let before = AtomicStore::new(open(directory.path(), &options()));
        tree.scan(BLOCK, KeyRange::default(), Direction::Up, &mut |key, values| {
            before.put_unread(BLOCK, key, values).expect("put");
            ControlFlow::Continue(())
        }).expect("scanned");
        drop(before);
        let mut has_shared = true;
        let mut store = bags(directory.path(), has_shared);
        for op in &ops {
            match op {
                Op::Add(values, distinct, new) => {
                    let rule = AddRule { distinct: *distinct, only_to_new_keys: *new };
                    let values = sort_pairs(values);
                    let added = Bags::add(&store, BLOCK, &values, rule);
                    prop_assert_eq!(added, add(&tree, &values, rule));
                }
                Op::Remove(key, value, most) => prop_assert_eq!(
                    Bags::remove(&store, BLOCK, key, value, *most),
                    remove(&tree, key, value, *most)
                ),
                Op::Replace(values) => {
                    let new = BTreeStore::new();
                    add(&new, &sort_pairs(values), any).expect("there is room");
                    let replaced: Result<(), ats_disk::Error> = store.replace_all(BLOCK, |visit| {
                        new.scan(BLOCK, KeyRange::default(), Direction::Up, visit)
                            .expect("scanned");
                        Ok(())
                    });
                    prop_assert_eq!(replaced, Ok(()));
                    drop(tree.take_all(BLOCK));
                    add(&tree, &sort_pairs(values), any).expect("there is room");
                }
                Op::Rewrite => {
                    store.rewrite().expect("rewritten");
                    has_shared = false;
                }
                Op::Flush => store.records().store().flush().expect("flushed"),
                Op::Work => drop(store.records().store().work().expect("worked")),
                Op::Compact => store.records().store().compact().expect("compacted"),
                Op::Open => {
                    drop(store);
                    store = bags(directory.path(), has_shared);
                }
                op => prop_assert_eq!(run(&store, op), run(&tree, op), "{:?}", op),
            }
            prop_assert_eq!(store.values(BLOCK), Ok(count(&tree)), "{:?}", op);
        }
        let frozen = store.freeze();
        prop_assert_eq!(all(&*frozen), all(&tree));
        drop(frozen);
        drop(store);
        let store = bags(directory.path(), has_shared);
        prop_assert_eq!(all(&store), all(&tree));
        prop_assert_eq!(store.len(BLOCK), tree.len(BLOCK));
        prop_assert_eq!(store.values(BLOCK), Ok(count(&tree)));
    }
}

/// Threads add values to the same keys and remove them, and take values at the ends. Nothing is
/// lost, and nothing is there twice.
#[test]
fn threads_change_the_same_keys() {
    const THREADS: usize = 4;
    const VALUES: usize = 400;
    let directory = Directory::new();
    let options = options().background(true);
    let store = BagStore::new(open(directory.path(), &options), Arc::new(Text), false);
    let (taken, removed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let name = |thread: usize, number: usize| format!("{}{number}", (b'a' + thread as u8) as char);
    let rule = |distinct| AddRule {
        distinct,
        only_to_new_keys: false,
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, taken, removed) = (&store, &taken, &removed);
            scope.spawn(move || {
                for number in 0..VALUES {
                    let value = name(thread, number);
                    let upper = value.to_ascii_uppercase();
                    let keys: [&[u8]; 2] = [b"k", if number % 2 == 0 { b"m" } else { b"n" }];
                    let values = keys.map(|key| (key, value.as_bytes()));
                    assert_eq!(store.add(BLOCK, &values, rule(true)), Ok(true));
                    let again = keys.map(|key| (key, upper.as_bytes()));
                    assert_eq!(store.add(BLOCK, &again, rule(true)), Ok(true));
                    // Values are taken from these only: a thread adds one before it takes one.
                    let at_ends = [&b"a"[..], b"z"].map(|key| (key, value.as_bytes()));
                    assert_eq!(store.add(BLOCK, &at_ends, rule(true)), Ok(true));
                    if number % 3 == 0 {
                        let gone = store
                            .remove(BLOCK, b"k", upper.as_bytes(), 5)
                            .expect("removed");
                        removed.fetch_add(gone.expect("not too many"), Ordering::Relaxed);
                    }
                    if number % 5 == 0 {
                        let end = if thread % 2 == 0 {
                            End::First
                        } else {
                            End::Last
                        };
                        let mut took = 0;
                        let updated = store.update_end(BLOCK, end, &mut |record| {
                            let values = record.expect("there are some").1;
                            let mut rest = split_values(values).map(Result::unwrap);
                            took = usize::from(rest.next().is_some());
                            put(join_values(rest))
                        });
                        assert_eq!(updated, Ok(()));
                        taken.fetch_add(took, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let gone = taken.into_inner() + removed.into_inner();
    let left = 4 * THREADS * VALUES - gone;
    assert_eq!((store.values(BLOCK), count(&store)), (Ok(left), left));
    for (_, values) in all(&store) {
        let mut last = [None; THREADS];
        for value in values {
            let thread = usize::from(value.as_bytes()[0] - b'a');
            let number: Option<usize> = value[1..].parse().ok();
            assert!(
                last[thread] < number,
                "values of a key are in the order of time"
            );
            last[thread] = number;
        }
    }
}

/// A sequence number is never given twice, even if its write was lost.
#[test]
fn ranks_ascend_when_the_store_is_opened_anew() {
    let directory = Directory::new();
    let rule = AddRule {
        distinct: false,
        only_to_new_keys: false,
    };
    let mut expected = Vec::new();
    for round in 0..20 {
        let store = bags(directory.path(), false);
        for value in ["x", "y", "x"] {
            store
                .add(BLOCK, &[(b"k", value.as_bytes())], rule)
                .expect("added");
            expected.push(value.to_owned());
        }
        match round % 4 {
            0 => store.records().store().close().expect("closed"),
            1 => store.records().store().flush().expect("flushed"),
            2 => store.records().store().compact().expect("compacted"),
            _ => {}
        }
        assert_eq!(all(&store), [(b"k".to_vec(), expected.clone())], "{round}");
    }
}

/// Values of a salvaged store keep their positions: new values come behind.
#[test]
fn positions_ascend_in_a_salvaged_store() {
    let (directory, target) = (Directory::new(), Directory::new());
    let rule = AddRule {
        distinct: false,
        only_to_new_keys: false,
    };
    let store = bags(directory.path(), false);
    for _ in 0..100 {
        store.add(BLOCK, &[(b"a", b"other")], rule).expect("added");
    }
    let removed = store
        .remove(BLOCK, b"a", b"other", usize::MAX)
        .expect("removed");
    assert_eq!(removed, Some(100));
    for value in ["x", "y"] {
        store
            .add(BLOCK, &[(b"k", value.as_bytes())], rule)
            .expect("added");
    }
    store.records().store().compact().expect("compacted");
    store.records().store().close().expect("closed");
    std::fs::remove_file(directory.path().join("manifest")).expect("it was there");
    let survey = Survey::new(Arc::new(RealFs), directory.path()).expect("surveyed");
    let go_on = &mut |_| ControlFlow::Continue(());
    salvage(&survey, target.path(), options(), &[], go_on).expect("salvaged");
    let store = bags(target.path(), false);
    for value in ["x", "z"] {
        store
            .add(BLOCK, &[(b"k", value.as_bytes())], rule)
            .expect("added");
    }
    let expected = ["x", "y", "x", "z"].map(str::to_owned).to_vec();
    assert_eq!(all(&store), [(b"k".to_vec(), expected)]);
}

/// An end is found behind any key that a replacement has brought.
#[test]
fn the_last_key_is_found_after_a_replacement() {
    let directory = Directory::new();
    let store = bags(directory.path(), false);
    let last = |store: &BagStore| {
        let mut found = None;
        let updated = store.update_end(BLOCK, End::Last, &mut |record| {
            found = record.map(|(key, _)| key.to_vec());
            Change::Keep
        });
        updated.map(|()| found)
    };
    assert_eq!(last(&store), Ok(None));
    for key in [&b"k"[..], &[0xFF, 0xFE, 1], b"a"] {
        let replaced: Result<(), ats_disk::Error> = store.replace_all(BLOCK, |visit| {
            let _go_on = visit(key, &join_values([&b"x"[..]].into_iter()));
            Ok(())
        });
        assert_eq!(replaced, Ok(()));
        assert_eq!(last(&store), Ok(Some(key.to_vec())));
    }
}
