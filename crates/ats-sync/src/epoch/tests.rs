use super::Guard;
use super::advance_rate::MOST_ITEMS;
use super::barrier::{Barrier, QUARANTINE};
use super::collector::{Collector, FEW, Next, SURVEY_EVERY};
use super::domain::Domain;
use super::slot::{ADVANCE_BYTES, FREE_EVERY, LARGE, RIPE_PER_RETIRED};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Lock of the tests that read the global domain, which must not see each other's garbage or
/// guards.
static GLOBAL: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    GLOBAL
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

const ALIVE: u64 = 0xA11E_A11E_A11E_A11E;
const DEAD: u64 = 0xDEAD_DEAD_DEAD_DEAD;

static FREED: AtomicUsize = AtomicUsize::new(0);

/// An object whose destructor marks and counts, so that reads of a freed one and double frees show.
struct Canary {
    mark: u64,
    value: u64,
}

impl Canary {
    fn new_boxed(value: u64) -> *mut Self {
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
    // SAFETY: retired pointers come from `Canary::new_boxed`.
    let mut canary = unsafe { Box::from_raw(pointer.cast::<Canary>()) };
    canary.check();
    // SAFETY: the box is ours; volatile so that the mark is really written before the memory is
    // freed.
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
    let shared = AtomicPtr::new(Canary::new_boxed(0));
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
                        let old = shared.swap(Canary::new_boxed(swap as u64), Ordering::AcqRel);
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
    // The threads have exited; the objects in their bags must be found all the same.
    super::collect();
    assert_eq!(super::pending(), (0, 0));
    assert_eq!(FREED.load(Ordering::Relaxed) - before, WRITERS * SWAPS);
    // SAFETY: the last object was never retired, and all threads are joined.
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
    // A grace period does not wait for threads that pin later.
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
        retire_canary(&super::pin(), Canary::new_boxed(value as u64));
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
    for value in 0..50 * u64::from(MOST_ITEMS) {
        retire_canary(&super::pin(), Canary::new_boxed(value));
        most = most.max(super::pending().0);
    }
    assert!(most <= 5 * MOST_ITEMS as usize, "{most} objects");
    super::collect();
}

#[test]
fn two_objects_are_freed_for_each_that_is_retired() {
    let _alone = alone();
    super::collect();
    let blocker = super::pin();
    for value in 0..1000 {
        retire_canary(&blocker, Canary::new_boxed(value));
    }
    drop(blocker);
    for _ in 0..3 {
        assert!(super::guard::DOMAIN.try_advance());
    }
    let before = FREED.load(Ordering::Relaxed);
    let most = RIPE_PER_RETIRED * FREE_EVERY as usize;
    let mut freed = 0;
    for value in 1..=1200 {
        retire_canary(&super::pin(), Canary::new_boxed(value as u64));
        let now = FREED.load(Ordering::Relaxed) - before;
        assert!(now - freed <= most, "{} objects at once", now - freed);
        freed = now;
        if value <= 1000 / 2 {
            assert!(
                freed <= 2 * value + most && freed + most >= 2 * value,
                "a backlog must shrink"
            );
        }
    }
    super::collect();
    // Large objects are freed before there are many.
    let blocker = super::pin();
    // SAFETY: no other thread has ever seen the objects. The false size does no harm.
    let retire_large = |guard: &Guard| unsafe {
        guard.retire(Canary::new_boxed(0).cast(), LARGE, free_canary);
    };
    (0..10).for_each(|_| retire_large(&blocker));
    drop(blocker);
    for _ in 0..3 {
        assert!(super::guard::DOMAIN.try_advance());
    }
    let before = FREED.load(Ordering::Relaxed);
    retire_large(&super::pin());
    assert_eq!(FREED.load(Ordering::Relaxed) - before, 2);
    super::collect();
}

/// A thread that retires may hold a lock, and freeing can take long, so it waits for the last
/// guard.
#[test]
fn nothing_is_freed_until_the_last_guard_goes() {
    let _alone = alone();
    super::collect();
    let make_ripe = || {
        let blocker = super::pin();
        for value in 0..100 {
            retire_canary(&blocker, Canary::new_boxed(value));
        }
        drop(blocker);
        for _ in 0..3 {
            assert!(super::guard::DOMAIN.try_advance());
        }
    };
    let freed_since = |before| FREED.load(Ordering::Relaxed) - before;
    for repins in [false, true] {
        make_ripe();
        let before = FREED.load(Ordering::Relaxed);
        let mut outer = super::pin();
        for value in 0..u64::from(FREE_EVERY) {
            retire_canary(&super::pin(), Canary::new_boxed(value));
            assert_eq!(freed_since(before), 0);
        }
        let freed = 2 * FREE_EVERY as usize;
        if repins {
            assert!(outer.repin());
            assert_eq!(freed_since(before), freed);
        }
        drop(outer);
        assert_eq!(freed_since(before), freed);
        super::collect();
    }
    assert_eq!(super::pending(), (0, 0));
}

#[test]
fn huge_objects_are_not_hoarded() {
    let _alone = alone();
    super::collect();
    const HUGE: usize = 10 * ADVANCE_BYTES;
    for value in 0..100 {
        let guard = super::pin();
        // SAFETY: no other thread has ever seen the object. The false size does no harm.
        unsafe { guard.retire(Canary::new_boxed(value).cast(), HUGE, free_canary) };
        drop(guard);
        let (items, bytes) = super::pending();
        assert!(
            items <= 8 && bytes <= 8 * HUGE,
            "{items} objects, {bytes} bytes"
        );
    }
    super::collect();
}

/// An object counts with all bytes that it holds: many small objects that hold much advance the
/// epoch like large ones.
#[test]
fn kept_bytes_advance_the_epoch() {
    let _alone = alone();
    let domain = Domain::new();
    let slot = domain.take_slot();
    // Returns the number of epochs that begin while ten objects are retired that hold this many
    // bytes.
    let epochs = |bytes| {
        let before = domain.epoch();
        for _ in 0..10 {
            domain.pin(slot);
            // SAFETY: no other thread has ever seen the object.
            unsafe { domain.retire(slot, Canary::new_boxed(0).cast(), bytes, free_canary) };
            slot.unpin();
        }
        domain.epoch() - before
    };
    assert!(epochs(1) <= 1);
    assert!(epochs(ADVANCE_BYTES / 2) >= 4);
    assert!(epochs(ADVANCE_BYTES) >= 9);
    // Several objects may hold the same memory, so the sum may exceed all memory.
    assert!(epochs(usize::MAX) >= 9);
    assert!(epochs(1) <= 1);
    assert!(domain.pending().0 < 20, "{:?}", domain.pending());
    slot.leave();
    domain.collect();
    assert_eq!(domain.pending(), (0, 0));
}

/// Returns a domain with its own collector, which works until the end of the test.
fn domain_with_collector() -> &'static Domain {
    let domain: &'static Domain = Box::leak(Box::new(Domain::new()));
    thread::spawn(move || {
        let mut collector = Collector::claim_in(domain).expect("there is no other");
        assert!(
            Collector::claim_in(domain).is_none(),
            "there is one already"
        );
        loop {
            let (_, next) = collector.work(100);
            collector.rest(next, None, || false);
        }
    });
    domain
}

