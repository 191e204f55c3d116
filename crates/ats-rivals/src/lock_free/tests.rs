//! Tests of containers against a model, and of trees that are split and joined all the time.

use super::edit::Edit;
use super::leaf::MOST;
use super::treap::{Link, Tree};
use super::{LockFreeTree, live};
use ats_mem::When;
use ats_mem::record::{Plain, Record, RecordBox, Release};
use ats_mem::{Change, Provided, Records, Walk, WalkFrom};
use ats_sync::pin;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::ops::{Bound, ControlFlow};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A container, and all records that were ever put into it.
struct Contained {
    link: Link<Plain>,
    records: Vec<*mut Record<Plain>>,
}

impl Contained {
    fn tree(&self) -> Tree<'_, Plain> {
        // SAFETY: only `publish` frees nodes, and it borrows exclusively.
        unsafe { self.link.tree() }
    }

    fn record(&mut self, key: &[u8], value: u64) -> &'static Record<Plain> {
        let record = RecordBox::new(key, &[value], false).into_raw();
        self.records.push(record);
        // SAFETY: the record is freed when the test ends.
        unsafe { &*record }
    }

    /// Carries out a change, and checks that the change lists exactly the nodes that it adds and
    /// removes.
    fn publish(&mut self, link: Link<Plain>, mut edit: Edit<Plain>) {
        let mut expected = nodes(self.tree());
        let replaced = edit.take_replaced();
        for gone in &replaced {
            assert!(
                expected.remove(&address(*gone)),
                "not in the tree, or twice"
            );
        }
        for new in edit.new_nodes() {
            assert!(expected.insert(address(*new)));
        }
        edit.keep();
        self.link = link;
        assert_eq!(nodes(self.tree()), expected);
        // SAFETY: no other code reads the container.
        replaced.into_iter().for_each(|gone| unsafe { gone.free() });
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        // SAFETY: no other code has the container or the records.
        unsafe {
            self.link.free_all();
            for record in self.records.drain(..) {
                drop(RecordBox::from_raw(record));
            }
        }
    }
}

fn address(link: Link<Plain>) -> usize {
    match link {
        Link::Empty => 0,
        Link::Leaf(block) => block.as_ptr().addr(),
        Link::Inner(node) => node.as_ptr().addr(),
    }
}

fn nodes(tree: Tree<'_, Plain>) -> HashSet<usize> {
    let mut all = HashSet::new();
    let mut left = vec![tree];
    while let Some(tree) = left.pop() {
        match tree {
            Tree::Empty => continue,
            Tree::Leaf(_) => {}
            Tree::Inner(inner) => left.extend([inner.left(), inner.right()]),
        }
        assert!(all.insert(address(tree.link())), "two ways to one node");
    }
    all
}

