//! A value alone on its cache lines.

use std::ops::{Deref, DerefMut};

/// A value alone on its cache lines, so that writes to it do not slow down readers of its
/// neighbours.
///
/// 128 bytes rather than 64: processors fetch cache lines in adjacent pairs, and some have lines of
/// 128 bytes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(pub T);

impl<T> Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
