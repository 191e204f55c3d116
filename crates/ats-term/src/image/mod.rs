//! Objects in memory: terms as relocatable 64-bit words that are read in place.
//!
//! An object lives in a table as an *image*. An image can be copied with `memcpy`, element `N` of
//! the object is word `N`, and the words of immediate terms are the words the Erlang VM uses
//! on 64-bit machines, so that the tuple `{42, foo}` leaves the table without conversion.
//!
//! An image is valid only in the process that made it: it holds atom numbers and, in the boxes of
//! its [host](Host), perhaps pointers. Files use the external term format.
//!
//! # Slots
//! A term is represented by a *slot*, one word whose low bits are its type:
//!
//! ```text
//!   63                                          6 5 4 3 2 1 0
//!  +---------------------------------------------+-----------+
//!  | signed integer, 60 bits                          1 1 1 1|  small integer
//!  | host's number                                    0 0 1 1|  local pid
//!  | host's number                                    0 1 1 1|  local port
//!  | atom number                                  0 0 1 0 1 1|  atom
//!  | 0                                            1 1 1 0 1 1|  nil, the empty list
//!  | offset from the start of the image, in words         1 0|  box
//!  +---------------------------------------------------------+
//! ```
//!
//! # Boxes
//! Everything else is a *box*: a header word (low 8 bits tag, upper 56 bits `n`) and its content.
//!
//! ```text
//!  tag            content
//!  0x01 TUPLE     n element slots
//!  0x02 LIST      n >= 1 element slots, then the slot of the tail, which is not a list cell
//!  0x03 MAP       n key slots in canonical order, then the n value slots
//!  0x04 FLOAT     the bits of a finite float, n = 1
//!  0x05 BIG       magnitude, least significant byte first, n = number of bytes * 2 + negative
//!  0x06 BITS      bytes, n = number of bits
//!  0x08 OBJECT    n words of an object image follow (only between the objects of a list)
//!  0x0C WITH_CELLS    an object with cells follows (only in the first word of a value; see [`Form`])
//!  0x10 PACKED    a stream of bytes, which begins in this word (only of a [`Packed`] object)
//!  0x14 PACKED_WITH   n words of stream follow, then host boxes (only of a [`Packed`] object)
//!  0x80 .. 0xBF   n words that only the host understands
//!  0xC0 .. 0xFF   the same, and the box owns a resource of the host
//! ```
//!
//! Bytes are in memory order and padded with zeros to a whole word. The list `[1, 2, 3]` is
//! one box, so that walking and rebuilding it needs no chain of pointers.
//!
//! An *object image* is the image of a tuple. The tuple itself needs no box: the image begins with
//! the slots of its elements, which end where the first box begins, or with the image. As an
//! example, `{7, "ab", [x]}` where the atom `x` has number 99:
//!
//! ```text
//!  word  0   small 7                 7 << 4 | 0xF
//!        1   box at word 3           3 << 2 | 2
//!        2   box at word 7           7 << 2 | 2
//!        3   LIST n=2
//!        4   small 97
//!        5   small 98
//!        6   nil                     0x3B
//!        7   LIST n=1
//!        8   atom                    99 << 6 | 0x0B
//!        9   nil
//! ```
//!
//! # Invariants
//! - IMAGE-1. The boxes of an image follow the slots of the elements, and each other, without gaps,
//!   and exactly one slot refers to each box, from before it. So all boxes can be
//!   visited by one linear scan, and nothing is unreachable.
//! - IMAGE-2. A box is followed by everything below it, in the order of its slots, before anything
//!   else (preorder), and the elements are in order, too. So an element occupies one range of words
//!   besides its slot, and the first slot of a box tells where the boxes begin.
//! - IMAGE-3. The keys of a map are in an order that depends on the set of keys alone: immediates
//!   by their word, then the others by their [exact key](crate::exact). Together with IMAGE-2, two
//!   terms that are `=:=` have images of the same shape, which [`image_eq`] compares in lockstep.
//! - IMAGE-4. An integer is a BIG box only if it does not fit a small integer, and its magnitude
//!   has no leading zero byte. Padding is zero, and so are the unused bits of a bitstring's last
//!   byte.
//! - IMAGE-5. A host box with an owning tag holds one unit of ownership of its resource. The
//!   owner of the words of an image owns these units. Code that copies the words must call
//!   [`retain_all`]. Code that discards them must call [`release_all`].
//!
//! The single box for a list has one cost: a list cannot share its tail with another. Images share
//! nothing anyway; neither do objects in `ets`.

mod decode;
mod draft;
mod encode;
mod eq;
mod form;
mod host;
mod layout;
mod list;
mod map_order;
mod object;
mod owned;
mod packed;
mod replace;
mod stored;
mod term_host;
mod term_ref;
#[cfg(test)]
mod tests;
mod view;

pub use crate::immediate::{Immediate, NIL, SMALL_MAX, SMALL_MIN, atom_word, small_word};
pub use decode::{Scratch, decode, decode_element, decode_object};
pub use draft::Built;
pub use encode::{ImageBuilder, NoImage, overwrite_leaf};
pub use eq::{image_eq, term_eq, term_eq_within};
pub use form::{Form, LARGE_WORD, Span, begins_object, cells_form_word, note_bits, note_word};
pub use host::{Host, HostBox, HostKind, HostSink, HostTag, HostTerm};
pub use list::{ObjectList, ObjectListBuilder, Objects};
pub use object::{BoxKind, ImageBox, Object, all_immediate};
pub use owned::{for_each_owned, kept_bytes, kept_bytes_beyond, release_all, retain_all};
pub use packed::{Packed, Packer};
pub use replace::NewValue;
pub use stored::Stored;
pub use term_host::TermHost;
pub use view::{ImageRef, Location, Slots, SlotsIter, View};
