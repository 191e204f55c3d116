//! The slab with the caches of threads. The tests share one slab and read its statistics, so they
//! run one after the other.
#![cfg(not(loom))]
#![cfg(not(any(miri, fuzzing, watched)))]

use ats_mem::slab::{
    LARGEST, SharedSlice, Statistics, allocate, block_size, free, statistics, trim,
};
use ats_mem::{CaTree, Change, HashTable, Plain, Provided, RecordBox, Records};
use fastrand::Rng;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

const CHUNK: usize = 2 << 20;

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn assert_nothing_left() {
    trim();
    assert_eq!(
        statistics(),
        Statistics {
            reserved: 0,
            used: 0
        }
    );
}

/// A block whose every byte is derived from its address; checked when freed.
struct Canary {
    block: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the block is owned.
unsafe impl Send for Canary {}

impl Canary {
    fn new(bytes: usize) -> Self {
        let block = allocate(bytes);
        for align in [8, 16, 64] {
            let promised = align == 8 || (bytes.is_multiple_of(align) && bytes > 0);
            assert!(
                !promised || block.addr().get().is_multiple_of(align),
                "{bytes}"
            );
        }
        for at in 0..bytes {
            // SAFETY: the address is inside the block, which the test owns.
            unsafe { block.add(at).write(pattern(block, at)) };
        }
        Canary { block, bytes }
    }
}

fn pattern(block: NonNull<u8>, at: usize) -> u8 {
    let word = (block.addr().get() + at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (word >> 56) as u8
}

impl Drop for Canary {
    fn drop(&mut self) {
        for at in 0..self.bytes {
            // SAFETY: the address is inside the block, which was filled in `new`.
            let byte = unsafe { self.block.add(at).read() };
            assert_eq!(byte, pattern(self.block, at), "byte {at} of {}", self.bytes);
        }
        // SAFETY: `new` allocated the block with these bytes, and it is freed once.
        unsafe { free(self.block, self.bytes) };
    }
}

/// Returns a size: mostly one of records and nodes, sometimes any.
fn some_bytes(random: &mut Rng) -> usize {
    match random.u32(..10) {
        0 => random.usize(..2 * LARGEST),
        1 => 640,
        _ => 24 + 8 * random.usize(..30),
    }
}

#[test]
fn blocks_of_every_size_are_aligned_and_apart() {
    let _alone = alone();
    let sizes: Vec<_> = (0..2500)
        .chain((2500..=LARGEST + 200).step_by(61))
        .chain(LARGEST - 1..=LARGEST + 1)
        .collect();
    let all: Vec<_> = sizes.iter().copied().map(Canary::new).collect();
    let again: Vec<_> = sizes.iter().rev().copied().map(Canary::new).collect();
    drop(all);
    drop(again);
    assert_nothing_left();
}

#[test]
fn block_size_is_the_memory_a_block_takes() {
    let _alone = alone();
    trim();
    for bytes in 0..=LARGEST {
        let block = allocate(bytes);
        trim();
        assert_eq!(statistics().used, block_size(bytes), "{bytes}");
        assert!(block_size(bytes) >= bytes);
        // SAFETY: the test has just allocated the block with these bytes.
        unsafe { free(block, bytes) };
        trim();
    }
    assert_eq!(block_size(LARGEST + 1), LARGEST + 16);
    assert_eq!(block_size(1_000_000), 1_000_000);
    assert_nothing_left();
}

#[test]
fn the_cache_of_a_thread_is_bounded() {
    let _alone = alone();
    for bytes in [16, 48, 200, 640, 2048, 4104, 9000, LARGEST] {
        let most = (16 << 10).max(2 * block_size(bytes));
        let all: Vec<_> = (0..1_000).map(|_| Canary::new(bytes)).collect();
        assert!(statistics().used >= 1_000 * block_size(bytes));
        assert!(statistics().used <= 1_000 * block_size(bytes) + most);
        drop(all);
        assert!(statistics().used <= most, "{:?}", statistics());
        trim();
        assert_eq!(statistics().used, 0);
    }
    assert_nothing_left();
}

#[test]
fn a_shared_slice_lives_as_long_as_its_last_owner() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(align(32))]
    struct Lane([u32; 8]);

    fn check<T: Copy + Send + Sync + std::fmt::Debug + PartialEq>(element: impl Fn(usize) -> T) {
        for len in [0, 1, 2, 7, 100, 4096, 20_000] {
            let elements: Vec<T> = (0..len).map(&element).collect();
            let first = SharedSlice::from(elements.as_slice());
            assert!(first.as_ptr().is_aligned());
            assert!(first.bytes() >= size_of::<T>() * len);
            let collected: SharedSlice<T> = elements.iter().copied().collect();
            assert_eq!(collected, first);
            drop(collected);
            // Any of the threads may be the last owner.
            thread::scope(|scope| {
                let elements = &elements;
                let threads = [(); 4].map(|()| {
                    let owner = first.clone();
                    scope.spawn(move || {
                        let owners: Vec<_> = (0..100).map(|_| owner.clone()).collect();
                        drop(owner);
                        assert!(owners.iter().all(|owner| **owner == elements[..]));
                    })
                });
                drop(first);
                // Joined to the end of each thread, where it gives up its cache.
                for thread in threads {
                    thread.join().expect("it does not panic");
                }
            });
        }
    }
    let _alone = alone();
    check(|number| number as u8);
    check(|number| number as u64);
    check(|number| Lane([number as u32; 8]));
    check(|_| ());
    assert_eq!(SharedSlice::<u8>::default().len(), 0);
    assert_nothing_left();
}

