//! Unit tests of the words of images; integration tests are in `tests/image.rs`.

use super::layout::{
    BIG, BITS, LIST, MAP, TUPLE, arity, box_slot, boxes, bytes_of, content_words, header, header_n,
    header_tag, is_immediate, slot_offset,
};
use super::{ImageBuilder, Immediate, NIL, SMALL_MAX, SMALL_MIN, atom_word, small_word};
use crate::arbitrary::any_term;
use crate::term::Tuple;
use crate::{Atom, Term, TermRef, Zeros};
use proptest::prelude::*;
use std::ops::Range;

fn words_of(object: &Term) -> Vec<u64> {
    let mut builder = ImageBuilder::<&Term>::new(Zeros::Distinct);
    builder.encode_object(object).expect("a tuple");
    builder.object().words().to_vec()
}

#[test]
fn the_example_of_the_module() {
    let x = Atom::new("x").expect("an atom");
    let text = Term::from(vec![Term::from(97), Term::from(98)]);
    let object = Term::from((7, text, Term::from(vec![Term::Atom(x)])));
    let expected = [
        7 << 4 | 0xF,
        3 << 2 | 2,
        7 << 2 | 2,
        header(LIST, 2),
        97 << 4 | 0xF,
        98 << 4 | 0xF,
        0x3B,
        header(LIST, 1),
        x.id() << 6 | 0x0B,
        0x3B,
    ];
    assert_eq!(words_of(&object), expected);
}

#[test]
fn immediates_are_the_words_of_owned_terms() {
    for value in [0, 1, -1, SMALL_MAX, SMALL_MIN] {
        let word = small_word(value).expect("a small integer");
        assert_eq!(Immediate::from_word(word), Some(Immediate::Small(value)));
        assert_eq!((&Term::from(value)).immediate(), Some(word));
    }
    for value in [SMALL_MAX + 1, SMALL_MIN - 1, i64::MAX, i64::MIN] {
        assert_eq!(small_word(value), None);
        assert_eq!((&Term::from(value)).immediate(), None);
    }
    let atom = Atom::new("immediates").expect("an atom");
    assert_eq!((&Term::Atom(atom)).immediate(), Some(atom_word(atom.id())));
    assert_eq!(Immediate::from_word(atom_word(5)), Some(Immediate::Atom(5)));
    assert_eq!((&Term::Nil).immediate(), Some(NIL));
    assert_eq!(Immediate::from_word(NIL), Some(Immediate::Nil));
    assert_eq!(Immediate::from_word(0x1B), None);
    assert_eq!(Immediate::from_word(box_slot(0x3B)), None);
}

/// Returns the slots of the box at `at`, as a range of words.
fn slots(words: &[u64], at: usize) -> Range<usize> {
    match header_tag(words[at]) {
        TUPLE | LIST | MAP => at + 1..at + 1 + content_words(words[at]),
        _ => 0..0,
    }
}

/// Checks IMAGE-1 and IMAGE-2: a preorder walk meets the boxes in sequence, without gaps, to the
/// end.
fn check_preorder(words: &[u64]) {
    let named = |slots: Range<usize>| {
        let slots = words[slots].iter().rev();
        slots
            .filter(|slot| !is_immediate(**slot))
            .map(|&slot| slot_offset(slot))
    };
    let mut expected = boxes(words);
    let mut todo: Vec<_> = named(0..arity(words)).collect();
    while let Some(at) = todo.pop() {
        assert_eq!(expected.next(), Some(at));
        todo.extend(named(slots(words, at)));
    }
    assert_eq!(expected.next(), None);
    let end = boxes(words)
        .last()
        .map_or(arity(words), |last| last + 1 + content_words(words[last]));
    assert_eq!(end, words.len());
}

/// Checks IMAGE-4: no small integer in a box, no leading zeros, padding of zeros.
fn check_leaves(words: &[u64]) {
    for at in boxes(words) {
        let n = header_n(words[at]);
        let content = &words[at + 1..at + 1 + content_words(words[at])];
        let all = bytes_of(content, content.len() * 8);
        match header_tag(words[at]) {
            BIG => {
                let (magnitude, padding) = all.split_at(n >> 1);
                assert_ne!(magnitude.last(), Some(&0));
                assert!(padding.iter().all(|&byte| byte == 0));
                let least = if n & 1 == 1 {
                    SMALL_MIN.unsigned_abs() + 1
                } else {
                    1 << 59
                };
                let value = all.iter().rev().fold(0u64, |value, &byte| {
                    value.saturating_mul(256).saturating_add(u64::from(byte))
                });
                assert!(value >= least);
            }
            BITS => {
                assert!(all[n.div_ceil(8)..].iter().all(|&byte| byte == 0));
                if !n.is_multiple_of(8) {
                    assert_eq!(all[n / 8] << (n % 8), 0);
                }
            }
            _ => {}
        }
    }
}

proptest! {
    #[test]
    fn invariants_hold(elements in prop::collection::vec(any_term(), 0..6)) {
        let len = elements.len();
        let words = words_of(&Term::Tuple(Tuple::new(elements)));
        assert_eq!(arity(&words), len);
        check_preorder(&words);
        check_leaves(&words);
    }

    #[test]
    fn invariants_hold_after_replacing(
        elements in prop::collection::vec(any_term(), 1..6),
        i in any::<prop::sample::Index>(),
        term in any_term(),
    ) {
        let i = i.index(elements.len());
        let object = Term::Tuple(Tuple::new(elements));
        let mut first = ImageBuilder::<&Term>::new(Zeros::Distinct);
        first.encode_object(&object).expect("a tuple");
        let mut second = ImageBuilder::<&Term>::new(Zeros::Distinct);
        second.replace_elements(first.object(), &[(i, super::NewValue::Term(&term))]);
        check_preorder(second.object().words());
        check_leaves(second.object().words());
    }
}
