//! Ordered stores, compared with a model, and under many threads.

use crate::stores::ordered::*;
use ats_mem::{CaTree, Change, Plain, Provided, Records};
use ats_sync::pin;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn behaves_as_a_sorted_map(ops in ops()) {
        behave_as_a_sorted_map(&CaTree::<Plain>::new(), ops)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The tree behaves like a sorted map for any splits and joins.
    #[test]
    fn behaves_as_a_sorted_map_while_it_adapts(
        ops in ops(),
        splits in 1u32..10,
        joins in 0u32..10,
    ) {
        let tree = CaTree::<Plain>::new();
        tree.force_adaptation(splits, joins);
        let mut model = BTreeMap::new();
        for op in ops {
            apply(&tree, &mut model, op);
            prop_assert_eq!(tree.len(), model.len());
        }
        prop_assert_eq!(contents(&tree), model.into_iter().collect::<Vec<_>>());
        tree.force_adaptation(0, 0);
        let mut visits = 0;
        while !tree.join_idle(&pin()) {
            visits += 1;
            prop_assert!(visits < 100, "{:?}", tree.adaptation());
        }
        let now = tree.adaptation();
        prop_assert_eq!((now.base_nodes, now.route_nodes), (1, 0));
    }
}

#[test]
fn memory_returns_when_everything_is_removed() {
    let tree = CaTree::<Plain>::new();
    let empty = tree.bytes();
    for order in 0..3u64 {
        for n in 0..20_000u64 {
            let n = if order == 1 { 20_000 - n } else { n };
            put(
                &tree,
                &number(n.wrapping_mul([1, 1, 0x9e37_79b9_7f4a_7c15][order as usize])),
                n,
                false,
            );
        }
        assert!(tree.bytes() > 20_000 * 32);
        for (key, _) in contents(&tree) {
            remove(&tree, &key);
        }
        assert_eq!(tree.len(), 0);
        // An empty leaf beside an inner node is not merged.
        assert!(
            tree.bytes() < empty + 40_000,
            "{} bytes remain",
            tree.bytes()
        );
    }
}

/// A large table that has become sparse must not keep its old leaves.
#[test]
fn sparse_leaves_are_merged() {
    let tree = CaTree::<Plain>::new();
    for n in 0..20_000u64 {
        put(&tree, &number(n), n, false);
    }
    for n in (0..20_000u64).filter(|n| n % 20 != 0) {
        remove(&tree, &number(n));
    }
    assert_eq!(tree.len(), 1_000);
    let each = tree.bytes() / tree.len();
    assert!(each < 300, "{each} bytes a record");
}

#[test]
fn a_store_freed_in_slices_can_be_used_again() {
    let mut tree = CaTree::<Plain>::new();
    let empty = tree.bytes();
    for n in 0..10_000u64 {
        put(&tree, &number(n), n, false);
    }
    let mut slices = 1;
    while !tree.free_some(100) {
        slices += 1;
        assert_eq!(contents(&tree), []);
    }
    assert!(slices >= 50, "{slices} slices");
    assert_eq!((tree.len(), tree.bytes()), (0, empty));
    assert_eq!(put(&tree, &number(5), 7, false), None);
    assert_eq!(contents(&tree), [(number(5).to_vec(), 7)]);
}

/// A store that is used again before the last slice, and then dropped, frees everything.
#[test]
fn a_store_freed_in_part_can_be_used_and_dropped() {
    let fill = |tree: &CaTree<Counted>| {
        for n in 0..10_000u64 {
            let key = number(n);
            let put = tree.update(&key, &pin(), &mut |_| Change::Put(owning(0, &key, n)));
            assert_eq!(put, Ok(()));
        }
    };
    let mut tree = CaTree::new();
    fill(&tree);
    assert!(!tree.free_some(100));
    fill(&tree);
    assert_eq!(contents(&tree).len(), 10_000);
    drop(tree);
    assert_eq!(LIVE[0].load(Ordering::Relaxed), 0);
}

#[test]
fn many_threads_never_lose_or_leak_a_record() {
    let mut tree: CaTree<_> = many_threads(1, 0);
    while !tree.free_some(1000) {}
    wait_until_all_are_released(1);
}

#[test]
fn many_threads_never_lose_or_leak_a_record_while_the_tree_adapts() {
    let mut tree: CaTree<_> = many_threads(2, 8);
    while !tree.free_some(1000) {}
    wait_until_all_are_released(2);
}

#[test]
fn readers_of_the_tree_never_see_half_a_batch() {
    readers_never_see_half_a_batch(&CaTree::new());
}

#[test]
fn batches_of_the_tree_do_not_lose_updates() {
    batches_do_not_lose_updates(&CaTree::new());
}

/// A tree of few keys is one small leaf. It grows, shrinks and is walked like any other, for keys
/// of any length, and takes less memory than an ets table of as many keys.
#[test]
fn a_small_tree_is_small_and_behaves_as_a_sorted_map() {
    let tree = CaTree::<Plain>::new();
    let empty = tree.bytes();
    assert!(empty < 450, "{empty} bytes for nothing");
    // Reads do not make it larger.
    assert_eq!((tree.len(), tree.adaptation().base_nodes), (0, 1));
    assert_eq!(tree.totals().map(|totals| totals.objects), Ok(0));
    assert_eq!(tree.bytes(), empty);
    // Short keys, whose heads complete them, and keys with a common prefix.
    let key = |n: usize| match n % 3 {
        0 => vec![n as u8],
        1 => [&b"a beginning that is common "[..], &[n as u8]].concat(),
        _ => vec![7; n],
    };
    let mut model = BTreeMap::new();
    let order = |n: usize| n * 7 % 23;
    for n in (0..23).map(order) {
        put(&tree, &key(n), n as u64, false);
        model.insert(key(n), n as u64);
        assert_eq!(
            contents(&tree),
            model.clone().into_iter().collect::<Vec<_>>()
        );
        if model.len() == 10 {
            let nodes = tree.memory().structure;
            assert!(nodes < 450, "{nodes} bytes of nodes for ten");
        }
    }
    for n in (0..23).rev().map(order) {
        remove(&tree, &key(n));
        model.remove(&key(n));
        assert_eq!(
            contents(&tree),
            model.clone().into_iter().collect::<Vec<_>>()
        );
    }
    assert_eq!((tree.len(), tree.bytes()), (0, empty));
}

/// A row of ascending keys fills a small leaf, then larger ones; when all keys are removed, the
/// memory of the row is freed.
#[test]
fn a_row_leaves_nothing_in_a_small_tree() {
    let tree = CaTree::<Plain>::new();
    let empty = tree.bytes();
    for _ in 0..3 {
        (0..200u64).for_each(|n| assert_eq!(put(&tree, &number(n), n, false), None));
        (0..200u64).for_each(|n| assert_eq!(remove(&tree, &number(n)), Some(n)));
        assert_eq!((tree.len(), tree.bytes()), (0, empty));
    }
}
