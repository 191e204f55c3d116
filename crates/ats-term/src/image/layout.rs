//! Bits of slots and headers; see the [module](super) for the picture.

/// Tag of a tuple box.
pub(super) const TUPLE: u8 = 0x01;
/// Tag of a list box.
pub(super) const LIST: u8 = 0x02;
/// Tag of a map box.
pub(super) const MAP: u8 = 0x03;
/// Tag of a float box.
pub(super) const FLOAT: u8 = 0x04;
/// Tag of a box for an integer that is not small.
pub(super) const BIG: u8 = 0x05;
/// Tag of a bitstring box.
pub(super) const BITS: u8 = 0x06;
/// Tag of the word before each object of an object list. No slot has these low bits, so the first
/// word distinguishes a list from an object.
pub(super) const OBJECT: u8 = 0x08;
/// Tag of the first word of a value that is an object with [cells](super::form).
pub(super) const WITH_CELLS: u8 = 0x0C;
/// Tag of the first word of a [packed](super::packed) object whose stream begins in the same word.
pub(super) const PACKED: u8 = 0x10;
/// Tag of the first word of a packed object whose stream takes the next `n` words, followed by host
/// boxes.
pub(super) const PACKED_WITH: u8 = 0x14;
/// Tag of the first word of a value whose objects are kept elsewhere.
pub(super) const LARGE: u8 = 0x18;
/// Tag of a word before the first word of a value.
pub(super) const NOTE: u8 = 0x1C;
/// The lowest tag of host boxes.
pub(super) const HOST: u8 = 0x80;
/// The lowest tag of host boxes that own a resource.
pub(super) const HOST_OWNING: u8 = 0xC0;

const BOX_BITS: u64 = 0b10;

/// Returns `true` if a slot is an immediate. Only meaningful for slots.
pub(super) const fn is_immediate(slot: u64) -> bool {
    slot & 0b11 == 0b11
}

/// Returns the slot of the box at `offset`.
pub(super) const fn box_slot(offset: usize) -> u64 {
    (offset as u64) << 2 | BOX_BITS
}

/// Returns the offset in the slot of a box.
pub(super) const fn slot_offset(slot: u64) -> usize {
    debug_assert!(slot & 0b11 == BOX_BITS);
    (slot >> 2) as usize
}

/// Returns a header word.
pub(super) const fn header(tag: u8, n: usize) -> u64 {
    (n as u64) << 8 | tag as u64
}

/// Returns the tag of a header.
pub(super) const fn header_tag(header: u64) -> u8 {
    header as u8
}

/// Returns the `n` of a header.
pub(super) const fn header_n(header: u64) -> usize {
    (header >> 8) as usize
}

/// Returns the number of elements of the object with this image. O(number of elements).
///
/// The slots of the elements end where the first box begins (IMAGE-1), and the first slot that
/// refers to a box refers to that one (IMAGE-2). Without boxes, all words are slots.
pub(super) fn arity(object: &[u64]) -> usize {
    let of_box = object.iter().find(|slot| !is_immediate(**slot));
    of_box.map_or(object.len(), |slot| slot_offset(*slot))
}

/// Returns the number of words between the header of a box and the next header.
pub(super) const fn content_words(header: u64) -> usize {
    let n = header_n(header);
    match header_tag(header) {
        LIST => n + 1,
        MAP => 2 * n,
        BIG => (n >> 1).div_ceil(8),
        BITS => n.div_ceil(64),
        _ => n,
    }
}

/// Returns the offset of the first box of an object, packed or not, or of an object list.
fn boxes_begin(words: &[u64]) -> usize {
    match words.first().copied().map(header_tag) {
        Some(OBJECT | PACKED_WITH) => 0,
        Some(PACKED) => words.len(),
        _ => arity(words),
    }
}

/// Returns the offsets of all boxes of an object, packed or not, or of an object list, in order.
/// O(number of elements and boxes). For a packed object these are its stream (as one box) and its
/// host boxes.
pub(super) fn boxes(words: &[u64]) -> impl Iterator<Item = usize> {
    boxes_from(words, boxes_begin(words))
}

/// Returns the offsets of the boxes from `at` on, which must be the start of a box or of an object
/// of a list, or the end of the words.
///
/// By IMAGE-1, each header follows the content of the box before. O(number of boxes).
pub(super) fn boxes_from(words: &[u64], mut at: usize) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        loop {
            let head = *words.get(at)?;
            let this = at;
            at += 1;
            if header_tag(head) != OBJECT {
                at += content_words(head);
                return Some(this);
            }
            at += boxes_begin(&words[at..at + header_n(head)]);
        }
    })
}

/// Appends bytes in memory order, padded with zeros to a whole word.
pub(super) fn push_bytes(words: &mut Vec<u64>, bytes: &[u8]) {
    let (whole, rest) = bytes.as_chunks::<8>();
    words.extend(whole.iter().map(|chunk| u64::from_ne_bytes(*chunk)));
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        words.push(u64::from_ne_bytes(last));
    }
}

/// Returns the first `len` bytes of words written by [`push_bytes`].
pub(super) fn bytes_of(words: &[u64], len: usize) -> &[u8] {
    assert!(len <= size_of_val(words), "image: bytes beyond the box");
    // SAFETY: the pointer and the length stay within `words` (asserted above), every byte of which
    // is initialized, and `u8` needs no alignment; the result borrows `words`.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), len) }
}
