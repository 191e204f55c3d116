//! A thread that joins parts that contention has split, and frees records that were kept for
//! queries.
//!
//! A store that adapts to contention splits parts where writers wait for each other, and joins
//! parts where they no longer do. But only writes cause joins: a table that is only read from now
//! on, or not used at all, would keep its parts and their memory. So a store that goes from one
//! part to two is *listed* here. Ten times a second a thread visits every listed store, which then
//! joins some of the parts that were not written since the last visit, until only one part is left.
//! While no store is split, the thread sleeps.
//!
//! A store is also listed when a query has ended for which it kept more records than the thread
//! that ended the query frees. That is urgent: it ends the nap of the thread, which then frees
//! records until none is left. Joins still wait for their interval.
//!
//! The thread that lists a store is a writer in the middle of an operation. Any thread may give up
//! a store. Neither of them may wait for a visit.
//!
//! # Invariants
//! - IDLE_JOINER-1. A thread holds the lock of the list to append to the list or to exchange it;
//!   never during a visit, and not while it frees anything.
//! - IDLE_JOINER-2. Entries are weak: the list keeps no store alive. The thread has a strong
//!   reference only during a visit, and the thread that gives up the last reference frees the store
//!   (`JoinIdle::release`). So no thread needs to take a store out of the list.
//! - IDLE_JOINER-3. A store with several parts is in the list, or is being visited, or a thread is
//!   about to list it. The thread clears `listed` *before* it examines whether the store still
//!   needs its entry, and both sides change the flag by an atomic exchange. So if a writer finds
//!   the flag set, it did so before the flag was cleared, and the visit sees the split of that
//!   writer. A writer that finds the flag clear makes a new entry. A visit that does not join keeps
//!   entry and flag.
//! - IDLE_JOINER-4. A store has at most one entry: only the thread that sets `listed` makes an
//!   entry, or keeps the entry of a visit.

use crate::background;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// A store that can join parts, and free kept records, in small steps.
pub(crate) trait JoinIdle: Send + Sync {
    /// Returns the flag that is set while the store is in the list.
    fn list_flag(&self) -> &Listed;

    /// Joins some of the parts that no thread writes to, while other threads work on the store.
    /// Returns `true` when one part is left.
    fn join_idle(&self) -> bool;

    /// Frees a slice of the records that were kept for queries that have ended. Returns `true` when
    /// none is left.
    fn reclaim_slice(&self) -> bool {
        true
    }

    /// Frees as many slices as a visit does. Returns `true` when no record is left.
    fn reclaim_idle(&self) -> bool {
        (0..RECLAIM_SLICES).any(|_| self.reclaim_slice())
    }

    /// Gives up a reference, which may be the last one.
    fn release(self: Arc<Self>);
}

/// The flag of a store that is in the list.
pub(crate) struct Listed(AtomicBool);

impl Listed {
    /// Returns a clear flag.
    pub(crate) const fn new() -> Self {
        Listed(AtomicBool::new(false))
    }

    /// Sets the flag. Returns `true` if it was clear: then the caller makes the entry, or keeps it.
    fn set(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }

    fn clear(&self) {
        self.0.swap(false, Ordering::AcqRel);
    }
}

/// Interval of the visits of a listed store. Parts that are not written to for a few intervals are
/// joined. So it is long compared with the pauses of a busy writer, and short for a user who waits
/// for the join.
const VISIT_EVERY: Duration = Duration::from_millis(100);

/// Maximum number of slices that a visit frees.
const RECLAIM_SLICES: usize = 100;
/// Pause between two visits of stores that have more records to free.
const BREATH: Duration = Duration::from_millis(1);

type List = Vec<Weak<dyn JoinIdle>>;

static LIST: Mutex<List> = Mutex::new(Vec::new());
static ARRIVED: Condvar = Condvar::new();
/// `true` if a store has records to free. Set under the lock of the list.
static IS_URGENT: AtomicBool = AtomicBool::new(false);

/// Lists a store that has gone from one part to two. Takes a few instructions if it is listed
/// already. If the thread cannot be started, the parts stay until a thread writes to the store.
pub(crate) fn notice<S: JoinIdle + 'static>(store: &Arc<S>) {
    if store.list_flag().set() && ensure_thread() {
        let entry: Weak<S> = Arc::downgrade(store);
        list().push(entry);
        ARRIVED.notify_one();
    }
}

