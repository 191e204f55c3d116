//! Tests of four types of tables against a model, with terms that are often equal or nearly equal.

use crate::common::model::{self, Count, Model};
use crate::common::{
    ALL_TYPES, TermTable, everything, expiring, expiring_on_disk, objects, on_disk, portable,
    same_key,
};
use ats::terms::{CounterOp, Error, Integer, Rival, UnpackBuffer, Workspace, Zeros};
use ats_term::Term;
use ats_term::arbitrary::near_term;
use ats_term::image::{Scratch, decode};
use ats_term::term::{TermBuilder, Tuple};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

#[derive(Clone, Debug)]
enum Op {
    Insert(Term, bool),
    InsertMany(Vec<Term>, bool),
    Lookup(Term),
    Take(Term),
    Delete(Term),
    DeleteObject(Term),
    /// Deletes the present object with this number, so that a deletion is certain.
    DeletePresent(usize),
    /// Exchanges a term for another one.
    Exchange(Option<Term>, Option<Term>),
    /// Exchanges the present object with this number for one with these elements behind its key, or
    /// for none.
    ExchangePresent(usize, Option<Vec<Term>>),
    UpdateElement(Term, Vec<(usize, Term)>, Option<Term>),
    UpdateCounter(Term, Vec<Count>, Option<Term>),
    Step(Term),
    Clear,
    Fix,
    Unfix,
}

/// Generates mostly small integers and floats, which often meet, and all other terms.
fn key() -> BoxedStrategy<Term> {
    prop_oneof![
        6 => (0i64..12).prop_map(Term::from),
        2 => (0i32..6).prop_map(|n| Term::try_from(f64::from(n)).expect("finite")),
        1 => near_term(),
    ]
    .boxed()
}

fn value() -> BoxedStrategy<Term> {
    let large = |byte| Term::binary(&[byte; 2000]);
    prop_oneof![
        3 => (0i64..3).prop_map(Term::from),
        2 => select(vec![i64::MAX, i64::MIN, (1 << 59) - 1, -(1 << 59)]).prop_map(Term::from),
        1 => select(vec![i128::from(i64::MAX) + 1, -(1i128 << 80)]).prop_map(Term::from),
        1 => (0u8..2).prop_map(large),
        2 => near_term(),
    ]
    .boxed()
}

/// Generates mostly objects with a key as both elements in which the tables look for it.
fn object() -> BoxedStrategy<Term> {
    let tuple = |parts| Term::Tuple(Tuple::new(parts));
    prop_oneof![
        8 => (key(), key(), vec(value(), 0..3)).prop_map(move |(one, two, rest)| {
            tuple([one, two].into_iter().chain(rest).collect())
        }),
        1 => vec(key(), 0..2).prop_map(tuple),
    ]
    .boxed()
}

fn anything() -> BoxedStrategy<Term> {
    prop_oneof![20 => object(), 1 => near_term()].boxed()
}

fn number() -> BoxedStrategy<i128> {
    let limits = vec![
        i128::from(i64::MAX),
        i128::from(i64::MIN),
        1 << 59,
        -(1 << 59),
        1 << 80,
    ];
    prop_oneof![4 => -3i128..4, 1 => select(limits)].boxed()
}

fn count() -> impl Strategy<Value = Count> {
    (0usize..6, number(), option::of((number(), number()))).prop_map(
        |(position, increment, wrap)| Count {
            position,
            increment,
            wrap,
        },
    )
}

fn op() -> impl Strategy<Value = Op> {
    let default = || option::of(anything());
    prop_oneof![
        8 => (anything(), any::<bool>()).prop_map(|(object, new)| Op::Insert(object, new)),
        2 => (vec(object(), 0..6), any::<bool>()).prop_map(|(all, new)| Op::InsertMany(all, new)),
        1 => (vec(anything(), 0..6), any::<bool>()).prop_map(|(all, new)| Op::InsertMany(all, new)),
        3 => key().prop_map(Op::Lookup),
        2 => key().prop_map(Op::Take),
        1 => key().prop_map(Op::Delete),
        1 => anything().prop_map(Op::DeleteObject),
        2 => any::<usize>().prop_map(Op::DeletePresent),
        1 => (default(), default()).prop_map(|(seen, new)| Op::Exchange(seen, new)),
        3 => (any::<usize>(), option::weighted(0.8, vec(value(), 0..3)))
            .prop_map(|(at, rest)| Op::ExchangePresent(at, rest)),
        3 => (key(), vec((0usize..6, value()), 0..3), default())
            .prop_map(|(key, values, default)| Op::UpdateElement(key, values, default)),
        3 => (key(), vec(count(), 0..4), default())
            .prop_map(|(key, counts, default)| Op::UpdateCounter(key, counts, default)),
        3 => key().prop_map(Op::Step),
        1 => select(vec![Op::Clear, Op::Fix, Op::Fix, Op::Unfix, Op::Unfix, Op::Unfix]),
    ]
}

fn integer(value: i128) -> Integer {
    Integer::from_term(&Term::from(value)).expect("an integer")
}

