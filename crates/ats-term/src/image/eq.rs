//! Equality (`=:=`) of two images.

use super::host::{Host, HostBox, HostKind, HostTag};
use super::layout::{
    BITS, FLOAT, HOST, LIST, MAP, TUPLE, arity, bytes_of, content_words, header_n, header_tag,
    is_immediate, slot_offset,
};
use super::object::Object;
use super::view::ImageRef;
use crate::Zeros;

/// Returns `true` if two objects are the same term (`=:=`); `zeros` is the rule for 0.0 and -0.0.
///
/// O(smaller size), no allocation, no recursion. Equal words are equal terms, so for most calls a
/// `memcmp` suffices. Otherwise the images are compared box by box: by IMAGE-2 and IMAGE-3 the
/// images of equal terms have the same boxes in the same order, although not always at the same
/// offsets, because a host may use different numbers of words for equal terms.
pub fn image_eq<H: Host>(a: Object<'_, H>, b: Object<'_, H>, zeros: Zeros) -> bool {
    let (a, b) = (a.words(), b.words());
    if a == b {
        return true;
    }
    let (mut at_a, mut at_b) = (arity(a), arity(b));
    if at_a != at_b || !same_slots(&a[..at_a], &b[..at_b]) {
        return false;
    }
    while at_a < a.len() && at_b < b.len() {
        let (box_a, box_b) = (RawBox::at(a, at_a), RawBox::at(b, at_b));
        if !same_box::<H>(box_a, box_b, zeros) {
            return false;
        }
        at_a += 1 + box_a.content.len();
        at_b += 1 + box_b.content.len();
    }
    at_a == a.len() && at_b == b.len()
}

/// Returns `true` if two terms, of the same or of different images, are the same term (`=:=`);
/// `zeros` is the rule for 0.0 and -0.0.
///
/// O(smaller size), no allocation, no recursion. By IMAGE-2 the boxes of a term are contiguous, so
/// the walk is that of [`image_eq`]; it ends when all boxes that slots refer to have been compared.
pub fn term_eq<H: Host>(a: ImageRef<'_, H>, b: ImageRef<'_, H>, zeros: Zeros) -> bool {
    let mut left = usize::MAX;
    term_eq_within(a, b, zeros, &mut left).expect("image: no limit")
}

/// Compares like [`term_eq`], but gives up after about `left` steps and returns `None`. Subtracts
/// its steps from `left`. For callers with limited time. A step is a box, or 8 words, and takes up
/// to 10 ns.
pub fn term_eq_within<H: Host>(
    a: ImageRef<'_, H>,
    b: ImageRef<'_, H>,
    zeros: Zeros,
    left: &mut usize,
) -> Option<bool> {
    if is_immediate(a.slot) || is_immediate(b.slot) {
        return Some(a.slot == b.slot);
    }
    let (slots_a, slots_b) = match (a.top_slots(), b.top_slots()) {
        (Some((tag_a, a)), Some((tag_b, b))) if tag_a == tag_b => (a, b),
        (None, None) => return same_box_within::<H>(RawBox::of(a), RawBox::of(b), zeros, left),
        _ => return Some(false),
    };
    if slots_a.len() != slots_b.len() {
        return Some(false);
    }
    spend(slots_a.len() / WORDS_PER_STEP, left)?;
    if !same_slots(slots_a, slots_b) {
        return Some(false);
    }
    let (Some(mut at_a), Some(mut at_b)) = (first_box(slots_a), first_box(slots_b)) else {
        return Some(true);
    };
    let mut missing = count_boxes(slots_a);
    while missing > 0 {
        let (box_a, box_b) = (RawBox::at(a.words, at_a), RawBox::at(b.words, at_b));
        if !same_box_within::<H>(box_a, box_b, zeros, left)? {
            return Some(false);
        }
        missing -= 1;
        if matches!(box_a.tag(), TUPLE | LIST | MAP) {
            missing += count_boxes(box_a.content);
        }
        at_a += 1 + box_a.content.len();
        at_b += 1 + box_b.content.len();
    }
    Some(true)
}