#[test]
fn a_deleted_million_returns_its_memory() {
    let _alone = alone();
    let blocks: Vec<_> = (0..1_000_000).map(|_| allocate(48)).collect();
    assert!(statistics().reserved >= 48_000_000);
    assert!(statistics().reserved <= 48_000_000 / 98 * 100 + 2 * CHUNK);
    // An order other than that of allocation: from both ends and the middle.
    let order = (0..1_000_000).map(|at: usize| at * 611_953 % 1_000_000);
    for at in order {
        // SAFETY: 611953 is prime to a million, so each block is freed once.
        unsafe { free(blocks[at], 48) };
    }
    // Blocks in the cache of this thread may be anywhere; `trim` frees them, too.
    assert_nothing_left();
}

#[test]
fn threads_free_blocks_of_other_threads() {
    let _alone = alone();
    const THREADS: u64 = 4;
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| channel::<Canary>()).unzip();
    let workers: Vec<_> = receivers
        .into_iter()
        .enumerate()
        .map(|(me, receiver)| {
            let senders = senders.clone();
            thread::spawn(move || {
                let mut random = Rng::with_seed(me as u64);
                let mut own = Vec::new();
                for _ in 0..40_000 {
                    match random.u32(..4) {
                        0 | 1 => own.push(Canary::new(some_bytes(&mut random))),
                        2 if !own.is_empty() => {
                            let at = random.usize(..own.len());
                            drop(own.swap_remove(at));
                        }
                        3 if !own.is_empty() => {
                            let at = random.usize(..own.len());
                            let to = &senders[random.usize(..senders.len())];
                            let _ = to.send(own.swap_remove(at));
                        }
                        _ => {}
                    }
                    if let Ok(foreign) = receiver.try_recv() {
                        drop(foreign);
                    }
                }
                drop(senders);
                drop(own);
                receiver.into_iter().for_each(drop);
                // The thread exits with a filled cache.
            })
        })
        .collect();
    drop(senders);
    for worker in workers {
        worker.join().unwrap();
    }
    assert_nothing_left();
}

thread_local! {
    static LATE: RefCell<Vec<Canary>> = const { RefCell::new(Vec::new()) };
}

struct Late;

impl Drop for Late {
    /// Allocates and frees in the destructor of a thread-local.
    fn drop(&mut self) {
        drop(Canary::new(48));
        drop(Canary::new(640));
    }
}

thread_local! {
    static FIRST: RefCell<Option<Late>> = const { RefCell::new(None) };
    static LAST: RefCell<Option<Late>> = const { RefCell::new(None) };
}

/// Destructors of thread-locals run in no specified order, so both sides of the slab's own are
/// tried: thread-locals made before it has a cache, and after.
#[test]
fn destructors_of_thread_locals_may_allocate_and_free() {
    let _alone = alone();
    for _ in 0..50 {
        thread::spawn(|| {
            FIRST.set(Some(Late));
            LATE.with_borrow_mut(|late| late.extend((0..200).map(|_| Canary::new(96))));
            LAST.set(Some(Late));
        })
        .join()
        .unwrap();
    }
    assert_nothing_left();
}

#[test]
fn short_threads_leave_nothing_behind() {
    let _alone = alone();
    let mut kept = Vec::new();
    for round in 0..200 {
        let canaries = thread::spawn(move || {
            let mut all: Vec<_> = (0..100).map(|_| Canary::new(24 + round)).collect();
            all.truncate(3);
            all
        });
        kept.extend(canaries.join().unwrap());
    }
    trim();
    let used: usize = kept.iter().map(|canary| block_size(canary.bytes)).sum();
    assert_eq!(statistics().used, used);
    drop(kept);
    assert_nothing_left();
}

fn fill_and_drop<B: Records<Plain> + Default>() {
    let store = B::default();
    for number in 0..100_000_u64 {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        let mut put = |_: Option<_>| Change::Put(RecordBox::new(&key, &[number, number], false));
        store.update(&key, &ats_sync::pin(), &mut put).unwrap();
    }
    assert_eq!(store.len(), 100_000);
    // 8 bytes of header, 8 of key and 16 of value are in a block of 32.
    assert!(statistics().used >= 3_200_000);
    drop(store);
    ats_sync::collect();
}

#[test]
fn stores_keep_nothing() {
    let _alone = alone();
    fill_and_drop::<CaTree<Plain>>();
    assert_nothing_left();
    fill_and_drop::<HashTable<Plain>>();
    assert_nothing_left();
}

/// A tree reports the bytes that the slab has given it, except for the cache of the thread and
/// replaced nodes that are not freed yet.
#[test]
fn the_bytes_of_a_tree_are_those_of_its_blocks() {
    let _alone = alone();
    let tree = CaTree::<Plain>::new();
    for number in 0..50_000_u64 {
        let (key, value) = (number.to_be_bytes(), vec![number; 1 + number as usize % 40]);
        let mut put = |_: Option<_>| Change::Put(RecordBox::new(&key, &value, false));
        tree.update(&key, &ats_sync::pin(), &mut put).unwrap();
    }
    ats_sync::collect();
    trim();
    let (told, used) = (tree.bytes(), statistics().used);
    // The separators of inner nodes are outside of the slab.
    assert!(told >= used && told - used < used / 100, "{told} {used}");
    drop(tree);
    ats_sync::collect();
    assert_nothing_left();
}
