//! Numbers that are equal (`==`) but not the same term.

use ats_term::{Integer, Kind, Term, TermRef};

/// Returns all numbers that are `==` to this one, itself included: an integer and the floats with
/// exactly its value, or one float. Returns none if the term is no number. O(size).
#[expect(clippy::float_cmp, reason = "an integer has no fraction at all")]
pub(super) fn equal_numbers<T: TermRef>(number: T) -> Vec<Term> {
    let integer = match number.kind() {
        Kind::Float(value) if value.trunc() != value => {
            return Vec::from_iter(Term::try_from(value));
        }
        Kind::Float(value) => Integer::from_float(value),
        _ => match Integer::from_term(number) {
            Some(integer) => integer,
            None => return Vec::new(),
        },
    };
    let floats = match integer {
        Integer::Small(0) => vec![0.0, -0.0],
        _ => Vec::from_iter(exact_float(&integer)),
    };
    let floats = floats
        .into_iter()
        .map(|value| Term::try_from(value).expect("finite"));
    std::iter::once(term_of(&integer)).chain(floats).collect()
}

/// Returns the float with exactly this value, if there is one. Beyond 2^53 there are gaps between
/// floats, so many integers have none.
fn exact_float(integer: &Integer) -> Option<f64> {
    // An integer of 53 significant bits converts without rounding.
    integer
        .to_float()
        .filter(|&value| Integer::from_float(value) == *integer)
}

fn term_of(integer: &Integer) -> Term {
    integer.with_parts(|parts| match parts {
        Ok(value) => Term::Int(value),
        Err((negative, magnitude)) => Term::integer(negative, magnitude),
    })
}

#[cfg(test)]
mod tests {
    use super::equal_numbers;
    use ats_term::arbitrary::{finite_float, integer};
    use ats_term::{Term, Zeros, order::order_key};
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn float(value: f64) -> Term {
        Term::try_from(value).expect("a finite float")
    }

    #[test]
    fn numbers_have_the_forms_they_should() {
        let two_to = |power: u32| {
            let mut magnitude = vec![0; power as usize / 8 + 1];
            magnitude[power as usize / 8] = 1 << (power % 8);
            Term::integer(false, &magnitude)
        };
        for (number, forms) in [
            (Term::Int(1), vec![Term::Int(1), float(1.0)]),
            (float(-3.0), vec![Term::Int(-3), float(-3.0)]),
            (float(1.5), vec![float(1.5)]),
            (float(5e-324), vec![float(5e-324)]),
            (Term::Int(0), vec![Term::Int(0), float(0.0), float(-0.0)]),
            (float(-0.0), vec![Term::Int(0), float(0.0), float(-0.0)]),
            (Term::Int((1 << 53) + 1), vec![Term::Int((1 << 53) + 1)]),
            (
                Term::Int((1 << 53) + 2),
                vec![Term::Int((1 << 53) + 2), float(2f64.powi(53) + 2.0)],
            ),
            (Term::Int(i64::MAX), vec![Term::Int(i64::MAX)]),
            (
                Term::Int(i64::MIN),
                vec![Term::Int(i64::MIN), float(-(2f64.powi(63)))],
            ),
            (float(2f64.powi(63)), vec![two_to(63), float(2f64.powi(63))]),
            (two_to(1023), vec![two_to(1023), float(2f64.powi(1023))]),
            (two_to(1024), vec![two_to(1024)]),
        ] {
            assert_eq!(equal_numbers(&number), forms, "{number}");
        }
        assert_eq!(equal_numbers(&float(f64::MAX)).len(), 2);
        assert_eq!(equal_numbers(&Term::Nil), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn forms_are_equal_and_complete(a in prop_oneof![integer(), finite_float()]) {
            let forms = equal_numbers(&a);
            prop_assert!(forms.contains(&a));
            for form in &forms {
                prop_assert_eq!(form.compare(&a), Ordering::Equal);
                let key = |term: &Term| {
                    let mut key = Vec::new();
                    order_key(term, &mut key, Zeros::Distinct);
                    key
                };
                prop_assert_eq!(key(form), key(&a));
                // Each of the equal numbers leads to the same set.
                prop_assert_eq!(equal_numbers(form), forms.clone());
            }
        }
    }
}
