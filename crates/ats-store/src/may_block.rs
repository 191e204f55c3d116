//! The capability to block.

use std::marker::PhantomData;

/// The capability of a thread to block: to wait for a device, for back-pressure, or for a thread
/// that does.
///
/// A function that may block takes an `Option<MayBlock>`. With `None` it does what can be done in
/// memory at once, or it changes nothing and returns
/// [`Error::WouldBlock`](crate::Error::WouldBlock). Then the same call can be made again by a
/// thread that has the capability.
///
/// The value is of no size, and stays in its thread:
///
/// ```compile_fail
/// let may_block = ats_store::MayBlock::here();
/// std::thread::spawn(move || may_block);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MayBlock(PhantomData<*const ()>);

impl MayBlock {
    /// Grants the capability to the calling thread. Not for a scheduler that serves processes, nor
    /// for a thread of an asynchronous runtime: while they block, what they serve stands still.
    #[inline]
    #[must_use]
    pub const fn here() -> Self {
        MayBlock(PhantomData)
    }
}
