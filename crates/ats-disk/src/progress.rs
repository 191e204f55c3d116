//! The progress of long work.

use std::ops::ControlFlow;

/// The progress of long work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of keys and values that were read.
    pub done: u64,
    /// Bytes of keys and values that are to be read. More work may come to be known on the way.
    pub total: u64,
}

/// Callback of long work, called now and then in the thread that does it. Breaking ends the work;
/// finished parts are not lost.
pub type OnProgress<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;
