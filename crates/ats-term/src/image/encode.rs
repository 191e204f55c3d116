//! Conversion of terms to images.

use super::draft::{Built, Draft, KEEP};
use super::host::{HostKind, HostTerm};
use super::layout::{BIG, BITS, FLOAT, LIST, MAP, TUPLE, box_slot, header, header_tag, push_bytes};
use super::map_order::MapSorter;
use super::object::{ImageBox, Object};
use crate::Zeros;
use crate::immediate::small_word;
use crate::term_ref::Kind;

/// The reason why a term has no image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoImage {
    /// The term is not a tuple, so it cannot be an object.
    NotATuple,
    /// The image would exceed its limit of words.
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
/// huge object are freed when the next object begins. The builder owns its object until [`take`]
/// hands it over. An object that was not taken is released when the next one begins or the builder
/// is dropped. So an error, a panic or an abandoned object leaks nothing.
///
/// [`take`]: ImageBuilder::take
pub struct ImageBuilder<T: HostTerm> {
    pub(super) draft: Draft<T::Host>,
    /// Boxes that slots refer to but that are not written yet. The last is next.
    todo: Vec<Todo<T>>,
    sorter: MapSorter<T>,
    zeros: Zeros,
    /// Number of the next map among those that the sorter recorded, inside a key that contains
    /// maps.
    next_map: Option<usize>,
    /// Approximate limit for the words of the draft; the flag is `true` once it is exceeded. The
    /// cost of sorting counts as words.
    pub(super) most: usize,
    pub(super) is_too_large: bool,
}

/// A term whose box must be written, and the slot that refers to it; or, if the slot has [`MARK`],
/// the next value of `next_map`.
struct Todo<T> {
    term: T,
    slot: usize,
}