/// Checks TREAP-4, the order of the keys, and the sizes of the leaves.
fn check(tree: Tree<'_, Plain>, low: Option<&[u8]>, high: Option<&[u8]>, most: u64, is_root: bool) {
    match tree {
        Tree::Empty => assert!(is_root),
        Tree::Leaf(leaf) => {
            assert!((1..=MOST).contains(&leaf.len()));
            let keys = || (0..leaf.len()).map(|at| leaf.record(at).key());
            assert!(keys().is_sorted_by(|one, next| one < next));
            assert!(keys().all(|key| low.is_none_or(|low| key >= low)));
            assert!(keys().all(|key| high.is_none_or(|high| key < high)));
        }
        Tree::Inner(inner) => {
            assert!(inner.priority <= most);
            check(inner.left(), low, Some(&inner.key), inner.priority, false);
            check(inner.right(), Some(&inner.key), high, inner.priority, false);
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Put(u16, u64),
    /// Puts a number of keys that follow each other: the first key, and the number.
    Row(u16, u16),
    Remove(u16),
    RemoveRow(u16, u16),
    SplitAndJoin,
    Up(u16, bool, Option<u16>, usize),
    Down(Option<u16>, Option<u16>, usize),
}

const KEYS: u16 = 1000;

fn op() -> impl Strategy<Value = Op> {
    let key = || 0..KEYS;
    prop_oneof![
        6 => (key(), any::<u64>()).prop_map(|(key, value)| Op::Put(key, value)),
        2 => (key(), 1..200u16).prop_map(|(key, len)| Op::Row(key, len)),
        4 => key().prop_map(Op::Remove),
        2 => (key(), 1..200u16).prop_map(|(key, len)| Op::RemoveRow(key, len)),
        1 => Just(Op::SplitAndJoin),
        2 => (key(), any::<bool>(), proptest::option::of(key()), 1..200usize)
            .prop_map(|(from, with, high, most)| Op::Up(from, with, high, most)),
        2 => (proptest::option::of(key()), proptest::option::of(key()), 1..200usize)
            .prop_map(|(low, below, most)| Op::Down(low, below, most)),
    ]
}

fn name(key: u16) -> [u8; 2] {
    key.to_be_bytes()
}

fn values(found: &[&Record<Plain>]) -> Vec<(u16, u64)> {
    let pair = |record: &&Record<Plain>| {
        let key = record.key().try_into().expect("two bytes");
        (u16::from_be_bytes(key), record.value()[0])
    };
    found.iter().map(pair).collect()
}

fn run(contained: &mut Contained, model: &mut BTreeMap<u16, u64>, op: Op) {
    let mut put = |contained: &mut Contained, key, value| {
        let record = contained.record(&name(key), value);
        let mut edit = Edit::new();
        let link = edit.put(contained.tree(), record);
        contained.publish(link, edit);
        model.insert(key, value);
    };
    match op {
        Op::Put(key, value) => put(contained, key, value),
        Op::Row(first, len) => (first..first + len).for_each(|key| put(contained, key, 7)),
        Op::Remove(key) => remove(contained, model, key),
        Op::RemoveRow(first, len) => {
            (first..first + len).for_each(|key| remove(contained, model, key));
        }
        Op::SplitAndJoin => split_and_join(contained, model),
        Op::Up(from, with, high, most) => {
            let (name_of, high_of) = (name(from), high.map(name));
            let (bound, expected) = if with {
                (Bound::Included(&name_of[..]), Bound::Included(from))
            } else {
                (Bound::Excluded(&name_of[..]), Bound::Excluded(from))
            };
            let high = high.filter(|high| *high > from);
            let high_of = high.and(high_of);
            let mut found = Vec::new();
            let high_of = high_of.as_ref().map(|high| &high[..]);
            contained.tree().up(bound, high_of, most, &mut found);
            let end = high.map_or(Bound::Unbounded, Bound::Excluded);
            let expected = model.range((expected, end)).take(most);
            let expected: Vec<_> = expected.map(|(key, value)| (*key, *value)).collect();
            assert_eq!(values(&found), expected);
        }
        Op::Down(low, below, most) => {
            let low = low.filter(|low| below.is_none_or(|below| *low < below));
            let (low_of, below_of) = (low.map(name), below.map(name));
            let mut found = Vec::new();
            contained.tree().down(
                low_of.as_ref().map(|low| &low[..]),
                below_of.as_ref().map(|below| &below[..]),
                most,
                &mut found,
            );
            let start = low.map_or(Bound::Unbounded, Bound::Included);
            let end = below.map_or(Bound::Unbounded, Bound::Excluded);
            let expected = model.range((start, end)).rev().take(most);
            let expected: Vec<_> = expected.map(|(key, value)| (*key, *value)).collect();
            assert_eq!(values(&found), expected);
        }
    }
}

fn remove(contained: &mut Contained, model: &mut BTreeMap<u16, u64>, key: u16) {
    let mut edit = Edit::new();
    let link = edit.remove(contained.tree(), &name(key));
    assert_eq!(link.is_some(), model.remove(&key).is_some());
    match link {
        Some(link) => contained.publish(link, edit),
        None => assert!(edit.new_nodes().is_empty() && edit.take_replaced().is_empty()),
    }
}

/// Splits a container, checks the parts, and joins them again.
fn split_and_join(contained: &mut Contained, model: &BTreeMap<u16, u64>) {
    let mut edit = Edit::new();
    let Some((left, key, right)) = edit.split(contained.tree()) else {
        assert!(model.len() < 2);
        return;
    };
    // SAFETY: no node is freed before the end of the function.
    let (left, right) = unsafe { (left.tree(), right.tree()) };
    check(left, None, Some(&key), u64::MAX, false);
    check(right, Some(&key), None, u64::MAX, false);
    let replaced = edit.take_replaced();
    let joined = edit.join(left, &key, right);
    let both = edit.take_replaced();
    let before = nodes(contained.tree());
    contained.link = joined;
    let after = nodes(contained.tree());
    // The list also has the nodes that the split has made and the join has replaced.
    let gone = replaced.into_iter().chain(both);
    for link in gone {
        assert!(!after.contains(&address(link)));
        // SAFETY: the container does not lead to it any more.
        unsafe { link.free() };
    }
    assert!(before.len().abs_diff(after.len()) <= 2);
    edit.keep();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_container_behaves_as_a_sorted_map(ops in proptest::collection::vec(op(), 0..60)) {
        let mut contained = Contained { link: Link::Empty, records: Vec::new() };
        let mut model = BTreeMap::new();
        for op in ops {
            run(&mut contained, &mut model, op);
            check(contained.tree(), None, None, u64::MAX, true);
        }
        for key in 0..KEYS {
            let found = contained.tree().get(&name(key)).map(|record| record.value()[0]);
            prop_assert_eq!(found, model.get(&key).copied());
        }
        let mut all = Vec::new();
        contained.tree().up(Bound::Unbounded, None, usize::MAX, &mut all);
        prop_assert_eq!(values(&all), model.into_iter().collect::<Vec<_>>());
    }
}

/// A change that is not published frees its nodes when it is dropped.
#[test]
fn unpublished_changes_free_their_nodes() {
    enum Own {}
    // SAFETY: the values own nothing.
    impl Release for Own {
        unsafe fn release(_value: &[u64]) {}
    }
    let record = RecordBox::<Own>::new(b"key", &[1], false);
    let mut edit = Edit::new();
    let link = edit.put(Tree::Empty, &record);
    assert_eq!(live::nodes::<Own>(), 1);
    drop(edit);
    assert_eq!(live::nodes::<Own>(), 0);
    let mut edit = Edit::new();
    let two = [b"a", b"b"].map(|key| RecordBox::<Own>::new(key, &[1], false));
    let mut tree = Link::Empty;
    for record in &two {
        // SAFETY: no node is freed before the end of the test.
        tree = edit.put(unsafe { tree.tree() }, record);
    }
    assert_eq!(live::nodes::<Own>(), 2);
    drop(edit);
    assert_eq!(live::nodes::<Own>(), 0);
    let _ = (link, tree);
}

fn put<R: Release>(tree: &LockFreeTree<R>, key: &[u8], value: u64) -> Option<u64> {
    let (mut old, guard) = (None, pin());
    let done = tree.update(key, &guard, &mut |current| {
        old = current.map(|record| record.value()[0]);
        Change::Put(RecordBox::new(key, &[value], false))
    });
    assert_eq!(done, Ok(()));
    old
}

fn take<R: Release>(tree: &LockFreeTree<R>, key: &[u8]) -> Option<u64> {
    let (mut old, guard) = (None, pin());
    let done = tree.update(key, &guard, &mut |current| {
        old = current.map(|record| record.value()[0]);
        Change::Remove
    });
    assert_eq!(done, Ok(()));
    old
}

fn wait_until_all_are_freed<R: 'static>() {
    // Other tests of this program may keep the epoch back for a moment.
    let start = Instant::now();
    while live::nodes::<R>() != 0 {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{} nodes",
            live::nodes::<R>()
        );
        ats_sync::collect();
        std::thread::yield_now();
    }
}

