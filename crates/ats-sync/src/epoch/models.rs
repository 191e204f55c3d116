//! Models for `loom`: every interleaving, and every value that the memory model lets a load return.
//! They check the variant with ordinary fences; the asymmetric one has the same order of steps.

use super::barrier::Barrier;
use super::biased::{BiasedLock, Held};
use super::domain::Domain;
use crate::shim::UnsafeCell;
use crate::shim::atomic::{AtomicPtr, Ordering};
use loom::sync::Arc;
use loom::thread;
use std::ptr;

/// An object whose freeing `loom` reports as a race if a reader may still access it.
struct Object(UnsafeCell<u32>);

impl Object {
    fn new_boxed(value: u32) -> *mut Self {
        Box::into_raw(Box::new(Self(UnsafeCell::new(value))))
    }

    fn read(&self) -> u32 {
        // SAFETY: an object is written only when it is freed.
        self.0.with(|value| unsafe { *value })
    }
}

unsafe fn free(pointer: *mut u8) {
    // SAFETY: retired pointers came from `Object::new_boxed`.
    let object = unsafe { Box::from_raw(pointer.cast::<Object>()) };
    // SAFETY: the model checks that no thread reads any more.
    object.0.with_mut(|value| unsafe { *value = 0 });
}

fn read_once(domain: &Domain, shared: &AtomicPtr<Object>) {
    let slot = domain.take_slot();
    domain.pin(slot);
    // SAFETY: objects are retired, and this thread is pinned.
    if let Some(object) = unsafe { shared.load(Ordering::Acquire).as_ref() } {
        assert_eq!(object.read(), 7);
    }
    slot.unpin();
    slot.leave();
}

fn unlink_and_retire(domain: &Domain, shared: &AtomicPtr<Object>) {
    let slot = domain.take_slot();
    domain.pin(slot);
    let old = shared.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: the object has just become unreachable, by this thread.
    unsafe { domain.retire(slot, old.cast(), 4, free) };
    slot.unpin();
    slot.leave();
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn a_reader_is_never_left_with_a_freed_object() {
    check(2, || {
        let shared = Arc::new((Domain::new(), AtomicPtr::new(Object::new_boxed(7))));
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read_once(&shared.0, &shared.1))
        };
        unlink_and_retire(&shared.0, &shared.1);
        shared.0.collect();
        reader.join().expect("reader");
    });
}

#[test]
fn advancing_and_retiring_in_different_threads() {
    check(1, || {
        let shared = Arc::new((Domain::new(), AtomicPtr::new(Object::new_boxed(7))));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || unlink_and_retire(&shared.0, &shared.1))
        };
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read_once(&shared.0, &shared.1))
        };
        shared.0.collect();
        writer.join().expect("writer");
        shared.0.collect();
        reader.join().expect("reader");
    });
}

#[test]
fn everything_is_freed_once_nobody_is_pinned() {
    check(3, || {
        let shared = Arc::new((Domain::new(), AtomicPtr::new(Object::new_boxed(7))));
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read_once(&shared.0, &shared.1))
        };
        unlink_and_retire(&shared.0, &shared.1);
        reader.join().expect("reader");
        assert_eq!(shared.0.collect(), 1);
        assert_eq!(shared.0.pending(), (0, 0));
    });
}

/// A thread that found an object before it was unlinked still writes to it. A thread that waits for
/// the end of the grace period reads the value written, without a race.
#[test]
fn at_the_end_of_a_grace_nobody_is_left() {
    check(2, || {
        let shared = Arc::new((Domain::new(), AtomicPtr::new(Object::new_boxed(7))));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (domain, object) = (&shared.0, &shared.1);
                let slot = domain.take_slot();
                domain.pin(slot);
                // SAFETY: the object is freed after this thread is joined.
                let found = unsafe { object.load(Ordering::Acquire).as_ref() };
                if let Some(object) = found {
                    // SAFETY: the model checks that no thread reads meanwhile.
                    object.0.with_mut(|value| unsafe { *value = 8 });
                }
                slot.unpin();
                slot.leave();
                found.is_some()
            })
        };
        let (domain, object) = (&shared.0, &shared.1);
        let slot = domain.take_slot();
        domain.pin(slot);
        let old = object.swap(ptr::null_mut(), Ordering::AcqRel);
        let end = domain.end_of_grace();
        slot.unpin();
        slot.leave();
        // SAFETY: no thread frees it before the end of this function.
        let read = || unsafe { &*old }.read();
        let early = domain.has_come(end).then(read);
        let found = writer.join().expect("writer");
        assert!(domain.has_come(end), "nobody is pinned");
        let expected = if found { 8 } else { 7 };
        assert!(early.is_none_or(|early| early == expected));
        assert_eq!(read(), expected);
        // SAFETY: all threads have been joined.
        unsafe { free(old.cast()) };
    });
}