/// Lists a store for an early visit, because a query has ended for which it has kept many records.
pub(crate) fn notice_at_once<S: JoinIdle + 'static>(store: &Arc<S>) {
    notice(store);
    let list = list();
    IS_URGENT.store(true, Ordering::Relaxed);
    drop(list);
    ARRIVED.notify_one();
}

fn list() -> MutexGuard<'static, List> {
    // The list is valid at every moment, so a panic elsewhere does not spoil it.
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread when it is first needed. Returns `true` if it runs.
fn ensure_thread() -> bool {
    static STARTED: OnceLock<bool> = OnceLock::new();
    *STARTED.get_or_init(|| {
        // The thread lives as long as the process, so nobody joins it.
        ats_sync::thread::spawn("ats_joiner", run).is_ok()
    })
}

fn run() {
    let mut joined = Instant::now();
    let (mut is_reclaimed, mut is_urgent) = (true, false);
    loop {
        is_urgent |= nap(&mut joined, is_reclaimed);
        let purpose = if joined.elapsed() >= VISIT_EVERY {
            Purpose::Join
        } else {
            Purpose::Reclaim
        };
        is_reclaimed = true;
        let mut stores = std::mem::take(&mut *list());
        stores.retain(|entry| visit(entry, purpose, &mut is_reclaimed));
        list().append(&mut stores);
        if purpose == Purpose::Join {
            joined = Instant::now();
        }
        if is_reclaimed && std::mem::take(&mut is_urgent) {
            background::trim_soon();
        }
    }
}

/// Waits until a store is listed, and then until the next join is due. Records that are to be freed
/// end the wait early; a new split does not. Returns `true` if there are such records.
fn nap(joined: &mut Instant, is_reclaimed: bool) -> bool {
    let mut waiting = list();
    while waiting.is_empty() {
        waiting = ARRIVED
            .wait(waiting)
            .unwrap_or_else(PoisonError::into_inner);
        *joined = Instant::now();
    }
    let at_most = if is_reclaimed {
        VISIT_EVERY.saturating_sub(joined.elapsed())
    } else {
        BREATH
    };
    let calm = |_: &mut List| !IS_URGENT.load(Ordering::Relaxed);
    let waited = ARRIVED.wait_timeout_while(waiting, at_most, calm);
    let _waiting = waited.unwrap_or_else(PoisonError::into_inner);
    IS_URGENT.swap(false, Ordering::Relaxed)
}

/// The purpose of a visit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Join parts, and free records.
    Join,
    /// Only free records.
    Reclaim,
}

