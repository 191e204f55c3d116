//! The bytes of keys, as they are written and read.

use smallvec::SmallVec;

/// Bytes of a key that fit without a block of memory of their own.
const INLINE: usize = 64;

/// Ends a text.
const END: u8 = 0;
/// Stands before a byte that is 0 or 1, each of which is then one more.
const ESCAPE: u8 = 1;

/// Stands before the value of an option, and each element of a sequence.
pub(super) const SOME: u8 = 1;
/// Stands for no value, and ends a sequence.
pub(super) const NONE: u8 = 0;

/// The bytes of a key, to which its parts are appended: see [`AsKey`](super::AsKey).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyBytes(SmallVec<[u8; INLINE]>);

impl KeyBytes {
    /// Appends bytes as they are. For parts that have the same length in all keys, or tell it in
    /// another way.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends bytes of any length, so that a shorter text comes before all that begin with it.
    #[inline]
    pub fn push_text(&mut self, text: &[u8]) {
        self.push_beginning(text);
        self.push(&[END]);
    }

    /// Appends the bytes with which those of each text begin that begins with this one.
    pub(crate) fn push_beginning(&mut self, mut text: &[u8]) {
        while let Some(at) = text.iter().position(|byte| *byte <= ESCAPE) {
            self.push(&text[..at]);
            self.push(&[ESCAPE, text[at] + 1]);
            text = &text[at + 1..];
        }
        self.push(text);
    }

    /// Appends what `push` appends, with the order reversed.
    pub fn push_reversed(&mut self, push: impl FnOnce(&mut KeyBytes)) {
        let from = self.0.len();
        push(self);
        self.0[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Makes them the least bytes that are above all that begin with these, if there are any.
    pub(crate) fn step_over(&mut self) -> bool {
        while let Some(last) = self.0.pop() {
            if last < u8::MAX {
                self.0.push(last + 1);
                return true;
            }
        }
        false
    }
}

/// The bytes of a key, from which its parts are read: see [`Key`](super::Key).
#[derive(Clone, Debug)]
pub struct KeyReader<'a> {
    rest: &'a [u8],
    /// The bits that are inverted.
    inverted: u8,
}

impl<'a> KeyReader<'a> {
    /// The reader of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        KeyReader {
            rest: bytes,
            inverted: 0,
        }
    }

    /// Reads so many bytes, which were [pushed](KeyBytes::push) as they are.
    #[inline]
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(bytes.map(|byte| byte ^ self.inverted))
    }

    /// Reads bytes that were pushed as a [text](KeyBytes::push_text).
    pub fn take_text(&mut self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        loop {
            let special = |byte: &u8| *byte ^ self.inverted <= ESCAPE;
            let at = self.rest.iter().position(special)?;
            text.extend(self.rest[..at].iter().map(|byte| byte ^ self.inverted));
            self.rest = &self.rest[at..];
            let [mark] = self.take()?;
            if mark == END {
                return Some(text);
            }
            match self.take()? {
                [escaped @ 1..=2] => text.push(escaped - 1),
                _ => return None,
            }
        }
    }

    /// Reads what was pushed with the order [reversed](KeyBytes::push_reversed).
    pub fn take_reversed<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.inverted = !self.inverted;
        let taken = take(self);
        self.inverted = !self.inverted;
        taken
    }

    /// Returns `true` if nothing is left.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }
}
