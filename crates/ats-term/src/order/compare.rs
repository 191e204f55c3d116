//! Comparison of two terms in any representation, by walking both side by side.
//!
//! The result is that of the keys of two terms, but terms that can be walked need no keys: the walk
//! stops at the first difference, and terms of different classes, or tuples of different sizes,
//! differ at once. Keys are made only for small or rare terms: identifiers, funs, opaque terms, and
//! numbers at the limits of floats.
//!
//! # Maps
//! Two maps of the same size compare by their keys, then by the values in the order of the keys.
//! Most often both have the same keys, and show them in the same order. So the keys are first
//! compared in the order they are shown, and a difference means only that they must be sorted. They
//! are sorted by their order keys, for the outermost map whose keys were being compared, so that a
//! term is not walked once for each map around it. Among immediates, the least key that only one
//! map has decides, and is found without sorting the others.

#![expect(
    clippy::option_option,
    reason = "a step fails, ends the walk, or goes on"
)]

use super::bounds::Class;
use super::format::Order;
use crate::Zeros;
use crate::keys::{self, Boundary, Format, Stack};
use crate::term_ref::{Kind, TermRef};
use std::cmp::Ordering;
use std::ops::Range;

/// A question about two terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Their standard order.
    Order,
    /// Equality (`==`). An answer other than [`Ordering::Equal`] says only that they differ.
    Equal,
    /// Identity (`=:=`). An answer other than [`Ordering::Equal`] says only that they differ.
    Same,
}

/// Returns the standard order of two terms; `Equal` is `==`. At most O(n log n) for maps, where n
/// is the size of the smaller term, and O(n) for terms without maps; without recursion.
///
/// `zeros` decides whether `0.0` and `-0.0` are different keys of maps; elsewhere they are equal.
///
/// ```
/// use ats_term::{Term, Zeros, order};
///
/// let (a, b) = (Term::from((1, 2)), Term::from((1, 3)));
/// assert!(order::compare(&a, &b, Zeros::Distinct).is_lt());
/// ```
#[must_use]
pub fn compare<T: TermRef>(a: T, b: T, zeros: Zeros) -> Ordering {
    let mut left = usize::MAX;
    compare_within(a, b, Question::Order, zeros, &mut left).expect("order: no limit")
}

/// Answers a question about two terms, but gives up after about `left` steps and returns `None`.
/// Subtracts its steps from `left`. For callers with limited time. A step is a pair of parts, or 64
/// bytes, and takes about 10 ns.
#[inline]
pub fn compare_within<T: TermRef>(
    a: T,
    b: T,
    question: Question,
    zeros: Zeros,
    left: &mut usize,
) -> Option<Ordering> {
    let mut walk = Walk {
        question,
        zeros,
        is_canonical: a.has_canonical_maps() && b.has_canonical_maps(),
        keys_around: 0,
        left,
        stack: Stack::new(),
        maps: Vec::new(),
        entries: Vec::new(),
    };
    walk.run(a, b)
}

/// Number of bytes that count as one step.
const BYTES_PER_STEP: usize = 64;
/// The number of words beside each other that are one step.
const WORDS_PER_STEP: usize = 16;
/// Integers up to this one are floats, too.
const EXACT_FLOAT: u64 = 1 << 53;
/// Number of bytes of the integer part of the largest float.
const MAX_FLOAT_BYTES: usize = 128;

/// The next step of a walk.
enum Next<T> {
    /// Terms to be compared next.
    Pair(T, T),
    /// The order of the last pair.
    Order(Ordering),
}

/// Parts of two terms to be compared if those before them are equal.
#[derive(Clone, Copy)]
enum Frame<T> {
    /// The elements of two tuples from `next` on, at least one.
    Elements {
        a: T,
        b: T,
        next: usize,
        arity: usize,
    },
    /// The tails of two list cells.
    Tail(T, T),
    /// The keys of two maps from `next` on, as both show them in canonical order.
    Keys {
        a: T,
        b: T,
        next: usize,
        count: usize,
    },
    /// The values of two maps with the same keys from `next` on, in the same order.
    Values {
        a: T,
        b: T,
        next: usize,
        count: usize,
    },
    /// The keys of the listed maps with this number.
    ListedKeys(usize),
    /// The values of the listed maps with this number.
    ListedValues(usize),
}

/// Two maps of the same size: their entries, and the next one to be compared.
struct Maps {
    entries: Range<usize>,
    next: usize,
}

