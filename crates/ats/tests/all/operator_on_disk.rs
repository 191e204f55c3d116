//! Tests of merges of terms on disk: the value of a key is the merge of its writes, in their order,
//! at every time at which memtables are written, runs are compacted and the store is reopened.

use crate::common::Directory;
use ats::terms::{Merge, PortableMerge};
use ats_disk::{DiskStore, Options};
use ats_store::{MergeOperator, Merged};
use ats_term::term::{Map, Tuple};
use ats_term::{Atom, Term, Zeros, etf};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn atom(text: &str) -> Term {
    Term::Atom(Atom::new(text).expect("a short text"))
}

fn list(elements: Vec<Term>) -> Term {
    Term::list_with_tail(elements, Term::Nil)
}

fn with(name: &str, argument: impl Into<Term>) -> Term {
    Term::from((atom(name), argument.into()))
}

/// Generates merges as terms, with values any two of which can be merged.
fn merge_and_values() -> impl Strategy<Value = (Term, BoxedStrategy<Term>)> {
    let small = || (-2..3_i64).prop_map(Term::from).boxed();
    let numbers = || (0..3_i64).prop_map(Term::from);
    let lists = || {
        let elements = proptest::collection::vec(numbers(), 0..3);
        elements.prop_map(list).boxed()
    };
    let sets = || {
        let elements = proptest::collection::btree_set(-4..4_i64, 0..4);
        elements
            .prop_map(|set| list(set.into_iter().map(Term::from).collect()))
            .boxed()
    };
    let maps = || {
        let pairs = proptest::collection::btree_map(0..4_i64, 0..9_i64, 0..3);
        let map = pairs.prop_map(|pairs| {
            let pairs = pairs.into_iter();
            let pairs = pairs.map(|(key, value)| (Term::from(key), Term::from(value)));
            Term::Map(Map::new(pairs.collect()).expect("keys differ"))
        });
        map.boxed()
    };
    let binaries = proptest::collection::vec(any::<u8>(), 0..4);
    let binaries = binaries.prop_map(|bytes| Term::binary(&bytes)).boxed();
    let stamped = (small(), small()).prop_map(Term::from).boxed();
    let tuples = |first: BoxedStrategy<Term>, second: BoxedStrategy<Term>| {
        let pair = (first, second).prop_map(|(a, b)| Term::Tuple(Tuple::new(vec![a, b])));
        pair.boxed()
    };
    let pruned = |name| with("prune", atom(name));
    let vector = |merges: [Term; 2]| with("vector", list(merges.to_vec()));
    let counts = vector([pruned("sum"), pruned("append")]);
    proptest::sample::select(vec![
        (atom("replace"), small()),
        (atom("first"), small()),
        (with("last", 2), stamped),
        (atom("sum"), small()),
        (atom("min"), small()),
        (atom("max"), small()),
        (atom("statistics"), small()),
        (atom("append"), lists()),
        (atom("append"), binaries),
        (atom("union"), sets()),
        (atom("union"), maps()),
        (atom("intersection"), sets()),
        (atom("intersection"), maps()),
        (pruned("sum"), small()),
        (pruned("append"), lists()),
        (pruned("union"), sets()),
        (counts.clone(), tuples(small(), lists())),
        (
            vector([counts, pruned("union")]),
            tuples(tuples(small(), lists()), maps()),
        ),
        (
            vector([atom("replace"), atom("intersection")]),
            tuples(small(), sets()),
        ),
    ])
}

#[derive(Clone, Debug)]
enum Action {
    Put(u8, Term),
    Merge(u8, Term),
    Delete(u8),
    Flush,
    Work,
    Compact,
    Reopen,
}

