//! The blocks of a sequence: nodes and values.
//!
//! ```text
//!           63              32 31              0
//! node     +------------------+-----------------+---------------------------+
//!          | bitmap of slots  | references      | link of each slot that is |
//!          +------------------+-----------------+---------------------------+
//! value    | length in words  | references      | words                     |
//!          | (31 bits) | owns |                 |                           |
//!          +------------------+-----------------+---------------------------+
//! ```
//!
//! Which of the two a link leads to is not in the block: it follows from the height at which the link
//! stands.

use crate::slab;
use ats_sync::shim::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// Bits of a position that choose the slot in one node. Few where interleavings are explored, so that few
/// values make a tree of several levels.
pub(super) const BITS: u32 = if cfg!(any(loom, shuttle)) { 2 } else { 5 };
/// Most children of a node.
pub(super) const FANOUT: u32 = 1 << BITS;
/// Nodes on the way to the value at the largest position.
#[cfg(all(test, not(any(loom, shuttle))))]
pub(super) const MAX_HEIGHT: u32 = u64::BITS.div_ceil(BITS);

const COUNT: u64 = u32::MAX as u64;
const SHAPE_SHIFT: u32 = 32;
/// So many references are the work of a program gone wild; beyond them the count would overflow.
const COUNT_MAX: u64 = 1 << 31;
const OWNS: u32 = 1;

/// The first word of a block.
#[repr(C)]
struct BlockHeader {
    word: AtomicU64,
}

const HEAD: usize = size_of::<BlockHeader>();
const WORD: usize = size_of::<u64>();

impl BlockHeader {
    fn new(shape: u32) -> Self {
        BlockHeader {
            word: AtomicU64::new(u64::from(shape) << SHAPE_SHIFT | 1),
        }
    }

    #[inline(always)]
    fn shape(&self) -> u32 {
        #[cfg(loom)]
        let word = self.word.peek();
        #[cfg(not(loom))]
        let word = self.word.load(Relaxed);
        (word >> SHAPE_SHIFT) as u32
    }
}

/// A pointer to a block, with the mark of a draft in its lowest bit: blocks are aligned to 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Link(NonNull<u8>);

const DRAFT: usize = 1;

impl Link {
    /// Whether the block was made by the edit at hand, which has the only link to it.
    #[inline]
    pub(super) fn is_draft(self) -> bool {
        self.0.addr().get() & DRAFT != 0
    }

    /// The same link without the mark.
    #[inline]
    pub(super) fn settled(self) -> Link {
        // SAFETY: no block is at address 0.
        Link(unsafe { NonNull::new_unchecked(self.pointer()) })
    }

    /// Where the block begins.
    #[inline]
    pub(super) fn pointer(self) -> *mut u8 {
        self.0.as_ptr().map_addr(|address| address & !DRAFT)
    }

    /// The link to a block that was kept as a [`pointer`](Link::pointer).
    ///
    /// # Safety
    /// The pointer came from there.
    pub(super) unsafe fn of_pointer(pointer: *mut u8) -> Link {
        // SAFETY: no block is at address 0.
        Link(unsafe { NonNull::new_unchecked(pointer) })
    }

    fn draft(block: NonNull<u8>) -> Link {
        Link(block.map_addr(|address| address | DRAFT))
    }

    /// The node behind the link.
    ///
    /// # Safety
    /// It is a node, and lives as long as `'a`.
    #[inline(always)]
    pub(super) unsafe fn node<'a>(self) -> Node<'a> {
        Node {
            block: self.settled().0,
            live: PhantomData,
        }
    }

    /// The value behind the link.
    ///
    /// # Safety
    /// It is a value, and lives as long as `'a`.
    #[inline(always)]
    pub(super) unsafe fn value<'a>(self) -> Value<'a> {
        Value {
            block: self.settled().0,
            live: PhantomData,
        }
    }

    /// # Safety
    /// The block lives as long as `'a`.
    #[inline(always)]
    unsafe fn head<'a>(self) -> &'a BlockHeader {
        // SAFETY: every block begins with a head.
        unsafe { &*self.pointer().cast() }
    }

    /// Whether the holder of a reference has the only one.
    ///
    /// # Safety
    /// The block lives.
    #[inline]
    pub(super) unsafe fn is_only(self) -> bool {
        // Acquire: what others did with the block before they gave their references up is over.
        // SAFETY: the contract.
        unsafe { self.head() }.word.load(Acquire) & COUNT == 1
    }

    /// Number of references.
    ///
    /// # Safety
    /// The block lives.
    #[cfg(all(test, not(any(loom, shuttle))))]
    pub(super) unsafe fn count(self) -> u32 {
        // SAFETY: the contract.
        (unsafe { self.head() }.word.load(Acquire) & COUNT) as u32
    }

