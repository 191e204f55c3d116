//! Conversion of images to terms of another representation.
//!
//! A sink takes the parts of a term before the term, so the walk is in postorder. It keeps its own
//! stack, because terms can be nested deeper than the machine stack allows.

use super::host::{Host, HostSink};
use super::layout::{
    LIST, MAP, TUPLE, content_words, header_n, header_tag, is_immediate, slot_offset,
};
use super::object::Object;
use super::view::{ImageRef, View, WHOLE};

/// Stacks of a decoder, kept between calls to save their allocation.
pub struct Scratch<T> {
    values: Vec<T>,
    frames: Vec<Frame>,
}

/// A tuple, list or map whose slots are being decoded. Finished values are on the stack of values,
/// outer frames on the stack of frames.
struct Frame {
    tag: u8,
    /// The slot to decode next, and the end of the slots of the box.
    next: usize,
    end: usize,
    /// Start of the values of this box on the stack of values.
    values: usize,
}

/// Number of entries above which a stack is freed after the call.
const KEEP: usize = 1 << 12;

impl<T> Scratch<T> {
    /// Creates empty stacks. Does not allocate.
    pub const fn new() -> Self {
        Self {
            values: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// Frees stacks that a huge term has blown up. Meant to be called after each use.
    #[inline]
    pub fn tidy(&mut self) {
        if self.values.capacity().max(self.frames.capacity()) > KEEP {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.values.clear();
        self.values.shrink_to(KEEP);
        self.frames.clear();
        self.frames.shrink_to(KEEP);
    }
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Builds a whole object. O(size), no allocation besides those of the sink once `scratch` is warm.
///
/// A caller that can build a tuple directly from words of immediates should try
/// [`all_immediate`](super::all_immediate) first.
pub fn decode_object<H: Host, S: HostSink<H>>(
    object: Object<'_, H>,
    sink: &mut S,
    scratch: &mut Scratch<S::Term>,
) -> S::Term {
    decode(object.term(), sink, scratch)
}

/// Builds element `i` of an object, counted from 0. O(size of the element), O(1) if it is
/// immediate. Panics if the object has no such element.
pub fn decode_element<H: Host, S: HostSink<H>>(
    object: Object<'_, H>,
    i: usize,
    sink: &mut S,
    scratch: &mut Scratch<S::Term>,
) -> S::Term {
    decode(object.element(i), sink, scratch)
}

/// Builds a term. O(size), not recursive.
pub fn decode<H: Host, S: HostSink<H>>(
    term: ImageRef<'_, H>,
    sink: &mut S,
    scratch: &mut Scratch<S::Term>,
) -> S::Term {
    if is_immediate(term.slot) {
        return sink.immediate(term.slot);
    }
    if let Some(words) = flat_tuple(term) {
        return sink.tuple_of_immediates(words);
    }
    scratch.clear();
    let Scratch { values, frames } = scratch;
    let Some(mut frame) = open(term, 0) else {
        return leaf(term, sink);
    };
    loop {
        let slots = &term.words[frame.next..frame.end];
        let immediates = slots.iter().take_while(|slot| is_immediate(**slot));
        let before = values.len();
        values.extend(immediates.map(|&slot| sink.immediate(slot)));
        frame.next += values.len() - before;
        let value = if frame.next < frame.end {
            let slot = ImageRef::new(term.words, term.words[frame.next]);
            if let Some(words) = flat_tuple(slot) {
                sink.tuple_of_immediates(words)
            } else if let Some(inner) = open(slot, values.len()) {
                frames.push(std::mem::replace(&mut frame, inner));
                continue;
            } else {
                leaf(slot, sink)
            }
        } else {
            let value = build(frame.tag, &values[frame.values..], sink);
            values.truncate(frame.values);
            match frames.pop() {
                Some(outer) => frame = outer,
                None => return value,
            }
            value
        };
        values.push(value);
        frame.next += 1;
    }
}

/// Returns the elements of a tuple of immediates, like most tuples in objects: building it needs no
/// stack.
#[inline]
fn flat_tuple<H: Host>(term: ImageRef<'_, H>) -> Option<&[u64]> {
    let words = term.tuple()?.words();
    words
        .iter()
        .all(|word| is_immediate(*word))
        .then_some(words)
}

/// Returns the frame of a term that has slots.
fn open<H: Host>(term: ImageRef<'_, H>, values: usize) -> Option<Frame> {
    if is_immediate(term.slot) {
        return None;
    }
    if term.slot == WHOLE {
        return (term.from > 0).then_some(Frame {
            tag: TUPLE,
            next: 0,
            end: term.from,
            values,
        });
    }
    let at = slot_offset(term.slot);
    let header = term.words[at];
    let tag = header_tag(header);
    let has_slots = matches!(tag, TUPLE | LIST | MAP) && header_n(header) > 0;
    has_slots.then(|| {
        let start = at + 1;
        Frame {
            tag,
            next: start + term.from,
            end: start + content_words(header),
            values,
        }
    })
}

/// Builds a term without slots.
fn leaf<H: Host, S: HostSink<H>>(term: ImageRef<'_, H>, sink: &mut S) -> S::Term {
    match term.view() {
        View::Immediate(_) => sink.immediate(term.slot),
        View::Float(value) => sink.float(value),
        View::Big {
            negative,
            magnitude,
        } => sink.big(negative, magnitude),
        View::Bits { bytes, bits } => sink.bits(bytes, bits),
        View::Host(host_box) => sink.host_box(host_box),
        View::Tuple(_) => build(TUPLE, &[], sink),
        View::Map { .. } => build(MAP, &[], sink),
        View::List { .. } => unreachable!("a list box has at least the slot of its tail"),
    }
}

fn build<S: crate::term_ref::TermSink>(tag: u8, parts: &[S::Term], sink: &mut S) -> S::Term {
    match tag {
        TUPLE => sink.tuple(parts),
        MAP => {
            let (keys, values) = parts.split_at(parts.len() / 2);
            sink.map(keys, values)
        }
        _ => {
            let (&tail, elements) = parts
                .split_last()
                .expect("image: a list box without a tail");
            sink.list(elements, tail)
        }
    }
}
