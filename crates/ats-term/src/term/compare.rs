//! Erlang's standard order and `=:=`, by a walk of both terms side by side.
//!
//! [Order keys](crate::order) express the same orders as bytes and share no code with this module,
//! so that each is tested against the other.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::node::{LocalFun, NativeRecord, Term, Terms};
use super::{BigInt, Float};

/// Rules for the comparison of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// The standard rule, by value: `1 == 1.0`.
    ByValue,
    /// The rule for map keys: integers come before floats, `-0.0` before `0.0`.
    Exact,
}

/// Two sequences of the same length, still to be compared.
struct Pending<'a> {
    left: &'a [Term],
    right: &'a [Term],
    numbers: Numbers,
}

impl Term {
    /// Compares in Erlang's standard order; `Equal` is Erlang's `==`. O(size), not recursive.
    ///
    /// Keys inside maps are compared as in OTP 27: `-0.0` is a key of its own and precedes `0.0`.
    #[must_use]
    pub fn compare(&self, other: &Term) -> Ordering {
        compare(self, other, Numbers::ByValue)
    }

    /// Compares in the order of map keys: the standard order, except that all integers come before
    /// all floats, and `-0.0` before `0.0`. `Equal` is Erlang's `=:=`. O(size), without recursion.
    #[must_use]
    pub fn compare_exact(&self, other: &Term) -> Ordering {
        compare(self, other, Numbers::Exact)
    }
}

/// Erlang's `=:=` since OTP 27.
impl PartialEq for Term {
    fn eq(&self, other: &Term) -> bool {
        self.compare_exact(other).is_eq()
    }
}

impl Eq for Term {}

impl Hash for Term {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let mut bytes = Vec::new();
        crate::exact::exact_key(self, &mut bytes, crate::exact::Options::default());
        bytes.hash(state);
    }
}

fn compare(left: &Term, right: &Term, numbers: Numbers) -> Ordering {
    let mut stack: Vec<Pending<'_>> = Vec::new();
    let mut current = (left, right, numbers);
    loop {
        let (left, right, numbers) = current;
        let order = compare_one(left, right, numbers, &mut stack);
        if order.is_ne() {
            return order;
        }
        match next_pair(&mut stack) {
            Some(pair) => current = pair,
            None => return Ordering::Equal,
        }
    }
}

/// Takes the next pair of terms. A sequence leaves the stack before its last pair is compared, so
/// long lists, which continue in their last pair, do not grow the stack.
fn next_pair<'a>(stack: &mut Vec<Pending<'a>>) -> Option<(&'a Term, &'a Term, Numbers)> {
    loop {
        let top = stack.last_mut()?;
        let (Some((left, left_rest)), Some((right, right_rest))) =
            (top.left.split_first(), top.right.split_first())
        else {
            stack.pop();
            continue;
        };
        let numbers = top.numbers;
        if left_rest.is_empty() {
            stack.pop();
        } else {
            (top.left, top.right) = (left_rest, right_rest);
        }
        return Some((left, right, numbers));
    }
}