fn retire_in(domain: &Domain, objects: usize) {
    let slot = domain.take_slot();
    domain.pin(slot);
    for value in 0..objects {
        // SAFETY: no other thread has ever seen the object.
        unsafe {
            domain.retire(
                slot,
                Canary::new_boxed(value as u64).cast(),
                64,
                free_canary,
            );
        };
    }
    slot.unpin();
    slot.leave();
}

fn assert_soon(is_so: impl Fn() -> bool) {
    // Forty times the time needed if the system lets the collector run.
    let deadline = Instant::now() + Duration::from_secs(4);
    while !is_so() {
        assert!(Instant::now() < deadline);
        thread::sleep(Duration::from_millis(1));
    }
}

fn assert_empty_soon(domain: &Domain) {
    assert_soon(|| domain.pending().0 == 0);
}

#[test]
#[cfg_attr(miri, ignore = "the collector never ends")]
fn garbage_of_idle_threads_is_freed_by_the_collector() {
    let _alone = alone();
    let domain = domain_with_collector();
    for objects in [1, 10, 1000, 20_000] {
        for _ in 0..5 {
            let before = FREED.load(Ordering::Relaxed);
            retire_in(domain, objects);
            assert_empty_soon(domain);
            // The collector takes objects out of the queue, and then frees them.
            let freed = || FREED.load(Ordering::Relaxed) - before;
            assert_soon(|| freed() >= objects);
            assert_eq!(freed(), objects);
        }
        // The collector sleeps now, and is woken in the next round.
        thread::sleep(2 * SURVEY_EVERY);
    }
    // An object that is retired while a thread is pinned waits for that, and not for the next
    // retirement.
    let slot = domain.take_slot();
    domain.pin(slot);
    retire_in(domain, 100);
    thread::sleep(5 * SURVEY_EVERY);
    assert_eq!(domain.pending().0, 100);
    slot.unpin();
    assert_empty_soon(domain);
}

