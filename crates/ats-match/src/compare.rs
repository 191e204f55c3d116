//! Equality and order of values.

use crate::fingerprint::Fingerprints;
use crate::value::{Number, Value, ValueArena};
use ats_term::Zeros;
use ats_term::exact::{Options, exact_key, exact_key_within, exact_order};
use ats_term::image::{Host, ImageRef, Slots, term_eq_within};
use ats_term::order::{Question, compare_within};
use ats_term::term_ref::TermRef;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Capacity in bytes above which a buffer is freed after use.
const KEEP: usize = 1 << 16;

/// Bound up to which every integer is exactly a float.
const EXACT_FLOAT: u64 = 1 << 53;

/// Number of key bytes that count as one step of a comparison.
const BYTES_PER_STEP: usize = 64;
/// Largest number of keys of a new map that are compared pairwise.
const FEW_KEYS: usize = 8;

/// The rules that equality and order of terms depend on, memory for comparisons, and the budget of
/// steps of a run.
pub(crate) struct Comparer {
    pub(crate) zeros: Zeros,
    left: Vec<u8>,
    right: Vec<u8>,
    /// Fingerprints of maps that this run has made. Allocated on first use, since most runs make no
    /// map that is a key of another.
    fingerprints: Option<Box<Fingerprints>>,
    /// Largest number of steps a run may take. Only operations that can be long are counted.
    most: usize,
    /// Number of steps taken; more than `most` if the run gave up.
    spent: usize,
}

impl Comparer {
    pub(crate) const fn new() -> Self {
        Comparer {
            zeros: Zeros::Distinct,
            left: Vec::new(),
            right: Vec::new(),
            fingerprints: None,
            most: usize::MAX - 1,
            spent: 0,
        }
    }

