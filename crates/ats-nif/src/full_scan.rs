//! The option `full_scan` of a table: its answer to queries that read all of it.

use crate::atoms::KnownAtom;
use crate::process::Moment;
use std::sync::atomic::{AtomicI64, Ordering};

/// The values of `{full_scan, _}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullScan {
    /// `allow`: nothing.
    Allow,
    /// `warn`: it is logged.
    Warn,
    /// `refuse`: it fails.
    Refuse,
}

/// The verdict about a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is run.
    Run,
    /// The caller logs a warning and asks again.
    WarnFirst,
}

/// Watches over the queries of a table.
pub struct FullScanPolicy {
    wanted: FullScan,
    /// The second of Erlang monotonic time in which there was a warning.
    warned_at: AtomicI64,
}

impl FullScanPolicy {
    /// Does with full scans what is wanted.
    #[must_use]
    pub fn new(wanted: FullScan) -> Self {
        FullScanPolicy {
            wanted,
            warned_at: AtomicI64::new(i64::MIN),
        }
    }

    /// The wanted answer to full scans.
    #[must_use]
    pub fn answer(&self) -> FullScan {
        self.wanted
    }

    /// Returns the verdict about a full scan. There is at most one warning in a second, so a loop
    /// does not drown the log.
    pub fn judge(&self) -> Result<Verdict, KnownAtom> {
        match self.wanted {
            FullScan::Allow => Ok(Verdict::Run),
            FullScan::Refuse => Err(KnownAtom::FullScan),
            FullScan::Warn => {
                let now = Moment::now().monotonic_nanos.div_euclid(1_000_000_000);
                match self.warned_at.swap(now, Ordering::Relaxed) == now {
                    true => Ok(Verdict::Run),
                    false => Ok(Verdict::WarnFirst),
                }
            }
        }
    }
}
