//! The versions of a key: how they lie in memory, and how they are found.
//!
//! The invariants (MEMTABLE-1 to MEMTABLE-5) are those of [`memtable`](super).

use crate::entry::Kind;
use crate::ids::Seq;
use ats_mem::{Record, RecordBox, Release, slab};
use ats_sync::Guard;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// The longest first version that lies within its record, in bytes. Its memory is not used again
/// when the key gets newer versions.
pub(super) const INLINE_MAX: usize = 512;

/// Words of a value before the bytes: the link, the stamp and the length.
const HEAD: usize = 3;
const WORD: usize = size_of::<u64>();

/// The moment at which a version was written, and its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(u64);

impl Stamp {
    const SEQ_SHIFT: u32 = 8;
    const KIND: u64 = 3;
    const ALONE: u64 = 4;

    pub(super) fn new(kind: Kind, seq: Seq, alone: bool) -> Self {
        debug_assert!(seq.get() <= u64::MAX >> Self::SEQ_SHIFT);
        let alone = if alone { Self::ALONE } else { 0 };
        Stamp(seq.get() << Self::SEQ_SHIFT | alone | kind as u64)
    }

    #[inline]
    pub(super) fn seq(self) -> Seq {
        Seq::new(self.0 >> Self::SEQ_SHIFT)
    }

    #[inline]
    pub(super) fn kind(self) -> Kind {
        match self.0 & Self::KIND {
            1 => Kind::Put,
            2 => Kind::Delete,
            _ => Kind::Operand,
        }
    }

    /// Returns `true` if readers without a snapshot may read it before its number is published.
    #[inline]
    pub(super) fn is_alone(self) -> bool {
        self.0 & Self::ALONE != 0
    }

    pub(super) fn with_kind(self, kind: Kind) -> Self {
        Stamp(self.0 & !Self::KIND | kind as u64)
    }
}

/// The facts that a link tells besides its target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tags(usize);

impl Tags {
    /// Versions that readers without a snapshot could have asked for were between the two.
    pub(super) const LOST: Tags = Tags(1);
    /// The two belong to one stripe, and are not merged because the older one is much longer.
    pub(super) const APART: Tags = Tags(2);
    /// The tag of a version that is apart like one with [`APART`](Tags::APART), but because the
    /// operator has refused.
    pub(super) const REFUSED: Tags = Tags(4);

    pub(super) fn has(self, tag: Tags) -> bool {
        self.0 & tag.0 != 0
    }

    pub(super) fn set(&mut self, tag: Tags, is_set: bool) {
        self.0 = if is_set {
            self.0 | tag.0
        } else {
            self.0 & !tag.0
        };
    }
}

/// The link to the versions older than one: a pointer to a node, whose lower bits are [`Tags`].
/// Null is the version within the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link(*mut Node);

impl Link {
    const TAGS: usize = 7;
    /// Link to the version within the record.
    pub(super) const INLINE: Link = Link(ptr::null_mut());
    /// Link to nothing. No node is at this address.
    pub(super) const END: Link = Link(ptr::without_provenance_mut(8));

    pub(super) fn to(node: NonNull<Node>) -> Self {
        Link(node.as_ptr())
    }

    pub(super) fn tags(self) -> Tags {
        Tags(self.0.addr() & Self::TAGS)
    }

    pub(super) fn with_tags(self, tags: Tags) -> Self {
        Link(self.0.map_addr(|address| address & !Self::TAGS | tags.0))
    }

    /// Returns `true` if it has the tag [`LOST`](Tags::LOST).
    #[inline]
    pub(super) fn is_lost(self) -> bool {
        self.tags().has(Tags::LOST)
    }

    pub(super) fn without_tags(self) -> Self {
        self.with_tags(Tags::default())
    }

    /// Returns the node, if it leads to one.
    fn node(self) -> Option<NonNull<Node>> {
        let target = self.without_tags();
        match target {
            Link::END => None,
            Link(node) => NonNull::new(node),
        }
    }
}

/// A version that does not lie within the record. Its bytes follow it.
#[repr(C)]
pub(super) struct Node {
    older: AtomicPtr<Node>,
    stamp: Stamp,
    len: u32,
    /// Stripes from here on, about. Only writers read it.
    stripes: AtomicU32,
}