fn actions(values: BoxedStrategy<Term>) -> impl Strategy<Value = Vec<Action>> {
    let key = 0..3_u8;
    let action = prop_oneof![
        1 => (key.clone(), values.clone()).prop_map(|(key, value)| Action::Put(key, value)),
        8 => (key.clone(), values).prop_map(|(key, value)| Action::Merge(key, value)),
        1 => key.prop_map(Action::Delete),
        2 => Just(Action::Flush),
        2 => Just(Action::Work),
        1 => Just(Action::Compact),
        1 => Just(Action::Reopen),
    ];
    proptest::collection::vec(action, 1..60)
}

fn open(directory: &Directory, operator: &Arc<PortableMerge>) -> DiskStore {
    let options = Options::new()
        .operator(Arc::clone(operator) as Arc<dyn MergeOperator>)
        .memtable_bytes(400)
        .block_bytes(60)
        .file_bytes(300)
        .fan_in(2)
        .background(false);
    DiskStore::open(directory.path(), options).expect("opened")
}

fn merge_bytes(operator: &PortableMerge, earlier: Vec<u8>, later: Vec<u8>) -> Vec<u8> {
    match operator.merge(b"", &earlier, &later).expect("of the kind") {
        Merged::Earlier => earlier,
        Merged::Later => later,
        Merged::New(value) => value,
    }
}

fn run(merge: &Term, actions: &[Action]) {
    let merge = Merge::from_term(merge).expect("a merge");
    let operator = Arc::new(PortableMerge::new(merge, Zeros::Distinct));
    let written = |value: &Term| {
        let bytes = etf::encode(value).expect("small");
        operator.value(&bytes).expect("of the kind").into_owned()
    };
    let directory = Directory::new();
    let mut store = open(&directory, &operator);
    let mut model: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
    for action in actions {
        match action {
            Action::Put(key, value) => {
                let value = written(value);
                store.put(&[*key], &value).expect("there is room");
                model.insert(*key, value);
            }
            Action::Merge(key, value) => {
                let value = written(value);
                store.merge(&[*key], &value).expect("there is room");
                let value = match model.remove(key) {
                    None => value,
                    Some(earlier) => merge_bytes(&operator, earlier, value),
                };
                model.insert(*key, value);
            }
            Action::Delete(key) => {
                store.delete(&[*key]).expect("there is room");
                model.remove(key);
            }
            Action::Flush => store.flush().expect("there is room"),
            Action::Work => drop(store.work().expect("there is room")),
            Action::Compact => store.compact().expect("there is room"),
            Action::Reopen => {
                drop(store);
                store = open(&directory, &operator);
            }
        }
        for key in 0..3 {
            let found = store.get(&[key]).expect("merged");
            let expected = model.get(&key);
            let expected = expected.filter(|value| !operator.is_absent(&[key], value));
            let read =
                |value: &Vec<u8>| etf::decode(value, etf::Options::default()).expect("a term");
            let name = operator.name();
            assert_eq!(
                found.as_ref().map(read),
                expected.map(read),
                "{name}: {actions:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn values_are_the_merge_of_all_writes(
        (merge, actions) in merge_and_values()
            .prop_flat_map(|(merge, values)| (Just(merge), actions(values))),
    ) {
        run(&merge, &actions);
    }
}

/// A store cannot be opened with another merge, nor with the same merge and another argument.
#[test]
fn a_store_is_opened_with_its_own_merge() {
    let merges = [
        atom("sum"),
        atom("last"),
        with("last", 1),
        with("last", 2),
        with("prune", atom("sum")),
        with("vector", list(vec![atom("sum")])),
    ];
    for merge in &merges {
        let operator = |merge: &Term| {
            let merge = Merge::from_term(merge).expect("a merge");
            Arc::new(PortableMerge::new(merge, Zeros::Distinct))
        };
        let directory = Directory::new();
        drop(open(&directory, &operator(merge)));
        for other in &merges {
            let options = Options::new().operator(operator(other) as Arc<dyn MergeOperator>);
            let opened = DiskStore::open(directory.path(), options);
            assert_eq!(opened.is_ok(), merge == other, "{merge} as {other}");
        }
    }
}
