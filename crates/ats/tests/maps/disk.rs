//! Tests of maps on disk.

use crate::model::removed_keys;
use ats::{AsValue, DiskBatch, DiskMap, Value, ValueBytes};
use ats_disk::{Error, Options};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A directory that is removed when this is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ats-maps-{}-{number}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

type Key = (String, i8);

#[derive(Clone, Debug)]
enum Op {
    Put(Key, u64),
    Insert(Key, u64),
    InsertNew(Key, u64),
    Delete(Key),
    Remove(Key),
    Merge(Key, u64),
    Add(Key),
    GetOrInsert(Key, u64),
    First,
    Last,
    Batch(Vec<(Key, u64)>, Key),
    /// A transaction that puts pairs, adds to one, and removes one, or is abandoned.
    Transact(Vec<(Key, u64)>, Key, Key, bool),
    RemoveRange(Key, Key),
    Range(Key, Key, Vec<bool>),
    Flush,
    Reopen,
}

fn key() -> impl Strategy<Value = Key> {
    ("[\0a]{0,2}", -2..2_i8)
}

fn op() -> impl Strategy<Value = Op> {
    let value = || 0..1_000_u64;
    let ends = prop::collection::vec(any::<bool>(), 0..20);
    let pairs = || prop::collection::vec((key(), value()), 0..5);
    prop_oneof![
        (key(), value()).prop_map(|(key, value)| Op::Put(key, value)),
        (key(), value()).prop_map(|(key, value)| Op::Insert(key, value)),
        (key(), value()).prop_map(|(key, value)| Op::InsertNew(key, value)),
        key().prop_map(Op::Delete),
        key().prop_map(Op::Remove),
        (key(), value()).prop_map(|(key, value)| Op::Merge(key, value)),
        key().prop_map(Op::Add),
        (key(), value()).prop_map(|(key, value)| Op::GetOrInsert(key, value)),
        Just(Op::First),
        Just(Op::Last),
        (pairs(), key()).prop_map(|(pairs, key)| Op::Batch(pairs, key)),
        (pairs(), key(), key(), prop::bool::weighted(0.2)).prop_map(
            |(pairs, added, removed, abandon)| { Op::Transact(pairs, added, removed, abandon) }
        ),
        (key(), key()).prop_map(|(low, high)| Op::RemoveRange(low, high)),
        (key(), key(), ends).prop_map(|(low, high, ends)| Op::Range(low, high, ends)),
        Just(Op::Flush),
        Just(Op::Reopen),
    ]
}

fn open(folder: &Folder) -> Result<DiskMap<Key, u64>, Error> {
    DiskMap::open_merging(folder.path(), Options::new(), "sum", 1, u64::wrapping_add)
}

/// Puts pairs, adds to a key and removes another one in a transaction, which is abandoned or not.
fn transact(
    map: &DiskMap<Key, u64>,
    model: &mut BTreeMap<Key, u64>,
    pairs: &[(Key, u64)],
    [added, removed]: [&Key; 2],
    abandon: bool,
) -> Result<(), Error> {
    let mut changed = model.clone();
    let done = map.transact(|view| {
        for (key, value) in pairs {
            assert_eq!(
                view.insert(key, value)?,
                changed.insert(key.clone(), *value)
            );
        }
        let value = view.get(added)?.unwrap_or(0);
        assert_eq!(value, changed.get(added).copied().unwrap_or(0));
        view.put(added, value + 1)?;
        changed.insert(added.clone(), value + 1);
        assert!(view.contains_key(added)?);
        assert_eq!(view.remove(removed)?, changed.remove(removed));
        assert!(!view.contains_key(removed)?);
        if abandon { Err(Error::Missing) } else { Ok(()) }
    });
    if abandon {
        assert_eq!(done, Err(Error::Missing));
    } else {
        done?;
        *model = changed;
    }
    Ok(())
}

