//! Route nodes, which lead to base nodes.
//!
//! The invariants (PAPER_TREE-1 and so on) are those of [`paper_tree`](super).

use super::link::Link;
use super::side::Side;
use ats_mem::record::Release;
use ats_sync::shim::atomic::{AtomicBool, Ordering};
use ats_sync::{Held, Lock};

/// A route node: keys below its separator are to the left, others to the right. One cache line.
#[repr(align(64))]
pub(super) struct Route<R: Release> {
    separator: Separator,
    left: Link<R>,
    right: Link<R>,
    lock: Lock,
    is_valid: AtomicBool,
}

impl<R: Release> Route<R> {
    pub(super) fn new(separator: Separator, left: Link<R>, right: Link<R>) -> Self {
        Route {
            separator,
            left,
            right,
            lock: Lock::new(),
            is_valid: AtomicBool::new(true),
        }
    }

    #[inline]
    pub(super) fn separator(&self) -> &[u8] {
        self.separator.bytes()
    }

    /// On which side a key is.
    #[inline]
    pub(super) fn side_of(&self, key: &[u8]) -> Side {
        match key < self.separator() {
            true => Side::Left,
            false => Side::Right,
        }
    }

    #[inline]
    pub(super) fn child(&self, side: Side) -> &Link<R> {
        match side {
            Side::Left => &self.left,
            Side::Right => &self.right,
        }
    }

    /// Takes the lock, as PAPER_TREE-5 says.
    pub(super) fn lock(&self) -> Held<'_> {
        self.lock.lock_uncounted()
    }

    /// Returns `true` if it has not been spliced out, for the holder of the lock.
    pub(super) fn is_valid(&self, held: &Held<'_>) -> bool {
        debug_assert!(held.holds(&self.lock));
        self.is_valid.load(Ordering::Relaxed)
    }

    /// Says that it has been spliced out, for the holder of the lock (PAPER_TREE-3).
    pub(super) fn invalidate(&self, held: &Held<'_>) {
        debug_assert!(held.holds(&self.lock));
        self.is_valid.store(false, Ordering::Relaxed);
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        let outside = match &self.separator {
            Separator::Short(..) => 0,
            Separator::Long(bytes) => bytes.len(),
        };
        size_of::<Self>() + outside
    }
}

/// The longest separator that is kept in the node.
const SHORT: usize = 22;

/// A separator: in the node, as in the original, unless it is long.
pub(super) enum Separator {
    /// A number of the bytes.
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

impl Separator {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT];
        match short.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Separator::Short(bytes.len() as u8, short)
            }
            None => Separator::Long(bytes.into()),
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Separator::Short(len, bytes) => &bytes[..usize::from(*len)],
            Separator::Long(bytes) => bytes,
        }
    }
}

// The atomics of the model checker are larger.
#[cfg(not(loom))]
const _: () = assert!(size_of::<Route<ats_mem::record::Plain>>() == 64);