/// Compares two terms without their parts, which are pushed on the stack.
fn compare_one<'a>(
    left: &'a Term,
    right: &'a Term,
    numbers: Numbers,
    stack: &mut Vec<Pending<'a>>,
) -> Ordering {
    let mut parts = |left: &'a [Term], right: &'a [Term], numbers| {
        stack.push(Pending {
            left,
            right,
            numbers,
        });
        Ordering::Equal
    };
    match (left, right) {
        (Term::Atom(a), Term::Atom(b)) => a.cmp(b),
        (Term::Ref(a), Term::Ref(b)) | (Term::Port(a), Term::Port(b)) => a
            .compare_nodes(b)
            .then_with(|| a.compare_numbers(b))
            .then(a.compare_locality(b)),
        (Term::Pid(a), Term::Pid(b)) => a
            .compare_numbers(b)
            .then_with(|| a.compare_nodes(b))
            .then(a.compare_locality(b)),
        (Term::LocalFun(a), Term::LocalFun(b)) => {
            // The VM keeps index and hash as signed numbers.
            let key = |f: &LocalFun| (f.index() as i32, f.old_uniq() as i32, f.free().len());
            let order = a
                .module()
                .cmp(&b.module())
                .then_with(|| key(a).cmp(&key(b)));
            order.then_with(|| parts(a.free(), b.free(), numbers))
        }
        (Term::ExternalFun(a), Term::ExternalFun(b)) => {
            (a.module, a.function, a.arity).cmp(&(b.module, b.function, b.arity))
        }
        (Term::LocalFun(_), Term::ExternalFun(_)) => Ordering::Less,
        (Term::ExternalFun(_), Term::LocalFun(_)) => Ordering::Greater,
        (Term::Tuple(a), Term::Tuple(b)) => a
            .len()
            .cmp(&b.len())
            .then_with(|| unless_same(a.terms(), b.terms(), numbers, parts)),
        (Term::NativeRecord(a), Term::NativeRecord(b)) => {
            let key = |r: &NativeRecord| (r.module(), r.name(), r.is_exported(), r.fields().len());
            let order = key(a).cmp(&key(b)).then_with(|| a.fields().cmp(b.fields()));
            order.then_with(|| parts(a.values(), b.values(), numbers))
        }
        (Term::Map(a), Term::Map(b)) if a.terms().same(b.terms()) => Ordering::Equal,
        (Term::Map(a), Term::Map(b)) => a.len().cmp(&b.len()).then_with(|| {
            parts(a.values(), b.values(), numbers);
            parts(a.keys(), b.keys(), Numbers::Exact)
        }),
        (Term::List(a), Term::List(b)) => unless_same(a.cell(), b.cell(), numbers, parts),
        (Term::Bits(a), Term::Bits(b)) => {
            // Padding zeros keep the shorter one of two bitstrings with equal prefixes from
            // comparing greater.
            a.bytes().cmp(b.bytes()).then(a.bit_len().cmp(&b.bit_len()))
        }
        _ => match class(left).cmp(&class(right)) {
            Ordering::Equal => compare_numbers(left, right, numbers),
            order => order,
        },
    }
}

/// Pushes the parts of two terms to be compared, unless both are the same memory.
fn unless_same<'a>(
    left: &'a Terms,
    right: &'a Terms,
    numbers: Numbers,
    mut parts: impl FnMut(&'a [Term], &'a [Term], Numbers) -> Ordering,
) -> Ordering {
    if left.same(right) {
        Ordering::Equal
    } else {
        parts(left, right, numbers)
    }
}

/// Returns the position of a term's type in the standard order.
fn class(term: &Term) -> u8 {
    match term {
        Term::Int(_) | Term::Big(_) | Term::Float(_) => 0,
        Term::Atom(_) => 1,
        Term::Ref(_) => 2,
        Term::LocalFun(_) | Term::ExternalFun(_) => 3,
        Term::Port(_) => 4,
        Term::Pid(_) => 5,
        Term::Tuple(_) => 6,
        Term::NativeRecord(_) => 7,
        Term::Map(_) => 8,
        Term::Nil => 9,
        Term::List(_) => 10,
        Term::Bits(_) => 11,
    }
}

