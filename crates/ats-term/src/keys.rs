//! The walk behind [order keys](crate::order) and [exact keys](crate::exact).
//!
//! Both kinds of keys are written depth first: what a format writes for a compound term, then its
//! parts. Maps are the difficulty, since their keys must be sorted by bytes that are not known yet.
//! So the keys are written as they come, and when all of them are there, their bytes are put in
//! order where they lie, and the values follow in that order. A key that is itself a map is finished
//! by then.
//!
//! The walk keeps its own stack. The first few levels need no heap, so that usual keys are made
//! without allocating anything but the output.

use std::ops::Range;

use crate::term::Term;
use crate::walk::{FunIdent, Kind, TermRef};

/// What a kind of key writes for each term, without the parts of compound terms.
pub(crate) trait Format {
    /// Writes a term that is an immediate word.
    fn immediate<T: TermRef>(&mut self, term: T, word: u64, out: &mut Vec<u8>);
    /// Writes a term that is neither compound nor a local fun.
    fn scalar<T: TermRef>(&mut self, term: T, kind: Kind<T>, out: &mut Vec<u8>);
    /// Begins a tuple.
    fn tuple(&mut self, arity: usize, out: &mut Vec<u8>);
    /// Begins a list cell.
    fn cons(&mut self, out: &mut Vec<u8>);
    /// Begins a map.
    fn map(&mut self, pairs: usize, out: &mut Vec<u8>);
    /// Begins a local fun.
    fn local_fun(&mut self, fun: &FunIdent<'_>, out: &mut Vec<u8>);
    /// Told before the first and after the last of the keys of a map. Calls nest.
    fn map_keys(&mut self, boundary: Boundary);
    /// Told before the first and after the last of the captured values of a fun. Calls nest.
    fn captured(&mut self, boundary: Boundary);
}

/// One of the two ends of a part of a term that is written in a way of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    Enter,
    Leave,
}

/// Appends the key of a term. O(size), except that the keys of maps are sorted and may be moved
/// once for each map around them.
pub(crate) fn write<T: TermRef, F: Format>(term: T, format: &mut F, out: &mut Vec<u8>) {
    if let Some(word) = term.immediate() {
        return format.immediate(term, word, out);
    }
    Walk {
        stack: Stack::new(),
        maps: Vec::new(),
        format,
        out,
    }
    .run(term);
}

/// A compound term whose parts are not all written yet.
#[derive(Clone, Copy)]
enum Frame<T> {
    /// The elements of a tuple from `next` on, at least one.
    Elements { tuple: T, next: usize, arity: usize },
    /// The tail of a list cell.
    Tail(T),
    /// The captured values of a fun from `next` on.
    Captured { fun: T, next: usize, count: usize },
    /// The keys of the innermost unfinished map.
    Keys,
    /// The values of the innermost unfinished map.
    Values,
}

/// A map that is being written.
struct Map<T> {
    pairs: Vec<(T, T)>,
    /// Where in the output each key that was begun starts.
    starts: Vec<usize>,
    /// The next pair whose key or value is to be written.
    next: usize,
}

struct Walk<'a, T, F> {
    stack: Stack<Frame<T>>,
    maps: Vec<Map<T>>,
    format: &'a mut F,
    out: &'a mut Vec<u8>,
}

