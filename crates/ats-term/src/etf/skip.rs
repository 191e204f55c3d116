//! Search for the end of an encoded term without decoding it.

use super::tag::{
    ATOM, ATOM_UTF8, BINARY, BIT_BINARY, EXPORT, FLOAT, INTEGER, LARGE_BIG, LARGE_TUPLE, LIST, MAP,
    NEW_FLOAT, NEW_FUN, NEW_PID, NEW_PORT, NEWER_REFERENCE, NIL, RECORD, SMALL_ATOM,
    SMALL_ATOM_UTF8, SMALL_BIG, SMALL_INTEGER, SMALL_TUPLE, STRING, V4_PORT,
};

/// Number of bytes of a float as text.
const FLOAT_TEXT: usize = 31;

/// Returns the bytes after the first term, which has no version byte; `None` if there is no
/// complete term. The content of the term is not checked. O(number of its parts), not recursive.
#[must_use]
pub fn skip(mut bytes: &[u8]) -> Option<&[u8]> {
    let mut terms = 1_u64;
    while terms > 0 {
        terms -= 1;
        let (tag, rest) = bytes.split_first()?;
        let (raw, further);
        (bytes, raw, further) = match *tag {
            SMALL_INTEGER => (rest, 1, 0),
            INTEGER => (rest, 4, 0),
            NEW_FLOAT => (rest, 8, 0),
            FLOAT => (rest, FLOAT_TEXT, 0),
            NIL => (rest, 0, 0),
            SMALL_ATOM | SMALL_ATOM_UTF8 => {
                let (len, rest) = one(rest)?;
                (rest, len, 0)
            }
            ATOM | ATOM_UTF8 | STRING => {
                let (len, rest) = two(rest)?;
                (rest, len, 0)
            }
            BINARY => {
                let (len, rest) = four(rest)?;
                (rest, len, 0)
            }
            BIT_BINARY | LARGE_BIG => {
                let (len, rest) = four(rest)?;
                (rest, len.checked_add(1)?, 0)
            }
            SMALL_BIG => {
                let (len, rest) = one(rest)?;
                (rest, len + 1, 0)
            }
            SMALL_TUPLE => {
                let (arity, rest) = one(rest)?;
                (rest, 0, arity as u64)
            }
            LARGE_TUPLE => {
                let (arity, rest) = four(rest)?;
                (rest, 0, arity as u64)
            }
            LIST => {
                let (len, rest) = four(rest)?;
                (rest, 0, len as u64 + 1)
            }
            MAP => {
                let (pairs, rest) = four(rest)?;
                (rest, 0, 2 * pairs as u64)
            }
            // Flags, module, name, and for each field a name and a value.
            RECORD => {
                let (fields, rest) = four(rest)?;
                (rest, 1, 2 + 2 * fields as u64)
            }
            EXPORT => (rest, 0, 3),
            // The size includes itself.
            NEW_FUN => {
                let (size, rest) = four(rest)?;
                (rest, size.checked_sub(4)?, 0)
            }
            NEW_PID | V4_PORT => (after_node(rest)?, 12, 0),
            NEW_PORT => (after_node(rest)?, 8, 0),
            NEWER_REFERENCE => {
                let (words, rest) = two(rest)?;
                (after_node(rest)?, 4 + 4 * words, 0)
            }
            _ => return None,
        };
        bytes = bytes.get(raw..)?;
        terms = terms.checked_add(further)?;
    }
    Some(bytes)
}

/// Returns the bytes after the name of a node, which is an atom.
fn after_node(bytes: &[u8]) -> Option<&[u8]> {
    let is_atom = matches!(
        bytes.first()?,
        &(ATOM | ATOM_UTF8 | SMALL_ATOM | SMALL_ATOM_UTF8)
    );
    // An atom has no parts, so this recursion ends.
    is_atom.then(|| skip(bytes)).flatten()
}

fn one(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (byte, rest) = bytes.split_first()?;
    Some((usize::from(*byte), rest))
}

fn two(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((usize::from(u16::from_be_bytes(*number)), rest))
}

fn four(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number) as usize, rest))
}
