//! Equality and order of values.

use crate::fingerprint::Fingerprints;
use crate::value::{Number, Value, ValueArena};
use ats_term::Zeros;
use ats_term::exact::{Options, exact_key};
use ats_term::image::{Host, Slots, term_eq};
use ats_term::order::order_key;
use ats_term::term_ref::TermRef;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Buffers with room for more bytes than this are given back.
const KEEP: usize = 1 << 16;

/// Integers up to this one are floats, too.
const EXACT_FLOAT: u64 = 1 << 53;

/// The rules that equality and order of terms depend on, and memory for comparisons.
pub(crate) struct Comparer {
    pub(crate) zeros: Zeros,
    left: Vec<u8>,
    right: Vec<u8>,
    /// Of maps that this run has made. Most runs make none that are keys of others.
    fingerprints: Option<Box<Fingerprints>>,
}

impl Comparer {
    pub(crate) const fn new() -> Self {
        Comparer {
            zeros: Zeros::Distinct,
            left: Vec::new(),
            right: Vec::new(),
            fingerprints: None,
        }
    }

    /// Returns `true` if two values are the same term (`=:=`).
    #[inline]
    pub(crate) fn same<'a, H: Host>(
        &mut self,
        arena: &ValueArena<'a, H>,
        a: Value<'a, H>,
        b: Value<'a, H>,
    ) -> bool {
        match (a, b) {
            (Value::Word(a), Value::Word(b)) => a == b,
            // Whatever can be a word is one.
            (Value::Word(_), _) | (_, Value::Word(_)) => false,
            (Value::Image(a), Value::Image(b)) => term_eq(a, b, self.zeros),
            _ => self.same_keys(arena, a, b),
        }
    }

    fn same_keys<'a, H: Host>(
        &mut self,
        arena: &ValueArena<'a, H>,
        a: Value<'a, H>,
        b: Value<'a, H>,
    ) -> bool {
        self.start();
        let options = exact_options(self.zeros);
        exact_key(arena.term(a), &mut self.left, options);
        exact_key(arena.term(b), &mut self.right, options);
        self.left == self.right
    }

    /// The standard order of two values.
    #[inline]
    pub(crate) fn order<'a, H: Host>(
        &mut self,
        arena: &ValueArena<'a, H>,
        a: Value<'a, H>,
        b: Value<'a, H>,
    ) -> Ordering {
        if let (Some(a), Some(b)) = (a.as_small(), b.as_small()) {
            return a.cmp(&b);
        }
        if let (Some(a), Some(b)) = (arena.number(a), arena.number(b))
            && let Some(ordering) = order_of_numbers(a, b)
        {
            return ordering;
        }
        if let (Value::Word(a), Value::Word(b)) = (a, b)
            && a == b
        {
            return Ordering::Equal;
        }
        self.order_of_keys(arena, a, b)
    }

    fn order_of_keys<'a, H: Host>(
        &mut self,
        arena: &ValueArena<'a, H>,
        a: Value<'a, H>,
        b: Value<'a, H>,
    ) -> Ordering {
        self.start();
        order_key(arena.term(a), &mut self.left, self.zeros);
        order_key(arena.term(b), &mut self.right, self.zeros);
        self.left.cmp(&self.right)
    }

    /// Finds the key of a map of an image that is this term (`=:=`).
    ///
    /// The keys stand in an order of their own: immediates by their words, then the others by their exact
    /// keys. O(log n) comparisons; at most O(log n) keys are made.
    pub(crate) fn find_key<H: Host, T: TermRef>(
        &mut self,
        keys: Slots<'_, H>,
        key: T,
    ) -> Option<usize> {
        let at = |i: usize| keys.get(i).expect("a key of the map");
        if let Some(word) = key.immediate() {
            let i = lower_bound(keys.len(), |i| {
                at(i).immediate().is_some_and(|key| key < word)
            });
            return (i < keys.len() && at(i).immediate() == Some(word)).then_some(i);
        }
        self.start();
        let options = exact_options(self.zeros);
        exact_key(key, &mut self.left, options);
        let i = lower_bound(keys.len(), |i| {
            at(i).immediate().is_some() || {
                self.right.clear();
                exact_key(at(i), &mut self.right, options);
                self.right < self.left
            }
        });
        let found = keys.get(i)?;
        self.right.clear();
        exact_key(found, &mut self.right, options);
        (self.right == self.left).then_some(i)
    }

    /// Returns the index of the first of these values that is this term (`=:=`). Makes at most one
    /// key of each.
    pub(crate) fn position<'a, H: Host>(
        &mut self,
        arena: &ValueArena<'a, H>,
        values: &[Value<'a, H>],
        wanted: Value<'a, H>,
    ) -> Option<usize> {
        if let Value::Word(wanted) = wanted {
            let is_it =
                |value: &Value<'a, H>| matches!(value, Value::Word(word) if *word == wanted);
            return values.iter().position(is_it);
        }
        self.start();
        let options = exact_options(self.zeros);
        exact_key(arena.term(wanted), &mut self.left, options);
        values.iter().position(|&value| {
            // Whatever can be a word is one.
            !matches!(value, Value::Word(_)) && {
                self.right.clear();
                exact_key(arena.term(value), &mut self.right, options);
                self.left == self.right
            }
        })
    }

    /// Forgets what concerns the run before.
    #[inline]
    pub(crate) fn begin_run(&mut self) {
        if let Some(fingerprints) = &mut self.fingerprints {
            fingerprints.clear();
        }
    }

    /// The positions of these values, ascending, without those that come again later.
    ///
    /// O(n log n), besides looking at each value that is no immediate, if there are two of them: at maps that
    /// were made only once, however often they are looked at, or are in others.
    pub(crate) fn last_of_each<'a, H: Host>(
        &mut self,
        arena: &ValueArena<'a, H>,
        values: &[Value<'a, H>],
    ) -> Vec<usize> {
        let mut words = Vec::with_capacity(values.len());
        let mut others = Vec::new();
        for (position, &value) in values.iter().enumerate() {
            match value {
                Value::Word(word) => words.push((word, position)),
                _ => others.push((0, position)),
            }
        }
        let options = exact_options(self.zeros);
        if others.len() > 1 {
            let fingerprints = self.fingerprints.get_or_insert_default();
            for (fingerprint, position) in &mut others {
                *fingerprint = fingerprints.of(arena.term(values[*position]), options);
            }
        }
        words.sort_unstable();
        others.sort_unstable();
        let mut last = Vec::with_capacity(values.len());
        let of_run = |run: &[(u64, usize)]| run[run.len() - 1].1;
        last.extend(words.chunk_by(|a, b| a.0 == b.0).map(of_run));
        for run in others.chunk_by(|a, b| a.0 == b.0) {
            if let [(_, only)] = run {
                last.push(*only);
                continue;
            }
            // Most likely all of them are the same.
            let key = |position: usize| {
                let mut bytes = Vec::new();
                exact_key(arena.term(values[position]), &mut bytes, options);
                bytes
            };
            let of_key: HashMap<_, _> = run.iter().map(|&(_, i)| (key(i), i)).collect();
            last.extend(of_key.into_values());
        }
        last.sort_unstable();
        last
    }

    /// Gives back buffers that something huge blew up.
    pub(crate) fn tidy(&mut self) {
        self.start();
    }

    fn start(&mut self) {
        for buffer in [&mut self.left, &mut self.right] {
            buffer.clear();
            buffer.shrink_to(KEEP);
        }
    }
}

fn exact_options(zeros: Zeros) -> Options {
    Options {
        zeros,
        ..Options::default()
    }
}

/// The first number below `len` for which `before` is false; it is true for all less than that.
fn lower_bound(len: usize, mut before: impl FnMut(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The order of two numbers, if it is easy to tell.
fn order_of_numbers(a: Number, b: Number) -> Option<Ordering> {
    let exact = |value: i64| (value.unsigned_abs() <= EXACT_FLOAT).then_some(value as f64);
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
        (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
        (Number::Int(a), Number::Float(b)) => exact(a)?.partial_cmp(&b),
        (Number::Float(a), Number::Int(b)) => a.partial_cmp(&exact(b)?),
        (Number::Big, _) | (_, Number::Big) => None,
    }
}
