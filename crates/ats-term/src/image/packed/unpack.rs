//! Conversion of streams to images.
//!
//! The slots of a box are adjacent, but in the stream everything below the first slot comes before
//! the second. So a box waits while the terms below its first slots are unpacked. Boxes can wait a
//! million deep, but a waiting slot is still unused; so the first waiting slot of a box stores the
//! end of its slots, and the position of the first waiting slot of the outer box. The stack is thus
//! threaded through the image, and unpacking needs no other memory.

use super::super::layout::{FLOAT, LIST, box_slot, content_words, header, push_bytes};
use super::stream::{Item, Stream};
use crate::immediate::NIL;

/// Slots of a box that are still to be filled, as offsets in the image.
struct Waiting {
    next: usize,
    end: usize,
}

/// The stack of outer boxes that wait until the current box is unpacked.
struct Around {
    /// The first waiting slot of the innermost one. 0 if there is none: the first slot of an image
    /// never waits behind another one.
    first: usize,
}

impl Around {
    fn push(&mut self, waiting: Waiting, image: &mut [u64]) {
        // Both fit 32 bits because of PACKED-2.
        image[waiting.next] = (waiting.end as u64) << 32 | self.first as u64;
        self.first = waiting.next;
    }

    fn pop(&mut self, image: &[u64]) -> Option<Waiting> {
        let next = self.first;
        if next == 0 {
            return None;
        }
        let thread = image[next];
        self.first = thread as u32 as usize;
        Some(Waiting {
            next,
            end: (thread >> 32) as usize,
        })
    }
}

/// Appends the image to `room`, with nil for the elements of the object after the first `count`.
pub(super) fn unpack(
    mut stream: Stream<'_>,
    mut host_boxes: &[u64],
    count: usize,
    room: &mut Vec<u64>,
) {
    let start = room.len();
    let Item::Slots(_, arity) = stream.item() else {
        panic!("image: a packed object is a tuple");
    };
    room.resize(start + arity, NIL);
    let mut around = Around { first: 0 };
    let mut slots = Waiting {
        next: 0,
        end: arity.min(count),
    };
    loop {
        if slots.next == slots.end {
            match around.pop(&room[start..]) {
                Some(waiting) => slots = waiting,
                None => return,
            }
        }
        let item = stream.item();
        if let Item::Immediate(word) = item {
            room[start + slots.next] = word;
            slots.next += 1;
            continue;
        }
        let at = room.len() - start;
        room[start + slots.next] = box_slot(at);
        slots.next += 1;
        if let Item::Slots(head, count) = item {
            room.push(head);
            // Nil is the tail of a list without another one.
            room.resize(room.len() + content_words(head), NIL);
            if slots.next < slots.end {
                around.push(slots, &mut room[start..]);
            }
            slots = Waiting {
                next: at + 1,
                end: at + 1 + count,
            };
        } else {
            push_leaf(item, &mut host_boxes, room);
        }
    }
}

/// Appends the box of a term without slots.
fn push_leaf(item: Item<'_>, host_boxes: &mut &[u64], room: &mut Vec<u64>) {
    match item {
        Item::String(bytes) => {
            room.push(header(LIST, bytes.len()));
            room.extend(bytes.iter().map(|&byte| u64::from(byte) << 4 | 0xF));
            room.push(NIL);
        }
        Item::Float(bits) => room.extend([header(FLOAT, 1), bits]),
        Item::Bytes(head, bytes) => {
            room.push(head);
            push_bytes(room, bytes);
        }
        Item::Host => {
            let (host_box, rest) = host_boxes.split_at(1 + content_words(host_boxes[0]));
            room.extend_from_slice(host_box);
            *host_boxes = rest;
        }
        Item::Immediate(_) | Item::Slots(..) => unreachable!("the caller writes these"),
    }
}
