//! Tests of memtables.

pub(super) mod census;
// Figures of code that is not optimised would say nothing.
#[cfg(not(debug_assertions))]
mod figures;
mod model;
mod stress;

use super::*;
use crate::cursor::Cursor;
use crate::entry::collapse::tests::operators::{self, Append, Sum};
use crate::error::Error;
use ats_store::Direction;
use std::thread;
use std::time::{Duration, Instant};
use versions::{KeyVersion, Tags};

/// Nothing is kept for others.
const ALONE: Retention<'static> = Retention {
    visible: Seq::ZERO,
    snapshots: &[],
    alone: true,
};

/// The expectation about a version that is kept.
#[derive(Debug)]
pub(super) struct KeptVersion {
    seq: u64,
    kind: Kind,
    /// `true` if it is kept though it belongs to the stripe of the next.
    is_apart: bool,
    /// Bytes of the node, if it does not lie within the record.
    node_bytes: usize,
}

impl KeptVersion {
    pub(super) fn of(version: KeyVersion<'_>) -> Self {
        let tags = version.older().tags();
        KeptVersion {
            seq: version.stamp.seq().get(),
            kind: version.stamp.kind(),
            is_apart: tags.has(Tags::APART) || tags.has(Tags::REFUSED),
            node_bytes: if version.is_inline() {
                0
            } else {
                Node::bytes(version.bytes.len())
            },
        }
    }
}

fn write<'a>(kind: Kind, key: &'a [u8], value: &'a [u8], seq: u64) -> Write<'a> {
    Write {
        kind,
        key,
        value,
        seq: Seq::new(seq),
    }
}

/// Returns the sequence numbers of snapshots.
fn seqs(numbers: &[u64]) -> Vec<Seq> {
    numbers.iter().copied().map(Seq::new).collect()
}

/// Returns the entries that a lookup pushes.
fn entries_at(memtable: &Memtable, key: &[u8], seq: u64) -> (Lookup, Vec<(Kind, Vec<u8>)>) {
    let mut chain = Chain::new();
    let lookup = memtable.get(key, Seq::new(seq), true, &mut chain);
    let entries = (0..chain.len()).map(|index| chain.entry(index));
    let entries = entries.map(|(kind, value)| (kind, value.to_vec()));
    (lookup, entries.collect())
}

#[test]
fn only_readable_versions_are_kept() {
    let memtable = Memtable::new();
    let put = |seq, snapshots: &[u64], visible, alone| {
        let retention = Retention {
            visible: Seq::new(visible),
            snapshots: &seqs(snapshots),
            alone,
        };
        let value = [seq as u8];
        assert_eq!(
            memtable.apply(write(Kind::Put, b"k", &value, seq), &retention, None),
            0
        );
        let versions = memtable.versions(b"k");
        versions
            .into_iter()
            .map(|version| version.seq)
            .collect::<Vec<_>>()
    };
    assert_eq!(put(1, &[], 0, true), [1]);
    assert_eq!(put(2, &[], 1, true), [2]);
    assert_eq!(put(3, &[], 2, false), [3, 2]);
    assert_eq!(put(4, &[], 2, false), [4, 2]);
    assert_eq!(put(5, &[], 4, false), [5, 4]);
    assert_eq!(put(6, &[5], 5, false), [6, 5]);
    assert_eq!(put(7, &[5], 6, false), [7, 6, 5]);
    assert_eq!(put(8, &[5, 7], 7, true), [8, 7, 5]);
    assert_eq!(put(9, &[7], 8, true), [9, 7]);
    assert_eq!(put(10, &[], 9, true), [10]);
}

#[test]
fn many_snapshots_keep_a_version_each_and_cost_no_more_when_they_are_gone() {
    let memtable = Memtable::new();
    let mut snapshots = Vec::new();
    let mut seq = 0;
    let mut put = |snapshots: &[u64]| {
        seq += 1;
        let retention = Retention {
            visible: Seq::new(seq - 1),
            snapshots: &seqs(snapshots),
            alone: seq % 2 == 0,
        };
        memtable.apply(write(Kind::Put, b"k", b"value", seq), &retention, None);
        seq
    };
    for _ in 0..100 {
        let at = put(&snapshots);
        snapshots.push(at);
        put(&snapshots);
    }
    assert!(memtable.versions(b"k").len() <= snapshots.len() + 2);
    for snapshot in &snapshots {
        let (lookup, _) = entries_at(&memtable, b"k", *snapshot);
        assert_eq!(lookup, Lookup::Complete);
    }
    // The newer half, and every second of the older half, ends.
    snapshots.truncate(50);
    let rest: Vec<u64> = snapshots.into_iter().step_by(2).collect();
    for _ in 0..4 {
        put(&rest);
        assert!(memtable.versions(b"k").len() <= rest.len() + 2);
    }
    put(&[]);
    put(&[]);
    assert!(memtable.versions(b"k").len() <= 2);
}

