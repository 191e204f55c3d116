//! Faults that tests plant into the engine, to see that they find them. No release has them: they need the feature
//! `planted`.

#[cfg(feature = "planted")]
use std::cell::Cell;

/// A fault that a test plants.
#[cfg_attr(
    not(feature = "planted"),
    expect(unreachable_pub, reason = "it is public where it is used")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A record of a log is taken for one although its checksum says that a part of it is missing.
    TornRecord,
    /// A newer value is merged before an older one.
    Order,
    /// The manifest names a run before the directory does.
    EarlyEdit,
    /// A delete vanishes although older runs have the key.
    EarlyDrop,
    /// A call that a signal has interrupted is taken for one that has failed.
    Interrupted,
    /// A store that is opened for reading is repaired.
    RepairedForReading,
    /// A write that could not begin a journal is taken for one that is done.
    Unwritten,
    /// A gap is not broken by a write.
    StaleGap,
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: Cell<Option<Fault>> = const { Cell::new(None) };
}

/// Plants a fault, in place of the one there was, into what this thread does.
#[cfg(feature = "planted")]
pub fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}

/// Returns `true` if a fault is planted.
#[inline(always)]
pub(crate) fn is_planted(fault: Fault) -> bool {
    #[cfg(feature = "planted")]
    return PLANTED.get() == Some(fault);
    #[cfg(not(feature = "planted"))]
    {
        let _ = fault;
        false
    }
}
