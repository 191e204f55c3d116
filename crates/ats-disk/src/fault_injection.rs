//! Faults that tests inject into the engine, to see that they find them. No release has them: they
//! need the feature `fault-injection`.

#[cfg(feature = "fault-injection")]
use std::cell::Cell;

/// A fault that a test injects.
#[cfg_attr(
    not(feature = "fault-injection"),
    expect(unreachable_pub, reason = "it is public where it is used")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
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

#[cfg(feature = "fault-injection")]
thread_local! {
    static INJECTED: Cell<Option<InjectedFault>> = const { Cell::new(None) };
}

/// Injects a fault into the work of this thread. It replaces the previous one.
#[cfg(feature = "fault-injection")]
pub fn inject(fault: Option<InjectedFault>) {
    INJECTED.set(fault);
}

/// Returns `true` if a fault is injected.
#[inline(always)]
pub(crate) fn is_injected(fault: InjectedFault) -> bool {
    #[cfg(feature = "fault-injection")]
    return INJECTED.get() == Some(fault);
    #[cfg(not(feature = "fault-injection"))]
    {
        let _ = fault;
        false
    }
}