fn counter_ops(counts: &[Count]) -> Vec<CounterOp> {
    let op = |count: &Count| CounterOp {
        position: count.position,
        increment: integer(count.increment),
        wrap: count
            .wrap
            .map(|(limit, reset)| (integer(limit), integer(reset))),
    };
    counts.iter().map(op).collect()
}

/// Applies an operation to the table and the model, and compares the results.
fn apply(
    table: &TermTable,
    model: &mut Model,
    op: &Op,
    work: &mut Workspace<ats::terms::TermHost>,
) {
    match op {
        Op::Insert(object, true) => {
            let expected = model.insert(std::slice::from_ref(object), true);
            assert_eq!(table.insert_new(object, work), expected);
        }
        Op::Insert(object, false) => {
            let expected = model.insert(std::slice::from_ref(object), false);
            assert_eq!(table.insert(object, work).map(|()| true), expected);
        }
        Op::InsertMany(all, true) => {
            let expected = model.insert(all, true);
            assert_eq!(table.insert_many_new(all.iter(), work), expected);
        }
        Op::InsertMany(all, false) => {
            let expected = model.insert(all, false);
            assert_eq!(table.insert_many(all.iter(), work).map(|()| true), expected);
        }
        Op::Lookup(key) => {
            let guard = ats::terms::pin();
            let found = table
                .lookup(key, work, &guard)
                .expect("memory does not fail");
            let found = found.map_or(Vec::new(), |found| found.to_terms());
            assert_eq!(found, model.lookup(key));
        }
        Op::Take(key) => {
            let guard = ats::terms::pin();
            let taken = table.take(key, work, &guard).expect("nobody is in the way");
            let taken = taken.map_or(Vec::new(), |taken| taken.to_terms());
            assert_eq!(taken, model.take(key));
        }
        Op::Delete(key) => {
            model.take(key);
            assert_eq!(table.delete(key, work), Ok(()));
        }
        Op::DeleteObject(object) => {
            assert_eq!(
                table.delete_object(object, work),
                model.delete_object(object)
            );
        }
        Op::DeletePresent(at) => {
            if let Some(object) = model.objects.get(at % model.objects.len().max(1)).cloned() {
                let deleted = table.delete_object(&object, &mut Workspace::new());
                assert_eq!(deleted, model.delete_object(&object));
            }
        }
        Op::Exchange(seen, new) => {
            let [seen, new] = [seen, new].map(Option::as_ref);
            let expected = model.exchange(seen, new);
            assert_eq!(table.exchange(seen, new, work), expected);
        }
        Op::ExchangePresent(at, rest) => {
            let Some(seen) = model.objects.get(at % model.objects.len().max(1)).cloned() else {
                return;
            };
            let own = seen.as_tuple().expect("an object is a tuple");
            let own = own.iter().take(model.key_index + 1).cloned();
            let new = rest
                .as_ref()
                .map(|rest| Term::Tuple(Tuple::new(own.chain(rest.iter().cloned()).collect())));
            let expected = model.exchange(Some(&seen), new.as_ref());
            assert_eq!(table.exchange(Some(&seen), new.as_ref(), work), expected);
        }
        Op::UpdateElement(key, values, default) => {
            let expected = model.update_element(key, values, default.as_ref());
            let values: Vec<(usize, &Term)> = values.iter().map(|(at, new)| (*at, new)).collect();
            let done = table.update_element(key, &values, default.as_ref(), work);
            assert_eq!(done, expected);
        }
        Op::UpdateCounter(key, counts, default) => {
            let expected = model.update_counter(key, counts, default.as_ref());
            let done = table.update_counter(key, &counter_ops(counts), default.as_ref(), work);
            let done = done.map(|all| {
                all.iter()
                    .map(|n| model::value(n).expect("small"))
                    .collect()
            });
            assert_eq!(done, expected);
        }
        Op::Step(key) => step(table, model, key),
        Op::Clear => {
            table.clear().expect("memory does not fail");
            model.clear();
        }
        Op::Fix => {
            table.fix();
            model.fix();
        }
        Op::Unfix => {
            table.unfix();
            model.unfix();
        }
    }
}

/// Returns the keys of an ordered table on both sides of `key`.
fn neighbours(model: &Model, key: &Term) -> [Option<Term>; 2] {
    let mut keys = model.keys();
    keys.sort_by(Term::compare);
    let above = keys.iter().find(|other| other.compare(key).is_gt());
    let below = keys.iter().rfind(|other| other.compare(key).is_lt());
    [above.cloned(), below.cloned()]
}

