use super::Guard;
#[cfg(all(target_os = "linux", not(miri), not(tsan)))]
use super::barrier::Barrier;
use super::domain::{ADVANCE_BYTES, ADVANCE_ITEMS, Domain};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

/// Tests that look at the global domain must not see each other's garbage or guards.
static GLOBAL: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    GLOBAL
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

const ALIVE: u64 = 0xA11E_A11E_A11E_A11E;
const DEAD: u64 = 0xDEAD_DEAD_DEAD_DEAD;

static FREED: AtomicUsize = AtomicUsize::new(0);

/// Its destructor leaves a mark and counts, so that reading a freed one and freeing twice show.
struct Canary {
    mark: u64,
    value: u64,
}

impl Canary {
    fn boxed(value: u64) -> *mut Self {
        Box::into_raw(Box::new(Self { mark: ALIVE, value }))
    }

    fn check(&self) -> u64 {
        // SAFETY: a plain read of a live object; volatile so that it is not assumed to be `ALIVE`.
        let mark = unsafe { std::ptr::read_volatile(&raw const self.mark) };
        assert_eq!(mark, ALIVE, "a freed object was read");
        self.value
    }
}

unsafe fn free_canary(pointer: *mut u8) {
    // SAFETY: retired pointers came from `Canary::boxed`.
    let mut canary = unsafe { Box::from_raw(pointer.cast::<Canary>()) };
    canary.check();
    // SAFETY: the box is ours; volatile so that the mark is really written before the memory goes.
    unsafe { std::ptr::write_volatile(&raw mut canary.mark, DEAD) };
    FREED.fetch_add(1, Ordering::Relaxed);
}

fn retire_canary(guard: &Guard, canary: *mut Canary) {
    // SAFETY: callers have just made the canary unreachable.
    unsafe { guard.retire(canary.cast(), size_of::<Canary>(), free_canary) };
}

#[test]
fn nests_and_counts() {
    let _alone = alone();
    let outer = super::pin();
    {
        let mut inner = super::pin();
        assert!(!inner.repin(), "an outer guard is alive");
    }
    let mut outer = outer;
    assert!(outer.repin());
}

#[test]
fn readers_never_see_a_freed_object_and_all_are_freed() {
    let _alone = alone();
    const WRITERS: usize = 2;
    const SWAPS: usize = if cfg!(miri) { 300 } else { 150_000 };
    super::collect();
    let before = FREED.load(Ordering::Relaxed);
    let shared = AtomicPtr::new(Canary::boxed(0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| read_until(&shared, &done)))
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    for swap in 0..SWAPS {
                        let guard = super::pin();
                        let old = shared.swap(Canary::boxed(swap as u64), Ordering::AcqRel);
                        retire_canary(&guard, old);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("writer");
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            assert!(reader.join().expect("reader") > 0);
        }
    });
    // The threads are gone; what they left in their bags must be found all the same.
    super::collect();
    assert_eq!(super::pending(), (0, 0));
    assert_eq!(FREED.load(Ordering::Relaxed) - before, WRITERS * SWAPS);
    // SAFETY: the last one was never retired, and all threads are joined.
    unsafe { free_canary(shared.into_inner().cast()) };
}

fn read_until(shared: &AtomicPtr<Canary>, done: &AtomicBool) -> usize {
    let mut reads = 0;
    loop {
        let mut guard = super::pin();
        for _ in 0..4 {
            // SAFETY: objects are retired, and this thread is pinned.
            let canary = unsafe { &*shared.load(Ordering::Acquire) };
            let first = canary.check();
            std::hint::spin_loop();
            assert_eq!(canary.check(), first);
            reads += 1;
            guard.repin();
        }
        if done.load(Ordering::Relaxed) {
            return reads;
        }
    }
}

