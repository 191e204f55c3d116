//! The words of an image under construction, and the resources that they own.

use super::host::{Host, HostTag};
use super::layout::header;
use super::object::Object;
use super::owned::owned_box;
use std::marker::PhantomData;

/// States of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unfinished,
    Object,
    /// The words belong to a record already.
    Taken,
}

/// Finished words, to be stored in a record.
///
/// Code that takes the words takes their units of ownership (IMAGE-5). It must ensure
/// that [`release_all`](super::release_all) is called when the record dies.
#[must_use = "the words may own resources, which leak unless a record takes them"]
pub struct Built<'a, H> {
    words: &'a [u64],
    /// The flags [`OWNS`] and [`LIST`]. A whole word, because it is stored and loaded again at
    /// once: a processor forwards a store only to a load of the same width, and stalls otherwise.
    what: u64,
    host: PhantomData<H>,
}

/// Flag of words that own a resource.
const OWNS: u64 = 1;
/// Flag of the words of an object list.
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

    /// Returns the words: an object image, or an object list.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Returns `true` if the words own a resource; if not, releasing them does nothing.
    pub fn owns(&self) -> bool {
        self.what & OWNS != 0
    }
}

/// Words under construction. Their resources are released unless [`take`](Draft::take) hands them
/// over.
pub(super) struct Draft<H: Host> {
    pub(super) words: Vec<u64>,
    /// Offsets in `words` of the boxes whose units of ownership (IMAGE-5) still belong to the
    /// draft.
    owned: Vec<usize>,
    state: State,
    host: PhantomData<H>,
}

/// Capacity in entries above which a buffer is freed.
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

    /// Writes a host box whose content `write` appends. Returns `false` if `write` declines.
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

    /// Records the box at `at` as owned, if its tag is an owning one.
    pub(super) fn note_owned(&mut self, tag: HostTag, at: usize) {
        if tag.owns() {
            self.owned.push(at);
        }
    }

    pub(super) fn owns(&self) -> bool {
        !self.owned.is_empty()
    }

    /// Marks the words as a complete object.
    pub(super) fn finish(&mut self) {
        self.state = State::Object;
    }

    pub(super) fn object(&self) -> Object<'_, H> {
        // After `take`, the new holder of the words may release their resources.
        assert_eq!(self.state, State::Object, "image: no object here");
        Object::new(&self.words)
    }

    pub(super) fn take(&mut self) -> Built<'_, H> {
        // Handing over the words twice would let two records share one unit.
        assert_eq!(self.state, State::Object, "image: no object to be taken");
        let owns = self.owns();
        self.owned.clear();
        self.state = State::Taken;
        Built::object(&self.words, owns)
    }

    /// Releases the resources of words that were not taken, and resets the draft.
    pub(super) fn discard(&mut self) {
        // Boxes are popped before their release, so that a panic of the host cannot release one
        // twice.
        while let Some(at) = self.owned.pop() {
            if let Some(host_box) = owned_box::<H>(&self.words, at) {
                // SAFETY: IMAGE-5: a box in `owned` holds a unit that was not taken, and the box
                // was just removed from the list.
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