impl Node {
    /// Makes a new node, which no other code can reach yet.
    pub(super) fn make(stamp: Stamp, bytes: &[u8], older: Link, stripes: u32) -> NonNull<Node> {
        let len =
            u32::try_from(bytes.len()).expect("values are not longer than the formats can say");
        let node = slab::allocate(Self::block_bytes(bytes.len())).cast::<Node>();
        // SAFETY: the block, which no other code has, has room for the node and the bytes behind
        // it, and is aligned to words.
        unsafe {
            node.write(Node {
                older: AtomicPtr::new(older.0),
                stamp,
                len,
                stripes: AtomicU32::new(stripes),
            });
            let start = node.add(1).cast::<u8>().as_ptr();
            ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len());
        }
        #[cfg(test)]
        super::tests::census::count(bytes, 1);
        node
    }

    fn block_bytes(len: usize) -> usize {
        size_of::<Node>() + len
    }

    /// Returns the bytes of memory that it takes.
    pub(super) fn bytes(len: usize) -> usize {
        slab::block_size(Self::block_bytes(len))
    }

    /// # Safety
    /// The node comes from [`make`](Node::make), lives as long as `'n`, and the bytes with it.
    unsafe fn value<'n>(node: NonNull<Node>) -> &'n [u8] {
        // SAFETY: the caller says that the node comes from `make`, which has written so many bytes
        // behind it, and lives as long as `'n`. The bytes never change (MEMTABLE-2).
        unsafe {
            let len = (*node.as_ptr()).len as usize;
            std::slice::from_raw_parts(node.add(1).cast::<u8>().as_ptr(), len)
        }
    }

    /// Frees a node.
    ///
    /// # Safety
    /// It comes from [`make`](Node::make), and no code uses it any more.
    unsafe fn free(node: NonNull<Node>) {
        // SAFETY: the caller says that the node comes from `make`, which allocates with this size,
        // and that no code uses it any more.
        unsafe {
            #[cfg(test)]
            super::tests::census::count(Self::value(node), -1);
            let bytes = Self::block_bytes((*node.as_ptr()).len as usize);
            slab::free(node.cast(), bytes);
        }
    }
}

/// A version, found under a guard that lives as long as `'g`.
#[derive(Clone, Copy)]
pub(super) struct KeyVersion<'g> {
    pub stamp: Stamp,
    pub bytes: &'g [u8],
    /// The node of the version, if it does not lie within the record. A pointer, since a retired
    /// node is freed through it.
    node: Option<NonNull<Node>>,
}

impl<'g> KeyVersion<'g> {
    /// Returns the node, if it does not lie within the record.
    #[inline]
    fn node(self) -> Option<&'g Node> {
        // SAFETY: the node lives as long as the guard under which it was found (MEMTABLE-4).
        self.node.map(|node| unsafe { node.as_ref() })
    }

    /// Returns the link to the versions older than this one, at this moment.
    #[inline]
    pub(super) fn older(self) -> Link {
        match self.node() {
            Some(node) => Link(node.older.load(Ordering::Acquire)),
            None => Link::END,
        }
    }

    /// Returns the approximate number of stripes from here on. For writers.
    pub(super) fn stripes(self) -> u32 {
        self.node()
            .map_or(1, |node| node.stripes.load(Ordering::Relaxed))
    }

    /// Returns the link to this version.
    pub(super) fn link(self) -> Link {
        self.node.map_or(Link::INLINE, Link::to)
    }

    /// Returns `true` if it lies within the record.
    pub(super) fn is_inline(self) -> bool {
        self.node.is_none()
    }

    /// Lets it be followed by others, which say the same as those that follow it now.
    ///
    /// # Safety
    /// The caller holds the lock of writers (MEMTABLE-3). The version is in the list of its record,
    /// or was when the caller got the lock, and is not the one within the record. The link leads to
    /// a version of the same list, and MEMTABLE-5 holds.
    pub(super) unsafe fn set_older(self, link: Link, stripes: u32) {
        if let Some(node) = self.node() {
            node.stripes.store(stripes, Ordering::Relaxed);
            if node.older.load(Ordering::Relaxed) != link.0 {
                node.older.store(link.0, Ordering::Release);
            }
        }
    }

    /// Hands a version that was taken out of its list over to be freed.
    ///
    /// # Safety
    /// No link of a node in the list, nor of the record, leads to it (MEMTABLE-4), and it is
    /// retired only once.
    pub(super) unsafe fn retire(self, guard: &Guard) {
        unsafe fn free(node: *mut u8) {
            // SAFETY: `retire` hands over a node.
            unsafe { Node::free(NonNull::new_unchecked(node).cast()) }
        }
        if let Some(node) = self.node {
            let bytes = Node::bytes(self.bytes.len());
            // SAFETY: the caller says that no link leads to the node any more and that it is
            // retired once; readers look at nodes under guards (MEMTABLE-4).
            unsafe { guard.retire(node.as_ptr().cast(), bytes, free) }
        }
    }
}

/// The record of a key, found under a guard that lives as long as `'g`.
#[derive(Clone, Copy)]
pub(super) struct History<'g> {
    record: &'g Record<Versions>,
}

impl<'g> History<'g> {
    /// The guard is the one under which the record was found.
    pub(super) fn of(record: &'g Record<Versions>, _guard: &'g Guard) -> Self {
        History { record }
    }