#[test]
fn a_grace_is_over_when_those_pinned_before_are_gone() {
    let _alone = alone();
    let (pinned, is_pinned) = mpsc::channel();
    let (unpin, may_unpin) = mpsc::channel::<()>();
    let early = thread::spawn(move || {
        let _guard = super::pin();
        pinned.send(()).expect("main");
        may_unpin.recv().expect("main");
    });
    is_pinned.recv().expect("the other thread");
    let guard = super::pin();
    let grace = guard.grace();
    assert!(!grace.is_over());
    drop(guard);
    for _ in 0..10 {
        assert!(!grace.is_over(), "somebody is still pinned");
    }
    unpin.send(()).expect("the other thread");
    early.join().expect("the other thread");
    // Those who come later, and come and go, are not waited for.
    let late = super::pin();
    drop(late);
    assert!(grace.is_over());
    let _late = super::pin();
    assert!(grace.is_over(), "what is over stays over");
}

#[test]
fn a_stalled_reader_stops_freeing_and_its_end_resumes_it() {
    let _alone = alone();
    super::collect();
    let (pinned, is_pinned) = mpsc::channel();
    let (unpin, may_unpin) = mpsc::channel::<()>();
    let reader = thread::spawn(move || {
        let _guard = super::pin();
        pinned.send(()).expect("main");
        may_unpin.recv().expect("main");
    });
    is_pinned.recv().expect("reader");
    let before = FREED.load(Ordering::Relaxed);
    const RETIRED: usize = 2000;
    for value in 0..RETIRED {
        retire_canary(&super::pin(), Canary::boxed(value as u64));
        if value % 100 == 0 {
            super::collect();
        }
    }
    assert_eq!(FREED.load(Ordering::Relaxed), before);
    assert_eq!(super::pending(), (RETIRED, RETIRED * size_of::<Canary>()));

    unpin.send(()).expect("reader");
    reader.join().expect("reader");
    assert_eq!(super::collect(), RETIRED);
    assert_eq!(FREED.load(Ordering::Relaxed) - before, RETIRED);
    assert_eq!(super::pending(), (0, 0));
}

#[test]
fn garbage_is_bounded_without_any_collector() {
    let _alone = alone();
    super::collect();
    let mut most = 0;
    for value in 0..50 * u64::from(ADVANCE_ITEMS) {
        retire_canary(&super::pin(), Canary::boxed(value));
        most = most.max(super::pending().0);
    }
    assert!(most <= 5 * ADVANCE_ITEMS as usize, "{most} objects");
    super::collect();
}

#[test]
fn a_retirement_frees_two_objects_at_most() {
    let _alone = alone();
    super::collect();
    let blocker = super::pin();
    for value in 0..1000 {
        retire_canary(&blocker, Canary::boxed(value));
    }
    drop(blocker);
    for _ in 0..3 {
        assert!(super::DOMAIN.try_advance());
    }
    for value in 0..1200 {
        let before = FREED.load(Ordering::Relaxed);
        retire_canary(&super::pin(), Canary::boxed(value));
        let freed = FREED.load(Ordering::Relaxed) - before;
        assert!(freed <= 2, "{freed} objects at once");
        if value < 1000 / 2 {
            assert_eq!(freed, 2, "a backlog must shrink");
        }
    }
    super::collect();
}

#[test]
fn huge_objects_are_not_hoarded() {
    let _alone = alone();
    super::collect();
    const HUGE: usize = 10 * ADVANCE_BYTES;
    for value in 0..100 {
        let guard = super::pin();
        // SAFETY: nobody has ever seen the object. The size is a lie that harms nobody.
        unsafe { guard.retire(Canary::boxed(value).cast(), HUGE, free_canary) };
        drop(guard);
        let (items, bytes) = super::pending();
        assert!(
            items <= 8 && bytes <= 8 * HUGE,
            "{items} objects, {bytes} bytes"
        );
    }
    super::collect();
}

#[test]
fn slots_are_recycled() {
    let domain = Domain::new();
    let first: *const _ = domain.take_slot();
    let second: *const _ = domain.take_slot();
    assert_ne!(first, second);
    // SAFETY: slots live as long as the domain.
    unsafe { (*first).leave() };
    assert_eq!(std::ptr::from_ref(domain.take_slot()), first);
}