/// Number of words that count as one step.
const WORDS_PER_STEP: usize = 8;

/// Takes steps; returns `None` if fewer are left.
#[inline]
fn spend(steps: usize, left: &mut usize) -> Option<()> {
    *left = left.checked_sub(steps)?;
    Some(())
}

/// Compares like [`same_box`], with a limit of steps.
#[inline]
fn same_box_within<H: Host>(
    a: RawBox<'_>,
    b: RawBox<'_>,
    zeros: Zeros,
    left: &mut usize,
) -> Option<bool> {
    let words = |of: RawBox<'_>| match of.host::<H>().map(H::kind) {
        Some(HostKind::Bits(bits)) => bits / 64,
        _ => of.content.len(),
    };
    spend(1 + words(a).min(words(b)) / WORDS_PER_STEP, left)?;
    Some(same_box::<H>(a, b, zeros))
}

/// Returns the offset of the first box that a slot refers to.
fn first_box(slots: &[u64]) -> Option<usize> {
    let slot = slots.iter().find(|slot| !is_immediate(**slot));
    slot.map(|slot| slot_offset(*slot))
}

/// Counts the slots that refer to boxes.
fn count_boxes(slots: &[u64]) -> usize {
    slots.iter().filter(|slot| !is_immediate(**slot)).count()
}

#[derive(Clone, Copy)]
struct RawBox<'a> {
    header: u64,
    content: &'a [u64],
}

impl<'a> RawBox<'a> {
    /// Returns the box of a term that has one.
    fn of<H: Host>(term: ImageRef<'a, H>) -> Self {
        Self::at(term.words, slot_offset(term.slot))
    }

    fn at(words: &'a [u64], at: usize) -> Self {
        let header = words[at];
        Self {
            header,
            content: &words[at + 1..at + 1 + content_words(header)],
        }
    }

    fn tag(self) -> u8 {
        header_tag(self.header)
    }

    fn host<H: Host>(self) -> Option<HostBox<'a, H>> {
        Some(HostBox::new(HostTag::from_byte(self.tag())?, self.content))
    }
}

/// Returns `true` if two boxes are equal, provided that the boxes they refer to are compared, too.
#[expect(clippy::float_cmp, reason = "equality of terms is exact")]
fn same_box<H: Host>(a: RawBox<'_>, b: RawBox<'_>, zeros: Zeros) -> bool {
    match (a.tag(), b.tag()) {
        (TUPLE | LIST | MAP, _) => a.header == b.header && same_slots(a.content, b.content),
        (FLOAT, FLOAT) => {
            let (x, y) = (f64::from_bits(a.content[0]), f64::from_bits(b.content[0]));
            x.to_bits() == y.to_bits() || (zeros == Zeros::Same && x == y)
        }
        (BITS, HOST..) => same_bits::<H>(a, b),
        (HOST.., BITS) => same_bits::<H>(b, a),
        (HOST.., HOST..) => {
            a.header == b.header && a.content == b.content
                || match (a.host::<H>(), b.host::<H>()) {
                    (Some(a), Some(b)) => H::same(a, b),
                    _ => false,
                }
        }
        _ => a.header == b.header && a.content == b.content,
    }
}

/// Compares slots: equal are the same immediates, and any two boxes, because the order of the boxes
/// (IMAGE-2), which the lockstep compares, determines which box a slot refers to.
fn same_slots(a: &[u64], b: &[u64]) -> bool {
    a.iter()
        .zip(b)
        .all(|(&x, &y)| x == y || (!is_immediate(x) && !is_immediate(y)))
}

/// Compares a bitstring in the image with one that the host keeps.
fn same_bits<H: Host>(inline: RawBox<'_>, other: RawBox<'_>) -> bool {
    let bits = header_n(inline.header);
    let Some(host_box) = other.host::<H>() else {
        return false;
    };
    H::kind(host_box) == HostKind::Bits(bits)
        && H::with_bits(host_box, |bytes| {
            bytes == bytes_of(inline.content, bits.div_ceil(8))
        })
}