fn compare_numbers(left: &Term, right: &Term, numbers: Numbers) -> Ordering {
    use Term::{Big, Float, Int};
    match (left, right) {
        (Int(a), Int(b)) => a.cmp(b),
        (Int(_), Big(b)) => Ordering::Less.reverse_if(b.is_negative()),
        (Big(a), Int(_)) => Ordering::Greater.reverse_if(a.is_negative()),
        (Big(a), Big(b)) => b.is_negative().cmp(&a.is_negative()).then_with(|| {
            BigInt::compare_magnitudes(a.magnitude(), b.magnitude()).reverse_if(a.is_negative())
        }),
        (Float(a), Float(b)) => compare_floats(*a, *b, numbers),
        (Int(_) | Big(_), Float(_)) if numbers == Numbers::Exact => Ordering::Less,
        (Float(_), Int(_) | Big(_)) if numbers == Numbers::Exact => Ordering::Greater,
        (Int(a), Float(b)) => compare_int_float(*a, b.get()),
        (Float(a), Int(b)) => compare_int_float(*b, a.get()).reverse(),
        (Big(a), Float(b)) => compare_big_float(a, b.get()),
        (Float(a), Big(b)) => compare_big_float(b, a.get()).reverse(),
        // Both are nil: the arms above handle every other pair of one class.
        _ => Ordering::Equal,
    }
}

trait ReverseIf {
    fn reverse_if(self, condition: bool) -> Self;
}

impl ReverseIf for Ordering {
    fn reverse_if(self, condition: bool) -> Ordering {
        if condition { self.reverse() } else { self }
    }
}

#[expect(clippy::float_cmp, reason = "equality of terms is exact")]
fn compare_floats(a: Float, b: Float, numbers: Numbers) -> Ordering {
    let (a, b) = (a.get(), b.get());
    // The only equal numbers that the total order distinguishes are zeros of different sign.
    match a.total_cmp(&b) {
        _ if numbers == Numbers::ByValue && a == b => Ordering::Equal,
        order => order,
    }
}

/// 2 to the power of 63, the first float above all `i64`.
const I64_END: f64 = 9_223_372_036_854_775_808.0;

fn compare_int_float(int: i64, float: f64) -> Ordering {
    if float >= I64_END {
        return Ordering::Less;
    }
    if float < -I64_END {
        return Ordering::Greater;
    }
    // Truncation is exact in this range; the fraction decides between equal integers.
    let whole = float as i64;
    int.cmp(&whole)
        .then_with(|| 0.0f64.total_cmp(&(float - float.trunc() + 0.0)))
}

/// Compares sign, number of bits, the first 64 bits, and then whether any other bit is set.
fn compare_big_float(big: &BigInt, float: f64) -> Ordering {
    let sign = if big.is_negative() {
        Ordering::Less
    } else {
        Ordering::Greater
    };
    if float.abs() < I64_END || (float < 0.0) != big.is_negative() {
        return sign;
    }
    let (mantissa, exponent) = decompose(float.abs());
    let float_top = mantissa << mantissa.leading_zeros();
    let float_bits = 64 - mantissa.leading_zeros() as usize + exponent;
    let magnitude = big.magnitude();
    let (big_top, more) = top_bits(magnitude);
    let order = bit_length(magnitude)
        .cmp(&float_bits)
        .then(big_top.cmp(&float_top));
    order.then(more.cmp(&false)).reverse_if(big.is_negative())
}

/// Decomposes a float of at least 2^63 into `mantissa * 2^exponent`.
fn decompose(float: f64) -> (u64, usize) {
    let bits = float.to_bits();
    let exponent = (bits >> 52) as usize & 0x7FF;
    (bits & ((1 << 52) - 1) | 1 << 52, exponent - 1075)
}

fn bit_length(magnitude: &[u8]) -> usize {
    let leading = magnitude
        .last()
        .map_or(0, |byte| byte.leading_zeros() as usize);
    magnitude.len() * 8 - leading
}

/// Returns the first 64 bits of a magnitude of at least 8 bytes, and `true` if a later bit is set.
fn top_bits(magnitude: &[u8]) -> (u64, bool) {
    let mut bytes = magnitude.iter().rev();
    let window = bytes
        .by_ref()
        .take(9)
        .fold(0u128, |window, byte| window << 8 | u128::from(*byte));
    let aligned = window << window.leading_zeros();
    (
        ((aligned >> 64) as u64),
        aligned as u64 != 0 || bytes.any(|byte| *byte != 0),
    )
}
