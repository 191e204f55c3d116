//! The tree by itself against the map of the standard library, and its balance.

use super::*;
use ats_mem::record::{Plain, RecordBox};
use ats_sync::{Guard, pin};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

type Model = BTreeMap<Vec<u8>, u64>;
type Pair = (Vec<u8>, u64);

fn pair(record: &Kept<Plain>) -> Pair {
    let record = record.get();
    (record.key().to_vec(), record.value()[0])
}

/// Checks AVL-1 and AVL-2, and returns what is there.
fn check_all(tree: &Avl<Plain>) -> Vec<Pair> {
    fn check(tree: &Tree<Plain>, found: &mut Vec<Pair>) -> i32 {
        let Some(node) = tree else { return 0 };
        let left = check(&node.left, found);
        found.push(pair(&node.record));
        let right = check(&node.right, found);
        assert!((left - right).abs() <= 1, "{left} to the left of {right}");
        assert_eq!(i32::from(node.height), left.max(right) + 1);
        assert_eq!(node.head, head(node.record.get().key()));
        i32::from(node.height)
    }
    let mut found = Vec::new();
    check(&tree.0, &mut found);
    assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert_eq!(tree.is_empty(), found.is_empty());
    assert_eq!(tree.has_two(), found.len() > 1);
    assert_eq!(tree.first().map(pair).as_ref(), found.first());
    found
}

fn put(tree: &mut Avl<Plain>, key: &[u8], value: u64, guard: &Guard) -> Option<u64> {
    let record = RecordBox::new(key, &[value], false).lend(guard);
    let (way, here) = tree.search(key);
    let before = here.map(|record| record.get().value()[0]);
    match before {
        Some(_) => tree.replace(way, Kept::new(record)),
        None => tree.insert(way, Kept::new(record)),
    }
    before
}

fn remove(tree: &mut Avl<Plain>, key: &[u8]) -> Option<u64> {
    let (way, here) = tree.search(key);
    let before = here.map(|record| record.get().value()[0])?;
    tree.remove(way);
    Some(before)
}

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, u64),
    Remove(Vec<u8>),
    Up(Bound<Vec<u8>>, usize),
    Down(Option<Vec<u8>>, usize),
    /// Cuts the tree at the root, and some of what comes of it, and puts it together again: each
    /// number chooses a part to cut, or two to join.
    Cut(Vec<u8>, Vec<u8>),
}

/// Keys shorter and longer than their heads, with the same heads, and with zeros at the end.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let head = prop_oneof![Just(&b""[..]), Just(&b"sevensi"[..]), Just(&b"\0\0"[..])];
    let tail = prop_oneof![
        proptest::collection::vec(0u8..2, 0..4),
        any::<u16>().prop_map(|number| number.to_be_bytes().to_vec()),
    ];
    (head, tail).prop_map(|(head, tail)| [head, &tail].concat())
}

fn op() -> impl Strategy<Value = Op> {
    let bound = prop_oneof![
        Just(Bound::Unbounded),
        key().prop_map(Bound::Included),
        key().prop_map(Bound::Excluded),
    ];
    let choices = || proptest::collection::vec(any::<u8>(), 0..12);
    prop_oneof![
        12 => (key(), any::<u64>()).prop_map(|(key, value)| Op::Put(key, value)),
        8 => key().prop_map(Op::Remove),
        1 => (bound, 1usize..20).prop_map(|(from, most)| Op::Up(from, most)),
        1 => (proptest::option::of(key()), 1usize..20)
            .prop_map(|(below, most)| Op::Down(below, most)),
        1 => (choices(), choices()).prop_map(|(cuts, joins)| Op::Cut(cuts, joins)),
    ]
}