/// Flag that no slot has. The other bits are the number of a recorded map, or all set.
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
    /// Creates a builder without buffers; does not allocate. `zeros` decides which floats are the
    /// same map key, and must be equal for all images that are compared with each other.
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
    /// plus sorting if all map keys are immediates.
    pub fn encode_object(&mut self, object: T) -> Result<(), NoImage> {
        self.encode_object_within(object, usize::MAX)
    }

    /// Encodes an object like [`encode_object`](ImageBuilder::encode_object), but gives up after
    /// about `most` steps. A step is a word of the image, or a similar amount of work while map
    /// keys are sorted. Intended for callers that must return quickly.
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

    /// Returns the object that was built last. Panics if there is none, or if it was taken.
    pub fn object(&self) -> Object<'_, T::Host> {
        self.draft.object()
    }

    /// Returns the number of steps since the object was begun, counted as in
    /// [`encode_object_within`](ImageBuilder::encode_object_within).
    pub fn steps(&self) -> usize {
        self.draft.words.len().saturating_add(self.sorter.work)
    }

    /// Returns `true` if the image owns a resource of the host.
    pub fn owns(&self) -> bool {
        self.draft.owns()
    }

    /// Hands over the object. The words stay in place until the builder is used again. Panics if
    /// there is no object, or if it was taken already.
    pub fn take(&mut self) -> Built<'_, T::Host> {
        self.draft.take()
    }

    /// Releases an object that was built but not taken.
    pub fn discard(&mut self) {
        self.draft.discard();
        self.todo.clear();
        self.todo.shrink_to(KEEP);
        self.sorter.trim(KEEP);
        self.next_map = None;
        self.most = usize::MAX;
        self.is_too_large = false;
    }

    /// Does a [`discard`](ImageBuilder::discard) if the builder holds resources, or buffers that a
    /// huge object has blown up. Meant to be called after each use, so that a cached builder keeps
    /// nothing alive.
    #[inline]
    pub fn tidy(&mut self) {
        // The other buffers have hardly more entries than there were words.
        let is_large = self.draft.words.capacity() > KEEP || self.sorter.bytes() > 8 * KEEP;
        if is_large || self.draft.owns() {
            self.discard_all();
        }
    }

    #[cold]
    fn discard_all(&mut self) {
        self.discard();
    }

    /// Returns the builder for terms of another type of the same host, with its buffer of words.
    ///
    /// A builder of borrowed terms is bound to their lifetime; this lets a long-lived variable keep
    /// the buffer: store it as `ImageBuilder<&'static Term>`, and recycle it for each call.
    pub fn recycle<U: HostTerm<Host = T::Host>>(mut self) -> ImageBuilder<U> {
        self.draft.discard();
        self.with_terms()
    }

    /// Returns the builder for terms of another type of the same host, with the object it has
    /// built.
    pub fn with_terms<U: HostTerm<Host = T::Host>>(self) -> ImageBuilder<U> {
        ImageBuilder {
            draft: self.draft,
            ..ImageBuilder::new(self.zeros)
        }
    }

    /// Writes the pending boxes, each followed by everything below it (IMAGE-2).
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

    /// Returns `true` if the draft may grow by this number of words. After a refusal, the draft is
    /// not finished.
    #[inline]
    fn has_room(&mut self, words: usize) -> bool {
        self.is_too_large |= self.steps().saturating_add(words) > self.most;
        !self.is_too_large
    }

    /// Fills `slot` with a term: at once if it is immediate, else when its box is written.
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

    /// Writes the box of a term and makes `slot` refer to it.
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
        let words = &mut self.draft.words;
        words.reserve(arity);
        if tuple
            .with_flat_tuple(|all| words.extend_from_slice(all))
            .is_some()
        {
            return;
        }
        let mark = self.todo.len();
        for element in tuple.elements(arity) {
            self.push(element);
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

    /// Writes a map that is outside all map keys, or in a key that was not sorted because it was
    /// the only one that is no immediate.
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
            if has_maps {
                // The mark leads to the sorted order of the maps in the key.
                self.push_marked(key, self.sorter.key_mark(i));
            } else {
                self.push(key);
            }
        }
        if has_maps {
            self.todo.push(Todo::mark(map, None));
        }
        for i in 0..len {
            self.push(self.sorter.pairs()[i].1);
        }
    }

    /// Writes a map inside a map key; its keys were sorted together with those of the outer map.
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

    /// Writes an integer of 64 bits for `slot`: into the slot itself if it is small (IMAGE-4).
    pub(super) fn write_integer(&mut self, slot: usize, value: i64) {
        match small_word(value) {
            Some(word) => self.draft.words[slot] = word,
            None => self.write_magnitude(slot, value < 0, &value.unsigned_abs().to_le_bytes()),
        }
    }

    /// Writes an integer of any size for `slot`. The magnitude may have leading zeros.
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

/// Writes a term to a box of an image that has another term of the same kind and the same number of
/// words. Does nothing and returns `false` if the term is of another kind or size. Only floats and
/// bitstrings can be written. O(words of the box).
pub fn overwrite_leaf<T: HostTerm>(words: &mut [u64], leaf: ImageBox, term: T) -> bool {
    let (head, content) = words[leaf.at..][..=leaf.len]
        .split_first_mut()
        .expect("image: a box has a header");
    match (header_tag(*head), term.kind()) {
        (FLOAT, Kind::Float(value)) => content[0] = value.to_bits(),
        (BITS, Kind::Bits(bits)) if bits <= T::LARGE_BITS && bits.div_ceil(64) == leaf.len => {
            *head = header(BITS, bits);
            term.with_bits(|bytes| {
                for (word, bytes) in content.iter_mut().zip(bytes.chunks(8)) {
                    let mut padded = [0; 8];
                    padded[..bytes.len()].copy_from_slice(bytes);
                    *word = u64::from_ne_bytes(padded);
                }
            });
        }
        _ => return false,
    }
    true
}

/// A magnitude without its leading zeros.
fn strip(magnitude: &[u8]) -> &[u8] {
    let len = magnitude
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    &magnitude[..len]
}
