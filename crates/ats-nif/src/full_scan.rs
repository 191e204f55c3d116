//! The option `full_scan` of a table: its reaction to queries that read the whole table.

use crate::atoms::KnownAtom;
use crate::process::Clocks;
use std::sync::atomic::{AtomicI64, Ordering};

/// The values of `{full_scan, _}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullScan {
    /// `allow`: no reaction.
    Allow,
    /// `warn`: the query is logged.
    Warn,
    /// `refuse`: the query fails.
    Refuse,
}

/// The verdict on a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run it.
    Run,
    /// The caller logs a warning and asks again.
    WarnFirst,
}

/// The policy of a table for queries that read the whole table.
pub struct FullScanPolicy {
    wanted: FullScan,
    /// Second of Erlang monotonic time of the last warning.
    warned_at: AtomicI64,
}

impl FullScanPolicy {
    /// Creates a policy with this reaction to full scans.
    #[must_use]
    pub fn new(wanted: FullScan) -> Self {
        FullScanPolicy {
            wanted,
            warned_at: AtomicI64::new(i64::MIN),
        }
    }

    /// Returns the reaction to full scans.
    #[must_use]
    pub fn answer(&self) -> FullScan {
        self.wanted
    }

    /// Returns the verdict on a full scan. Warns at most once a second, so that a loop does not
    /// flood the log.
    pub fn judge(&self) -> Result<Verdict, KnownAtom> {
        match self.wanted {
            FullScan::Allow => Ok(Verdict::Run),
            FullScan::Refuse => Err(KnownAtom::FullScan),
            FullScan::Warn => {
                let now = Clocks::now().monotonic_nanos.div_euclid(1_000_000_000);
                if self.warned_at.swap(now, Ordering::Relaxed) == now {
                    Ok(Verdict::Run)
                } else {
                    Ok(Verdict::WarnFirst)
                }
            }
        }
    }
}
