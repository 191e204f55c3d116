//! Tests that a split ordered table stays split only as long as threads write to its parts.
#![cfg(not(any(miri, fuzzing, shuttle)))]

use ats::terms::{Adaptation, Table, TableType, TermHost, Workspace};
use ats_term::Term;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

type Ordered = Table<TermHost>;

fn write(table: &Ordered, keys: std::ops::Range<i64>) {
    for key in keys {
        let object = Term::from((key, "some text"));
        table
            .insert(&object, &mut Workspace::new())
            .expect("nobody else writes this key");
    }
}

/// Returns a table in which every write has forced a split, and which nobody writes to any more.
fn split(objects: i64) -> Ordered {
    let table = Table::new(TableType::OrderedSet, 1);
    table.force_adaptation(1, 0);
    write(&table, 0..objects);
    table.force_adaptation(0, 0);
    table
}

fn adaptation(table: &Ordered) -> Adaptation {
    table.adaptation().expect("an ordered table adapts")
}

fn assert_becomes_whole(table: &Ordered) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while adaptation(table).base_nodes > 1 {
        assert!(Instant::now() < deadline, "{:?}", adaptation(table));
        sleep(Duration::from_millis(5));
    }
    let Adaptation {
        depth,
        route_nodes,
        splits,
        joins,
        ..
    } = adaptation(table);
    assert_eq!((depth, route_nodes, splits), (0, 0, joins));
}

fn assert_holds(table: &Ordered, objects: i64) {
    let guard = ats::terms::pin();
    assert_eq!(table.len().unwrap() as i64, objects);
    for key in 0..objects {
        let term = Term::from(key);
        let found = table
            .lookup(&term, &mut Workspace::new(), &guard)
            .expect("memory does not fail");
        assert!(found.is_some(), "{key}");
    }
}

#[test]
fn ordered_tables_tell_of_base_nodes_and_others_of_buckets() {
    for table_type in [TableType::Set, TableType::Bag, TableType::DuplicateBag] {
        let table = Ordered::new(table_type, 1);
        table.force_adaptation(2, 5);
        write(&table, 0..1000);
        assert_eq!(table.adaptation(), None);
        let buckets = table.buckets().expect("a hash table has buckets");
        assert!(buckets.buckets >= 1000 / 8, "{buckets:?}");
        assert!(
            buckets.doublings > 20 && buckets.halvings > 20,
            "{buckets:?}"
        );
        assert!(buckets.uncontended >= 1000, "{buckets:?}");
    }
    let table = Ordered::new(TableType::OrderedSet, 1);
    assert_eq!(adaptation(&table).base_nodes, 1);
    assert_eq!(table.buckets(), None);
}

#[test]
fn a_table_that_nobody_writes_to_becomes_whole() {
    let table = split(3_000);
    assert!(adaptation(&table).splits > 100);
    assert_becomes_whole(&table);
    assert_holds(&table, 3_000);
    // The second round checks that the store is listed again after it was whole.
    table.force_adaptation(1, 0);
    write(&table, 3_000..4_000);
    table.force_adaptation(0, 0);
    assert!(adaptation(&table).splits > adaptation(&table).joins);
    assert_becomes_whole(&table);
    assert_holds(&table, 4_000);
}

#[test]
fn the_shape_is_a_tree_with_a_state_of_each_base_node() {
    let whole = Ordered::new(TableType::OrderedSet, 1);
    write(&whole, 0..10);
    let nodes = whole.shape().expect("an ordered table adapts");
    assert_eq!((nodes.len(), nodes[0].depth), (1, 0));
    assert!(
        nodes[0]
            .base
            .is_some_and(|base| base.statistics < 0 && base.uncontended == 10)
    );

    let table = Ordered::new(TableType::OrderedSet, 1);
    table.force_adaptation(1, 0);
    // The thread in the background may join the nodes before `shape` reads them.
    let nodes = loop {
        write(&table, 0..3_000);
        let nodes = table.shape().expect("an ordered table adapts");
        if nodes.len() > 1 {
            break nodes;
        }
    };
    let bases: Vec<_> = nodes.iter().filter_map(|node| node.base).collect();
    assert!(bases.len() > 1 && nodes.len() > bases.len(), "{nodes:?}");
    let turns = bases.iter().map(|base| base.contended + base.uncontended);
    assert!(turns.sum::<u64>() >= 3_000, "{nodes:?}");
    assert_eq!(nodes[0].depth, 0);
    for pair in nodes.windows(2) {
        let deepest = pair[0].depth + usize::from(pair[0].base.is_none());
        assert!((1..=deepest).contains(&pair[1].depth), "{pair:?}");
    }
    assert_eq!(Ordered::new(TableType::Set, 1).shape(), None);
}

#[test]
fn forced_adaptation_outlives_clearing() {
    let table = Ordered::new(TableType::OrderedSet, 1);
    table.force_adaptation(1, 0);
    table.clear().expect("memory does not fail");
    write(&table, 0..1_000);
    assert!(adaptation(&table).splits > 20);
    table.force_adaptation(0, 0);
    table.clear().expect("memory does not fail");
    write(&table, 0..1_000);
    assert_eq!(adaptation(&table).splits, 0);
}

/// Drops and clears tables while they wait for a visit, or are being visited.
#[test]
fn split_tables_come_and_go() {
    let stays = split(500);
    scope(|scope| {
        for thread in 0..4_u64 {
            scope.spawn(move || {
                for round in 0..60_u64 {
                    let table = split(100 + (round as i64 % 3) * 500);
                    if round % 4 == thread {
                        sleep(Duration::from_millis(round * 2));
                    }
                    if round % 3 == 0 {
                        table.clear().expect("memory does not fail");
                        write(&table, 0..10);
                    }
                }
            });
        }
    });
    assert_becomes_whole(&stays);
    assert_holds(&stays, 500);
}
