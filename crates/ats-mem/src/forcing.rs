//! Adaptation by force, for tests: structures change although no threads contend for them. Without
//! the feature `forcing` nothing is ever forced, and the check costs nothing.

#[cfg(feature = "forcing")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// An adaptation that is forced after a write, by `Records::force_adaptation`, which stores have
/// with the feature `forcing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// A part is split in two.
    Split,
    /// A part is joined with its neighbour.
    Join,
}

/// A counter of writes that selects those that force an adaptation.
#[derive(Default)]
pub struct Forcing {
    /// Writes per forced split (upper half) and per forced join (lower half); 0 is never.
    #[cfg(feature = "forcing")]
    every: AtomicU64,
    /// Writes since the setting.
    #[cfg(feature = "forcing")]
    writes: AtomicU64,
}

#[cfg(not(feature = "forcing"))]
impl Forcing {
    /// Returns the adaptation that this write must force.
    #[inline]
    pub const fn decide_forced(&self) -> Option<Forced> {
        None
    }
}

#[cfg(feature = "forcing")]
impl Forcing {
    /// Makes one of `splits` later writes force a split, and one of `joins` a join; 0 is never.
    pub fn set(&self, splits: u32, joins: u32) {
        self.every
            .store(u64::from(splits) << 32 | u64::from(joins), Relaxed);
    }

    /// Returns the adaptation that this write must force. Nearly always one load.
    #[inline]
    pub fn decide_forced(&self) -> Option<Forced> {
        match self.every.load(Relaxed) {
            0 => None,
            every => self.choose(every >> 32, every & u64::from(u32::MAX)),
        }
    }

    #[cold]
    fn choose(&self, splits: u64, joins: u64) -> Option<Forced> {
        let write = self.writes.fetch_add(1, Relaxed);
        let falls = |every: u64, offset: u64| every > 0 && write % every == offset % every;
        match (falls(splits, 0), falls(joins, joins / 2)) {
            (true, _) => Some(Forced::Split),
            (_, true) => Some(Forced::Join),
            _ => None,
        }
    }
}