fn check(ops: &[Op]) -> Result<(), Error> {
    let folder = Folder::new();
    let (mut map, mut model) = (open(&folder)?, BTreeMap::<Key, u64>::new());
    for op in ops {
        match op {
            Op::Put(key, value) => {
                map.put(key, value)?;
                model.insert(key.clone(), *value);
            }
            Op::Insert(key, value) => {
                assert_eq!(map.insert(key, value)?, model.insert(key.clone(), *value));
            }
            Op::InsertNew(key, value) => {
                assert_eq!(map.insert_new(key, value)?, !model.contains_key(key));
                model.entry(key.clone()).or_insert(*value);
            }
            Op::Delete(key) => {
                map.delete(key)?;
                model.remove(key);
            }
            Op::Remove(key) => assert_eq!(map.remove(key)?, model.remove(key)),
            Op::Merge(key, value) => {
                map.merge(key, value)?;
                *model.entry(key.clone()).or_insert(0) += value;
            }
            Op::Add(key) => {
                let added = map.update(key, |value| value + 1)?;
                let value = model.get_mut(key).map(|value| {
                    *value += 1;
                    *value
                });
                assert_eq!(added, value);
            }
            Op::GetOrInsert(key, value) => {
                let expected = *model.entry(key.clone()).or_insert(*value);
                assert_eq!(map.get_or_insert_with(key, || *value)?, expected);
            }
            Op::First => assert_eq!(map.pop_first()?, model.pop_first()),
            Op::Last => assert_eq!(map.pop_last()?, model.pop_last()),
            Op::Batch(pairs, key) => {
                let mut batch = DiskBatch::new();
                for (key, value) in pairs {
                    batch.put(key, value)?;
                    batch.merge(key, 1)?;
                    model.insert(key.clone(), value + 1);
                }
                batch.remove(key)?;
                model.remove(key);
                map.write(&batch)?;
            }
            Op::Transact(pairs, added, removed, abandon) => {
                transact(&map, &mut model, pairs, [added, removed], *abandon)?;
            }
            Op::RemoveRange(low, high) => {
                map.remove_range(low..high)?;
                model.retain(|key, _| key < low || high <= key);
            }
            Op::Range(low, high, ends) => {
                let inside = model.iter().filter(|(key, _)| low <= key && *key <= high);
                let mut inside: Vec<_> = inside.map(|(k, v)| (k.clone(), *v)).collect();
                let mut some = map.range(low..=high);
                for from_back in ends {
                    let (found, wanted) = if *from_back {
                        (some.next_back(), inside.pop())
                    } else {
                        (some.next(), (!inside.is_empty()).then(|| inside.remove(0)))
                    };
                    assert_eq!(found.transpose()?, wanted);
                }
                assert_eq!(some.collect::<Result<Vec<_>, _>>()?, inside);
            }
            Op::Flush => map.store().flush()?,
            Op::Reopen => {
                map.close()?;
                map = open(&folder)?;
            }
        }
        let all: BTreeMap<Key, u64> = map.iter().collect::<Result<_, _>>()?;
        assert_eq!(all, model);
        assert_eq!(
            (map.len()?, map.is_empty()?),
            (model.len(), model.is_empty())
        );
        for key in model.keys() {
            assert_eq!(map.get(key)?, model.get(key).copied());
            assert!(map.contains_key(key)?);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn is_a_map(ops in prop::collection::vec(op(), 1..40)) {
        check(&ops).expect("nothing fails");
    }
}

/// A walk over many removed keys neither recurses nor takes long, nor does a queue whose first keys
/// are removed.
#[test]
fn removed_keys_are_passed() -> Result<(), Error> {
    let (folder, keys) = (Folder::new(), removed_keys());
    let map: DiskMap<u32, u32> = DiskMap::open(folder.path())?;
    (0..keys).try_for_each(|n| map.put(n, n))?;
    let before = map.snapshot();
    for n in 0..keys / 2 {
        assert_eq!(map.pop_first()?, Some((n, n)));
    }
    (keys / 2..keys - 1).try_for_each(|n| map.delete(n))?;
    let last = Some((keys - 1, keys - 1));
    for _ in 0..100 {
        assert_eq!((map.first()?, map.last()?), (last, last));
    }
    assert_eq!((map.iter().count(), map.iter().rev().count()), (1, 1));
    map.store().flush()?;
    assert_eq!((map.iter().count(), map.iter().rev().count()), (1, 1));
    assert_eq!(before.count(..)?, keys as usize);
    Ok(())
}

#[test]
fn snapshots_count_their_keys() -> Result<(), Error> {
    let folder = Folder::new();
    let map: DiskMap<u32, u32> = DiskMap::open(folder.path())?;
    assert!(map.snapshot().is_empty()?);
    assert_eq!((map.snapshot().first()?, map.snapshot().len()?), (None, 0));
    (0..100).try_for_each(|n| map.put(n * 2, n))?;
    let before = map.snapshot();
    map.remove_range(10..)?;
    for round in 0..2 {
        assert_eq!((before.len()?, map.snapshot().len()?), (100, 5), "{round}");
        assert_eq!((before.count(10..20)?, before.count(10..10)?), (5, 0));
        assert_eq!((before.rank(11)?, before.rank(1_000)?), (6, 100));
        assert_eq!((before.nth(6)?, before.nth(100)?), (Some((12, 6)), None));
        assert_eq!(before.nth_in(11.., 1)?, Some((14, 7)));
        assert_eq!(before.nth_in(11..14, 1)?, None);
        let ends = (before.first()?, before.last()?);
        assert_eq!(ends, (Some((0, 0)), Some((198, 99))));
        map.store().flush()?;
    }
    Ok(())
}

#[test]
fn snapshots_and_checkpoints_are_of_a_moment() -> Result<(), Error> {
    let (folder, copy) = (Folder::new(), Folder::new());
    let map: DiskMap<String, u32> = DiskMap::open(folder.path())?;
    map.put("pear", 40)?;
    let before = map.snapshot();
    map.checkpoint(copy.path())?;
    map.put("pear", 41)?;
    map.put("plum", 50)?;
    assert_eq!(before.get("pear")?, Some(40));
    assert_eq!(before.range("p"..).rev().count(), 1);
    assert_eq!(before.prefix("pe").count(), 1);
    let copied: DiskMap<String, u32> = DiskMap::open(copy.path())?;
    let all: Vec<_> = copied.iter().collect::<Result<_, _>>()?;
    assert_eq!(all, [(String::from("pear"), 40)]);
    let within = map.checkpoint(folder.path().join("within"));
    assert!(within.is_err_and(|error| error.to_string().contains("the directory of a store")));
    assert!(!folder.path().join("within").exists());
    assert_eq!(map.get("pear")?, Some(41));
    Ok(())
}

#[test]
fn no_change_is_lost() -> Result<(), Error> {
    let folder = Folder::new();
    let map = open(&folder)?;
    let key = |n: u64| (format!("{}", n % 3), 0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..500 {
                    map.merge(key(n), 1).expect("it is written");
                    map.compute(key(n), |value| Some(value.unwrap_or(0) + 1))
                        .expect("it is there");
                }
            });
        }
    });
    let sum: u64 = map.iter().map(|pair| pair.expect("it is read").1).sum();
    assert_eq!(sum, 4_000);
    Ok(())
}