#[test]
fn an_operand_on_a_deleted_key_is_complete() {
    let append = Append::default();
    let memtable = Memtable::new();
    let operand = |key: &[u8], seq| {
        let write = write(Kind::Operand, key, b"x", seq);
        assert_eq!(memtable.apply(write, &ALONE, Some(&append)), 0);
        entries_at(&memtable, key, seq)
    };
    let x = |kind, lookup| (lookup, vec![(kind, b"x".to_vec())]);
    assert_eq!(operand(b"a", 1), x(Kind::Operand, Lookup::GoesOn));
    memtable.apply(write(Kind::Delete, b"b", b"", 2), &ALONE, Some(&append));
    assert_eq!(operand(b"b", 3), x(Kind::Put, Lookup::Complete));
    memtable.delete_range(
        KeyRange {
            low: None,
            high: Some(b"c"),
        },
        Seq::new(4),
    );
    assert_eq!(entries_at(&memtable, b"a", 3).1.len(), 1);
    let nothing = (Lookup::Complete, vec![(Kind::Delete, vec![])]);
    assert_eq!(entries_at(&memtable, b"a", 4), nothing);
    assert_eq!(entries_at(&memtable, b"aa", 4), nothing);
    assert_eq!(
        entries_at(&memtable, b"aa", 3),
        (Lookup::GoesOn, Vec::new())
    );
    assert_eq!(operand(b"a", 5), x(Kind::Put, Lookup::Complete));
    assert_eq!(operand(b"aa", 6), x(Kind::Put, Lookup::Complete));
    assert_eq!(operand(b"c", 7), x(Kind::Operand, Lookup::GoesOn));
    assert_eq!(
        memtable.range_deletes.newest_covering(b"a", Seq::MAX),
        Some(Seq::new(4))
    );
    assert_eq!(memtable.range_deletes(Seq::new(3)).len(), 0);
    assert_eq!(memtable.range_deletes(Seq::new(4)).len(), 1);
}

#[test]
fn a_reader_that_came_too_late_is_told_so() {
    let memtable = Memtable::new();
    let group = |visible| Retention {
        visible: Seq::new(visible),
        ..NOT_ALONE
    };
    let mut chain = Chain::new();
    let mut lookup = |seq, is_snapshot| {
        chain.clear();
        memtable.get(b"k", Seq::new(seq), is_snapshot, &mut chain)
    };
    memtable.apply(write(Kind::Put, b"k", b"1", 1), &group(0), None);
    assert_eq!(lookup(0, false), Lookup::GoesOn);
    memtable.apply(write(Kind::Put, b"k", b"2", 2), &group(0), None);
    // The first write was visible to no reader.
    assert_eq!(lookup(0, false), Lookup::GoesOn);
    memtable.apply(write(Kind::Put, b"k", b"3", 3), &group(2), None);
    assert_eq!(lookup(2, false), Lookup::Complete);
    memtable.apply(write(Kind::Put, b"k", b"4", 4), &group(3), None);
    assert_eq!(lookup(2, false), Lookup::TooOld);
    assert_eq!(lookup(3, false), Lookup::Complete);
    // A single version may be read at once, but not through a snapshot.
    let alone = Retention {
        snapshots: &[Seq::new(4)],
        ..group(4)
    };
    let alone = Retention {
        alone: true,
        ..alone
    };
    memtable.apply(write(Kind::Put, b"k", b"5", 5), &alone, None);
    assert_eq!(lookup(2, false), Lookup::Complete);
    assert_eq!(entries_at(&memtable, b"k", 4).1[0].1, b"4");
    let mut cursor = MemtableCursor::new(Arc::new(memtable), Seq::new(2), false);
    assert_eq!(cursor.seek(None, Direction::Up, None), Ok(()));
    assert_eq!(cursor.entry(0), (Kind::Put, &b"5"[..]));
}