/// A pair of each of two maps. => A pair from each of two maps.
#[derive(Clone, Copy)]
struct Entry<T> {
    keys: (T, T),
    values: (T, T),
}

impl<T> Entry<T> {
    fn of(a: (T, T), b: (T, T)) -> Self {
        Entry {
            keys: (a.0, b.0),
            values: (a.1, b.1),
        }
    }
}

struct Walk<'a, T> {
    question: Question,
    zeros: Zeros,
    /// `true` if maps with the same keys show them in the same order.
    is_canonical: bool,
    /// Number of maps whose keys are being compared.
    keys_around: usize,
    left: &'a mut usize,
    stack: Stack<Frame<T>>,
    maps: Vec<Maps>,
    entries: Vec<Entry<T>>,
}

impl<T: TermRef> Walk<'_, T> {
    fn run(&mut self, a: T, b: T) -> Option<Ordering> {
        let mut next = Next::Pair(a, b);
        loop {
            next = match next {
                Next::Pair(a, b) => self.pair(a, b)?,
                Next::Order(Ordering::Equal) => match self.next()? {
                    Some(next) => next,
                    None => return Some(Ordering::Equal),
                },
                Next::Order(order) => match self.difference(order)? {
                    Some(order) => return Some(order),
                    None => Next::Order(Ordering::Equal),
                },
            };
        }
    }

    /// Takes steps; returns `None` if fewer are left.
    #[inline]
    fn spend(&mut self, steps: usize) -> Option<()> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                *self.left = left;
                Some(())
            }
            None => {
                *self.left = 0;
                None
            }
        }
    }

    /// Returns `true` if numbers are equal only if they are the same term.
    fn is_exact(&self) -> bool {
        self.question == Question::Same || self.keys_around > 0
    }

    /// Returns `true` if the order of terms that differ matters.
    fn wants_order(&self) -> bool {
        self.question == Question::Order && self.keys_around == 0
    }

    fn pair(&mut self, a: T, b: T) -> Option<Next<T>> {
        self.spend(1)?;
        if let (Some(x), Some(y)) = (a.immediate(), b.immediate())
            && (x == y || !self.wants_order() || are_small(x, y))
        {
            // The low bits of small integers are equal, so the words compare like the integers.
            return Some(Next::Order((x as i64).cmp(&(y as i64))));
        }
        Some(match (a.kind(), b.kind()) {
            (Kind::Cons(..), Kind::Cons(..)) => return self.list(a, b),
            (Kind::Tuple(m), Kind::Tuple(n)) if m == n => return self.elements(a, b, 0, m),
            (Kind::Map(m), Kind::Map(n)) if m == n => return self.map(a, b, m),
            (Kind::Tuple(m), Kind::Tuple(n)) | (Kind::Map(m), Kind::Map(n)) => {
                Next::Order(m.cmp(&n))
            }
            (Kind::Bits(m), Kind::Bits(n)) if m != n && !self.wants_order() => {
                Next::Order(m.cmp(&n))
            }
            (Kind::Bits(m), Kind::Bits(n)) => {
                self.spend(m.min(n) / (8 * BYTES_PER_STEP))?;
                // Padding zeros keep the shorter of two bitstrings with equal fronts from comparing
                // greater.
                let order = a.with_bits(|a| b.with_bits(|b| a.cmp(b)));
                Next::Order(order.then(m.cmp(&n)))
            }
            (a_kind, b_kind) => Next::Order(self.scalars((a, a_kind), (b, b_kind))?),
        })
    }

    /// Compares elements from `next` on up to the first two that are not the same immediate.
    fn elements(&mut self, a: T, b: T, next: usize, arity: usize) -> Option<Next<T>> {
        let same = a.same_immediates(b, next);
        self.spend(same / WORDS_PER_STEP)?;
        for i in next + same..arity {
            let (x, y) = (a.element(i), b.element(i));
            if are_same_immediate(x, y) {
                self.spend(1)?;
                continue;
            }
            // Nesting in last elements uses no stack.
            if i + 1 < arity {
                let next = i + 1;
                self.stack.push(Frame::Elements { a, b, next, arity });
            }
            return Some(Next::Pair(x, y));
        }
        Some(Next::Order(Ordering::Equal))
    }

    /// Compares lists up to the first two heads that are not the same immediate, or to an end.
    fn list(&mut self, mut a: T, mut b: T) -> Option<Next<T>> {
        let same = a.same_immediates(b, 0);
        if same > 0 {
            self.spend(same / WORDS_PER_STEP)?;
            (a, b) = (a.list_rest(same), b.list_rest(same));
        }
        loop {
            let (Kind::Cons(a_head, a_tail), Kind::Cons(b_head, b_tail)) = (a.kind(), b.kind())
            else {
                return Some(Next::Pair(a, b));
            };
            if !are_same_immediate(a_head, b_head) {
                self.stack.push(Frame::Tail(a_tail, b_tail));
                return Some(Next::Pair(a_head, b_head));
            }
            self.spend(1)?;
            (a, b) = (a_tail, b_tail);
        }
    }

    /// Returns the next step if everything so far is equal; the inner `None` means that nothing is
    /// left.
    fn next(&mut self) -> Option<Option<Next<T>>> {
        loop {
            let Some(frame) = self.stack.top() else {
                return Some(None);
            };
            match *frame {
                Frame::Elements { a, b, next, arity } => {
                    self.stack.pop();
                    match self.elements(a, b, next, arity)? {
                        Next::Order(Ordering::Equal) => {}
                        next => return Some(Some(next)),
                    }
                }
                Frame::Tail(a, b) => {
                    self.stack.pop();
                    return Some(Some(Next::Pair(a, b)));
                }
                Frame::Keys { a, b, next, count } => {
                    self.stack.pop();
                    if let Some(next) = self.keys(a, b, next, count)? {
                        return Some(Some(next));
                    }
                }
                Frame::Values { a, b, next, count } => {
                    self.stack.pop();
                    if let Some(next) = self.values(a, b, next, count)? {
                        return Some(Some(next));
                    }
                }
                Frame::ListedKeys(map) => {
                    if let Some(entry) = self.next_entry(map) {
                        return Some(Some(Next::Pair(entry.keys.0, entry.keys.1)));
                    }
                    self.stack.pop();
                    self.keys_around -= 1;
                    self.begin_values(map)?;
                }
                Frame::ListedValues(map) => {
                    if let Some(entry) = self.next_entry(map) {
                        return Some(Some(Next::Pair(entry.values.0, entry.values.1)));
                    }
                    self.stack.pop();
                    self.end_listed(map);
                }
            }
        }
    }

    /// Begins two maps of `count` pairs.
    fn map(&mut self, a: T, b: T, count: usize) -> Option<Next<T>> {
        self.keys_around += 1;
        if self.is_canonical {
            let next = self.keys(a, b, 0, count)?;
            return Some(next.unwrap_or(Next::Order(Ordering::Equal)));
        }
        let map = self.list_entries(a, b, count)?;
        self.stack.push(Frame::ListedKeys(map));
        Some(Next::Order(Ordering::Equal))
    }

    /// Compares keys from `next` on up to the first two that are not the same immediate. If all are
    /// the same, begins the values; the inner `None` means that they are equal, or continue on the
    /// stack.
    fn keys(&mut self, a: T, b: T, next: usize, count: usize) -> Option<Option<Next<T>>> {
        for i in next..count {
            let (x, y) = (a.map_pair(i).0, b.map_pair(i).0);
            self.spend(1)?;
            if !are_same_immediate(x, y) {
                let next = i + 1;
                self.stack.push(Frame::Keys { a, b, next, count });
                return Some(Some(Next::Pair(x, y)));
            }
        }
        self.keys_around -= 1;
        if !self.wants_order() || count == 1 {
            return self.values(a, b, 0, count);
        }
        // Only values that may differ need to be sorted by their keys.
        let start = self.entries.len();
        for i in 0..count {
            self.spend(1)?;
            let (x, y) = (a.map_pair(i), b.map_pair(i));
            if !are_same_immediate(x.1, y.1) {
                self.entries.push(Entry::of(x, y));
            }
        }
        if start < self.entries.len() {
            let map = self.add_maps(start);
            self.begin_values(map)?;
        }
        Some(None)
    }

    /// Compares values from `next` on up to the first two that are not the same immediate.
    fn values(&mut self, a: T, b: T, next: usize, count: usize) -> Option<Option<Next<T>>> {
        for i in next..count {
            let (x, y) = (a.map_pair(i).1, b.map_pair(i).1);
            self.spend(1)?;
            if !are_same_immediate(x, y) {
                if i + 1 < count {
                    let next = i + 1;
                    self.stack.push(Frame::Values { a, b, next, count });
                }
                return Some(Some(Next::Pair(x, y)));
            }
        }
        Some(None)
    }

    /// Lists the entries of two maps of `count` pairs, and returns the number of the two maps.
    fn list_entries(&mut self, a: T, b: T, count: usize) -> Option<usize> {
        self.spend(2 * count)?;
        let (mut a_pairs, mut b_pairs) = (Vec::with_capacity(count), Vec::with_capacity(count));
        a.map_pairs(&mut a_pairs);
        b.map_pairs(&mut b_pairs);
        let start = self.entries.len();
        let pairs = a_pairs.into_iter().zip(b_pairs);
        self.entries.extend(pairs.map(|(a, b)| Entry::of(a, b)));
        Some(self.add_maps(start))
    }

    /// Adds two maps with the entries from `start` on, and returns their number.
    fn add_maps(&mut self, start: usize) -> usize {
        self.maps.push(Maps {
            entries: start..self.entries.len(),
            next: start,
        });
        self.maps.len() - 1
    }

    /// Removes the entries of two maps.
    fn end_listed(&mut self, map: usize) {
        self.entries.truncate(self.maps[map].entries.start);
        self.maps.truncate(map);
    }

    /// Takes the next entry of two maps.
    fn next_entry(&mut self, map: usize) -> Option<Entry<T>> {
        let maps = &mut self.maps[map];
        if maps.next == maps.entries.end {
            return None;
        }
        maps.next += 1;
        Some(self.entries[maps.next - 1])
    }

    /// Begins the values of two maps that show the same keys in the same order.
    fn begin_values(&mut self, map: usize) -> Option<()> {
        let range = self.maps[map].entries.clone();
        self.maps[map].next = range.start;
        if self.wants_order() && range.len() > 1 {
            let entries = &self.entries[range.clone()];
            let keys: Vec<_> = entries.iter().map(|entry| entry.keys.0).collect();
            let order = self.key_order(&keys)?;
            let entries = &mut self.entries[range];
            let before = entries.to_vec();
            for (entry, i) in entries.iter_mut().zip(order) {
                *entry = before[i];
            }
        }
        self.stack.push(Frame::ListedValues(map));
        Some(())
    }

    /// Returns the order that a difference decides. Inside map keys it may decide nothing: then the
    /// keys are sorted, and if they turn out to be the same, the values are next.
    #[cold]
    fn difference(&mut self, order: Ordering) -> Option<Option<Ordering>> {
        let is_decided = self.is_canonical && self.question != Question::Order;
        if self.keys_around == 0 || is_decided {
            return Some(Some(order));
        }
        let mut maps = None;
        while self.keys_around > 0 {
            match self.stack.top().map(|frame| *frame) {
                Some(frame @ (Frame::ListedKeys(_) | Frame::Keys { .. })) => {
                    maps = Some(frame);
                    self.keys_around -= 1;
                }
                Some(Frame::ListedValues(map)) => self.end_listed(map),
                _ => {}
            }
            self.stack.pop();
        }
        let map = match maps {
            Some(Frame::Keys { a, b, count, .. }) => {
                if let Some(order) = self.immediate_keys(a, b, count)? {
                    return Some(Some(order));
                }
                self.list_entries(a, b, count)?
            }
            Some(Frame::ListedKeys(map)) => map,
            _ => return Some(Some(order)),
        };
        let range = self.maps[map].entries.clone();
        self.maps.truncate(map + 1);
        self.entries.truncate(range.end);
        let entries = self.entries[range.clone()].to_vec();
        let a_keys: Vec<_> = entries.iter().map(|entry| entry.keys.0).collect();
        let b_keys: Vec<_> = entries.iter().map(|entry| entry.keys.1).collect();
        let (a_sorted, b_sorted) = (self.sorted(&a_keys)?, self.sorted(&b_keys)?);
        let order = a_sorted.keys().cmp(b_sorted.keys());
        if order.is_ne() {
            return Some(Some(order));
        }
        for ((at, i), j) in range.clone().zip(a_sorted.order).zip(b_sorted.order) {
            self.entries[at] = Entry {
                keys: (entries[i].keys.0, entries[j].keys.1),
                values: (entries[i].values.0, entries[j].values.1),
            };
        }
        self.maps[map].next = range.start;
        self.stack.push(Frame::ListedValues(map));
        Some(None)
    }

    /// Compares the canonically ordered, different keys of two maps, if all are immediates. The
    /// least key that only one of the maps has decides: at its position, the other map has a
    /// greater one.
    #[expect(
        clippy::many_single_char_names,
        reason = "pairs of terms and of indices of their keys"
    )]
    fn immediate_keys(&mut self, a: T, b: T, count: usize) -> Option<Option<Ordering>> {
        let is_immediate = |map: T| map.map_pair(count - 1).0.immediate().is_some();
        if !is_immediate(a) || !is_immediate(b) {
            return Some(None);
        }
        let key = |map: T, i: usize| (i < count).then(|| map.map_pair(i).0);
        // A missing key counts as greater than all others.
        let sort_key = |key: Option<T>| (key.is_none(), key.and_then(T::immediate));
        let (mut i, mut j, mut least) = (0, 0, None);
        while i < count || j < count {
            self.spend(1)?;
            let (x, y) = (key(a, i), key(b, j));
            let order = sort_key(x).cmp(&sort_key(y));
            i += usize::from(order.is_le());
            j += usize::from(order.is_ge());
            let (alone, decides) = match order {
                Ordering::Less => (x, Ordering::Less),
                Ordering::Greater => (y, Ordering::Greater),
                Ordering::Equal => continue,
            };
            let Some(alone) = alone else { continue };
            least = match least {
                Some((other, decided)) if self.immediates(other, alone)?.is_lt() => {
                    Some((other, decided))
                }
                _ => Some((alone, decides)),
            };
        }
        Some(least.map(|(_, decides)| decides))
    }

    /// Returns the order of two immediates.
    fn immediates(&mut self, a: T, b: T) -> Option<Ordering> {
        match (a.immediate(), b.immediate()) {
            (Some(x), Some(y)) if are_small(x, y) => Some((x as i64).cmp(&(y as i64))),
            _ => self.scalars((a, a.kind()), (b, b.kind())),
        }
    }

    /// Returns the indices of the keys of a map in sorted order.
    fn key_order(&mut self, terms: &[T]) -> Option<Vec<usize>> {
        let small = |term: &T| term.immediate().filter(|word| are_small(*word, *word));
        let words: Option<Vec<_>> = terms.iter().map(small).collect();
        let Some(words) = words else {
            return Some(self.sorted(terms)?.order);
        };
        self.spend(words.len())?;
        let mut order: Vec<_> = (0..words.len()).collect();
        order.sort_unstable_by_key(|&i| words[i] as i64);
        Some(order)
    }

    /// Sorts the keys of a map.
    fn sorted(&mut self, terms: &[T]) -> Option<Sorted> {
        let comparisons = terms.len() * terms.len().ilog2() as usize;
        self.spend(comparisons)?;
        let (mut bytes, mut keys) = (Vec::new(), Vec::with_capacity(terms.len()));
        for &term in terms {
            let start = bytes.len();
            self.write(term, &mut bytes, true)?;
            keys.push(start..bytes.len());
        }
        let mut order: Vec<_> = (0..terms.len()).collect();
        order.sort_unstable_by(|&i, &j| bytes[keys[i].clone()].cmp(&bytes[keys[j].clone()]));
        Some(Sorted { bytes, keys, order })
    }

    /// Appends the order key of a term.
    fn write(&mut self, term: T, out: &mut Vec<u8>, is_exact: bool) -> Option<()> {
        let mut order = Order::new(self.zeros);
        if is_exact {
            order.map_keys(Boundary::Enter);
        }
        let most = self.left.saturating_mul(BYTES_PER_STEP);
        match keys::write(term, &mut order, out, most) {
            Some(work) => self.spend(work / BYTES_PER_STEP),
            None => self.spend(usize::MAX),
        }
    }

    /// Compares two terms by their keys.
    #[cold]
    fn by_keys(&mut self, a: T, b: T) -> Option<Ordering> {
        let (mut a_key, mut b_key) = (Vec::new(), Vec::new());
        let is_exact = self.is_exact();
        self.write(a, &mut a_key, is_exact)?;
        self.write(b, &mut b_key, is_exact)?;
        Some(a_key.cmp(&b_key))
    }

    /// Compares two terms that are not both lists, tuples, maps or bitstrings.
    fn scalars(
        &mut self,
        (a, a_kind): (T, Kind<T>),
        (b, b_kind): (T, Kind<T>),
    ) -> Option<Ordering> {
        let order = class(&a_kind).cmp(&class(&b_kind));
        if order.is_ne() {
            return Some(order);
        }
        Some(match (a_kind, b_kind) {
            (Kind::Int(a), Kind::Int(b)) => a.cmp(&b),
            (Kind::Float(a), Kind::Float(b)) => self.floats(a, b),
            (Kind::Int(_) | Kind::Big, Kind::Float(_)) if self.is_exact() => Ordering::Less,
            (Kind::Float(_), Kind::Int(_) | Kind::Big) if self.is_exact() => Ordering::Greater,
            (Kind::Int(a), Kind::Float(b)) if is_float(a) => self.floats(a as f64, b),
            (Kind::Float(a), Kind::Int(b)) if is_float(b) => self.floats(a, b as f64),
            (Kind::Big, Kind::Big) => {
                let bytes = a.with_big(|_, a| a.len());
                self.spend(bytes / BYTES_PER_STEP)?;
                a.with_big(|a_negative, a| {
                    b.with_big(|b_negative, b| big_integers((a_negative, a), (b_negative, b)))
                })
            }
            (Kind::Big, Kind::Int(_)) => beyond(a),
            (Kind::Int(_), Kind::Big) => beyond(b).reverse(),
            (Kind::Big, Kind::Float(_)) if is_beyond_floats(a) => beyond(a),
            (Kind::Float(_), Kind::Big) if is_beyond_floats(b) => beyond(b).reverse(),
            (Kind::Atom, Kind::Atom) => a.with_atom(|a| b.with_atom(|b| a.cmp(b))),
            (Kind::Nil, Kind::Nil) => Ordering::Equal,
            _ => return self.by_keys(a, b),
        })
    }

    fn floats(&self, a: f64, b: f64) -> Ordering {
        match (self.is_exact(), self.zeros) {
            (true, Zeros::Distinct) => a.total_cmp(&b),
            // Adding zero turns -0.0 into 0.0.
            _ => (a + 0.0).total_cmp(&(b + 0.0)),
        }
    }
}

