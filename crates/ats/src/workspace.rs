//! Buffers that operations reuse, so that a warm caller does not allocate.

use crate::bag::Buffers;
use crate::sorted_batch::SortedBatch;
use crate::unpack::UnpackBuffer;
use ats_term::Zeros;
use ats_term::image::{Host, HostTerm, ImageBuilder, Packer};

/// Buffers for the terms of a host. Keep one per thread and lend it to each operation, whatever the
/// lifetimes of its arguments are.
///
/// After an operation the buffers refer to nothing of the host, and none of them has more than
/// about 64 KiB: what was made and not stored is given back before the operation returns.
///
/// ```
/// use ats::{Error, Table, TableType, TermHost, Workspace};
/// use ats_term::Term;
///
/// let table = Table::<TermHost>::new(TableType::Set, 1);
/// let mut work = Workspace::new();
/// work.limit(1000); // for a thread that must not work for long
/// table.insert(&Term::from(("small", 1)), &mut work)?;
/// let large = Term::from(("large", vec![Term::from(7); 10_000]));
/// assert_eq!(table.insert(&large, &mut work), Err(Error::TooLarge));
/// # Ok::<(), Error>(())
/// ```
pub struct Workspace<H: Host>(Room<H::Term<'static>>);

impl<H: Host> Workspace<H> {
    /// A workspace for the rules of newer Erlang versions, where `0.0` and `-0.0` differ.
    pub const fn new() -> Self {
        Self::with_zeros(Zeros::Distinct)
    }

    /// A workspace that must serve only tables with the same rule for zeros.
    pub const fn with_zeros(zeros: Zeros) -> Self {
        Workspace(Room::with_zeros(zeros))
    }

    /// From now on, each operation that copies objects or takes them away refuses with
    /// [`Error::TooLarge`](crate::error::Error::TooLarge) if these have more than about so many
    /// words together, and changes nothing. For callers that must not work for long: to find that
    /// out takes no longer than to copy so many words. Work that takes as long as that counts as
    /// well, for a key or an object: the bytes of the key, and sorting the keys of maps. Without a
    /// limit at first. Merging itself has [a way of its own](crate::Locking).
    pub fn limit(&mut self, words: usize) {
        self.0.limit(words);
    }

    /// The buffers, for terms of an operation.
    #[inline]
    pub(crate) fn lend<'t>(&mut self) -> &mut Room<H::Term<'t>> {
        // SAFETY: types that differ in lifetimes only have the same layout. Terms are `Copy`, so
        // those that an operation leaves in buffers, if it panics, are dropped unread: each
        // operation begins with an empty buffer.
        unsafe { &mut *std::ptr::from_mut(&mut self.0).cast() }
    }
}

impl<H: Host> Default for Workspace<H> {
    fn default() -> Self {
        Self::new()
    }
}

/// The buffers of a workspace, as long as they are lent for terms of one lifetime.
pub(crate) struct Room<T: HostTerm> {
    pub(crate) key: Vec<u8>,
    pub(crate) image: ImageBuilder<T>,
    /// For operations that make an object out of another one that was just made.
    pub(crate) second: ImageBuilder<T>,
    /// For operations that make it out of two.
    pub(crate) third: ImageBuilder<T>,
    pub(crate) bag: Buffers<T::Host>,
    pub(crate) many: SortedBatch<T::Host>,
    pub(crate) packer: Packer,
    pub(crate) unpacked: UnpackBuffer,
    /// The number of words that the objects may still have.
    pub(crate) words_left: usize,
}

/// A key buffer with more room than this is not kept.
const KEEP_BYTES: usize = 1 << 16;

impl<T: HostTerm> Room<T> {
    const fn with_zeros(zeros: Zeros) -> Self {
        Room {
            key: Vec::new(),
            image: ImageBuilder::new(zeros),
            second: ImageBuilder::new(zeros),
            third: ImageBuilder::new(zeros),
            bag: Buffers::new(),
            many: SortedBatch::new(),
            packer: Packer::new(),
            unpacked: UnpackBuffer::new(),
            words_left: usize::MAX,
        }
    }

    /// Sets the [limit](Workspace::limit).
    pub(crate) fn limit(&mut self, words: usize) {
        self.words_left = words;
    }

    pub(crate) fn start_key(&mut self) {
        self.key.clear();
    }

    /// Gives back the room of a huge key. For the end of an operation that uses nothing else.
    #[inline]
    pub(crate) fn tidy_key(&mut self) {
        if self.key.capacity() > KEEP_BYTES {
            self.key = Vec::new();
        }
    }

    /// The same for an operation that uses an image, too, and what it is packed with.
    #[inline]
    pub(crate) fn tidy_object(&mut self) {
        self.tidy_key();
        self.image.tidy();
        self.packer.tidy();
    }

    /// The same for all other operations.
    pub(crate) fn tidy(&mut self) {
        self.tidy_object();
        self.second.tidy();
        self.third.tidy();
        self.bag.tidy();
        self.unpacked.tidy();
    }
}
