//! The words of an image that is being built, and what they own.

use super::host::{Host, HostTag};
use super::layout::header;
use super::object::Object;
use super::owned::owned_box;
use std::marker::PhantomData;

/// The forms of the words of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unfinished,
    Object,
    /// They belong to a record already.
    Taken,
}

/// Words that were built, on their way to the record that will hold them.
///
/// Code that takes the words takes the units of ownership they stand for (IMAGE-5). It must ensure
/// that [`release_all`](super::release_all) is called when the record dies.
#[must_use = "the words may own resources, which leak unless a record takes them"]
pub struct Built<'a, H> {
    words: &'a [u64],
    /// [`OWNS`] and [`LIST`]. A whole word, since it is passed on through memory right after it was
    /// made: a processor hands what was stored to a load of the same width only, and waits
    /// otherwise.
    what: u64,
    host: PhantomData<H>,
}

/// The words own a resource.
const OWNS: u64 = 1;
/// The words are those of an object list.
const LIST: u64 = 2;

impl<'a, H: Host> Built<'a, H> {
    pub(super) fn object(words: &'a [u64], owns: bool) -> Self {
        Self {
            words,
            what: if owns { OWNS } else { 0 },
            host: PhantomData,
        }
    }

    pub(super) fn list(words: &'a [u64], owns: bool) -> Self {
        let object = Self::object(words, owns);
        Self {
            what: object.what | LIST,
            ..object
        }
    }

    pub(super) fn is_list(&self) -> bool {
        self.what & LIST != 0
    }

    /// The words: an object image, or an object list.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Returns `true` if the words own a resource; if not, releasing them does nothing.
    pub fn owns(&self) -> bool {
        self.what & OWNS != 0
    }
}

/// Words under construction. Their resources are released unless they are taken with
/// [`take`](Draft::take).
pub(super) struct Draft<H: Host> {
    pub(super) words: Vec<u64>,
    /// Offsets of the boxes in `words` whose units of ownership (IMAGE-5) are still ours.
    owned: Vec<usize>,
    state: State,
    host: PhantomData<H>,
}

/// Buffers with room for more entries than this are given back.
pub(super) const KEEP: usize = 1 << 13;

impl<H: Host> Draft<H> {
    pub(super) const fn new() -> Self {
        Self {
            words: Vec::new(),
            owned: Vec::new(),
            state: State::Unfinished,
            host: PhantomData,
        }
    }

    /// Writes a host box with what `write` appends, unless it declines; returns whether it did not.
    pub(super) fn write_host(
        &mut self,
        write: impl FnOnce(&mut Vec<u64>) -> Option<HostTag>,
    ) -> bool {
        let at = self.words.len();
        self.words.push(0);
        let Some(tag) = write(&mut self.words) else {
            self.words.truncate(at);
            return false;
        };
        self.words[at] = header(tag.byte(), self.words.len() - at - 1);
        self.note_owned(tag, at);
        true
    }

    /// Remembers that the box at `at` stands for a unit of ownership, if it does.
    pub(super) fn note_owned(&mut self, tag: HostTag, at: usize) {
        if tag.owns() {
            self.owned.push(at);
        }
    }

    pub(super) fn owns(&self) -> bool {
        !self.owned.is_empty()
    }

    /// Says that the words are an object now.
    pub(super) fn finish(&mut self) {
        self.state = State::Object;
    }

    pub(super) fn object(&self) -> Object<'_, H> {
        // Not after `take`: the new holder of the words may release what they refer to.
        assert_eq!(self.state, State::Object, "image: no object here");
        Object::new(&self.words)
    }

    pub(super) fn take(&mut self) -> Built<'_, H> {
        // Handing over the same words twice would let two records share one unit.
        assert_eq!(self.state, State::Object, "image: no object to be taken");
        let owns = self.owns();
        self.owned.clear();
        self.state = State::Taken;
        Built::object(&self.words, owns)
    }

    /// Gives back what was not taken, and begins anew.
    pub(super) fn discard(&mut self) {
        // One at a time and popped first, so that a panic of the host cannot release a box twice.
        while let Some(at) = self.owned.pop() {
            if let Some(host_box) = owned_box::<H>(&self.words, at) {
                // SAFETY: IMAGE-5: a box in `owned` stands for a unit that was not taken, and the
                // box has just been removed from the list.
                unsafe { H::release(host_box) };
            }
        }
        self.words.clear();
        self.words.shrink_to(KEEP);
        self.owned.shrink_to(KEEP);
        self.state = State::Unfinished;
    }
}

impl<H: Host> Drop for Draft<H> {
    fn drop(&mut self) {
        self.discard();
    }
}