#[test]
fn bytes_of_other_types_are_corrupt() -> Result<(), Error> {
    let folder = Folder::new();
    let map: DiskMap<u8, bool> = DiskMap::open(folder.path())?;
    map.put(1, true)?;
    map.store().put(&[2], &[2])?;
    map.store().put(&[3, 3], &[1])?;
    assert!(matches!(map.get(2), Err(Error::Corrupt(_))));
    map.put(4, false)?;
    let is_named = |item: &Result<(u8, bool), Error>, text: &str| match item {
        Err(Error::Corrupt(what)) => what.contains(text),
        _ => false,
    };
    // A walk continues after a pair that cannot be decoded.
    let items: Vec<_> = map.iter().collect();
    assert!(matches!(
        items[..],
        [Ok((1, true)), Err(_), Err(_), Ok((4, false))]
    ));
    assert!(is_named(
        &items[1],
        r#"value of the key "\x02" is not of the type `bool`"#
    ));
    assert!(is_named(
        &items[2],
        r#"key "\x03\x03" is not of the type `u8`"#
    ));
    let back: Vec<_> = map.iter().rev().collect();
    assert!(back.iter().rev().eq(&items));
    // A pair that cannot be decoded is removed only by calls that do not read it.
    assert_eq!(map.pop_last()?, Some((4, false)));
    assert!(matches!(map.last(), Err(Error::Corrupt(_))));
    assert!(matches!(map.pop_last(), Err(Error::Corrupt(_))));
    assert!(matches!(map.remove(2), Err(Error::Corrupt(_))));
    assert!(matches!(map.insert(2, true), Err(Error::Corrupt(_))));
    assert_eq!(map.len()?, 3);
    map.delete(2)?;
    map.remove_range(3..)?;
    assert_eq!(map.pop_last()?, Some((1, true)));
    Ok(())
}

/// A number with a manual implementation that cannot decode 13.
#[derive(Clone, Debug, PartialEq)]
struct Lucky(u8);

impl AsValue<Lucky> for Lucky {
    fn encode(&self, bytes: &mut ValueBytes) {
        match self.0 {
            7 => bytes.refuse("seven is enough"),
            number => bytes.push(&[number]),
        }
    }
}

impl Value for Lucky {
    fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [13] | [] | [_, _, ..] => None,
            [number] => Some(Lucky(*number)),
        }
    }
}

#[test]
fn unreadable_values_are_errors() -> Result<(), Error> {
    let folder = Folder::new();
    let add = |one: Lucky, other: Lucky| Lucky(one.0 + other.0);
    let map: DiskMap<u8, Lucky> =
        DiskMap::open_merging(folder.path(), Options::new(), "add", 1, add)?;
    map.put(1, Lucky(1))?;
    for unlucky in [Lucky(13), Lucky(7)] {
        let refusals = [
            map.put(2, &unlucky),
            map.insert(1, &unlucky).map(drop),
            map.insert_new(2, &unlucky).map(drop),
            map.merge(1, &unlucky),
            map.compute(1, |_| Some(unlucky.clone())).map(drop),
            map.update(1, |_| unlucky.clone()).map(drop),
            map.get_or_insert_with(2, || unlucky.clone()).map(drop),
        ];
        for refusal in refusals {
            assert!(matches!(refusal, Err(Error::Refused(_))), "{refusal:?}");
        }
    }
    // Each of the two values can be decoded, but not their sum.
    map.merge(1, Lucky(12))?;
    assert_eq!(map.get(1), Err(Error::Merge));
    map.merge(3, Lucky(3))?;
    let items: Vec<_> = map.iter().collect();
    assert_eq!(items, [Err(Error::Merge), Ok((3, Lucky(3)))]);
    Ok(())
}

#[test]
fn merges_need_a_function() -> Result<(), Error> {
    let folder = Folder::new();
    let map: DiskMap<u8, u64> = DiskMap::open(folder.path())?;
    assert_eq!(map.merge(1, 1), Err(Error::NoOperator));
    map.put(1, 1)?;
    map.close()?;
    Ok(())
}