#[test]
fn a_slot_left_while_pinned_goes_with_the_last_guard() {
    let domain = Domain::new();
    let slot = domain.take_slot();
    domain.pin(slot);
    slot.leave();
    assert!(!std::ptr::eq(domain.take_slot(), slot));
    slot.unpin();
    assert!(std::ptr::eq(domain.take_slot(), slot));
}

#[test]
fn a_domain_frees_what_is_left_in_it() {
    let _alone = alone();
    let before = FREED.load(Ordering::Relaxed);
    let domain = Domain::new();
    let slot = domain.take_slot();
    domain.pin(slot);
    for value in 0..10 {
        // SAFETY: nobody has ever seen the object.
        unsafe { domain.retire(slot, Canary::boxed(value).cast(), 16, free_canary) };
    }
    slot.unpin();
    drop(domain);
    assert_eq!(FREED.load(Ordering::Relaxed) - before, 10);
}

/// Freeing one link retires the next: were retirements inside of `free` to free in turn, a long
/// chain would overflow the stack.
#[test]
fn free_functions_may_retire() {
    struct Link {
        next: *mut Link,
    }
    static LINKS: AtomicUsize = AtomicUsize::new(0);
    unsafe fn free_link(pointer: *mut u8) {
        // SAFETY: retired links came from boxes.
        let link = unsafe { Box::from_raw(pointer.cast::<Link>()) };
        LINKS.fetch_add(1, Ordering::Relaxed);
        if !link.next.is_null() {
            // SAFETY: only this link led to the next one.
            unsafe { super::pin().retire(link.next.cast(), size_of::<Link>(), free_link) };
        }
    }
    let _alone = alone();
    const LENGTH: usize = if cfg!(miri) { 100 } else { 20_000 };
    let mut chains = Vec::new();
    for _ in 0..8 {
        let mut head = std::ptr::null_mut();
        for _ in 0..LENGTH / 8 {
            head = Box::into_raw(Box::new(Link { next: head }));
        }
        chains.push(head);
    }
    for head in chains {
        // SAFETY: nobody else has ever seen the chain.
        unsafe { super::pin().retire(head.cast(), size_of::<Link>(), free_link) };
    }
    while super::pending().0 > 0 {
        super::collect();
    }
    assert_eq!(LINKS.load(Ordering::Relaxed), LENGTH / 8 * 8);
}

/// Destructors of thread-locals run in an unknown order, so some pin after the slot was given back.
#[test]
fn pinning_works_while_a_thread_ends() {
    struct PinsAtExit(Arc<AtomicUsize>);
    impl Drop for PinsAtExit {
        fn drop(&mut self) {
            let outer = super::pin();
            let inner = super::pin();
            retire_canary(&inner, Canary::boxed(1));
            drop((inner, outer));
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    thread_local! {
        static EARLY: std::cell::RefCell<Option<PinsAtExit>> = const { std::cell::RefCell::new(None) };
        static LATE: std::cell::RefCell<Option<PinsAtExit>> = const { std::cell::RefCell::new(None) };
    }
    let _alone = alone();
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..10 {
        let ran = Arc::clone(&ran);
        let ended = thread::spawn(move || {
            EARLY.set(Some(PinsAtExit(Arc::clone(&ran))));
            drop(super::pin());
            LATE.set(Some(PinsAtExit(ran)));
        });
        ended.join().expect("thread");
    }
    assert_eq!(ran.load(Ordering::Relaxed), 20);
    super::collect();
    assert_eq!(
        super::pending(),
        (0, 0),
        "an ended thread must not stay pinned"
    );
}

#[test]
#[cfg(all(target_os = "linux", not(miri), not(tsan)))]
fn linux_has_the_free_fence() {
    assert_eq!(Barrier::detect(), Barrier::Asymmetric);
    assert!(Barrier::detect().heavy());
}
