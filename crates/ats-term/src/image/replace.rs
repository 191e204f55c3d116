//! Construction of an image from an old one with some elements replaced.

use super::NoImage;
use super::encode::ImageBuilder;
use super::host::{Host, HostBox, HostTag, HostTerm};
use super::layout::{
    LIST, MAP, TUPLE, box_slot, boxes_from, content_words, header_tag, is_immediate, slot_offset,
};
use super::object::Object;

/// A new value for an element.
#[derive(Clone, Copy, Debug)]
pub enum NewValue<'a, T> {
    /// A term.
    Term(T),
    /// An integer of 64 bits.
    Int(i64),
    /// An integer of any size: sign and magnitude, least significant byte first.
    Big {
        /// `true` if the integer is negative.
        negative: bool,
        /// The magnitude, which may have leading zeros and fewer than 64 bits.
        magnitude: &'a [u8],
    },
}

/// Returns a slot that waits for value `k`; no slot of an image has these low bits.
fn waiting(k: usize) -> u64 {
    (k as u64) << 2
}

fn is_waiting(slot: u64) -> bool {
    slot.is_multiple_of(1 << 2)
}

/// Returns the end of the boxes of the element in `slot`, which is the start of those of the next
/// element (IMAGE-2).
fn element_end(object: &[u64], arity: usize, slot: usize) -> usize {
    let rest = &object[slot + 1..arity];
    let next = rest.iter().find(|&&word| !is_immediate(word));
    next.map_or(object.len(), |&word| slot_offset(word))
}

impl<T: HostTerm> ImageBuilder<T> {
    /// Builds the image of `object` with element `i` replaced by `value` for each `(i, value)`,
    /// counted from 0. If an element is given several times, the last value counts.
    ///
    /// The new image has its own units of the resources of the other elements. O(size of the other
    /// elements + size of the values). Panics if the object has no element `i`.
    pub fn replace_elements(
        &mut self,
        object: Object<'_, T::Host>,
        values: &[(usize, NewValue<'_, T>)],
    ) {
        let built = self.replace_elements_within(object, values, usize::MAX);
        built.expect("no image has so many words");
    }

    /// Replaces elements like [`replace_elements`](ImageBuilder::replace_elements), but gives up if
    /// the old image or the new one takes more than about `most` words, before many more are
    /// written.
    pub fn replace_elements_within(
        &mut self,
        object: Object<'_, T::Host>,
        values: &[(usize, NewValue<'_, T>)],
        most: usize,
    ) -> Result<(), NoImage> {
        self.discard();
        let arity = object.arity();
        let old = object.words();
        if old.len() > most {
            return Err(NoImage::TooLarge);
        }
        self.most = most;
        self.draft.words.reserve(old.len());
        self.draft.words.extend_from_slice(&old[..arity]);
        for (k, &(i, _)) in values.iter().enumerate() {
            assert!(i < arity, "image: the object has no such element");
            self.draft.words[i] = waiting(k);
        }
        // Elements are written in order, as IMAGE-2 demands.
        for slot in 0..arity {
            let word = self.draft.words[slot];
            if is_waiting(word) {
                let (_, value) = values[(word >> 2) as usize];
                self.write_value(slot, value);
                if self.is_too_large {
                    self.discard();
                    return Err(NoImage::TooLarge);
                }
            } else if !is_immediate(word) {
                let (start, end) = (slot_offset(word), element_end(old, arity, slot));
                self.copy_boxes(slot, &old[start..end], start);
            }
        }
        self.draft.finish();
        Ok(())
    }

    fn write_value(&mut self, slot: usize, value: NewValue<'_, T>) {
        match value {
            NewValue::Term(term) => {
                self.fill(slot, term);
                self.write_todo();
            }
            NewValue::Int(value) => self.write_integer(slot, value),
            NewValue::Big {
                negative,
                magnitude,
            } => self.write_big(slot, negative, magnitude),
        }
    }

    /// Appends the boxes of one element, which were at `old_at` of their image, adjusts their
    /// offsets, and makes `slot` refer to the first.
    fn copy_boxes(&mut self, slot: usize, element: &[u64], old_at: usize) {
        let new_at = self.draft.words.len();
        self.draft.words[slot] = box_slot(new_at);
        self.draft.words.extend_from_slice(element);
        for at in boxes_from(element, 0) {
            let head = element[at];
            let content = at + 1..at + 1 + content_words(head);
            if let Some(tag) = HostTag::from_byte(header_tag(head)).filter(|tag| tag.owns()) {
                T::Host::retain(HostBox::new(tag, &element[content]));
                self.draft.note_owned(tag, new_at + at);
            } else if new_at != old_at && matches!(header_tag(head), TUPLE | LIST | MAP) {
                for word in &mut self.draft.words[new_at..][content] {
                    if !is_immediate(*word) {
                        *word = box_slot(slot_offset(*word) - old_at + new_at);
                    }
                }
            }
        }
    }
}