/// A thread that updates base nodes without contention joins them, after a thousand updates each.
#[test]
fn base_nodes_without_contention_are_joined() {
    enum Own {}
    impl Release for Own {
        unsafe fn release(_value: &[u64]) {}
    }
    let tree = LockFreeTree::<Own>::new();
    tree.force_adaptation(1, 0);
    for number in 0..400u64 {
        put(&tree, &number.to_be_bytes(), number);
    }
    tree.force_adaptation(0, 0);
    let before = tree.adaptation();
    assert!(before.base_nodes > 10 && before.base_nodes == before.route_nodes + 1);
    assert!(before.splits as usize == before.route_nodes && before.joins == 0);
    for round in 0..20_000u64 {
        for number in [0u64, 200, 399] {
            put(&tree, &number.to_be_bytes(), round);
        }
    }
    let after = tree.adaptation();
    assert!(after.joins > 0 && after.base_nodes < before.base_nodes);
    assert_eq!(after.base_nodes as u64, 1 + after.splits - after.joins);
    assert_eq!(tree.len(), 400);
    drop(tree);
    wait_until_all_are_freed::<Own>();
}

#[test]
fn a_panic_changes_nothing_and_holds_nothing() {
    let tree = LockFreeTree::<Plain>::new();
    put(&tree, b"key", 1);
    let panics = || {
        let _ = tree.update(b"key", &pin(), &mut |_| panic!("as planned"));
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(put(&tree, b"key", 2), Some(1));
    assert_eq!(tree.len(), 1);
}

/// Lets threads write keys of their own, interleaved with those of others, while others read and
/// walk.
fn stress<R: Release>(splits: u32, joins: u32, keys: u64) {
    const WRITERS: u64 = 3;
    const STEPS: u64 = 20_000;
    let tree = LockFreeTree::<R>::new();
    for number in 0..keys {
        put(&tree, &(8 * number).to_be_bytes(), number);
    }
    tree.force_adaptation(splits, joins);
    let stop = AtomicBool::new(false);
    let walk = || {
        let guard = pin();
        let mut up = Vec::new();
        let scanned = tree.scan(None, When::NOW, &guard, &mut |record| {
            up.push(record.key());
            ControlFlow::Continue(())
        });
        assert_eq!(scanned, Ok(()));
        let mut down = Vec::new();
        let visited = tree.visit(Walk::down(WalkFrom::Start), &guard, &mut |record| {
            down.push(record.key());
            ControlFlow::Continue(())
        });
        assert_eq!(visited, Ok(()));
        assert!(up.is_sorted_by(|one, next| one < next));
        assert!(down.is_sorted_by(|one, next| one > next));
        for all in [&up, &down] {
            let stable = all.iter().filter(|key| key[7] % 8 == 0).count();
            assert_eq!(stable as u64, keys);
        }
    };
    std::thread::scope(|scope| {
        let write = |id: u64| {
            let tree = &tree;
            move || {
                let mut random = fastrand::Rng::with_seed(id);
                let mut mine = BTreeMap::new();
                for step in 0..STEPS {
                    let key = 8 * random.u64(..keys) + id;
                    let name = key.to_be_bytes();
                    if random.bool() {
                        assert_eq!(put(tree, &name, step), mine.insert(key, step));
                    } else {
                        assert_eq!(take(tree, &name), mine.remove(&key));
                    }
                }
                mine.len()
            }
        };
        let writers: Vec<_> = (1..=WRITERS).map(|id| scope.spawn(write(id))).collect();
        scope.spawn(|| {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number = (number + 7) % keys;
                let guard = pin();
                let found = tree.get(&(8 * number).to_be_bytes(), &guard);
                assert_eq!(found.map(|record| record.value()[0]), Some(number));
                if number % 50 == 0 {
                    walk();
                }
            }
        });
        let left: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        stop.store(true, Ordering::Relaxed);
        let left: usize = left.into_iter().map(|left| left.expect("no panic")).sum();
        assert_eq!(tree.len(), left + keys as usize);
    });
    walk();
    let now = tree.adaptation();
    assert_eq!(now.base_nodes, now.route_nodes + 1);
    assert_eq!(now.base_nodes as u64, 1 + now.splits - now.joins);
    assert!(
        now.splits > 0 && (joins == 0) == (now.joins == 0),
        "{now:?}"
    );
    drop(tree);
    wait_until_all_are_freed::<R>();
}

#[test]
fn threads_never_lose_a_record_nor_a_node_while_the_tree_adapts() {
    enum Own {}
    impl Release for Own {
        unsafe fn release(_value: &[u64]) {}
    }
    stress::<Own>(4, 3, 300);
}

#[test]
fn threads_never_lose_a_record_nor_a_node_in_a_small_tree_that_adapts() {
    enum Own {}
    impl Release for Own {
        unsafe fn release(_value: &[u64]) {}
    }
    stress::<Own>(2, 2, 6);
}