const NOT_ALONE: Retention<'static> = Retention {
    alone: false,
    ..ALONE
};

#[test]
fn a_cursor_without_a_snapshot_expires() {
    let memtable = Arc::new(Memtable::new());
    for seq in 1..=3 {
        let retention = Retention {
            visible: Seq::new(seq - 1),
            ..NOT_ALONE
        };
        memtable.apply(write(Kind::Put, b"k", b"v", seq), &retention, None);
    }
    let mut cursor = MemtableCursor::new(Arc::clone(&memtable), Seq::new(1), false);
    assert!(cursor.key().is_none());
    assert_eq!(cursor.seek(None, Direction::Up, None), Err(Error::Expired));
    assert!(cursor.key().is_none());
    let mut cursor = MemtableCursor::new(Arc::clone(&memtable), Seq::new(2), false);
    assert_eq!(cursor.seek(None, Direction::Down, None), Ok(()));
    assert_eq!(cursor.key(), Some(&b"k"[..]));
}

#[test]
fn a_cursor_walks_over_many_keys_in_both_directions() {
    let memtable = Arc::new(Memtable::new());
    let key = |number: u64| (2 * number).to_be_bytes();
    let seen = 3_000;
    for number in 0..2 * seen {
        // Every second key is not there yet for the reader, and in the middle there are thousands
        // of these in a row.
        let is_seen = number % 2 == 0;
        let seq = if is_seen {
            number + 1
        } else {
            1_000_000 + number
        };
        let value = vec![number as u8; if number % 100 == 0 { 5_000 } else { 10 }];
        let key = if is_seen {
            key(number)
        } else {
            (2 * seen + 2 * number + 1).to_be_bytes()
        };
        memtable.apply(write(Kind::Put, &key, &value, seq), &ALONE, None);
    }
    let mut cursor = MemtableCursor::new(Arc::clone(&memtable), Seq::new(1_000_000), true);
    let mut walk = |direction, bound: Option<&[u8]>| {
        let mut keys = Vec::new();
        cursor.seek(None, direction, bound).unwrap();
        while let Some(key) = cursor.key() {
            assert_eq!(cursor.entries(), 1);
            let number = u64::from_be_bytes(key.try_into().unwrap()) / 2;
            assert_eq!(cursor.entry(0).1[0], number as u8);
            keys.push(number);
            cursor.advance(None).unwrap();
        }
        keys
    };
    let up: Vec<u64> = (0..2 * seen).step_by(2).collect();
    assert_eq!(walk(Direction::Up, None), up);
    assert_eq!(walk(Direction::Up, Some(&key(2_000))), up[1_000..]);
    assert_eq!(walk(Direction::Up, Some(&key(2_001))), up[1_001..]);
    let down: Vec<u64> = up.iter().rev().copied().collect();
    assert_eq!(walk(Direction::Down, None), down);
    let bound = Some(&key(2_000)[..]);
    assert_eq!(walk(Direction::Down, bound), down[seen as usize - 1_000..]);
    assert_eq!(walk(Direction::Down, Some(b"")), []);
}

#[test]
fn refused_operands_are_kept_and_not_merged_again() {
    let append = Append::default();
    let memtable = Memtable::new();
    let mut refusals = 0;
    for seq in 1..=1_000 {
        let value = [[operators::REFUSED], [operators::PANICS]][seq as usize % 2];
        let write = write(Kind::Operand, b"k", &value, seq);
        refusals += memtable.apply(write, &ALONE, Some(&append));
    }
    // Each write tries once.
    assert_eq!(refusals, 999);
    let (lookup, entries) = entries_at(&memtable, b"k", u64::MAX);
    assert_eq!((lookup, entries.len()), (Lookup::GoesOn, 1_000));
    assert!(
        entries
            .iter()
            .all(|(kind, value)| *kind == Kind::Operand && value.len() == 1)
    );
    // Operands that can be merged are merged above them.
    for seq in 1_001..=1_200 {
        let write = write(Kind::Operand, b"k", b"a", seq);
        refusals += memtable.apply(write, &ALONE, Some(&append));
    }
    assert_eq!(refusals, 1_000);
    assert_eq!(entries_at(&memtable, b"k", u64::MAX).1.len(), 1_001);
    memtable.apply(write(Kind::Put, b"k", b"a", 2_001), &ALONE, Some(&append));
    assert_eq!(entries_at(&memtable, b"k", u64::MAX).1.len(), 1);
}

