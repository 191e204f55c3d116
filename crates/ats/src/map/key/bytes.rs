//! The bytes of keys: writing and reading.

use smallvec::SmallVec;

/// Bytes of a key that need no separate block of memory.
const INLINE: usize = 64;

/// The byte that ends a text.
const END: u8 = 0;
/// The byte before a 0 or 1 of a text, which is increased by one.
const ESCAPE: u8 = 1;

/// The byte before the value of an option, and before each element of a sequence.
pub(super) const SOME: u8 = 1;
/// The byte for no value, which also ends a sequence.
pub(super) const NONE: u8 = 0;

/// The bytes of a key, to which its parts are appended: see [`AsKey`](super::AsKey).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyBytes(SmallVec<[u8; INLINE]>);

impl KeyBytes {
    /// Appends bytes unchanged. Only parts that have the same length in all keys, or whose length
    /// is known otherwise, may use this.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends bytes of any length, so that a text comes before all longer texts that begin with
    /// it.
    #[inline]
    pub fn push_text(&mut self, text: &[u8]) {
        self.push_beginning(text);
        self.push(&[END]);
    }

    /// Appends the common prefix of the encodings of all texts that begin with `text`.
    pub(crate) fn push_beginning(&mut self, mut text: &[u8]) {
        while let Some(at) = text.iter().position(|byte| *byte <= ESCAPE) {
            self.push(&text[..at]);
            self.push(&[ESCAPE, text[at] + 1]);
            text = &text[at + 1..];
        }
        self.push(text);
    }

    /// Appends the bytes that `push` appends, with the order reversed.
    pub fn push_reversed(&mut self, push: impl FnOnce(&mut KeyBytes)) {
        let from = self.0.len();
        push(self);
        self.0[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Replaces the bytes by the least bytes above all that begin with them. Returns `false` if
    /// there are none.
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

/// A reader of the bytes of a key: see [`Key`](super::Key).
#[derive(Clone, Debug)]
pub struct KeyReader<'a> {
    rest: &'a [u8],
    /// The mask of inverted bits.
    inverted: u8,
}

impl<'a> KeyReader<'a> {
    /// Returns a reader of these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        KeyReader {
            rest: bytes,
            inverted: 0,
        }
    }

    /// Reads `N` bytes that were [pushed](KeyBytes::push) unchanged.
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

    /// Reads bytes that were pushed with the order [reversed](KeyBytes::push_reversed).
    pub fn take_reversed<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.inverted = !self.inverted;
        let taken = take(self);
        self.inverted = !self.inverted;
        taken
    }

    /// Returns `true` if no bytes are left.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }
}
