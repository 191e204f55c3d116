//! Limits of work under a lock that other keys share.
//!
//! A store calls back under the lock of a key, which is also that of others. That code must be
//! short whatever the caller and the table bring. So each operation that makes an object out of
//! another one, or looks at one, first tries to do that under the lock, within the limits below. If
//! they do not suffice, it has changed nothing, and is done again by
//! [`Store::update_alone`](crate::store::Store::update_alone), which holds only the key. If it is
//! known before that they do not suffice, that is done at once.

use crate::value::{Rec, form};
use ats_term::image::{Form, Host};

/// Most words that are read or written under a lock: a few microseconds.
pub(crate) const SHORT_WORDS: usize = 1 << 10;

/// Most words of an object that has to be unpacked before. They become about eight times as many.
const SHORT_PACKED_WORDS: usize = 1 << 7;

/// Most objects of a bag that are changed under a lock.
pub(crate) const SHORT_OBJECTS: usize = 16;

/// Most parts of a change (elements, operations, or words of large integers) that are worked
/// through under a lock.
pub(crate) const SHORT_PARTS: usize = 1 << 6;

/// Most bytes of a key that are copied under a lock.
const SHORT_KEY: usize = 8 * SHORT_WORDS;

/// Returns `true` if a change of so many parts, of the object of this key, takes long whatever is
/// there.
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

/// Returns `true` if it may take long to compare the object of this record. The host may keep large
/// parts of it, which count as a few words.
#[inline]
pub(crate) fn is_long_to_compare<H: Host>(record: &Rec<H>) -> bool {
    is_long(record) || record.owns()
}
