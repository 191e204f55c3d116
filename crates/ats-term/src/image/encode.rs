//! From terms to an image.

use super::draft::{Built, Draft, KEEP};
use super::host::{HostKind, HostTerm};
use super::layout::{BIG, BITS, FLOAT, LIST, MAP, TUPLE, box_slot, header, push_bytes};
use super::map_order::MapSorter;
use super::object::Object;
use crate::Zeros;
use crate::immediate::small_word;
use crate::term_ref::Kind;

/// The reason why there is no image of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoImage {
    /// It is not a tuple, so it cannot be an object.
    NotATuple,
    /// It takes more words than it may.
    TooLarge,
}

impl std::fmt::Display for NoImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NoImage::NotATuple => "not a tuple",
            NoImage::TooLarge => "too large",
        })
    }
}

impl std::error::Error for NoImage {}

/// Builds the images of objects, one after the other.
///
/// A builder keeps its buffers, so that a warm one does not allocate. Buffers that grew for one
/// huge object are freed when the next object is begun. The builder owns what it built until
/// [`take`] hands it over. An object that was not taken is released when the next one is begun or
/// the builder is dropped. So an error, a panic or an abandoned object leaks nothing.
///
/// [`take`]: ImageBuilder::take
pub struct ImageBuilder<T: HostTerm> {
    pub(super) draft: Draft<T::Host>,
    /// Boxes that the draft refers to but does not hold yet. The last is next.
    todo: Vec<Todo<T>>,
    sorter: MapSorter<T>,
    zeros: Zeros,
    /// The number of the next map in those that the sorter recorded, within a key that holds maps.
    next_map: Option<usize>,
    /// The words that the draft may have, about, and whether it has come to their end. The cost of
    /// sorting counts as words.
    pub(super) most: usize,
    pub(super) is_too_large: bool,
}

/// A term whose box must be written, and the slot that refers to it; or, where the slot has
/// [`MARK`], what `next_map` becomes.
struct Todo<T> {
    term: T,
    slot: usize,
}

/// No slot has this bit. The others are the number of a recorded map, or all of them are set.
const MARK: usize = 1 << (usize::BITS - 1);

impl<T> Todo<T> {
    fn mark(term: T, next_map: Option<usize>) -> Self {
        Todo {
            term,
            slot: MARK | next_map.unwrap_or(usize::MAX),
        }
    }
}

impl<T: HostTerm> ImageBuilder<T> {
    /// A builder without buffers; does not allocate. `zeros` says which floats are one map key and
    /// must be the same for all images that are compared with each other.
    pub const fn new(zeros: Zeros) -> Self {
        Self {
            draft: Draft::new(),
            todo: Vec::new(),
            sorter: MapSorter::new(),
            zeros,
            next_map: None,
            most: usize::MAX,
            is_too_large: false,
        }
    }

    /// Builds the image of a tuple. O(n log n) at most, where n is the size of the term, and O(n)
    /// if keys of maps are immediates, but for sorting them.
    pub fn encode_object(&mut self, object: T) -> Result<(), NoImage> {
        self.encode_object_within(object, usize::MAX)
    }

    /// Does what [`encode_object`](ImageBuilder::encode_object) does, but gives up if that takes
    /// more than about `most` steps. Each word of the image is one step. Work of about the same
    /// duration while the keys of maps are sorted is one step, too. Intended for callers that must
    /// return quickly.
    pub fn encode_object_within(&mut self, object: T, most: usize) -> Result<(), NoImage> {
        let Kind::Tuple(arity) = object.kind() else {
            return Err(NoImage::NotATuple);
        };
        self.discard();
        self.most = most;
        self.write_elements(object, arity);
        self.write_todo();
        if self.is_too_large {
            self.discard();
            return Err(NoImage::TooLarge);
        }
        self.draft.finish();
        Ok(())
    }

