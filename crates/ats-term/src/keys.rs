//! The walk behind [order keys](crate::order) and [exact keys](crate::exact).
//!
//! Both kinds of keys are written depth first: the head of a compound term, then its parts. Maps
//! are the difficulty, because their keys must be sorted by bytes that are not known yet. So the
//! keys are first written unsorted; once all are written, they are sorted, and the values follow in
//! that order. A key that is itself a map is finished by then. Bytes are moved only for maps that
//! are not inside keys of other maps; for those inside, only the order is recorded, see [`folds`].
//!
//! A walk counts its *work*: a byte written or moved counts one, and so does a byte compared, or
//! eight bytes compared if no map is involved. A walk stops when its work exceeds the limit.
//!
//! The walk keeps its own stack. The first few levels need no heap, so that usual keys are made
//! without any allocation but the output.

mod folds;
mod recorder;
mod sorting;
mod stack;

pub(crate) use recorder::{MapRecorder, NoRecorder};
use sorting::{COMPARISON, Map, Sorting};
pub(crate) use stack::Stack;

use crate::term::Term;
use crate::term_ref::{FunIdent, Kind, Opaque, TermRef};

/// The bytes that a kind of key has for each term, apart from the parts of compound terms.
pub(crate) trait Format {
    /// Writes a term that is an immediate word.
    fn immediate<T: TermRef>(&mut self, term: T, word: u64, out: &mut Vec<u8>);
    /// Writes a term that is neither compound nor a local fun nor opaque.
    fn scalar<T: TermRef>(&mut self, term: T, kind: Kind<T>, out: &mut Vec<u8>);
    /// Begins a tuple.
    fn tuple(&mut self, arity: usize, out: &mut Vec<u8>);
    /// Begins a list cell.
    fn cons(&mut self, out: &mut Vec<u8>);
    /// Begins a map.
    fn map(&mut self, pairs: usize, out: &mut Vec<u8>);
    /// Begins a local fun.
    fn local_fun(&mut self, fun: &FunIdent<'_>, out: &mut Vec<u8>);
    /// Begins a native record, or writes another opaque term.
    fn opaque(&mut self, opaque: &Opaque<'_>, out: &mut Vec<u8>);
    /// Handles the boundary before the first or after the last key of a map. Calls nest.
    fn map_keys(&mut self, boundary: Boundary);
    /// Handles the boundary before the first or after the last captured value of a fun, or value of
    /// a native record. Calls nest.
    fn note_boundary(&mut self, boundary: Boundary);
}

/// An end of a part of a term that is written differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Boundary {
    Enter,
    Leave,
}

/// Appends the key of a term, and returns the work done. Returns `None`, and appends nothing, if
/// that exceeds about `most`. At most O(n log n) work, where n is the size of the term.
pub(crate) fn write<T: TermRef, F: Format>(
    term: T,
    format: &mut F,
    out: &mut Vec<u8>,
    most: usize,
) -> Option<usize> {
    write_recorded(term, format, out, most, &mut NoRecorder)
}

/// Appends the key like [`write()`], and reports the maps to `record`, except those captured by
/// funs.
pub(crate) fn write_recorded<T: TermRef, F: Format, R: MapRecorder<T>>(
    term: T,
    format: &mut F,
    out: &mut Vec<u8>,
    most: usize,
    record: &mut R,
) -> Option<usize> {
    let start = out.len();
    if let Some(word) = term.immediate() {
        format.immediate(term, word, out);
        return Some(out.len() - start);
    }
    let mut walk = Walk {
        stack: Stack::new(),
        sorting: None,
        keys_around: 0,
        captured: 0,
        work: 0,
        limit: start.saturating_add(most),
        record,
        format,
        out,
    };
    if walk.run(term) {
        return Some(walk.out.len() - start + walk.work);
    }
    walk.out.truncate(start);
    None
}

/// A compound term with parts still to be written.
#[derive(Clone, Copy)]
enum Frame<T> {
    /// The elements of a tuple from `next` on, at least one.
    Elements { tuple: T, next: usize, arity: usize },
    /// The tail of a list cell.
    Tail(T),
    /// The captured values of a fun, or the values of a native record, from `next` on.
    Captured { of: T, next: usize, count: usize },
    /// The keys of the innermost unfinished map.
    Keys,
    /// The values of the innermost unfinished map.
    Values,
}

struct Walk<'a, T, F, R: MapRecorder<T>> {
    stack: Stack<Frame<T>>,
    /// Allocated at the first map: most terms have none.
    sorting: Option<Box<Sorting<T, R::Mark>>>,
    /// Number of maps whose keys are being written.
    keys_around: usize,
    /// Number of funs whose captured values are being written.
    captured: usize,
    /// The work besides writing, and the length that the output may then have.
    work: usize,
    limit: usize,
    record: &'a mut R,
    format: &'a mut F,
    out: &'a mut Vec<u8>,
}