fn step(table: &TermTable, model: &Model, key: &Term) {
    let guard = ats::terms::pin();
    let mut bytes = Vec::new();
    table.key_bytes(key, &mut bytes);
    let steps = [table.next(&bytes, &guard), table.prev(&bytes, &guard)];
    let steps = steps
        .map(|step| step.map(|found| found.map(|found| model.key(&found.to_terms()[0]).clone())));
    if model.kind.is_ordered() {
        assert_eq!(steps, neighbours(model, key).map(Ok));
        return;
    }
    let known = !model.lookup(key).is_empty() || {
        let same = |other: &Term| same_key(model.kind, other, key);
        model.removed.iter().any(same)
    };
    // Any key of a fixed table on disk may be one that has expired.
    let may_go_on = known || (table.has_byte_store() && table.expires());
    for step in steps {
        match step {
            Ok(Some(next)) => {
                assert!(may_go_on && !same_key(model.kind, &next, key));
                assert!(!model.lookup(&next).is_empty());
            }
            Ok(None) => assert!(may_go_on || model.cleared),
            Err(error) => {
                assert_eq!(error, Error::BadKey);
                assert!(!model.cleared && !known);
            }
        }
    }
}

/// Compares the contents, by a scan, by steps and by single keys.
fn compare(table: &TermTable, model: &Model) {
    assert_eq!(table.len().unwrap(), model.objects.len());
    assert_eq!(table.is_empty().unwrap(), model.objects.is_empty());
    let mut keys = model.keys();
    for key in &keys {
        assert_eq!(objects(table, key), model.lookup(key));
        compare_elements(table, key, &model.lookup(key)[0]);
    }
    let scanned = everything(table);
    let met = keys_by_steps(table, model);
    if model.kind.is_ordered() {
        keys.sort_by(Term::compare);
        let last = table
            .last(&ats::terms::pin())
            .expect("memory does not fail")
            .map(|found| found.to_terms());
        let expected = keys.last().map(|key| model.lookup(key));
        assert_eq!(last, expected);
    } else {
        // The order is unspecified, but always the same.
        assert_eq!(met.len(), keys.len());
        keys.clone_from(&met);
    }
    assert_eq!(met, keys);
    let expected: Vec<Term> = keys.iter().flat_map(|key| model.lookup(key)).collect();
    assert_eq!(scanned, expected);
}

/// Compares the first object of a key element by element.
fn compare_elements(table: &TermTable, key: &Term, object: &Term) {
    let guard = ats::terms::pin();
    let found = table
        .lookup(key, &mut Workspace::new(), &guard)
        .expect("memory does not fail");
    let (found, mut room) = (found.expect("a key of the table"), UnpackBuffer::new());
    let elements = object.as_tuple().expect("an object");
    for (index, element) in elements.iter().enumerate() {
        let mut sink = TermBuilder::new();
        let stored = found.element(index, &mut room).expect("an element");
        let built = decode(stored, &mut sink, &mut Scratch::new());
        assert_eq!(sink.finish(built).as_ref().ok(), Some(element));
    }
    assert!(found.element(elements.len(), &mut room).is_none());
}

/// Returns the keys that `first` and `next` visit.
fn keys_by_steps(table: &TermTable, model: &Model) -> Vec<Term> {
    let guard = ats::terms::pin();
    let mut keys = Vec::new();
    let mut here = table.first(&guard).expect("memory does not fail");
    while let Some(found) = here {
        keys.push(model.key(&found.to_terms()[0]).clone());
        here = table
            .next(found.key_bytes(), &guard)
            .expect("a key of the table");
    }
    keys
}

/// Runs a program on the table and the model, and compares their contents.
fn run(table: TermTable, key_position: usize, ops: &[Op]) {
    let mut model = Model::new(table.table_type(), key_position - 1);
    let mut work = Workspace::new();
    for op in ops {
        apply(&table, &mut model, op, &mut work);
        assert_eq!(table.len().unwrap(), model.objects.len());
    }
    compare(&table, &model);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 700, ..ProptestConfig::default() })]

    #[test]
    fn tables_behave_as_lists_of_objects(
        key_position in 1usize..3,
        compressed in any::<bool>(),
        expires in any::<bool>(),
        ops in vec(op(), 0..120),
    ) {
        for kind in ALL_TYPES {
            let table = if expires {
                expiring(kind, key_position)
            } else {
                TermTable::new(kind, key_position)
            };
            run(table.compressed(compressed), key_position, &ops);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn tables_on_a_store_of_bytes_behave_as_lists_of_objects(
        key_position in 1usize..3,
        ops in vec(op(), 0..120),
    ) {
        for kind in ALL_TYPES {
            run(portable(kind, key_position), key_position, &ops);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn tables_on_disk_behave_as_lists_of_objects(
        key_position in 1usize..3,
        expires in any::<bool>(),
        ops in vec(op(), 0..120),
    ) {
        for kind in ALL_TYPES {
            let table = if expires {
                expiring_on_disk(kind, key_position)
            } else {
                on_disk(kind, key_position)
            };
            run(table, key_position, &ops);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn tables_on_stores_for_comparison_behave_as_lists_of_objects(
        key_position in 1usize..3,
        ops in vec(op(), 0..120),
    ) {
        for kind in ALL_TYPES {
            for rival in Rival::ALL {
                let zeros = Zeros::Distinct;
                if let Some(table) = TermTable::on_rival(rival, kind, key_position, zeros) {
                    run(table, key_position, &ops);
                }
            }
        }
    }
}