    /// Takes one more reference.
    ///
    /// # Safety
    /// The caller has a reference, or keeps the owner of one from giving it up.
    pub(super) unsafe fn share(self) {
        // Relaxed, as a thread that has a reference already sees the block.
        // SAFETY: the reference of the caller keeps the block.
        let before = unsafe { self.head() }.word.fetch_add(1, Relaxed);
        if before & COUNT > COUNT_MAX {
            std::process::abort();
        }
    }

    /// Takes one more reference, if there is any. Says whether it did.
    ///
    /// # Safety
    /// The block lives.
    pub(super) unsafe fn share_if_any(self) -> bool {
        // SAFETY: the contract.
        let word = unsafe { &self.head().word };
        let mut before = word.load(Relaxed);
        while before & COUNT != 0 {
            if before & COUNT > COUNT_MAX {
                std::process::abort();
            }
            match word.compare_exchange_weak(before, before + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => before = now,
            }
        }
        false
    }

    /// Takes the only reference away, if there is only one, so that no thread can
    /// [share](Self::share_if_any) the block any more. Says whether it did.
    ///
    /// # Safety
    /// The block lives.
    pub(super) unsafe fn take_only(self) -> bool {
        // SAFETY: the contract.
        let head = unsafe { self.head() };
        let alone = u64::from(head.shape()) << SHAPE_SHIFT | 1;
        // Acquire as in `is_only`.
        let taken = head
            .word
            .compare_exchange(alone, alone - 1, Acquire, Relaxed);
        taken.is_ok()
    }

    /// Gives a reference up. Whether it was the last, so that the block is the caller's to free.
    ///
    /// # Safety
    /// The caller has a reference, and does not use it afterwards.
    pub(super) unsafe fn give_up(self) -> bool {
        // SAFETY: the reference of the caller keeps the block.
        unsafe {
            // One load instead of a write for blocks with a single reference, which most have.
            if self.is_only() {
                return true;
            }
            let last = self.head().word.fetch_sub(1, Release) & COUNT == 1;
            if last {
                // The uses by others, before they gave up theirs, come before the freeing.
                fence(Acquire);
            }
            last
        }
    }
}

/// A node, for as long as it lives.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    block: NonNull<u8>,
    live: PhantomData<&'a [Link]>,
}

impl<'a> Node<'a> {
    /// A new node in which the slots of a bitmap have the links of these parts, in their order; with one
    /// reference.
    fn make(bitmap: u32, parts: [&[Link]; 3]) -> Link {
        let children = parts.iter().map(|part| part.len()).sum::<usize>();
        debug_assert_eq!(children, bitmap.count_ones() as usize);
        let block = slab::allocate(node_bytes(children as u32));
        // SAFETY: the block is new, and has room for the head and as many links.
        unsafe {
            block.cast().write(BlockHeader::new(bitmap));
            let mut place = block.add(HEAD).cast::<Link>();
            for part in parts {
                ptr::copy_nonoverlapping(part.as_ptr(), place.as_ptr(), part.len());
                place = place.add(part.len());
            }
        }
        Link::draft(block)
    }

    /// A node with a single child.
    pub(super) fn single(slot: u32, link: Link) -> Link {
        Node::make(1 << slot, [&[link], &[], &[]])
    }

    /// A copy of this node in which a slot has this link, or none.
    pub(super) fn copy_with(self, slot: u32, link: Option<Link>) -> Link {
        let (before, rest) = self.links().split_at(self.index(slot));
        let after = &rest[usize::from(self.has(slot))..];
        match link {
            Some(link) => Node::make(self.bitmap() | 1 << slot, [before, &[link], after]),
            None => Node::make(self.bitmap() & !(1 << slot), [before, &[], after]),
        }
    }