    /// The object that was built last. Panics if there is none, or if it was taken.
    pub fn object(&self) -> Object<'_, T::Host> {
        self.draft.object()
    }

    /// The number of steps since the object was begun, as
    /// [`encode_object_within`](ImageBuilder::encode_object_within) counts them.
    pub fn steps(&self) -> usize {
        self.draft.words.len().saturating_add(self.sorter.work)
    }

    /// Returns `true` if the image owns a resource of the host.
    pub fn owns(&self) -> bool {
        self.draft.owns()
    }

    /// Hands over what was built. The words stay where they are until the builder is used again.
    /// Panics if there is nothing, or if it was taken already.
    pub fn take(&mut self) -> Built<'_, T::Host> {
        self.draft.take()
    }

    /// Gives back what was built and not taken.
    pub fn discard(&mut self) {
        self.draft.discard();
        self.todo.clear();
        self.todo.shrink_to(KEEP);
        self.sorter.trim(KEEP);
        self.next_map = None;
        self.most = usize::MAX;
        self.is_too_large = false;
    }

    /// Does what [`discard`](ImageBuilder::discard) does, if there is something to be given back:
    /// resources, or buffers that one huge object blew up. For after each use, so that a builder
    /// that is kept keeps nothing alive.
    #[inline]
    pub fn tidy(&mut self) {
        // The other buffers have at most about as many entries as there were words.
        let is_large = self.draft.words.capacity() > KEEP || self.sorter.bytes() > 8 * KEEP;
        if is_large || self.draft.owns() {
            self.discard_all();
        }
    }

    #[cold]
    fn discard_all(&mut self) {
        self.discard();
    }

    /// The same builder for terms of another type of the same host, with the buffer of its words.
    ///
    /// A builder of borrowed terms is bound to their lifetime; this lets a long-lived place keep
    /// the buffer: park it as `ImageBuilder<&'static Term>`, recycle it for each call.
    pub fn recycle<U: HostTerm<Host = T::Host>>(mut self) -> ImageBuilder<U> {
        self.draft.discard();
        self.with_terms()
    }

    /// The same builder for terms of another type of the same host, with what it has built.
    pub fn with_terms<U: HostTerm<Host = T::Host>>(self) -> ImageBuilder<U> {
        ImageBuilder {
            draft: self.draft,
            ..ImageBuilder::new(self.zeros)
        }
    }

    /// Writes the boxes that are still to be written, each followed by everything below it
    /// (IMAGE-2).
    pub(super) fn write_todo(&mut self) {
        while let Some(Todo { term, slot }) = self.todo.pop() {
            if slot & MARK != 0 {
                self.next_map = (slot != usize::MAX).then_some(slot & !MARK);
                continue;
            }
            self.write_box(term, slot);
            if !self.has_room(0) {
                break;
            }
        }
    }

    /// Returns `true` if the draft may have this number of words more. Once it may not, the draft
    /// is not finished.
    #[inline]
    fn has_room(&mut self, words: usize) -> bool {
        self.is_too_large |= self.steps().saturating_add(words) > self.most;
        !self.is_too_large
    }

    /// Fills `slot` with a term: at once if it is immediate, else when its turn comes.
    pub(super) fn fill(&mut self, slot: usize, term: T) {
        match term.immediate() {
            Some(word) => self.draft.words[slot] = word,
            None => self.todo.push(Todo { term, slot }),
        }
    }

    /// Appends a slot for a term.
    fn push(&mut self, term: T) {
        match term.immediate() {
            Some(word) => self.draft.words.push(word),
            None => {
                self.todo.push(Todo {
                    term,
                    slot: self.draft.words.len(),
                });
                self.draft.words.push(0);
            }
        }
    }

    /// Writes the box of a term and lets `slot` refer to it.
    fn write_box(&mut self, term: T, slot: usize) {
        self.draft.words[slot] = box_slot(self.draft.words.len());
        match term.kind() {
            Kind::Tuple(arity) => {
                self.draft.words.push(header(TUPLE, arity));
                self.write_elements(term, arity);
            }
            Kind::Cons(head, tail) => self.write_list(head, tail),
            Kind::Map(len) => self.write_map(term, len),
            Kind::Bits(bits) => self.write_bits(term, bits),
            Kind::Float(value) => self.write_float(value),
            Kind::Int(value) => self.write_integer(slot, value),
            Kind::Big => {
                term.with_big(|negative, magnitude| self.write_big(slot, negative, magnitude));
            }
            Kind::Pid => self.write_identity(term, HostKind::Pid),
            Kind::Port => self.write_identity(term, HostKind::Port),
            Kind::Ref => self.write_identity(term, HostKind::Ref),
            Kind::LocalFun => self.write_identity(term, HostKind::LocalFun),
            Kind::ExternalFun => self.write_identity(term, HostKind::ExternalFun),
            Kind::Opaque => self.write_identity(term, HostKind::Opaque),
            Kind::Atom | Kind::Nil => unreachable!("atoms and nil are immediates"),
        }
    }

    fn write_elements(&mut self, tuple: T, arity: usize) {
        if !self.has_room(arity) {
            return;
        }
        self.draft.words.reserve(arity);
        let mark = self.todo.len();
        for i in 0..arity {
            self.push(tuple.element(i));
        }
        self.todo[mark..].reverse();
    }

    fn write_list(&mut self, mut head: T, mut tail: T) {
        let at = self.draft.words.len();
        self.draft.words.push(0);
        let mark = self.todo.len();
        loop {
            self.push(head);
            if tail.immediate().is_some() || !self.has_room(0) {
                break;
            }
            let Kind::Cons(next, rest) = tail.kind() else {
                break;
            };
            (head, tail) = (next, rest);
        }
        self.draft.words[at] = header(LIST, self.draft.words.len() - at - 1);
        self.push(tail);
        self.todo[mark..].reverse();
    }

    fn write_map(&mut self, map: T, len: usize) {
        if !self.has_room(2 * len) {
            return;
        }
        let mark = self.todo.len();
        self.draft.words.reserve(1 + 2 * len);
        self.draft.words.push(header(MAP, len));
        if len == 0 {
            return;
        }
        match self.next_map {
            Some(number) => self.write_recorded_map(map, number),
            None => self.write_unrecorded_map(map, len),
        }
        self.todo[mark..].reverse();
    }

    /// Writes a map that is in no key of another, or in one that was not sorted because it is the
    /// only one that is no immediate.
    fn write_unrecorded_map(&mut self, map: T, len: usize) {
        let left = self.most.saturating_sub(self.steps());
        if self.sorter.sort(map, self.zeros, left).is_none() {
            self.is_too_large = true;
            return;
        }
        debug_assert_eq!(self.sorter.pairs().len(), len);
        let has_maps = self.sorter.has_maps_in_keys();
        for i in 0..len {
            let (key, _) = self.sorter.pairs()[i];
            match has_maps {
                false => self.push(key),
                // This tells where the maps in the key find how they are sorted.
                true => self.push_marked(key, self.sorter.key_mark(i)),
            }
        }
        if has_maps {
            self.todo.push(Todo::mark(map, None));
        }
        for i in 0..len {
            self.push(self.sorter.pairs()[i].1);
        }
    }

    /// Writes a map in a key of another, the keys of which were sorted together with that one.
    fn write_recorded_map(&mut self, map: T, number: usize) {
        let (pairs, end) = self.sorter.recorded.map(number);
        for i in pairs.clone() {
            let pair = self.sorter.recorded.pair(i);
            self.push_marked(pair.key, pair.marks.0);
        }
        for i in pairs {
            let pair = self.sorter.recorded.pair(i);
            self.push_marked(pair.value, pair.marks.1);
        }
        self.todo.push(Todo::mark(map, Some(end)));
    }

    fn push_marked(&mut self, term: T, next_map: usize) {
        if term.immediate().is_none() {
            self.todo.push(Todo::mark(term, Some(next_map)));
        }
        self.push(term);
    }

    fn write_float(&mut self, value: f64) {
        self.draft.words.extend([header(FLOAT, 1), value.to_bits()]);
    }

    /// Writes an integer of 64 bits where `slot` refers to: to the slot itself if it is small
    /// (IMAGE-4).
    pub(super) fn write_integer(&mut self, slot: usize, value: i64) {
        match small_word(value) {
            Some(word) => self.draft.words[slot] = word,
            None => self.write_magnitude(slot, value < 0, &value.unsigned_abs().to_le_bytes()),
        }
    }

    /// Writes an integer of any size where `slot` refers to. The magnitude may have leading zeros.
    pub(super) fn write_big(&mut self, slot: usize, negative: bool, magnitude: &[u8]) {
        match super::view::i64_of_big(negative, strip(magnitude)) {
            Some(value) => self.write_integer(slot, value),
            None => self.write_magnitude(slot, negative, magnitude),
        }
    }

    fn write_magnitude(&mut self, slot: usize, negative: bool, magnitude: &[u8]) {
        let magnitude = strip(magnitude);
        self.draft.words[slot] = box_slot(self.draft.words.len());
        self.draft
            .words
            .push(header(BIG, magnitude.len() << 1 | usize::from(negative)));
        push_bytes(&mut self.draft.words, magnitude);
    }

    fn write_bits(&mut self, term: T, bits: usize) {
        let host_takes = |words: &mut Vec<u64>| term.write_large_bits(bits, words);
        if bits > T::LARGE_BITS && self.draft.write_host(host_takes) {
            return;
        }
        if !self.has_room(bits.div_ceil(64)) {
            return;
        }
        self.draft.words.push(header(BITS, bits));
        term.with_bits(|bytes| push_bytes(&mut self.draft.words, &bytes[..bits.div_ceil(8)]));
    }

    fn write_identity(&mut self, term: T, kind: HostKind) {
        self.draft
            .write_host(|words| Some(term.write_identity(kind, words)));
    }
}

/// A magnitude without its leading zeros.
fn strip(magnitude: &[u8]) -> &[u8] {
    let len = magnitude
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    &magnitude[..len]
}