    /// Limits each later run to `most` steps.
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = most.min(usize::MAX - 1);
        self.spent = 0;
    }

    /// Returns `true` if a run exceeded its steps. Its answers since then are meaningless.
    #[inline]
    pub(crate) fn gave_up(&self) -> bool {
        self.spent > self.most
    }

    /// Starts a new run and discards the state of the one before. Returns `false` if that one gave
    /// up.
    #[inline]
    pub(crate) fn begin_run(&mut self) -> bool {
        self.spent == 0 || self.begin_after_work()
    }

    #[cold]
    fn begin_after_work(&mut self) -> bool {
        if let Some(fingerprints) = &mut self.fingerprints {
            fingerprints.clear();
        }
        if self.gave_up() {
            return false;
        }
        self.spent = 0;
        true
    }

    /// Takes this many steps; returns `None` if fewer are left.
    pub(crate) fn spend(&mut self, steps: usize) -> Option<()> {
        let left = self.left();
        self.note_left(left.checked_sub(steps))
    }

    /// Returns the number of steps that the run may still take.
    fn left(&self) -> usize {
        self.most.saturating_sub(self.spent)
    }

    /// Notes how many steps are left, if there are enough.
    fn note_left(&mut self, left: Option<usize>) -> Option<()> {
        // Every comparison costs at least one step, so that `begin_run` sees that there is state to
        // reset.
        let spent = left.map(|left| (self.most - left).max(1).max(self.spent));
        self.spent = spent.unwrap_or(usize::MAX);
        spent.map(|_| ())
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
            // A value that fits a word is always a `Word`.
            (Value::Word(_), _) | (_, Value::Word(_)) => false,
            (Value::Image(a), Value::Image(b)) => self.same_images(a, b),
            _ => self.ask(arena, a, b, Question::Same).is_eq(),
        }
    }

    /// Returns `true` if two terms of images are the same.
    #[inline]
    pub(crate) fn same_images<H: Host>(&mut self, a: ImageRef<'_, H>, b: ImageRef<'_, H>) -> bool {
        let mut left = self.left();
        let same = term_eq_within(a, b, self.zeros, &mut left);
        self.note_left(same.map(|_| left));
        same.unwrap_or(false)
    }

    /// Returns `true` if two values are equal (`==`).
    #[inline]
    pub(crate) fn equal<'a, H: Host>(
        &mut self,
        arena: &ValueArena<'a, H>,
        a: Value<'a, H>,
        b: Value<'a, H>,
    ) -> bool {
        match (a, b) {
            (Value::Word(a), Value::Word(b)) => a == b,
            // A value other than a number that fits a word is always a `Word`.
            (Value::Word(word), other) | (other, Value::Word(word)) => {
                word & 0xF == 0xF
                    && arena.number(other).is_some()
                    && self.order(arena, a, b).is_eq()
            }
            _ => match self.order_of_numbers(arena, a, b) {
                Some(order) => order.is_eq(),
                None => self.ask(arena, a, b, Question::Equal).is_eq(),
            },
        }
    }

    /// Returns the standard order of two values.
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
        if let Some(order) = self.order_of_numbers(arena, a, b) {
            return order;
        }
        self.ask(arena, a, b, Question::Order)
    }

    /// Returns the order of two numbers, if it is easy to tell.
    #[inline]
    fn order_of_numbers<'a, H: Host>(
        &self,
        arena: &ValueArena<'a, H>,
        a: Value<'a, H>,
        b: Value<'a, H>,
    ) -> Option<Ordering> {
        order_of_numbers(arena.number(a)?, arena.number(b)?)
    }

    /// Compares two values by walking both.
    fn ask<'a, H: Host>(
        &mut self,
        arena: &ValueArena<'a, H>,
        a: Value<'a, H>,
        b: Value<'a, H>,
        question: Question,
    ) -> Ordering {
        let (zeros, mut left) = (self.zeros, self.left());
        let order = match (a, b) {
            (Value::Image(a), Value::Image(b)) => compare_within(a, b, question, zeros, &mut left),
            _ => compare_within(arena.term(a), arena.term(b), question, zeros, &mut left),
        };
        self.note_left(order.map(|_| left));
        order.unwrap_or(Ordering::Less)
    }

    /// Finds the key of a map of an image that is the same term (`=:=`).
    ///
    /// The keys of a map are sorted: immediates by their words first, then the others by their
    /// exact keys. O(log n) comparisons; at most O(log n) keys are made.
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
        let i = lower_bound(keys.len(), |i| {
            at(i).immediate().is_some() || self.order_of_exact_keys(at(i), key).is_lt()
        });
        let found = keys.get(i)?;
        self.order_of_exact_keys(found, key).is_eq().then_some(i)
    }

    /// Compares a term of the map with the wanted one by exact keys. The key of the wanted term is
    /// made once after each [`start`](Comparer::start).
    fn order_of_exact_keys<A: TermRef, B: TermRef>(&mut self, a: A, wanted: B) -> Ordering {
        if let Some((order, bytes)) = exact_order(a, wanted) {
            let _ = self.spend(bytes / BYTES_PER_STEP);
            return order;
        }
        let options = exact_options(self.zeros);
        let most = self.left().saturating_mul(BYTES_PER_STEP);
        let mut work = Some(0);
        if self.left.is_empty() {
            work = exact_key_within(wanted, &mut self.left, options, most);
        }
        self.right.clear();
        let more = work.and_then(|_| exact_key_within(a, &mut self.right, options, most));
        let left = work.zip(more).and_then(|(work, more)| {
            self.left()
                .checked_sub(work.saturating_add(more) / BYTES_PER_STEP)
        });
        self.note_left(left);
        self.right.cmp(&self.left)
    }

    /// Returns the index of the first of these values that is this term (`=:=`). Makes at most one
    /// key of each.
    pub(crate) fn position<'a, H: Host>(
        &mut self,
        arena: &ValueArena<'a, H>,
        values: &[Value<'a, H>],
        wanted: Value<'a, H>,
    ) -> Option<usize> {
        self.start();
        values.iter().position(|&value| match (value, wanted) {
            (Value::Word(value), Value::Word(wanted)) => value == wanted,
            // A value that fits a word is always a `Word`.
            (Value::Word(_), _) | (_, Value::Word(_)) => false,
            (Value::Image(value), Value::Image(wanted)) => self.same_images(value, wanted),
            _ => self
                .order_of_exact_keys(arena.term(value), arena.term(wanted))
                .is_eq(),
        })
    }

    /// Returns the ascending positions of the last occurrence of each value.
    ///
    /// O(n log n), plus one walk through each boxed value if there are at least two. Maps that this
    /// run has made are walked once, however often they occur.
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
        if others.len() > FEW_KEYS || others.iter().any(|&(_, i)| !is_image(values[i])) {
            // Counts the steps, so that the next run clears the fingerprints.
            let _ = self.spend(others.len());
            let fingerprints = self.fingerprints.get_or_insert_default();
            for (fingerprint, position) in &mut others {
                *fingerprint = fingerprints.of(arena.term(values[*position]), options);
            }
        } else {
            for i in 1..others.len() {
                let this = values[others[i].1];
                let mut before = others[..i].iter();
                let same = before.find(|(_, at)| self.same(arena, values[*at], this));
                others[i].0 = same.map_or(i as u64, |same| same.0);
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
            // Equal fingerprints: most likely all of them are the same term.
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

    /// Frees buffers that a huge term has blown up.
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

fn is_image<H>(value: Value<'_, H>) -> bool {
    matches!(value, Value::Image(_))
}

fn exact_options(zeros: Zeros) -> Options {
    Options {
        zeros,
        ..Options::default()
    }
}

/// Returns the first number below `len` for which `before` is false. `before` must be monotone.
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

/// Compares two numbers, if that is cheap.
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