/// Keys of a map, sorted.
struct Sorted {
    bytes: Vec<u8>,
    /// Ranges of the keys in `bytes`, in the order the map shows them.
    keys: Vec<Range<usize>>,
    /// Indices of the keys in sorted order.
    order: Vec<usize>,
}

impl Sorted {
    /// Returns the keys in order.
    fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.order
            .iter()
            .map(|&i| &self.bytes[self.keys[i].clone()])
    }
}

/// Returns `true` if both words are those of small integers.
fn are_small(a: u64, b: u64) -> bool {
    a & b & 0xF == 0xF
}

fn are_same_immediate<T: TermRef>(a: T, b: T) -> bool {
    matches!((a.immediate(), b.immediate()), (Some(a), Some(b)) if a == b)
}

/// Returns `true` if there is a float with exactly this value.
fn is_float(value: i64) -> bool {
    value.unsigned_abs() <= EXACT_FLOAT
}

/// Compares an integer of more than 64 bits with a number nearer to zero.
fn beyond<T: TermRef>(big: T) -> Ordering {
    big.with_big(|negative, _| {
        if negative {
            Ordering::Less
        } else {
            Ordering::Greater
        }
    })
}

/// Returns `true` if this integer of more than 64 bits is farther from zero than every float.
fn is_beyond_floats<T: TermRef>(big: T) -> bool {
    big.with_big(|_, magnitude| magnitude.len() > MAX_FLOAT_BYTES)
}

/// Compares two integers given as sign and magnitude.
fn big_integers((a_negative, a): (bool, &[u8]), (b_negative, b): (bool, &[u8])) -> Ordering {
    let magnitudes = || {
        a.len()
            .cmp(&b.len())
            .then_with(|| a.iter().rev().cmp(b.iter().rev()))
    };
    match (a_negative, b_negative) {
        (false, false) => magnitudes(),
        (true, true) => magnitudes().reverse(),
        _ => b_negative.cmp(&a_negative),
    }
}

/// Returns the class of a term of this kind.
fn class<T>(kind: &Kind<T>) -> Class {
    match kind {
        Kind::Int(_) | Kind::Big | Kind::Float(_) => Class::Number,
        Kind::Atom => Class::Atom,
        Kind::Ref => Class::Reference,
        Kind::LocalFun | Kind::ExternalFun => Class::Fun,
        Kind::Port => Class::Port,
        Kind::Pid => Class::Pid,
        Kind::Tuple(_) => Class::Tuple,
        Kind::Opaque => Class::Record,
        Kind::Map(_) => Class::Map,
        Kind::Nil => Class::Nil,
        Kind::Cons(..) => Class::Cons,
        Kind::Bits(_) => Class::Bitstring,
    }
}