    pub(super) fn key(self) -> &'g [u8] {
        self.record.key()
    }

    /// Returns the stamp of the newest version, as of this moment.
    pub(super) fn newest_stamp(self) -> Option<Stamp> {
        // SAFETY: the link is that of this record.
        unsafe { self.at(self.newest()) }.map(|version| version.stamp)
    }

    fn word(self) -> &'g AtomicPtr<Node> {
        // SAFETY: the value of a record begins with a link, which is accessed atomically
        // (MEMTABLE-1).
        unsafe { link_of(self.record.value_words().0) }
    }

    /// Returns the link to the newest version, at this moment.
    #[inline]
    pub(super) fn newest(self) -> Link {
        Link(self.word().load(Ordering::Acquire))
    }

    /// Returns the version at a link of this list, if it is not the end.
    ///
    /// # Safety
    /// The link was read from this record, or from a version of it, under the guard of this
    /// history.
    #[inline]
    pub(super) unsafe fn at(self, link: Link) -> Option<KeyVersion<'g>> {
        match link.without_tags() {
            Link::INLINE => Some(self.inline()),
            Link::END => None,
            Link(node) => {
                let node = NonNull::new(node)?;
                // SAFETY: the node lives as long as the guard (MEMTABLE-4).
                let (stamp, bytes) = unsafe { (node.as_ref().stamp, Node::value(node)) };
                Some(KeyVersion {
                    stamp,
                    bytes,
                    node: Some(node),
                })
            }
        }
    }

    #[inline]
    fn inline(self) -> KeyVersion<'g> {
        let (words, _) = self.record.value_words();
        // SAFETY: the words behind the link are the stamp, the length and so many bytes, and never
        // change (MEMTABLE-1).
        let (stamp, bytes) = unsafe {
            let start = words.add(HEAD).cast::<u8>();
            let bytes = std::slice::from_raw_parts(start, *words.add(2) as usize);
            (Stamp(*words.add(1)), bytes)
        };
        KeyVersion {
            stamp,
            bytes,
            node: None,
        }
    }

    /// Makes the list begin elsewhere.
    ///
    /// # Safety
    /// As for [`KeyVersion::set_older`].
    pub(super) unsafe fn set_newest(self, link: Link) {
        self.word().store(link.0, Ordering::Release);
    }
}

/// Returns the link in the first word of a value.
///
/// # Safety
/// The value is one of [`new_record`]. As long as `'w`, it lives and its first word is accessed
/// atomically.
unsafe fn link_of<'w>(words: *const u64) -> &'w AtomicPtr<Node> {
    // SAFETY: the caller says that the value lives as long as `'w` and that its first word is
    // accessed atomically (MEMTABLE-1). A word has room for a pointer, and is aligned for it.
    unsafe { AtomicPtr::from_ptr(words.cast_mut().cast()) }
}

/// Returns a record of a key with its first version.
pub(super) fn new_record(key: &[u8], stamp: Stamp, bytes: &[u8]) -> RecordBox<Versions> {
    if bytes.len() > INLINE_MAX {
        let record = RecordBox::new(key, &[0; HEAD], true);
        let node = Node::make(stamp, bytes, Link::END, 1);
        // SAFETY: no other code can reach the record, which begins with a link (MEMTABLE-1).
        let link = unsafe { link_of(record.value_words().0) };
        link.store(node.as_ptr(), Ordering::Relaxed);
        return record;
    }
    let mut words = [0; INLINE_MAX / WORD];
    let (pairs, rest) = bytes.as_chunks::<WORD>();
    for (word, pair) in words.iter_mut().zip(pairs) {
        *word = u64::from_ne_bytes(*pair);
    }
    if !rest.is_empty() {
        let mut last = [0; WORD];
        last[..rest.len()].copy_from_slice(rest);
        words[pairs.len()] = u64::from_ne_bytes(last);
    }
    let words = &words[..bytes.len().div_ceil(WORD)];
    RecordBox::in_parts(key, [&[0, stamp.0, bytes.len() as u64], words], true)
}

/// The data that the records of a memtable own: the nodes of their lists.
pub(super) struct Versions;

impl Release for Versions {
    unsafe fn release(value: &[u64]) {
        // SAFETY: the value is that of a record of a memtable, which begins with a link
        // (MEMTABLE-1). No other code can reach it now, so the link need not be read atomically.
        let mut link = Link(unsafe { value.as_ptr().cast::<*mut Node>().read() });
        while let Some(node) = link.node() {
            // SAFETY: a node in the list is in no other (MEMTABLE-4), and no reader can have come
            // to it: its guard would keep the record.
            unsafe {
                link = Link((*node.as_ptr()).older.load(Ordering::Acquire));
                Node::free(node);
            }
        }
    }
}