    #[inline(always)]
    fn head(self) -> &'a BlockHeader {
        // SAFETY: every block begins with a head, and this one lives.
        unsafe { self.block.cast().as_ref() }
    }

    /// Which slots have a child.
    #[inline(always)]
    pub(super) fn bitmap(self) -> u32 {
        self.head().shape()
    }

    #[inline(always)]
    pub(super) fn has(self, slot: u32) -> bool {
        self.bitmap() >> slot & 1 != 0
    }

    /// How many children come before that of a slot.
    #[inline(always)]
    fn index(self, slot: u32) -> usize {
        (self.bitmap() & ((1 << slot) - 1)).count_ones() as usize
    }

    /// The links, in the order of their slots.
    #[inline(always)]
    pub(super) fn links(self) -> &'a [Link] {
        // SAFETY: behind the head of a node there is a link for each bit. They change only through
        // `set`, which has the node for itself.
        unsafe {
            let start = self.block.add(HEAD).cast::<Link>();
            std::slice::from_raw_parts(start.as_ptr(), self.bitmap().count_ones() as usize)
        }
    }

    /// The slot of the link at this place among the links.
    pub(super) fn slot_at(self, index: usize) -> u32 {
        let slot = slots(self.bitmap()).nth(index);
        slot.expect("a link for each slot of the bitmap")
    }

    #[inline(always)]
    pub(super) fn child(self, slot: u32) -> Option<Link> {
        self.has(slot).then(|| self.links()[self.index(slot)])
    }

    /// Changes the link of a slot that has one.
    ///
    /// # Safety
    /// No other code can reach the node, and the caller has no slice of its links.
    pub(super) unsafe fn set(self, slot: u32, link: Link) {
        debug_assert!(self.has(slot));
        // SAFETY: handed on.
        unsafe { self.set_at(self.index(slot), link) };
    }

    /// Changes the link at this place among the links.
    ///
    /// # Safety
    /// There is one, and as for [`set`](Node::set).
    pub(super) unsafe fn set_at(self, index: usize, link: Link) {
        debug_assert!(index < self.links().len());
        // SAFETY: no other code reads the links, and there are enough of them.
        unsafe { self.block.add(HEAD).cast::<Link>().add(index).write(link) };
    }

    /// Bytes of memory this node takes.
    pub(super) fn bytes(self) -> usize {
        slab::rounded(node_bytes(self.bitmap().count_ones()))
    }

    /// Frees the node, whatever its children.
    ///
    /// # Safety
    /// It is not used afterwards.
    pub(super) unsafe fn free(self) {
        // SAFETY: the block was allocated in `make` for as many children.
        unsafe { slab::free(self.block, node_bytes(self.bitmap().count_ones())) };
    }
}

/// A value, for as long as it lives.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    block: NonNull<u8>,
    live: PhantomData<&'a [u64]>,
}

impl<'a> Value<'a> {
    /// A new value with one reference.
    ///
    /// # Panics
    /// If it has 2^31 words.
    pub(super) fn make(words: &[u64], owns: bool) -> Link {
        let len = u32::try_from(words.len()).ok();
        let len = len
            .filter(|len| *len < 1 << 31)
            .expect("a value is shorter than 2^31 words");
        let block = slab::allocate(HEAD + words.len() * WORD);
        // SAFETY: the block is new, and has room for the head and the words.
        unsafe {
            block
                .cast()
                .write(BlockHeader::new(len << 1 | u32::from(owns)));
            let start = block.add(HEAD).cast();
            ptr::copy_nonoverlapping(words.as_ptr(), start.as_ptr(), words.len());
        }
        Link::draft(block)
    }

    #[inline(always)]
    fn shape(self) -> u32 {
        // SAFETY: every block begins with a head, and this one lives.
        unsafe { self.block.cast::<BlockHeader>().as_ref() }.shape()
    }

    /// Whether the words own resources.
    pub(super) fn owns(self) -> bool {
        self.shape() & OWNS != 0
    }

    #[inline(always)]
    pub(super) fn words(self) -> &'a [u64] {
        let len = (self.shape() >> 1) as usize;
        // SAFETY: so many words stand behind the head; they never change.
        unsafe { std::slice::from_raw_parts(self.block.add(HEAD).cast().as_ptr(), len) }
    }

    /// Bytes of memory this value takes.
    pub(super) fn bytes(self) -> usize {
        slab::rounded(self.block_bytes())
    }

    fn block_bytes(self) -> usize {
        HEAD + (self.shape() >> 1) as usize * WORD
    }

    /// Frees the block, whatever its words own.
    ///
    /// # Safety
    /// It is not used afterwards.
    pub(super) unsafe fn free(self) {
        // SAFETY: the block was allocated in `make` for as many words.
        unsafe { slab::free(self.block, self.block_bytes()) };
    }
}

fn node_bytes(children: u32) -> usize {
    HEAD + children as usize * size_of::<Link>()
}

/// The slots of a bitmap, ascending.
pub(super) fn slots(mut bitmap: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let slot = (bitmap != 0).then(|| bitmap.trailing_zeros())?;
        bitmap &= bitmap - 1;
        Some(slot)
    })
}

/// The slot that leads to a position, in a node whose values are this many steps away.
#[inline(always)]
pub(super) fn slot_of(position: u64, height: u32) -> u32 {
    // One step from the values the lowest bits choose.
    (position >> ((height - 1) * BITS)) as u32 & (FANOUT - 1)
}

/// The least height of a node that leads to this position.
pub(super) fn height_for(position: u64) -> u32 {
    (u64::BITS - position.leading_zeros()).div_ceil(BITS).max(1)
}