/// A thread that retires steadily frees its own garbage; one that retires seldom is helped.
#[test]
fn surveys_tell_busy_threads_from_others() {
    let _alone = alone();
    let domain = Domain::new();
    retire_in(&domain, FEW / 2);
    let target = domain.survey();
    assert!(target > 0 && domain.advance_to(target));
    assert_eq!(domain.free_neglected(usize::MAX).objects, FEW / 2);
    retire_in(&domain, 2 * FEW);
    assert_eq!(domain.survey(), 0, "busy");
    assert_eq!(domain.free_neglected(usize::MAX).objects, 0);
    // The thread has stopped retiring.
    let target = domain.survey();
    assert!(domain.advance_to(target));
    assert_eq!(domain.free_neglected(FEW).objects, FEW, "in slices");
    assert_eq!(domain.free_neglected(usize::MAX).objects, FEW);
    assert_eq!(domain.pending(), (0, 0));
    // A busy thread whose bag has grown because of a delay.
    domain.survey();
    let slot = domain.take_slot();
    domain.pin(slot);
    for _ in 0..FEW {
        // SAFETY: no other thread has ever seen the object.
        unsafe { domain.retire(slot, Canary::new_boxed(0).cast(), 1 << 20, free_canary) };
    }
    slot.unpin();
    assert!(domain.survey() > 0);
    slot.leave();
}

/// Once the system refuses the heavy fence, nothing is freed for a while, and everything works
/// again afterwards.
#[test]
fn freeing_goes_on_after_the_system_refused_the_fence() {
    static REFUSES: AtomicBool = AtomicBool::new(false);
    let _alone = alone();
    let call = || !REFUSES.load(Ordering::Relaxed);
    let domain = Domain::with_barrier(Barrier::new(Some(call)));
    retire_in(&domain, 10);
    assert_eq!(domain.collect(), 10);
    REFUSES.store(true, Ordering::Relaxed);
    let refused = Instant::now();
    retire_in(&domain, 10);
    assert_eq!(domain.collect(), 0, "the system refuses");
    assert!(!domain.barrier().is_asymmetric());
    // The system would allow the call again, but readers use the other kind of fence now.
    REFUSES.store(false, Ordering::Relaxed);
    assert!(domain.collect() == 0 || refused.elapsed() >= QUARANTINE);
    thread::sleep(QUARANTINE);
    assert!(!domain.barrier().is_asymmetric());
    retire_in(&domain, 10);
    assert_eq!(domain.collect(), 20);
    assert_eq!(domain.pending(), (0, 0));
}

/// A collector does not sleep without limit if it cannot know whether other threads have retired
/// objects.
#[test]
#[cfg_attr(miri, ignore = "measures time")]
fn a_collector_without_fence_does_not_sleep_for_ever() {
    let barrier = Barrier::new(Some(|| false));
    let domain: &'static Domain = Box::leak(Box::new(Domain::with_barrier(barrier)));
    let mut collector = Collector::claim_in(domain).expect("there is no other");
    // All bags are reported empty. The collector returns from the first rest, in which the system
    // refuses the fence, and from the second, during the quarantine.
    for _ in 0..2 {
        collector.rest(Next::Sleep, None, || false);
        assert!(!domain.barrier().is_asymmetric());
    }
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
fn a_domain_frees_its_objects_when_it_is_dropped() {
    let _alone = alone();
    let before = FREED.load(Ordering::Relaxed);
    let domain = Domain::new();
    let slot = domain.take_slot();
    domain.pin(slot);
    for value in 0..10 {
        // SAFETY: no other thread has ever seen the object.
        unsafe { domain.retire(slot, Canary::new_boxed(value).cast(), 16, free_canary) };
    }
    slot.unpin();
    drop(domain);
    assert_eq!(FREED.load(Ordering::Relaxed) - before, 10);
}

/// Freeing one link retires the next: if retirements inside `free` freed objects in turn, a long
/// chain would overflow the stack.
#[test]
fn free_functions_may_retire() {
    struct Link {
        next: *mut Link,
    }
    static LINKS: AtomicUsize = AtomicUsize::new(0);
    unsafe fn free_link(pointer: *mut u8) {
        // SAFETY: retired links come from boxes.
        let link = unsafe { Box::from_raw(pointer.cast::<Link>()) };
        LINKS.fetch_add(1, Ordering::Relaxed);
        if !link.next.is_null() {
            // SAFETY: only this link referred to the next one.
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
        // SAFETY: no other thread has ever seen the chain.
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
            retire_canary(&inner, Canary::new_boxed(1));
            drop((inner, outer));
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    thread_local! {
        static EARLY: RefCell<Option<PinsAtExit>> = const { RefCell::new(None) };
        static LATE: RefCell<Option<PinsAtExit>> = const { RefCell::new(None) };
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
    let barrier = Barrier::detect();
    assert!(barrier.is_asymmetric());
    assert!(barrier.heavy());
}
