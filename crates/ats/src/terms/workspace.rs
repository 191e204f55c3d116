//! Scratch buffers that operations reuse, so that a warm caller does not allocate.

use crate::terms::bag::Buffers;
use crate::terms::likelihood::Sampler;
use crate::terms::note::Dating;
use crate::terms::sorted_batch::SortedBatch;
use crate::terms::unpack::UnpackBuffer;
use ats_term::Zeros;
use ats_term::image::{Host, HostTerm, ImageBuilder, Packer};

/// Scratch buffers for the terms of a host. A thread should keep one and lend it to each operation;
/// the arguments may have any lifetimes.
///
/// After an operation the buffers refer to no resource of the host, and none of them has more than
/// about 64 KiB: an operation releases objects that it has built and not stored before it returns.
///
/// ```
/// use ats::terms::{Error, Table, TableType, Term, TermHost, Workspace};
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
    /// Returns a workspace with the rule of newer Erlang versions, in which `0.0` and `-0.0`
    /// differ.
    pub const fn new() -> Self {
        Self::with_zeros(Zeros::Distinct)
    }

    /// Returns a workspace that may only be used with tables of the same rule for zeros.
    pub const fn with_zeros(zeros: Zeros) -> Self {
        Workspace(Room::with_zeros(zeros))
    }

    /// Limits the size of objects, for callers that must not work for long. Each later operation
    /// that copies or removes objects fails with
    /// [`Error::TooLarge`](crate::terms::error::Error::TooLarge) if the objects have together more
    /// than about so many words, and changes nothing. The check takes no longer than copying so
    /// many words. Other work for a key or an object counts, too: the bytes of the key, and sorting
    /// the keys of maps. A new workspace has no limit. Merging has its [own
    /// limit](crate::terms::Locking).
    pub fn limit(&mut self, words: usize) {
        self.0.limit(words);
    }

    /// Returns the buffers, for the terms of an operation.
    #[inline]
    pub(crate) fn lend<'t>(&mut self) -> &mut Room<H::Term<'t>> {
        // SAFETY: types that differ in lifetimes only have the same layout. Terms are `Copy`, so
        // terms that an operation leaves in buffers, if it panics, are dropped unread: each
        // operation begins with an empty buffer.
        unsafe { &mut *std::ptr::from_mut(&mut self.0).cast() }
    }
}

impl<H: Host> Default for Workspace<H> {
    fn default() -> Self {
        Self::new()
    }
}

/// The buffers of a workspace while they are lent for terms of one lifetime.
pub(crate) struct Room<T: HostTerm> {
    pub(crate) key: Vec<u8>,
    pub(crate) image: ImageBuilder<T>,
    /// Builder for operations that make an object out of a newly built object.
    pub(crate) second: ImageBuilder<T>,
    /// Builder for operations that make an object out of two newly built objects.
    pub(crate) third: ImageBuilder<T>,
    pub(crate) bag: Buffers<T::Host>,
    pub(crate) many: SortedBatch<T::Host>,
    pub(crate) packer: Packer,
    pub(crate) unpacked: UnpackBuffer,
    /// The number of words that the objects may still have.
    pub(crate) words_left: usize,
    pub(crate) sampler: Sampler,
    /// The dating of the objects of an insert; `None` in a table whose objects do not expire.
    pub(crate) dating: Option<Dating>,
}

/// Maximum capacity of the key buffer that is retained.
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
            sampler: Sampler::new(),
            dating: None,
        }
    }

    /// Sets the [limit](Workspace::limit).
    pub(crate) fn limit(&mut self, words: usize) {
        self.words_left = words;
    }

    pub(crate) fn start_key(&mut self) {
        self.key.clear();
    }

    /// Frees the key buffer if a huge key has enlarged it. Called at the end of an operation that
    /// uses no other buffer.
    #[inline]
    pub(crate) fn tidy_key(&mut self) {
        if self.key.capacity() > KEEP_BYTES {
            self.key = Vec::new();
        }
    }

    /// Frees enlarged buffers at the end of an operation that uses the key, an image and the
    /// packer.
    #[inline]
    pub(crate) fn tidy_object(&mut self) {
        self.tidy_key();
        self.image.tidy();
        self.packer.tidy();
    }

    /// Frees enlarged buffers at the end of all other operations.
    pub(crate) fn tidy(&mut self) {
        self.tidy_object();
        self.second.tidy();
        self.third.tidy();
        self.bag.tidy();
        self.unpacked.tidy();
    }
}
