//! Tests of folding, beside merging the values one by one.

pub(crate) mod operators;

use super::*;
use operators::{Affine, AllAtOnce, Append};
use proptest::prelude::*;
use std::sync::atomic::Ordering;

/// Returns the value that these entries have, the newest first, merged one by one from the oldest
/// on.
pub(crate) fn one_by_one(
    entries: &[(Kind, Vec<u8>)],
    operator: &dyn MergeOperator,
) -> Result<Option<Vec<u8>>, Error> {
    let base = entries.iter().position(|(kind, _)| kind.is_base());
    let relevant = &entries[..base.map_or(entries.len(), |base| base + 1)];
    let mut value: Option<Vec<u8>> = None;
    for (kind, bytes) in relevant.iter().rev() {
        value = match (kind, value) {
            (Kind::Delete, _) => None,
            (_, None) => Some(bytes.clone()),
            (_, Some(earlier)) => Some(match merge(operator, b"k", &earlier, bytes)? {
                Merged::Earlier => earlier,
                Merged::Later => bytes.clone(),
                Merged::New(value) => value,
            }),
        };
    }
    Ok(value.filter(|value| !operator.is_absent(b"k", value)))
}

fn chain_of(entries: &[(Kind, Vec<u8>)]) -> Chain {
    let mut chain = Chain::new();
    for (kind, value) in entries {
        chain.push(*kind, value);
    }
    chain
}

fn entries_of(chain: &Chain) -> Vec<(Kind, Vec<u8>)> {
    (0..chain.len())
        .map(|index| chain.entry(index))
        .map(|(kind, value)| (kind, value.to_vec()))
        .collect()
}

fn value_of(chain: &Chain, operator: &dyn MergeOperator) -> Result<Option<Vec<u8>>, Error> {
    Ok(chain.value(b"k", Some(operator))?.map(Cow::into_owned))
}

pub(crate) fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        1 => Just(Kind::Put),
        1 => Just(Kind::Delete),
        6 => Just(Kind::Operand),
    ]
}

pub(crate) fn words() -> impl Strategy<Value = Vec<u8>> {
    let letters = prop_oneof![
        20 => Just(b'a'),
        20 => Just(b'b'),
        2 => Just(b'!'),
        1 => Just(operators::REFUSED),
        1 => Just(operators::PANICS),
    ];
    prop::collection::vec(letters, 0..12)
}

/// Returns the entries that a source may have: an operand that is a base has become a `Put`, and
/// there are no values of deletions.
fn entries(
    values: impl Strategy<Value = Vec<u8>>,
    operator: &dyn MergeOperator,
) -> impl Strategy<Value = Vec<(Kind, Vec<u8>)>> {
    prop::collection::vec((kinds(), values), 0..9).prop_map(|mut entries| {
        for (kind, value) in &mut entries {
            match kind {
                Kind::Delete => value.clear(),
                Kind::Operand if operator.is_base(b"k", value) => *kind = Kind::Put,
                _ => {}
            }
        }
        entries
    })
}

fn check(newer: &[(Kind, Vec<u8>)], older: &[(Kind, Vec<u8>)], operator: &dyn MergeOperator) {
    let all = [newer, older].concat();
    let value = one_by_one(&all, operator);
    assert_eq!(value_of(&chain_of(&all), operator), value);

    let mut chain = chain_of(newer);
    let before = entries_of(&chain);
    let collapsed = chain.collapse(b"k", Some(operator), false);
    let after = entries_of(&chain);
    match collapsed {
        Ok(()) => assert!(after.len() <= 1 && after.is_empty() == before.is_empty()),
        Err(error) => assert_eq!((error, &after), (Error::Merge, &before)),
    }
    if let [(Kind::Operand, value)] = &after[..] {
        assert!(!operator.is_base(b"k", value));
    }
    let all = [&after[..], older].concat();
    assert_eq!(value_of(&chain_of(&all), operator), value);

    let mut chain = chain_of(newer);
    let value = value_of(&chain, operator);
    match chain.collapse(b"k", Some(operator), true) {
        Ok(()) => match (value, &entries_of(&chain)[..]) {
            (Ok(None), []) => {}
            (Ok(Some(value)), [(Kind::Put, found)]) => assert_eq!(&value, found),
            wrong => panic!("{wrong:?}"),
        },
        Err(_) => {
            assert_eq!(value, Err(Error::Merge));
            assert_eq!(entries_of(&chain), before);
        }
    }
}