impl<T: TermRef, F: Format> Walk<'_, T, F> {
    fn run(mut self, term: T) {
        let mut current = Some(term);
        while let Some(term) = current {
            current = match term.immediate() {
                Some(word) => {
                    self.format.immediate(term, word, self.out);
                    self.next()
                }
                None => self.begin(term).or_else(|| self.next()),
            };
        }
    }

    /// Writes a term as far as possible without the stack. Returns the part to go on with, having
    /// noted what follows it.
    fn begin(&mut self, term: T) -> Option<T> {
        match term.kind() {
            Kind::Tuple(arity) => {
                self.format.tuple(arity, self.out);
                self.elements(term, 0, arity)
            }
            Kind::Cons(head, tail) => Some(self.list(head, tail)),
            Kind::Map(pairs) => {
                self.begin_map(term, pairs);
                None
            }
            Kind::LocalFun => {
                self.begin_fun(term);
                None
            }
            kind => {
                self.format.scalar(term, kind, self.out);
                None
            }
        }
    }

    /// Writes the elements of a tuple from `next` on up to the first that is no immediate, which it
    /// returns.
    fn elements(&mut self, tuple: T, next: usize, arity: usize) -> Option<T> {
        for i in next..arity {
            let element = tuple.element(i);
            match element.immediate() {
                Some(word) => self.format.immediate(element, word, self.out),
                None => {
                    // A finished tuple needs no frame, so nesting in last elements takes no room.
                    if i + 1 < arity {
                        let next = i + 1;
                        self.stack.push(Frame::Elements { tuple, next, arity });
                    }
                    return Some(element);
                }
            }
        }
        None
    }

    /// Writes a list up to its first head that is no immediate, or to its end. Returns that head or
    /// the last tail.
    fn list(&mut self, mut head: T, mut tail: T) -> T {
        loop {
            self.format.cons(self.out);
            match head.immediate() {
                Some(word) => self.format.immediate(head, word, self.out),
                None => {
                    self.stack.push(Frame::Tail(tail));
                    return head;
                }
            }
            if tail.immediate().is_some() {
                return tail;
            }
            match tail.kind() {
                Kind::Cons(next_head, next_tail) => (head, tail) = (next_head, next_tail),
                _ => return tail,
            }
        }
    }

    fn begin_map(&mut self, term: T, count: usize) {
        self.format.map(count, self.out);
        if count == 0 {
            return;
        }
        let mut pairs = Vec::with_capacity(count);
        term.map_pairs(&mut pairs);
        self.maps.push(Map {
            pairs,
            starts: Vec::with_capacity(count),
            next: 0,
        });
        self.stack.push(Frame::Keys);
        self.format.map_keys(Boundary::Enter);
    }

    fn begin_fun(&mut self, term: T) {
        let in_place = term.captured(0).is_some();
        let count = term.with_fun(|fun| {
            self.format.local_fun(&fun, self.out);
            self.format.captured(Boundary::Enter);
            let FunIdent::Local { free, .. } = fun else {
                return 0;
            };
            if !in_place {
                // This nests calls only once: captured values are owned terms, whose funs can be
                // walked in place.
                free.iter()
                    .for_each(|value: &Term| write(value, self.format, self.out));
            }
            free.len()
        });
        let next = if in_place { 0 } else { count };
        self.stack.push(Frame::Captured {
            fun: term,
            next,
            count,
        });
    }

    /// The next part to be written; `None` if the key is complete.
    fn next(&mut self) -> Option<T> {
        loop {
            match self.stack.top()? {
                Frame::Elements { tuple, next, arity } => {
                    let (tuple, next, arity) = (*tuple, *next, *arity);
                    self.stack.pop();
                    if let Some(element) = self.elements(tuple, next, arity) {
                        return Some(element);
                    }
                }
                Frame::Tail(tail) => {
                    let tail = *tail;
                    self.stack.pop();
                    return Some(tail);
                }
                Frame::Captured { fun, next, count } => {
                    if *next < *count
                        && let Some(value) = fun.captured(*next)
                    {
                        *next += 1;
                        return Some(value);
                    }
                    self.stack.pop();
                    self.format.captured(Boundary::Leave);
                }
                Frame::Keys => {
                    if let Some(key) = self.next_key() {
                        return Some(key);
                    }
                    self.stack.pop();
                    self.stack.push(Frame::Values);
                }
                Frame::Values => {
                    if let Some(value) = self.next_value() {
                        return Some(value);
                    }
                    self.stack.pop();
                    self.maps.pop();
                }
            }
        }
    }

    /// The next key of the innermost map. When there is none, its keys are put in order.
    fn next_key(&mut self) -> Option<T> {
        let map = self.maps.last_mut()?;
        if let Some(&(key, _)) = map.pairs.get(map.next) {
            map.starts.push(self.out.len());
            map.next += 1;
            return Some(key);
        }
        sort_keys(map, self.out);
        map.next = 0;
        self.format.map_keys(Boundary::Leave);
        None
    }

    fn next_value(&mut self) -> Option<T> {
        let map = self.maps.last_mut()?;
        let &(_, value) = map.pairs.get(map.next)?;
        map.next += 1;
        Some(value)
    }
}

/// Sorts the keys of a map, which are the end of the output, and its pairs alike.
fn sort_keys<T: Copy>(map: &mut Map<T>, out: &mut Vec<u8>) {
    let Some(&first) = map.starts.first() else {
        return;
    };
    let end = |i: usize| map.starts.get(i + 1).copied().unwrap_or(out.len());
    let mut keys: Vec<(Range<usize>, T, T)> = (map.pairs.iter().enumerate())
        .map(|(i, &(key, value))| (map.starts[i]..end(i), key, value))
        .collect();
    if keys.is_sorted_by(|a, b| out[a.0.clone()] <= out[b.0.clone()]) {
        return;
    }
    keys.sort_by(|a, b| out[a.0.clone()].cmp(&out[b.0.clone()]));
    let mut sorted = Vec::with_capacity(out.len() - first);
    map.pairs.clear();
    for (bytes, key, value) in keys {
        sorted.extend_from_slice(&out[bytes]);
        map.pairs.push((key, value));
    }
    out.truncate(first);
    out.append(&mut sorted);
}

/// A stack whose lowest few entries need no heap.
struct Stack<F> {
    lowest: [Option<F>; INLINE_LEVELS],
    /// Number of entries in `lowest`; the others are in `rest`, which is empty unless it is full.
    used: usize,
    rest: Vec<F>,
}

const INLINE_LEVELS: usize = 4;

impl<F: Copy> Stack<F> {
    fn new() -> Stack<F> {
        Stack {
            lowest: [None; INLINE_LEVELS],
            used: 0,
            rest: Vec::new(),
        }
    }

    fn push(&mut self, frame: F) {
        match self.lowest.get_mut(self.used) {
            Some(slot) => {
                *slot = Some(frame);
                self.used += 1;
            }
            None => self.rest.push(frame),
        }
    }

    fn top(&mut self) -> Option<&mut F> {
        if self.rest.is_empty() {
            self.lowest[self.used.checked_sub(1)?].as_mut()
        } else {
            self.rest.last_mut()
        }
    }

    fn pop(&mut self) {
        if self.rest.pop().is_none() {
            self.used = self.used.saturating_sub(1);
        }
    }
}