/// The first so many records that a walk visits.
fn visit_first(
    most: usize,
    walk: impl FnOnce(&mut dyn FnMut(&Kept<Plain>) -> ControlFlow<()>) -> ControlFlow<()>,
) -> Vec<Pair> {
    let mut found = Vec::new();
    let end = walk(&mut |record| {
        found.push(pair(record));
        match found.len() < most {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    });
    assert_eq!(end.is_break(), found.len() == most);
    found
}

fn to_owned_pair((key, value): (&Vec<u8>, &u64)) -> Pair {
    (key.clone(), *value)
}

fn apply(tree: &mut Avl<Plain>, model: &mut Model, op: Op, guard: &Guard) {
    match op {
        Op::Put(key, value) => {
            assert_eq!(put(tree, &key, value, guard), model.insert(key, value));
        }
        Op::Remove(key) => assert_eq!(remove(tree, &key), model.remove(&key)),
        Op::Up(from, most) => {
            let bound = from.as_ref().map(Vec::as_slice);
            let found = visit_first(most, |mut visit| tree.visit_up(bound, &mut visit));
            let expected = model.range((from, Bound::Unbounded)).take(most);
            assert_eq!(found, expected.map(to_owned_pair).collect::<Vec<_>>());
        }
        Op::Down(below, most) => {
            let found = visit_first(most, |mut visit| {
                tree.visit_down(below.as_deref(), &mut visit)
            });
            let below = below.map_or(Bound::Unbounded, Bound::Excluded);
            let expected = model.range((Bound::Unbounded, below)).rev().take(most);
            assert_eq!(found, expected.map(to_owned_pair).collect::<Vec<_>>());
        }
        Op::Cut(cuts, joins) => cut(tree, &cuts, &joins),
    }
}

fn cut(tree: &mut Avl<Plain>, cuts: &[u8], joins: &[u8]) {
    let mut parts = vec![mem::take(tree)];
    for cut in cuts {
        let at = usize::from(*cut) % parts.len();
        let part = mem::take(&mut parts[at]);
        let had_two = part.has_two();
        let halves = part.split();
        for half in &halves {
            check_all(half);
            assert!(!half.is_empty() || !had_two);
        }
        parts.splice(at..=at, halves);
    }
    let mut joins = joins.iter().copied().map(usize::from);
    while parts.len() > 1 {
        let at = joins.next().unwrap_or(0) % (parts.len() - 1);
        let right = parts.remove(at + 1);
        let left = mem::take(&mut parts[at]);
        let joined = Avl::join(left, right);
        check_all(&joined);
        parts[at] = joined;
    }
    *tree = parts.remove(0);
}

proptest! {
    #[test]
    fn behaves_as_a_sorted_map_and_is_balanced(ops in proptest::collection::vec(op(), 0..600)) {
        let guard = pin();
        let (mut tree, mut model) = (Avl::default(), Model::new());
        for op in ops {
            apply(&mut tree, &mut model, op, &guard);
            prop_assert_eq!(check_all(&tree), model.iter().map(to_owned_pair).collect::<Vec<_>>());
        }
        for (key, value) in &model {
            let found = tree.find(key).map(|record| record.get().value()[0]);
            prop_assert_eq!(found, Some(*value));
        }
    }

    /// Of sizes that are very different.
    #[test]
    fn two_trees_of_any_size_make_a_balanced_one(left in 0u64..300, right in 0u64..300) {
        let guard = pin();
        let tree = |numbers: std::ops::Range<u64>| {
            let mut tree = Avl::default();
            for number in numbers {
                put(&mut tree, &number.to_be_bytes(), number, &guard);
            }
            tree
        };
        let joined = Avl::join(tree(0..left), tree(left..left + right));
        let numbers = check_all(&joined).into_iter().map(|(_, number)| number);
        prop_assert!(numbers.eq(0..left + right));
    }
}

/// Ascending and descending keys are the worst for a tree that is not balanced.
#[test]
fn rows_of_keys_make_a_low_tree() {
    let guard = pin();
    for descends in [false, true] {
        let mut tree = Avl::default();
        for number in 0..10_000u64 {
            let number = if descends { 10_000 - number } else { number };
            put(&mut tree, &number.to_be_bytes(), number, &guard);
        }
        assert_eq!(check_all(&tree).len(), 10_000);
        assert!(height(&tree.0) <= 1 + 14 * 144 / 100);
        while let [left, rest] = mem::take(&mut tree).split()
            && !rest.is_empty()
        {
            check_all(&left);
            check_all(&rest);
            tree = rest;
        }
    }
}