proptest! {
    #[test]
    fn a_chain_has_the_value_of_its_entries_merged_one_by_one(
        newer in entries(words(), &Append::default()),
        older in entries(words(), &Append::default()),
    ) {
        check(&newer, &older, &Append::default());
        check(&newer, &older, &AllAtOnce(&Append::default()));
    }

    #[test]
    fn the_order_is_kept(
        newer in entries(Affine::values(), &Affine),
        older in entries(Affine::values(), &Affine),
    ) {
        check(&newer, &older, &Affine);
        check(&newer, &older, &AllAtOnce(&Affine));
    }
}

#[test]
fn entries_behind_a_base_are_not_taken() {
    let mut chain = chain_of(&[
        (Kind::Operand, b"b".to_vec()),
        (Kind::Put, b"a".to_vec()),
        (Kind::Operand, b"x".to_vec()),
    ]);
    assert_eq!((chain.len(), chain.is_complete()), (2, true));
    let append = Append::default();
    assert_eq!(value_of(&chain, &append), Ok(Some(b"ab".to_vec())));
    chain.clear();
    assert!(chain.is_empty() && !chain.is_complete());
    assert_eq!(value_of(&chain, &append), Ok(None));
}

#[test]
fn without_an_operator_a_lone_entry_is_read_but_nothing_is_merged() {
    let mut chain = chain_of(&[(Kind::Operand, b"a".to_vec())]);
    assert_eq!(chain.value(b"k", None), Ok(Some(Cow::Borrowed(&b"a"[..]))));
    chain.push(Kind::Delete, &[]);
    assert_eq!(chain.value(b"k", None), Ok(Some(Cow::Borrowed(&b"a"[..]))));
    let mut chain = chain_of(&[(Kind::Operand, b"b".to_vec()), (Kind::Put, b"a".to_vec())]);
    assert_eq!(chain.value(b"k", None), Err(Error::NoOperator));
    assert_eq!(chain.collapse(b"k", None, true), Err(Error::NoOperator));
    assert_eq!(chain.len(), 2);
}

#[test]
fn a_panic_of_any_function_is_an_error() {
    let value = vec![operators::PANICS];
    for is_bottom in [false, true] {
        let entries = [(Kind::Operand, value.clone())];
        let mut chain = chain_of(&entries);
        let collapsed = chain.collapse(b"k", Some(&operators::Panicking), is_bottom);
        assert_eq!(collapsed, Err(Error::Merge));
        assert_eq!(entries_of(&chain), entries);
        let value = chain.value(b"k", Some(&operators::Panicking));
        assert_eq!(value, Err(Error::Merge));
    }
}

#[test]
fn many_short_operands_are_copied_few_times() {
    let operands: usize = if cfg!(debug_assertions) {
        5_000
    } else {
        50_000
    };
    // Both orders of the sizes.
    for base_is_newest in [false, true] {
        let append = Append::default();
        let mut chain = Chain::new();
        let base = vec![b'x'; operands * 72];
        if base_is_newest {
            chain.push(Kind::Operand, &base);
        }
        for _ in 0..operands {
            chain.push(Kind::Operand, &[b'y'; 72]);
        }
        if !base_is_newest {
            chain.push(Kind::Operand, &base);
        }
        let total = 2 * operands * 72;
        let value = value_of(&chain, &append).unwrap().unwrap();
        assert_eq!(value.len(), total);
        let copied = append.copied.load(Ordering::Relaxed);
        assert!(copied <= total * 2 * operands.ilog2() as usize, "{copied}");
    }
}
