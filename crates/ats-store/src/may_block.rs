//! The capability to block.

use std::marker::PhantomData;

/// The capability of a thread to block: to wait for a device, for back-pressure, or for another
/// thread that may wait for these.
///
/// A function that may block takes an `Option<MayBlock>`. With `None`, it either completes in
/// memory at once, or changes nothing and returns [`Error::WouldBlock`](crate::Error::WouldBlock).
/// Then a thread that has the capability can repeat the call.
///
/// The functions of a [`Store`](crate::Store) take it because a store is called on behalf of
/// threads that it does not know. Interfaces for programs make it themselves: those whose functions
/// say in their names if they block (`get` and `try_get`), and tables of terms, which ask a
/// function that they were made with. So a program that uses these never holds one.
///
/// The value has no size, and cannot be sent to another thread:
///
/// ```compile_fail
/// let may_block = ats_store::MayBlock::here();
/// std::thread::spawn(move || may_block);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct MayBlock(PhantomData<*const ()>);

impl MayBlock {
    /// Grants the capability to the calling thread. A scheduler of processes and a thread of an
    /// asynchronous runtime must not call this: while they block, all their processes or tasks
    /// stand still.
    #[inline]
    #[must_use]
    pub const fn here() -> Self {
        MayBlock(PhantomData)
    }
}