#[test]
fn the_global_domain_serves_threads() {
    check(2, || {
        let shared = Arc::new(AtomicPtr::new(Object::new_boxed(7)));
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let _guard = super::pin();
                // SAFETY: objects are retired, and this thread is pinned.
                if let Some(object) = unsafe { shared.load(Ordering::Acquire).as_ref() } {
                    assert_eq!(object.read(), 7);
                }
            })
        };
        {
            let guard = super::pin();
            let old = shared.swap(ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: the object has just become unreachable, by this thread.
            unsafe { guard.retire(old.cast(), 4, free) };
        }
        super::collect();
        reader.join().expect("reader");
    });
}

/// A thread that retires while the collector goes to sleep: either the collector sees the garbage,
/// or it is woken.
#[test]
fn no_garbage_is_left_to_a_sleeping_collector() {
    check(3, || {
        let shared = Arc::new((Domain::new(), AtomicPtr::new(Object::new_boxed(7))));
        let collector = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.0.falls_asleep())
        };
        unlink_and_retire(&shared.0, &shared.1);
        let asleep = collector.join().expect("collector");
        assert_eq!(shared.0.pending().0, 1);
        assert!(
            !asleep || shared.0.was_woken(),
            "garbage would be forgotten"
        );
    });
}

/// The collector frees objects that others have retired, beside a reader.
#[test]
fn the_collector_frees_behind_a_reader() {
    check(2, || {
        let shared = Arc::new((Domain::new(), AtomicPtr::new(Object::new_boxed(7))));
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read_once(&shared.0, &shared.1))
        };
        unlink_and_retire(&shared.0, &shared.1);
        let domain = &shared.0;
        let target = domain.survey();
        let advanced = domain.advance_to(target);
        let freed = domain.free_neglected(10).objects;
        assert!(freed <= 1 && (!advanced || freed == 1));
        reader.join().expect("reader");
        assert!(domain.advance_to(target));
        assert_eq!(freed + domain.free_neglected(10).objects, 1);
    });
}

/// The system refuses the heavy half. A model has no clock: the quarantine is over when the threads
/// that read the asymmetric mode have been joined. From then on both halves are fences, and the
/// model checks that they are enough; before, nothing is freed.
#[test]
fn after_the_system_refused_both_halves_are_fences() {
    check(2, || {
        let domain = Domain::with_barrier(Barrier::new(Some(|| false)));
        let shared = Arc::new((domain, AtomicPtr::new(Object::new_boxed(7))));
        let early = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read_once(&shared.0, &shared.1))
        };
        assert!(!shared.0.try_advance(), "refused");
        early.join().expect("early reader");
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || read_once(&shared.0, &shared.1))
        };
        unlink_and_retire(&shared.0, &shared.1);
        let freed = shared.0.collect();
        reader.join().expect("reader");
        assert_eq!(freed + shared.0.collect(), 1);
    });
}

/// Data guarded by a biased lock. `loom` reports a race if two threads hold the lock at once, or
/// one does not see the writes of the other.
struct Guarded {
    lock: BiasedLock,
    barrier: Barrier,
    number: UnsafeCell<u32>,
}

impl Guarded {
    fn new(call: Option<fn() -> bool>) -> Self {
        Self {
            lock: BiasedLock::new(),
            barrier: Barrier::new(call),
            number: UnsafeCell::new(0),
        }
    }

    /// Adds under the lock.
    fn add(&self, _held: &Held<'_>, more: u32) {
        // SAFETY: the model checks that the lock excludes other threads.
        self.number.with_mut(|number| unsafe { *number += more });
    }

    fn enter(&self) {
        self.add(&self.lock.enter(&self.barrier), 1);
    }

    /// Visits the lock. Returns `true` if the system did not refuse the fence.
    fn visit(&self) -> bool {
        let announced = self.lock.announce();
        let allowed = self.barrier.heavy();
        if allowed {
            // SAFETY: the heavy fence after the announcement has succeeded.
            self.add(&unsafe { announced.arrive() }, 10);
        }
        allowed
    }

    fn sum(&self) -> u32 {
        // SAFETY: all threads have been joined.
        self.number.with(|number| unsafe { *number })
    }
}

#[test]
fn an_owner_and_a_visitor_are_never_there_at_once() {
    check(3, || {
        let shared = Arc::new(Guarded::new(None));
        let visitor = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.visit())
        };
        shared.enter();
        shared.enter();
        assert!(visitor.join().expect("visitor"));
        assert_eq!(shared.sum(), 12);
    });
}

#[test]
fn two_visitors_take_turns_beside_an_owner() {
    // Threads that wait for each other alternately take more steps than a model may have.
    check(1, || {
        let shared = Arc::new(Guarded::new(None));
        let visitors: Vec<_> = (0..2)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || shared.visit())
            })
            .collect();
        shared.enter();
        for visitor in visitors {
            assert!(visitor.join().expect("visitor"));
        }
        assert_eq!(shared.sum(), 21);
    });
}

/// A visitor whose fence is refused changes nothing, and the owner continues.
#[test]
fn a_refused_visitor_leaves_the_owner_alone() {
    check(3, || {
        let shared = Arc::new(Guarded::new(Some(|| false)));
        let visitor = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.visit())
        };
        shared.enter();
        assert!(!visitor.join().expect("visitor"));
        shared.enter();
        assert_eq!(shared.sum(), 2);
    });
}
