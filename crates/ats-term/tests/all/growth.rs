//! Growth of the work of keys, images and comparisons with the size of terms, for many shapes. Work
//! is counted in steps, not timed.

use crate::common::other_host::OtherHostTerm;
use ats_term::exact::{self, exact_key_within};
use ats_term::image::{HostTerm, ImageBuilder, NoImage};
use ats_term::order::{Question, compare_within, order_key_within};
use ats_term::term::{Map, Tuple};
use ats_term::term_ref::TermRef;
use ats_term::{Term, Zeros, etf};

fn map(pairs: Vec<(Term, Term)>) -> Term {
    Term::Map(Map::new(pairs).unwrap())
}

fn set(keys: impl IntoIterator<Item = Term>) -> Term {
    map(keys.into_iter().map(|key| (key, Term::from(1))).collect())
}

fn tuple(elements: Vec<Term>) -> Term {
    Term::Tuple(Tuple::new(elements))
}

fn wrap(n: usize, wrap: impl Fn(usize, Term) -> Term) -> Term {
    (0..n).fold(map(vec![]), |inner, i| wrap(i, inner))
}

fn list_of(elements: impl IntoIterator<Item = Term>) -> Term {
    Term::from(elements.into_iter().collect::<Vec<_>>())
}

/// A shape of terms: its name, and a function from a number to a term of proportional size.
type Shape = (&'static str, fn(usize) -> Term);

const SHAPES: &[Shape] = &[
    ("a long list", |n| list_of((0..n).map(Term::from))),
    ("a wide tuple", |n| tuple((0..n).map(Term::from).collect())),
    ("a large integer", |n| Term::integer(true, &vec![7; 8 * n])),
    ("a large binary", |n| Term::binary(&vec![0; 8 * n])),
    ("deep lists", |n| wrap(n, |_, inner| list_of([inner]))),
    ("deep tuples", |n| {
        wrap(n, |_, inner| tuple(vec![Term::from(1), inner, Term::Nil]))
    }),
    ("a map of small keys", |n| set((0..n).map(Term::from))),
    ("a map of tuples", |n| {
        set((0..n).map(|i| tuple(vec![Term::from(i), Term::from("key")])))
    }),
    ("maps as keys", |n| wrap(n, |_, inner| set([inner]))),
    ("maps as keys beside a small one", |n| {
        wrap(n, |_, inner| set([Term::from(2), inner]))
    }),
    ("maps as keys beside other keys", |n| {
        wrap(n, |_, inner| set([Term::from(2), tuple(vec![]), inner]))
    }),
    ("maps as keys beside floats", |n| {
        wrap(n, |i, inner| {
            set([
                Term::try_from(i as f64).unwrap(),
                inner,
                Term::from(1u64 << 63),
            ])
        })
    }),
    ("maps as keys beside maps", |n| {
        wrap(n, |i, inner| {
            set([set([Term::from(i)]), set([Term::from("x")]), inner])
        })
    }),
    ("maps as keys beside maps of the same size", |n| {
        wrap(n, |_, inner| {
            let other = |x: i64| set([Term::from(x), tuple(vec![]), Term::from("")]);
            set([other(1), other(-1), inner])
        })
    }),
    ("maps as keys and values", |n| {
        wrap(n, |i, inner| match i % 2 {
            0 => set([Term::from("a"), tuple(vec![]), inner]),
            _ => map(vec![
                (Term::from("a"), inner),
                (tuple(vec![Term::from(i)]), Term::Nil),
            ]),
        })
    }),
    ("maps in tuples and lists in keys", |n| {
        wrap(n, |i, inner| match i % 3 {
            0 => tuple(vec![Term::from(i), inner]),
            1 => list_of([Term::from(i), inner]),
            _ => set([
                tuple(vec![Term::from(1), Term::Nil]),
                inner,
                Term::from("a"),
            ]),
        })
    }),
    ("large maps as keys", |n| {
        wrap(n / 40, |_, inner| {
            set((0..40).map(|i| tuple(vec![Term::from(i)])).chain([inner]))
        })
    }),
    ("a balanced tree of maps as keys", |n| {
        let mut level: Vec<Term> = (0..n / 4).map(|i| set([Term::from(i)])).collect();
        while level.len() > 1 {
            let pairs = level.chunks(2).map(|pair| set(pair.iter().cloned()));
            level = pairs.collect();
        }
        level.remove(0)
    }),
    ("long prefixes in keys", |n| {
        let side = n.isqrt();
        let key = |last: usize| {
            list_of(
                (0..side)
                    .map(|_| set([Term::from(0), tuple(vec![])]))
                    .chain([Term::from(last)]),
            )
        };
        set((0..side).map(key))
    }),
    ("binaries that differ in the last byte", |n| {
        let side = n.isqrt();
        set((0..side).map(|i| {
            let mut bytes = vec![1; 8 * side];
            bytes.extend((i as u32).to_be_bytes());
            Term::binary(&bytes)
        }))
    }),
    ("deep keys that differ at the bottom", |n| {
        let side = n.isqrt();
        set((0..side)
            .map(|last| (0..side).fold(Term::from(last), |inner, _| set([tuple(vec![]), inner]))))
    }),
];

fn order_steps<T: TermRef>(term: T) -> usize {
    order_key_within(term, &mut Vec::new(), Zeros::Distinct, usize::MAX).unwrap()
}

fn exact_steps<T: TermRef>(term: T) -> usize {
    exact_key_within(term, &mut Vec::new(), exact::Options::default(), usize::MAX).unwrap()
}

/// Counts the steps of an object with the term as an element.
fn image_steps<T: HostTerm>(object: T) -> usize {
    let mut builder = ImageBuilder::new(Zeros::Distinct);
    builder.encode_object(object).unwrap();
    builder.steps()
}

/// Checks that eight times the size takes hardly more than eight times the steps, where quadratic
/// work would take 64 times as many; and that a byte takes few steps. A single doubling would prove
/// less: the runs that a sort finds in its input can make a factor of two.
fn check(name: &str, shape: fn(usize) -> Term, what: &str, steps: impl Fn(&Term) -> usize) {
    let of = |n: usize| {
        let term = tuple(vec![Term::from(1), shape(n)]);
        (steps(&term), etf::encode(&term).unwrap().len())
    };
    let ((a, size_a), (b, size_b)) = (of(1 << 11), of(1 << 14));
    let growth = (b as f64 / a as f64) / (size_b as f64 / size_a as f64);
    assert!(growth < 2.5, "{name}: {what} took {a} steps, then {b}");
    let log = size_b.ilog2() as usize;
    assert!(
        b < 3 * size_b * log,
        "{name}: {b} steps of {what} for {size_b} bytes"
    );
}

#[test]
fn order_keys_grow_as_their_terms() {
    for &(name, shape) in SHAPES {
        check(name, shape, "order keys", |term| order_steps(term));
        check(name, shape, "order keys", |term| {
            order_steps(OtherHostTerm(term))
        });
    }
}

#[test]
fn exact_keys_grow_as_their_terms() {
    for &(name, shape) in SHAPES {
        check(name, shape, "exact keys", |term| exact_steps(term));
        check(name, shape, "exact keys", |term| {
            exact_steps(OtherHostTerm(term))
        });
    }
}

/// Comparisons of a term with itself, and of two terms that differ in the last part visited.
#[test]
fn comparisons_grow_as_their_terms() {
    let steps = |a: &Term, b: &Term, question| {
        let mut left = usize::MAX;
        compare_within(
            OtherHostTerm(a),
            OtherHostTerm(b),
            question,
            Zeros::Distinct,
            &mut left,
        );
        usize::MAX - left
    };
    for &(name, shape) in SHAPES {
        for question in [Question::Order, Question::Same] {
            check(name, shape, "comparing", |term| steps(term, term, question));
        }
    }
    let pair = |n: usize| {
        let deep = |innermost: i64| {
            let wrap = |inner: Term, _| set([tuple(vec![Term::from(2)]), inner]);
            (0..n).fold(set([Term::from(innermost)]), wrap)
        };
        tuple(vec![deep(1), deep(2)])
    };
    check("different maps in keys", pair, "comparing", |pair| {
        let [_, Term::Tuple(pair)] = pair.as_tuple().unwrap() else {
            panic!("a pair");
        };
        steps(&pair[0], &pair[1], Question::Order)
    });
}

#[test]
fn images_grow_as_their_terms() {
    for &(name, shape) in SHAPES {
        check(name, shape, "images", |term| image_steps(term));
        check(name, shape, "images", |term| {
            image_steps(OtherHostTerm(term))
        });
    }
}

/// A limit is kept for every shape, and little work is done before it is noticed.
#[test]
fn work_stops_at_its_limit() {
    let (zeros, options) = (Zeros::Distinct, exact::Options::default());
    for &(name, shape) in SHAPES {
        let object = tuple(vec![Term::from(1), shape(1 << 13)]);
        let mut key = b"before".to_vec();
        for most in [0, 100, order_steps(OtherHostTerm(&object)) * 9 / 10] {
            let none = order_key_within(OtherHostTerm(&object), &mut key, zeros, most);
            assert_eq!((none, &key[..]), (None, &b"before"[..]), "{name}, {most}");
        }
        for most in [0, 100, exact_steps(OtherHostTerm(&object)) * 9 / 10] {
            let none = exact_key_within(OtherHostTerm(&object), &mut key, options, most);
            assert_eq!((none, &key[..]), (None, &b"before"[..]), "{name}, {most}");
        }
        let steps = image_steps(&object);
        let mut builder = ImageBuilder::new(zeros);
        for most in [0, 100, steps / 2] {
            let built = builder.encode_object_within(OtherHostTerm(&object), most);
            // A large binary is shared and has no words.
            let is_small = steps < 100 && most == 100;
            let expected = if is_small {
                Ok(())
            } else {
                Err(NoImage::TooLarge)
            };
            assert_eq!(built, expected, "{name}, {most} of {steps}");
        }
        assert_eq!(
            builder.encode_object_within(OtherHostTerm(&object), 2 * steps),
            Ok(()),
            "{name}"
        );
    }
}
