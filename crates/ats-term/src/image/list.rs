//! Several objects as one value, for tables that keep more than one object under a key.
//!
//! ```text
//!  OBJECT n=4 | object of 4 words | OBJECT n=9 | object of 9 words | ...
//! ```
//!
//! The objects, as images or packed, follow each other, each relative to its own start, so that
//! appending and removing only copy words. This suits the few objects that a key usually has; a key
//! with very many of them pays O(size of all) for each change.

use super::draft::Built;
use super::draft::KEEP;
use super::host::Host;
use super::layout::{OBJECT, header, header_n, header_tag};
use super::owned::{release_all, retain_all};
use super::stored::Stored;
use std::marker::PhantomData;

/// The objects of one key, in the order in which they were appended.
pub struct ObjectList<'a, H> {
    words: &'a [u64],
    host: PhantomData<H>,
}

impl<'a, H: Host> ObjectList<'a, H> {
    /// Wraps the words of a list. O(1).
    ///
    /// # Safety
    /// The words must be a copy of words that an [`ObjectListBuilder`] for host `H` built, and the
    /// resources that its host boxes own must not be released during `'a`.
    pub unsafe fn from_words(words: &'a [u64]) -> Self {
        Self {
            words,
            host: PhantomData,
        }
    }

    /// Returns the words of the list.
    pub fn words(self) -> &'a [u64] {
        self.words
    }

    /// Returns `true` if the list is empty. O(1).
    pub fn is_empty(self) -> bool {
        self.words.is_empty()
    }

    /// Returns the objects in order. Counting them all is O(number of objects).
    pub fn iter(self) -> Objects<'a, H> {
        Objects {
            words: self.words,
            host: PhantomData,
        }
    }
}

// Written out because a derive would ask for `H: Clone`.
impl<H> Clone for ObjectList<'_, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<H> Copy for ObjectList<'_, H> {}

impl<'a, H: Host> IntoIterator for ObjectList<'a, H> {
    type Item = Stored<'a, H>;
    type IntoIter = Objects<'a, H>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over the objects of an [`ObjectList`].
pub struct Objects<'a, H> {
    words: &'a [u64],
    host: PhantomData<H>,
}

impl<'a, H: Host> Iterator for Objects<'a, H> {
    type Item = Stored<'a, H>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&head, rest) = self.words.split_first()?;
        debug_assert_eq!(header_tag(head), OBJECT);
        let (object, rest) = rest.split_at(header_n(head));
        self.words = rest;
        Some(Stored::new(object))
    }
}

/// A builder of object lists, which keeps its buffer.
///
/// A list that is not taken is released, as in [`ImageBuilder`](super::ImageBuilder).
pub struct ObjectListBuilder<H: Host> {
    words: Vec<u64>,
    /// `true` if `words` hold units of ownership (IMAGE-5) that belong to the builder.
    owns: bool,
    /// `true` if `words` belong to a record already.
    taken: bool,
    host: PhantomData<H>,
}

impl<H: Host> ObjectListBuilder<H> {
    /// Creates a builder of an empty list. Does not allocate.
    pub const fn new() -> Self {
        Self {
            words: Vec::new(),
            owns: false,
            taken: false,
            host: PhantomData,
        }
    }

    /// Begins an empty list, and releases a list that was built but not taken.
    pub fn start(&mut self) {
        self.discard();
        self.words.shrink_to(KEEP);
    }

    /// Does a [`start`](ObjectListBuilder::start) if the builder holds resources, or a buffer that
    /// a huge list has blown up. Meant to be called after each use.
    pub fn tidy(&mut self) {
        if self.owns || self.words.capacity() > KEEP {
            self.start();
        }
    }

    /// Returns `true` if no object was appended since the list was begun or taken.
    pub fn is_empty(&self) -> bool {
        self.taken || self.words.is_empty()
    }

    /// Appends an object that was just built; its resources pass to the list.
    ///
    /// Panics if `object` is itself an object list.
    pub fn push(&mut self, object: Built<'_, H>) {
        assert!(!object.is_list(), "image: an object list is no object");
        self.append(object.words());
        self.owns |= object.owns();
    }

    /// Appends a copy of an object of another list or record, which keeps its own units of the
    /// resources.
    pub fn push_copy<'a>(&mut self, object: impl Into<Stored<'a, H>>) {
        let words = object.into().words();
        // Units are added first, so that a panic of the host leaves no uncounted words here.
        // SAFETY: the creator of the `Stored` has promised that its words are those of a stored
        // object.
        let owns = unsafe { retain_all::<H>(words) };
        self.append(words);
        self.owns |= owns;
    }

    /// Appends copies of all objects of a list except object `skip`, counted from 0.
    pub fn push_all_but(&mut self, list: ObjectList<'_, H>, skip: usize) {
        for (i, object) in list.iter().enumerate() {
            if i != skip {
                self.push_copy(object);
            }
        }
    }

    /// Appends copies of all objects of a list.
    pub fn push_all(&mut self, list: ObjectList<'_, H>) {
        list.iter().for_each(|object| self.push_copy(object));
    }

    /// Returns the current list. Panics if it was taken.
    pub fn list(&self) -> ObjectList<'_, H> {
        // The new holder of the words may release their resources.
        assert!(!self.taken, "image: the list was taken");
        ObjectList {
            words: &self.words,
            host: PhantomData,
        }
    }

    /// Hands over the list. The words stay in place until the builder is used again, which begins
    /// an empty list; a second take returns that one.
    pub fn take(&mut self) -> Built<'_, H> {
        if self.taken {
            self.discard();
        }
        self.taken = true;
        Built::list(&self.words, std::mem::take(&mut self.owns))
    }

    fn append(&mut self, object: &[u64]) {
        if self.taken {
            self.discard();
        }
        self.words.push(header(OBJECT, object.len()));
        self.words.extend_from_slice(object);
    }

    fn discard(&mut self) {
        // Words are moved out of `self` first, so that a panic of the host cannot release them
        // twice.
        let mut words = std::mem::take(&mut self.words);
        if std::mem::take(&mut self.owns) {
            // SAFETY: IMAGE-5: `owns` was set, so the builder holds the units of these words, and
            // no code can read the words before they are cleared below.
            unsafe { release_all::<H>(&words) };
        }
        words.clear();
        self.words = words;
        self.taken = false;
    }
}

impl<H: Host> Default for ObjectListBuilder<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Host> Drop for ObjectListBuilder<H> {
    fn drop(&mut self) {
        self.discard();
    }
}