/// Visits the store of an entry. Clears `is_reclaimed` if the store has more records to free.
/// Returns `true` if the entry is still needed.
fn visit(entry: &Weak<dyn JoinIdle>, purpose: Purpose, is_reclaimed: &mut bool) -> bool {
    let Some(store) = entry.upgrade() else {
        return false;
    };
    if purpose == Purpose::Join {
        store.list_flag().clear();
    }
    let gave_all = store.reclaim_idle();
    *is_reclaimed &= gave_all;
    let keep = match purpose {
        Purpose::Join => !(store.join_idle() && gave_all) && store.list_flag().set(),
        Purpose::Reclaim => true,
    };
    store.release();
    keep
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// A stand-in for a store: the number of its parts, and of the slices that it has to free.
    struct Parts {
        listed: Listed,
        parts: AtomicUsize,
        held: AtomicUsize,
        visits: AtomicUsize,
        released: Arc<AtomicUsize>,
    }

    impl Parts {
        fn new(parts: usize) -> Arc<Self> {
            Arc::new(Parts {
                listed: Listed::new(),
                parts: AtomicUsize::new(parts),
                held: AtomicUsize::new(0),
                visits: AtomicUsize::new(0),
                released: Arc::default(),
            })
        }

        /// Splits like a writer.
        fn split(self: &Arc<Self>) {
            if self.parts.fetch_add(1, Ordering::AcqRel) == 1 {
                notice(self);
            }
        }
    }

    impl JoinIdle for Parts {
        fn list_flag(&self) -> &Listed {
            &self.listed
        }

        fn join_idle(&self) -> bool {
            self.visits.fetch_add(1, Ordering::Relaxed);
            let less = |parts: usize| (parts > 1).then(|| parts - 1);
            let joined = self
                .parts
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
            !matches!(joined, Ok(3..))
        }

        fn reclaim_idle(&self) -> bool {
            let less = |held: usize| held.checked_sub(1);
            let (set, fetch) = (Ordering::AcqRel, Ordering::Acquire);
            matches!(self.held.fetch_update(set, fetch, less), Err(0) | Ok(1))
        }

        fn release(self: Arc<Self>) {
            if let Some(store) = Arc::into_inner(self) {
                store.released.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn entry(store: &Arc<Parts>) -> Weak<dyn JoinIdle> {
        let entry: Weak<Parts> = Arc::downgrade(store);
        entry
    }

    fn visit_to_join(entry: &Weak<dyn JoinIdle>) -> bool {
        visit(entry, Purpose::Join, &mut true)
    }

    fn assert_soon(what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !condition() {
            assert!(Instant::now() < deadline, "not {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_split_store_is_visited_until_it_is_whole_and_then_no_more() {
        let store = Parts::new(1);
        (0..5).for_each(|_| store.split());
        assert_soon("whole", || store.parts.load(Ordering::Acquire) == 1);
        assert_eq!(store.visits.load(Ordering::Relaxed), 5);
        std::thread::sleep(3 * VISIT_EVERY);
        assert_eq!(store.visits.load(Ordering::Relaxed), 5);
        store.split();
        assert_soon("visited again", || store.visits.load(Ordering::Relaxed) > 5);
    }

    #[test]
    fn memory_held_is_given_back_without_naps() {
        let store = Parts::new(1);
        // Visits at the interval of joins would take longer than the test waits.
        store.held.store(400, Ordering::Release);
        notice_at_once(&store);
        assert_soon("given back", || store.held.load(Ordering::Acquire) == 0);
        assert_soon("left", || !store.listed.0.load(Ordering::Acquire));
    }

    #[test]
    fn a_store_that_is_gone_leaves_the_list() {
        let store = Parts::new(3);
        assert!(store.listed.set());
        let entry = entry(&store);
        assert!(visit_to_join(&entry));
        let released = Arc::clone(&store.released);
        store.release();
        assert_eq!(released.load(Ordering::Relaxed), 1);
        assert!(!visit_to_join(&entry));
    }

    #[test]
    fn a_store_let_go_during_a_visit_is_freed_by_the_visitor() {
        let store = Parts::new(3);
        let released = Arc::clone(&store.released);
        let visitor = Arc::clone(&store);
        store.release();
        assert_eq!(released.load(Ordering::Relaxed), 0);
        visitor.release();
        assert_eq!(released.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_split_during_a_visit_neither_loses_nor_doubles_the_entry() {
        /// A store that another writer splits at the worst moment: just after the visit has found
        /// it whole.
        struct Unlucky(Listed, AtomicUsize);

        impl JoinIdle for Unlucky {
            fn list_flag(&self) -> &Listed {
                &self.0
            }

            fn join_idle(&self) -> bool {
                self.1
                    .fetch_add(usize::from(self.0.set()), Ordering::Relaxed);
                true
            }

            fn release(self: Arc<Self>) {}
        }

        let store = Arc::new(Unlucky(Listed::new(), AtomicUsize::new(0)));
        assert!(store.0.set());
        let weak: Weak<Unlucky> = Arc::downgrade(&store);
        let entry: Weak<dyn JoinIdle> = weak;
        // The old entry is dropped, because the writer makes a new one.
        assert!(!visit_to_join(&entry));
        assert_eq!(store.1.load(Ordering::Relaxed), 1);
        assert!(!store.0.set());
    }

    /// Every store is whole in the end, although writers split stores during visits: no entry is
    /// lost.
    #[test]
    fn no_store_is_forgotten() {
        let stores: Vec<_> = (0..8).map(|_| Parts::new(1)).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for mine in stores.chunks(4) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        mine.iter().for_each(Parts::split);
                        std::thread::sleep(Duration::from_millis(7));
                    }
                });
            }
            // Further visits run concurrently with the visits of the thread, for more races.
            for _ in 0..400 {
                let taken = std::mem::take(&mut *list());
                for entry in taken {
                    if visit_to_join(&entry) {
                        list().push(entry);
                    }
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            stop.store(true, Ordering::Relaxed);
        });
        for store in &stores {
            assert_soon("whole", || store.parts.load(Ordering::Acquire) == 1);
        }
    }
}