/// Largest number of pairs that are sorted by insertion.
const FLAT_PAIRS: usize = 16;

impl<T: TermRef, F: Format, R: MapRecorder<T>> Walk<'_, T, F, R> {
    /// Returns `true` if the work exceeds the limit, or would with this much more.
    #[inline]
    fn is_over(&self, more: usize) -> bool {
        self.out
            .len()
            .saturating_add(self.work.saturating_add(more))
            > self.limit
    }

    /// Writes the term. Returns `false` if that exceeds the limit.
    fn run(&mut self, term: T) -> bool {
        let mut current = Some(term);
        while let Some(term) = current {
            if self.is_over(0) {
                return false;
            }
            current = match term.immediate() {
                Some(word) => {
                    self.format.immediate(term, word, self.out);
                    self.next()
                }
                None => self.begin(term).or_else(|| self.next()),
            };
        }
        !self.is_over(0)
    }

    /// Writes a term as far as possible without the stack. Returns the part to continue with, after
    /// pushing the work that follows it.
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
            Kind::Opaque => {
                self.begin_opaque(term);
                None
            }
            // Bitstrings can be long, and all their bytes are written at once.
            Kind::Bits(bits) if self.is_over(bits / 8) => self.give_up(),
            kind => {
                self.format.scalar(term, kind, self.out);
                None
            }
        }
    }

    /// Stops the walk because the limit is exceeded.
    #[cold]
    fn give_up(&mut self) -> Option<T> {
        self.work = usize::MAX;
        None
    }

    /// Writes the elements of a tuple from `next` on, up to the first that is no immediate, which
    /// it returns.
    fn elements(&mut self, tuple: T, next: usize, arity: usize) -> Option<T> {
        for i in next..arity {
            let element = tuple.element(i);
            match element.immediate() {
                Some(_) if self.is_over(0) => return self.give_up(),
                Some(word) => self.format.immediate(element, word, self.out),
                None => {
                    // A finished tuple needs no frame, so nesting in last elements uses no stack.
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
                Some(_) if self.is_over(0) => return head,
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
        if self.is_over(2 * count) {
            self.give_up();
            return;
        }
        if count <= FLAT_PAIRS {
            let mut pairs = Vec::with_capacity(count);
            term.map_pairs(&mut pairs);
            if pairs.iter().all(|(key, _)| key.immediate().is_some()) {
                self.begin_flat_map(term, pairs);
                return;
            }
        }
        let sorting = self.sorting.get_or_insert_default();
        let first = sorting.pairs.len();
        term.map_pairs(&mut sorting.pairs);
        let mark = self.record.mark();
        sorting.marks.resize(sorting.pairs.len(), (mark, mark));
        let is_recorded = self.captured == 0;
        if is_recorded {
            self.record.begin(term);
        }
        let is_within_key = self.keys_around > 0;
        sorting.maps.push(Map {
            first,
            end: sorting.pairs.len(),
            next: first,
            fold: is_within_key.then(|| sorting.folds.begin(self.out.len())),
            begun: is_recorded.then_some(mark),
        });
        self.stack.push(Frame::Keys);
        self.keys_around += 1;
        self.format.map_keys(Boundary::Enter);
    }

    /// Begins a map whose keys are immediates, and ends it if its values are, too. Such keys are
    /// short, so their bytes are moved at once, even inside a key of another map.
    fn begin_flat_map(&mut self, term: T, mut pairs: Vec<(T, T)>) {
        let begun = (self.captured == 0).then(|| {
            let mark = self.record.mark();
            self.record.begin(term);
            mark
        });
        self.write_flat_keys(&mut pairs);
        let mark = self.record.mark();
        let marks = vec![(mark, mark); pairs.len()];
        if pairs.iter().all(|(_, value)| value.immediate().is_some()) {
            for (_, value) in &pairs {
                if let Some(word) = value.immediate() {
                    self.format.immediate(*value, word, self.out);
                }
            }
            if let Some(begun) = begun {
                self.record.end(begun, &pairs, &marks);
            }
            return;
        }
        let sorting = self.sorting.get_or_insert_default();
        let first = sorting.pairs.len();
        sorting.pairs.append(&mut pairs);
        sorting.marks.extend(marks);
        sorting.maps.push(Map {
            first,
            end: sorting.pairs.len(),
            next: first,
            fold: None,
            begun,
        });
        self.stack.push(Frame::Values);
    }

    /// Writes keys that are immediates in the order of their bytes, and sorts the pairs alike.
    fn write_flat_keys(&mut self, pairs: &mut [(T, T)]) {
        self.format.map_keys(Boundary::Enter);
        let start = self.out.len();
        let mut ranges = [(0, 0); FLAT_PAIRS];
        let ranges = &mut ranges[..pairs.len()];
        for ((key, _), range) in pairs.iter().zip(ranges.iter_mut()) {
            let from = self.out.len();
            if let Some(word) = key.immediate() {
                self.format.immediate(*key, word, self.out);
            }
            *range = (from, self.out.len());
        }
        self.format.map_keys(Boundary::Leave);
        let bytes = |range: (usize, usize)| &self.out[range.0..range.1];
        let mut comparisons = 0;
        let mut is_sorted = true;
        for i in 1..ranges.len() {
            for at in (1..=i).rev() {
                comparisons += 1;
                if bytes(ranges[at - 1]) <= bytes(ranges[at]) {
                    break;
                }
                ranges.swap(at - 1, at);
                pairs.swap(at - 1, at);
                is_sorted = false;
            }
        }
        self.work = self.work.saturating_add(COMPARISON * comparisons);
        if !is_sorted {
            let end = self.out.len();
            for (from, to) in ranges {
                self.out.extend_from_within(*from..*to);
            }
            self.out.copy_within(end.., start);
            self.out.truncate(end);
        }
    }

    fn begin_fun(&mut self, term: T) {
        let next = term.with_fun(|fun| {
            self.format.local_fun(&fun, self.out);
            match fun {
                FunIdent::Local { free, .. } => self.begin_captured(term, free),
                FunIdent::External { .. } => self.begin_captured(term, &[]),
            }
        });
        self.stack.push(next);
    }

    fn begin_opaque(&mut self, term: T) {
        let next = term.with_opaque(|opaque| {
            self.format.opaque(&opaque, self.out);
            match opaque {
                Opaque::Record { values, .. } => self.begin_captured(term, values),
                Opaque::Unknown(_) => self.begin_captured(term, &[]),
            }
        });
        self.stack.push(next);
    }

    /// Begins the values in a fun or a native record, and writes them if they cannot be walked in
    /// place.
    fn begin_captured(&mut self, of: T, values: &[Term]) -> Frame<T> {
        self.format.note_boundary(Boundary::Enter);
        self.captured += 1;
        let count = values.len();
        if of.captured_value(0).is_some() {
            return Frame::Captured { of, next: 0, count };
        }
        let most = self.limit.saturating_sub(self.out.len());
        // The recursion has depth one: the values are owned terms, whose own captured values can be
        // walked in place.
        let mut values = values.iter();
        if !values.all(|value| write(value, self.format, self.out, most).is_some()) {
            self.give_up();
        }
        let next = count;
        Frame::Captured { of, next, count }
    }

    /// Returns the next part to be written; `None` if the key is complete.
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
                Frame::Captured { of, next, count } => {
                    if *next < *count
                        && let Some(value) = of.captured_value(*next)
                    {
                        *next += 1;
                        return Some(value);
                    }
                    self.stack.pop();
                    self.captured -= 1;
                    self.format.note_boundary(Boundary::Leave);
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
                    self.end_map();
                }
            }
        }
    }

    /// Returns the next key of the innermost map. After the last one, sorts its keys.
    fn next_key(&mut self) -> Option<T> {
        let sorting = self.sorting.as_deref_mut()?;
        let map = sorting.maps.last_mut()?;
        if map.next < map.end {
            sorting.starts.push((self.out.len(), sorting.folds.len()));
            sorting.marks[map.next].0 = self.record.mark();
            map.next += 1;
            return Some(sorting.pairs[map.next - 1].0);
        }
        map.next = map.first;
        self.keys_around -= 1;
        self.format.map_keys(Boundary::Leave);
        if !sorting.sort_keys(self.out, &mut self.work, self.limit) {
            return self.give_up();
        }
        None
    }

    fn next_value(&mut self) -> Option<T> {
        let sorting = self.sorting.as_deref_mut()?;
        let map = sorting.maps.last_mut()?;
        if map.next == map.end {
            return None;
        }
        sorting.marks[map.next].1 = self.record.mark();
        map.next += 1;
        Some(sorting.pairs[map.next - 1].1)
    }

    fn end_map(&mut self) {
        let Some(sorting) = self.sorting.as_deref_mut() else {
            return;
        };
        let Some(map) = sorting.maps.pop() else {
            return;
        };
        if let Some(begun) = map.begun {
            let (pairs, marks) = (&sorting.pairs[map.first..], &sorting.marks[map.first..]);
            self.record.end(begun, pairs, marks);
        }
        sorting.pairs.truncate(map.first);
        sorting.marks.truncate(map.first);
    }
}
