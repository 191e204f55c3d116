//! Limits of work under a lock that other keys share.
//!
//! A store calls back under the lock of a key, which other keys share. That code must be short for
//! every caller and every table. So each operation that makes an object out of another one, or
//! reads one, first tries to do so under the lock, within the limits below. If they do not suffice,
//! the attempt changes nothing, and
//! [`Store::update_alone`](crate::terms::store::Store::update_alone), which holds only the key,
//! repeats the operation. If the operation is known to be long beforehand, it uses `update_alone`
//! at once.

use crate::terms::value::{Rec, form};
use ats_term::image::{Form, Host};

/// Maximum number of words that are read or written under a lock: a few microseconds.
pub(crate) const SHORT_WORDS: usize = 1 << 10;

/// Maximum number of words of a packed object that is unpacked under a lock. Unpacked, they become
/// about eight times as many.
const SHORT_PACKED_WORDS: usize = 1 << 7;

/// Maximum number of objects of a bag that are changed under a lock.
pub(crate) const SHORT_OBJECTS: usize = 16;

/// Maximum number of parts of a change (elements, operations, or words of large integers) that are
/// processed under a lock.
pub(crate) const SHORT_PARTS: usize = 1 << 6;

/// Maximum number of bytes of a key that are copied under a lock.
const SHORT_KEY: usize = 8 * SHORT_WORDS;

/// Returns `true` if a change of this many parts takes long for any object with this key.
#[inline]
pub(crate) fn is_long_change(parts: usize, key: &[u8]) -> bool {
    parts > SHORT_PARTS || key.len() > SHORT_KEY
}

/// Returns `true` if it takes long to copy the object of this record.
#[inline]
pub(crate) fn is_long<H: Host>(record: &Rec<H>) -> bool {
    let words = record.value_words().1;
    words > SHORT_PACKED_WORDS && (words > SHORT_WORDS || form(record) == Form::Packed)
}

/// Returns `true` if it may take long to compare the object of this record. The host may store
/// large parts of it elsewhere, which count as a few words.
#[inline]
pub(crate) fn is_long_to_compare<H: Host>(record: &Rec<H>) -> bool {
    is_long(record) || record.owns()
}