#[test]
fn a_base_of_the_operator_becomes_a_put() {
    let append = Append::default();
    let memtable = Memtable::new();
    for (seq, value) in [(1, &b"a"[..]), (2, b"!"), (3, b"b")] {
        let write = write(Kind::Operand, b"k", value, seq);
        memtable.apply(write, &ALONE, Some(&append));
    }
    let (lookup, entries) = entries_at(&memtable, b"k", 3);
    assert_eq!(lookup, Lookup::Complete);
    assert_eq!(entries, [(Kind::Put, b"!b".to_vec())]);
}

#[test]
fn a_memtable_counts_its_bytes_and_frees_them() {
    let value = |len: usize| {
        let mut value = census::MARK.to_vec();
        value.resize(len, b'x');
        value
    };
    let memtable = Memtable::new();
    assert!(memtable.is_empty());
    let empty = memtable.bytes();
    let mut seq = 0;
    for round in 0..3 {
        for key in 0..500_u32 {
            seq += 1;
            let retention = Retention {
                visible: Seq::new(seq - 1),
                snapshots: &[Seq::new(500)],
                alone: key % 2 == 0,
            };
            let value = value(if key % 50 == 0 { 5_000 } else { 20 });
            memtable.apply(
                write(Kind::Put, &key.to_be_bytes(), &value, seq),
                &retention,
                None,
            );
        }
        assert_eq!(memtable.len(), 500, "{round}");
    }
    assert!(!memtable.is_empty());
    assert!(memtable.bytes() > empty + 20 * 5_000);
    let in_nodes: usize = (0..500_u32)
        .flat_map(|key| memtable.versions(&key.to_be_bytes()))
        .map(|version| version.node_bytes)
        .sum();
    assert_eq!(memtable.node_bytes.load(Ordering::Relaxed), in_nodes);
    assert!(census::nodes() > 500);
    drop(memtable);
    // Nodes that were taken out before are freed by and by.
    let start = Instant::now();
    while census::nodes() > 0 && start.elapsed() < Duration::from_secs(10) {
        ats_sync::collect();
        thread::yield_now();
    }
    assert_eq!(census::nodes(), 0);

    let memtable = Memtable::new();
    memtable.delete_range(KeyRange::default(), Seq::new(1));
    assert!(!memtable.is_empty());
    assert_eq!(memtable.len(), 0);
    memtable.apply(write(Kind::Put, b"k", &value(5_000), 2), &ALONE, None);
    assert_eq!(census::nodes(), 1);
    drop(memtable);
    assert_eq!(census::nodes(), 0);
}

#[test]
fn counters_have_one_version() {
    let memtable = Memtable::new();
    let one = 1_u64.to_le_bytes();
    for seq in 1..=1_000 {
        let write = write(Kind::Operand, b"k", &one, seq);
        memtable.apply(write, &ALONE, Some(&Sum));
        assert_eq!(memtable.versions(b"k").len(), 1);
    }
    let (_, entries) = entries_at(&memtable, b"k", 1_000);
    assert_eq!(entries, [(Kind::Operand, 1_000_u64.to_le_bytes().to_vec())]);
}

#[test]
fn recent_keys_are_logged_from_the_first_question_on() {
    let memtable = Memtable::new();
    let put = |key: &[u8], seq| memtable.apply(write(Kind::Put, key, b"1", seq), &ALONE, None);
    put(b"a", 1);
    let recent = |after, seq| {
        let range = KeyRange {
            low: None,
            high: None,
        };
        memtable.recent_keys([Seq::new(after), Seq::new(seq)], range)
    };
    assert_eq!(recent(0, 1), None);
    let before = memtable.bytes();
    put(b"b", 2);
    put(b"a", 3);
    assert!(memtable.bytes() > before);
    assert_eq!(recent(1, 3), Some(vec![b"b".to_vec(), b"a".to_vec()]));
    assert_eq!(recent(2, 3), Some(vec![b"a".to_vec()]));
}
