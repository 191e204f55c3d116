//! Terms sorted by an Erlang VM, see `golden/make.escript`.

use std::cmp::Ordering;

use crate::common::{as_seen, exact_key, order_key};
use ats_term::etf::{Options, decode, encode};
use ats_term::{Term, Zeros, exact, order};

static FILE: &[u8] = include_bytes!("golden/terms.bin");

/// The relation of a term to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Greater,
    /// `==` but not `=:=`.
    Equal,
    /// `=:=`.
    Same,
}

/// Reads the rule for zeros of the VM that wrote the file, and its terms.
fn golden() -> (Zeros, Vec<(Mark, Term)>) {
    let (&release, mut rest) = FILE.split_first().unwrap();
    let zeros = if release < 27 {
        Zeros::Same
    } else {
        Zeros::Distinct
    };
    let mut terms = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let mark = match tail[0] {
            0 => Mark::Greater,
            1 => Mark::Equal,
            3 => Mark::Same,
            other => panic!("mark {other}"),
        };
        let (bytes, after) = tail[1..].split_at(length);
        let term = decode(bytes, Options::default()).unwrap_or_else(|e| panic!("{e}: {bytes:?}"));
        terms.push((mark, term));
        rest = after;
    }
    (zeros, terms)
}

#[test]
fn neighbours_are_in_order() {
    let (zeros, terms) = golden();
    assert!(terms.len() > 3000);
    for neighbours in terms.windows(2) {
        let ((_, previous), (mark, term)) = (&neighbours[0], &neighbours[1]);
        let context = format!("{previous} and {term}: {mark:?}");

        let by_keys = order_key(previous, zeros).cmp(&order_key(term, zeros));
        let expected = if *mark == Mark::Greater {
            Ordering::Less
        } else {
            Ordering::Equal
        };
        assert_eq!(by_keys, expected, "order keys of {context}");

        for atoms in [exact::Atoms::Word, exact::Atoms::Text] {
            let same = exact_key(previous, zeros, atoms) == exact_key(term, zeros, atoms);
            assert_eq!(same, *mark == Mark::Same, "exact keys of {context}");
        }

        let (previous, term) = (as_seen(previous, zeros), as_seen(term, zeros));
        assert_eq!(previous.compare(&term), expected, "comparison of {context}");
        assert_eq!(
            previous == term,
            *mark == Mark::Same,
            "equality of {context}"
        );
    }
}

/// Order keys of any two terms compare like the ranks in the file.
#[test]
fn any_two_are_in_order() {
    let (zeros, terms) = golden();
    let mut rank = 0;
    let ranked: Vec<_> = terms
        .iter()
        .map(|(mark, term)| {
            rank += usize::from(*mark == Mark::Greater);
            (rank, order_key(term, zeros))
        })
        .collect();
    for (i, (rank, key)) in ranked.iter().enumerate() {
        for step in [2, 3, 5, 17, 101, 499, 1009] {
            if let Some((other_rank, other_key)) = ranked.get(i + step) {
                assert_eq!(key.cmp(other_key), rank.cmp(other_rank), "{}", terms[i].1);
            }
        }
    }
}

#[test]
fn every_key_lies_within_the_bounds_of_its_prefixes_only() {
    let (zeros, terms) = golden();
    let terms: Vec<_> = terms.iter().map(|(_, term)| as_seen(term, zeros)).collect();
    let keys: Vec<_> = terms.iter().map(|term| order_key(term, zeros)).collect();
    for pattern in terms.iter().step_by(7) {
        let Some([first, ..]) = pattern.as_tuple() else {
            continue;
        };
        let arity = pattern.as_tuple().map_or(0, <[Term]>::len);
        let mut prefix = order::Prefix::new(zeros);
        prefix.tuple(arity).term(first);
        let (from, to) = order::prefix_bounds(prefix.as_bytes());
        for (term, key) in terms.iter().zip(&keys) {
            let begins_so = term
                .as_tuple()
                .is_some_and(|parts| parts.len() == arity && parts[0].compare(first).is_eq());
            assert_eq!(
                (&from..&to).contains(&key),
                begins_so,
                "{term} and {{{first}, ...}}"
            );
        }
    }
}

#[test]
fn external_form_is_read_again() {
    for (_, term) in golden().1 {
        let bytes = encode(&term).unwrap();
        assert_eq!(decode(&bytes, Options::default()).as_ref(), Ok(&term));
    }
}
