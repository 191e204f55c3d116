//! Conversion of images to streams.

use super::super::draft::Built;
use super::super::draft::KEEP;
use super::super::host::{Host, HostTag};
use super::super::layout::{
    BIG, BITS, FLOAT, LIST, MAP, PACKED, PACKED_WITH, TUPLE, arity, boxes, bytes_of, content_words,
    header, header_n, header_tag, is_immediate, push_bytes, slot_offset,
};
use super::code::{self, LONG, TAG_IS_FIRST};
use crate::immediate::{Immediate, NIL};
use std::ops::Range;

/// A packer of objects, which keeps its buffers.
#[derive(Debug, Default)]
pub struct Packer {
    /// The tag, and the stream after it.
    pub(super) bytes: Vec<u8>,
    /// Slots of outer boxes that are still to be packed.
    around: Vec<Range<usize>>,
    words: Vec<u64>,
}

impl Packer {
    /// Creates a packer without buffers. Does not allocate.
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            around: Vec::new(),
            words: Vec::new(),
        }
    }

    /// Frees buffers that a huge object has blown up. Meant to be called once the packed words were
    /// copied.
    pub fn tidy(&mut self) {
        let words = self.words.capacity().max(self.around.capacity());
        if self.bytes.capacity() > 8 * KEEP || words > KEEP {
            *self = Packer::new();
        }
    }

    /// Packs an object if that makes it smaller, else returns it unchanged. The returned words own
    /// the resources of the given ones; their [`Form`](super::super::Form) tells which case it is.
    /// O(size).
    ///
    /// Panics for an object list.
    pub fn pack<'a, H: Host>(&'a mut self, built: Built<'a, H>) -> Built<'a, H> {
        assert!(!built.is_list(), "image: an object list is no object");
        let image = built.words();
        if u32::try_from(image.len()).is_err() {
            return built;
        }
        self.bytes.clear();
        self.bytes.shrink_to(8 * KEEP);
        self.bytes.push(PACKED);
        self.write(image);
        self.assemble(image);
        if self.words.len() < image.len() {
            Built::object(&self.words, built.owns())
        } else {
            built
        }
    }

    /// Assembles the words from the stream and the host boxes of the image.
    fn assemble(&mut self, image: &[u64]) {
        self.words.clear();
        self.words.shrink_to(KEEP);
        let mut host_boxes = host_boxes(image).peekable();
        if TAG_IS_FIRST && host_boxes.peek().is_none() {
            push_bytes(&mut self.words, &self.bytes);
            return;
        }
        let stream = &self.bytes[1..];
        self.words
            .push(header(PACKED_WITH, stream.len().div_ceil(8)));
        push_bytes(&mut self.words, stream);
        host_boxes.for_each(|host_box| self.words.extend_from_slice(host_box));
    }

    /// Writes the stream of an image.
    fn write(&mut self, image: &[u64]) {
        let arity = arity(image);
        self.write_short_count(code::TUPLE, arity);
        self.around.clear();
        self.around.shrink_to(KEEP);
        let mut slots = 0..arity;
        loop {
            let Some(slot) = slots.next() else {
                match self.around.pop() {
                    Some(waiting) => slots = waiting,
                    None => return,
                }
                continue;
            };
            let slot = image[slot];
            if is_immediate(slot) {
                self.write_immediate(slot);
            } else if let Some(below) = self.write_box(image, slot_offset(slot)) {
                // A box that has no slots left is not kept, so a chain of last slots takes no
                // memory.
                let waiting = std::mem::replace(&mut slots, below);
                if !waiting.is_empty() {
                    self.around.push(waiting);
                }
            }
        }
    }

    /// Writes the box at `at` without the terms below it, whose slots are returned.
    fn write_box(&mut self, image: &[u64], at: usize) -> Option<Range<usize>> {
        let (head, start) = (image[at], at + 1);
        let n = header_n(head);
        let content = &image[start..start + content_words(head)];
        match header_tag(head) {
            TUPLE => self.write_short_count(code::TUPLE, n),
            LIST => return self.write_list(content, start),
            MAP => self.write_count(code::MAP, n),
            FLOAT => {
                self.write_float(content[0]);
                return None;
            }
            tag => {
                self.write_leaf(tag, n, content);
                return None;
            }
        }
        Some(start..start + content.len())
    }

    /// Writes a list without the terms below it, whose slots are returned. `content` is the slots
    /// of the elements, the first one at `start`, and the slot of the tail.
    fn write_list(&mut self, content: &[u64], start: usize) -> Option<Range<usize>> {
        let (&tail, elements) = content.split_last()?;
        let n = elements.len();
        if tail != NIL {
            self.write_count(code::IMPROPER, n);
            return Some(start..start + n + 1);
        }
        if elements.iter().any(|&slot| slot & !0xFF0 != 0xF) {
            self.write_short_count(code::LIST, n);
            return Some(start..start + n);
        }
        self.write_count(code::STRING, n);
        self.bytes
            .extend(elements.iter().map(|&slot| (slot >> 4) as u8));
        None
    }

    fn write_leaf(&mut self, tag: u8, n: usize, content: &[u64]) {
        match tag {
            BIG => {
                self.write_count(code::BIG, n);
                self.bytes.extend_from_slice(bytes_of(content, n >> 1));
            }
            BITS => {
                if n.is_multiple_of(8) {
                    self.write_count(code::BINARY, n / 8);
                } else {
                    self.write_count(code::BITS, n);
                }
                self.bytes
                    .extend_from_slice(bytes_of(content, n.div_ceil(8)));
            }
            _ => self.bytes.push(code::HOST),
        }
    }

    fn write_immediate(&mut self, word: u64) {
        match Immediate::from_word(word) {
            Some(Immediate::Small(value)) => self.write_small(value),
            Some(Immediate::Atom(number)) if number < 1 << 11 => {
                self.write_split(code::ATOM_11, number, 1);
            }
            Some(Immediate::Atom(number)) if number < 1 << 19 => {
                self.write_split(code::ATOM_19, number, 2);
            }
            Some(Immediate::Nil) => self.bytes.push(code::NIL),
            _ => self.write_number(code::WORD, word),
        }
    }

    fn write_small(&mut self, value: i64) {
        let zigzag = (value << 1 ^ value >> 63) as u64;
        match zigzag {
            _ if (0..128).contains(&value) => self.bytes.push(value as u8),
            0..0x2000 => self.write_split(code::INT_13, zigzag, 1),
            0x2000..0x20_0000 => self.write_split(code::INT_21, zigzag, 2),
            _ => self.write_number(code::INT, zigzag),
        }
    }

    fn write_float(&mut self, bits: u64) {
        let width = significant_bytes(bits.swap_bytes());
        self.bytes.push(code::FLOAT + width as u8 - 1);
        self.write_low_bytes(bits >> (64 - 8 * width), width);
    }

    /// Writes a number whose high bits are in its code and the others in `width` bytes after it.
    fn write_split(&mut self, code: u8, number: u64, width: usize) {
        self.bytes.push(code + (number >> (8 * width)) as u8);
        self.write_low_bytes(number, width);
    }

    /// Writes a number with one of eight codes for its width.
    fn write_number(&mut self, code: u8, number: u64) {
        let width = significant_bytes(number);
        self.bytes.push(code + width as u8 - 1);
        self.write_low_bytes(number, width);
    }

    fn write_low_bytes(&mut self, number: u64, width: usize) {
        self.bytes.extend_from_slice(&number.to_le_bytes()[..width]);
    }

    fn write_count(&mut self, code: u8, mut count: usize) {
        self.bytes.push(code);
        while count >= 0x80 {
            self.bytes.push(count as u8 | 0x80);
            count >>= 7;
        }
        self.bytes.push(count as u8);
    }

    fn write_short_count(&mut self, code: u8, count: usize) {
        match count.checked_sub(LONG) {
            None => self.bytes.push(code + count as u8),
            Some(more) => self.write_count(code + LONG as u8, more),
        }
    }
}

/// Returns the number of bytes of a number without leading zeros, at least 1.
fn significant_bytes(number: u64) -> usize {
    (8 - number.leading_zeros() as usize / 8).max(1)
}

/// Returns the host boxes of an image with their headers, in order.
fn host_boxes(image: &[u64]) -> impl Iterator<Item = &[u64]> {
    boxes(image)
        .filter(|&at| HostTag::from_byte(header_tag(image[at])).is_some())
        .map(|at| &image[at..=at + content_words(image[at])])
}
