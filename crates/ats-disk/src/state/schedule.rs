//! The memberships of a store in the [pools](crate::pool), by which its background work is woken.

use crate::pool::Membership;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The journal is not synced more often than this, other than for writes that wait for it.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// The memberships of a store in the pools; none if it has no background work.
#[derive(Default)]
pub(crate) struct Schedule {
    membership: OnceLock<Arc<Membership>>,
    sync_membership: OnceLock<Arc<Membership>>,
    /// `true` while turns ask the snapshots if they have expired.
    watches_snapshots: AtomicBool,
}

impl Schedule {
    /// Sets the membership of the work, and wakes it.
    pub(crate) fn set_membership(&self, membership: Arc<Membership>) {
        let _first = self.membership.set(membership);
        self.wake();
    }

    /// Sets the membership of syncs at intervals.
    pub(crate) fn set_sync_membership(&self, membership: Arc<Membership>) {
        let _first = self.sync_membership.set(membership);
    }

    /// Says that an urgent turn begins.
    pub(crate) fn begin_turn(&self) {
        if let Some(membership) = self.membership.get() {
            membership.begin_turn();
        }
    }

    /// Has a turn taken soon: there is something to do.
    #[inline]
    pub(crate) fn wake(&self) {
        if let Some(membership) = self.membership.get() {
            membership.wake();
        }
    }

    /// Like [`wake`](Schedule::wake), but only if there are threads, and `is_due` says so.
    pub(crate) fn wake_if(&self, is_due: impl FnOnce() -> bool) {
        if self.membership.get().is_some() && is_due() {
            self.wake();
        }
    }

    /// Has turns ask the snapshots if they have expired.
    #[inline]
    pub(crate) fn watch_snapshots(&self) {
        if !self.watches_snapshots.load(Ordering::Relaxed)
            && !self.watches_snapshots.swap(true, Ordering::Relaxed)
        {
            self.wake();
        }
    }

    /// Ends the watch of snapshots, unless there are some. Returns `true` if it goes on.
    pub(crate) fn continue_watching(&self, has_snapshots: impl FnOnce() -> bool) -> bool {
        self.watches_snapshots.store(false, Ordering::Relaxed);
        let goes_on = has_snapshots();
        self.watches_snapshots.fetch_or(goes_on, Ordering::Relaxed);
        goes_on
    }

    /// Has the journal synced after an interval.
    pub(crate) fn sync_after(&self, interval: Duration) {
        if let Some(membership) = self.sync_membership.get() {
            membership.wake_after(interval.max(SHORTEST_INTERVAL));
        }
    }

    /// Returns `true` if other stores wait for a thread that compacts.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.membership
            .get()
            .is_some_and(|membership| membership.is_waited_for())
    }

    /// Ends the background work, of which one piece may be under way, which is waited for.
    pub(crate) fn end(&self) {
        for membership in [&self.membership, &self.sync_membership] {
            if let Some(membership) = membership.get() {
                membership.leave();
            }
        }
    }
}
