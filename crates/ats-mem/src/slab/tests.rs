//! Unit tests with slabs of their own; tests with the caches of threads are in `tests/slab.rs`.

use super::chunk::RUN;
use super::class::{CLASSES, Class, PASSING, PASSING_BYTES};
use super::memory::CHUNK;
use super::pool::Slab;
use super::{Statistics, allocate, free};
use proptest::prelude::*;
use std::collections::HashMap;
use std::ptr;

fn take(slab: &Slab, class: Class, count: usize) -> Vec<*mut u8> {
    let mut blocks = vec![ptr::null_mut(); count];
    slab.take(class, &mut blocks);
    blocks
}

fn give(slab: &Slab, class: Class, blocks: &[*mut u8]) {
    // SAFETY: each test gives back the blocks that it took, once.
    unsafe { slab.put(class, blocks) };
}

#[test]
fn a_fresh_run_gives_blocks_out_side_by_side() {
    let slab = Slab::new();
    for class in (0..CLASSES).map(Class::new) {
        // A run has at least this many blocks; the first run of a chunk is shorter.
        let blocks = take(&slab, class, 10.min(RUN / 4 / class.size()));
        for pair in blocks.windows(2) {
            assert_eq!(pair[1].addr() - pair[0].addr(), class.size());
        }
        give(&slab, class, &blocks);
    }
}

/// Short-lived blocks leave no holes between long-lived ones, although both were taken alternately.
#[test]
fn short_lived_blocks_leave_no_holes() {
    let slab = Slab::new();
    let lasting = Class::of(PASSING_BYTES).unwrap();
    let (mut stay, mut pass) = (Vec::new(), Vec::new());
    for _ in 0..CHUNK / PASSING_BYTES {
        stay.extend(take(&slab, lasting, 4));
        pass.extend(take(&slab, PASSING, 4));
    }
    let both = slab.statistics();
    give(&slab, PASSING, &pass);
    slab.trim();
    let left = slab.statistics();
    assert!(left.reserved <= both.reserved / 2, "{left:?} of {both:?}");
    give(&slab, lasting, &stay);
    slab.trim();
    let nothing = Statistics {
        reserved: 0,
        used: 0,
    };
    assert_eq!(slab.statistics(), nothing);
}

#[test]
fn every_block_of_every_class_is_inside_its_chunk_and_aligned() {
    let slab = Slab::new();
    for class in (0..CLASSES).map(Class::new) {
        let blocks = take(&slab, class, CHUNK / class.size());
        for block in &blocks {
            for align in [8, 16, 64] {
                let promised = class.size().is_multiple_of(align);
                assert!(!promised || block.addr().is_multiple_of(align));
            }
            assert!(block.addr() % RUN + class.size() <= RUN);
            // SAFETY: the test owns the whole block.
            unsafe { block.write_bytes(0xff, class.size()) };
        }
        // The bookkeeping has survived the filling of all blocks.
        give(&slab, class, &blocks);
        slab.trim();
        assert_eq!(
            slab.statistics(),
            Statistics {
                reserved: 0,
                used: 0
            }
        );
    }
}

#[test]
fn one_free_chunk_stays_in_reserve_until_trimmed() {
    let slab = Slab::new();
    let class = Class::of(64).unwrap();
    let blocks = take(&slab, class, 5 * CHUNK / 64);
    let full = slab.statistics();
    assert_eq!(full.used, 5 * CHUNK);
    assert!(full.reserved == 6 * CHUNK, "{full:?}");
    give(&slab, class, &blocks);
    assert_eq!(slab.statistics().reserved, CHUNK);
    assert_eq!(slab.statistics().used, 0);
    slab.trim();
    assert_eq!(slab.statistics().reserved, 0);
}

#[test]
fn free_chunks_are_kept_as_long_as_told_to() {
    let slab = Slab::new();
    let class = Class::of(64).unwrap();
    slab.keep(|kept| kept + 3);
    let blocks = take(&slab, class, 5 * CHUNK / 64);
    assert_eq!(slab.free_chunks(), 0);
    give(&slab, class, &blocks);
    assert_eq!(slab.statistics().reserved, 4 * CHUNK);
    assert_eq!(slab.free_chunks(), 4);
    // Retained chunks are used first.
    let blocks = take(&slab, class, CHUNK / 64);
    assert_eq!(slab.statistics().reserved, 4 * CHUNK);
    give(&slab, class, &blocks);
    slab.keep(|kept| kept - 2);
    assert_eq!(slab.statistics().reserved, 2 * CHUNK);
    slab.keep(|kept| kept - 1);
    assert_eq!(slab.free_chunks(), 1);
    slab.trim();
    assert_eq!(slab.free_chunks(), 0);
}

#[test]
fn prepared_chunks_are_taken_before_others_are_mapped() {
    let slab = Slab::new();
    slab.prepare(3);
    slab.prepare(2);
    assert_eq!(slab.statistics().reserved, 3 * CHUNK);
    let class = Class::of(1024).unwrap();
    let blocks = take(&slab, class, 2 * CHUNK / 1024);
    assert_eq!(slab.statistics().reserved, 3 * CHUNK);
    give(&slab, class, &blocks);
    // The chunks were not retained.
    assert!(slab.free_chunks() >= 1);
    slab.trim();
    assert_eq!(slab.statistics().reserved, 0);
}

#[test]
fn the_fullest_runs_are_used_first_so_that_others_drain() {
    let slab = Slab::new();
    let class = Class::of(1024).unwrap();
    // Enough for several chunks; then most blocks of the later half are freed.
    let blocks = take(&slab, class, 8 * CHUNK / 1024);
    let (early, late) = blocks.split_at(blocks.len() / 2);
    let (gone, kept): (Vec<_>, Vec<_>) = late.iter().enumerate().partition(|(at, _)| at % 8 != 0);
    let strip =
        |pairs: Vec<(usize, &*mut u8)>| pairs.iter().map(|pair| *pair.1).collect::<Vec<_>>();
    let (gone, kept) = (strip(gone), strip(kept));
    give(&slab, class, &gone);
    // A few holes in the early half must be filled before the nearly empty runs are.
    let holes: Vec<_> = early.iter().copied().step_by(16).collect();
    give(&slab, class, &holes);
    let mut again = take(&slab, class, holes.len());
    let mut holes_sorted = holes.clone();
    again.sort();
    holes_sorted.sort();
    assert_eq!(again, holes_sorted);
    give(&slab, class, &kept);
    give(&slab, class, early);
    slab.trim();
    assert_eq!(
        slab.statistics(),
        Statistics {
            reserved: 0,
            used: 0
        }
    );
}

/// Returns `true` if the system may make a huge page here; `None` if it got no advice, or does not
/// report it.
fn may_be_huge<T>(address: *const T) -> Option<bool> {
    let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    let mut is_here = false;
    for line in maps.lines() {
        let range = line.split(' ').next()?.split_once('-');
        let range = range.map(|(low, high)| [low, high].map(|at| usize::from_str_radix(at, 16)));
        if let Some([Ok(low), Ok(high)]) = range {
            is_here = (low..high).contains(&address.addr());
        } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| is_here) {
            let has = |flag| flags.split(' ').any(|one| one == flag);
            return (has("hg") != has("nh")).then(|| has("hg"));
        }
    }
    None
}

#[test]
fn trim_thins_out_a_chunk_that_one_block_keeps() {
    let slab = Slab::new();
    let class = Class::of(256).unwrap();
    let blocks = take(&slab, class, CHUNK / 256 - 300);
    assert_eq!(slab.statistics().reserved, CHUNK);
    let (kept, gone) = blocks.split_at(1);
    let knows_huge_pages = may_be_huge(kept[0]).is_some();
    let huge = |huge| knows_huge_pages.then_some(huge);
    assert_eq!(may_be_huge(kept[0]), huge(true));
    give(&slab, class, gone);
    slab.trim();
    let thin = slab.statistics().reserved;
    assert!(!cfg!(target_os = "linux") || thin == RUN, "{thin}");
    // Otherwise the system would make one, and the memory would not be free any more.
    assert_eq!(may_be_huge(kept[0]), huge(false));
    // The purged runs are usable again, and counted again.
    let blocks = take(&slab, class, CHUNK / 256 - 300 - 1);
    for block in &blocks {
        // SAFETY: the test owns the whole block.
        unsafe { block.write_bytes(0xff, 256) };
    }
    assert_eq!(slab.statistics().reserved, CHUNK);
    assert_eq!(may_be_huge(kept[0]), huge(true));
    give(&slab, class, &blocks);
    give(&slab, class, kept);
    slab.trim();
    assert_eq!(slab.statistics().reserved, 0);
}

#[test]
fn runs_serve_another_class_after_they_drained() {
    let slab = Slab::new();
    for _ in 0..3 {
        for class in (0..CLASSES).map(Class::new) {
            if class == PASSING {
                continue;
            }
            let blocks = take(&slab, class, CHUNK / 2 / class.size());
            assert_eq!(slab.statistics().reserved, CHUNK);
            give(&slab, class, &blocks);
        }
    }
}

/// A step of the test: takes blocks of a class, frees some of those taken, or trims.
#[derive(Debug, Clone)]
enum Step {
    Take(usize, usize),
    Give(usize, prop::sample::Index, usize),
    Trim,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..CLASSES, 1..400usize).prop_map(|(class, count)| Step::Take(class, count)),
        5 => (0..CLASSES, any::<prop::sample::Index>(), 1..600usize)
            .prop_map(|(class, from, count)| Step::Give(class, from, count)),
        1 => Just(Step::Trim),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Blocks never overlap in any order of steps (each keeps the pattern that was written to all
    /// of it), the statistics are exact, and in the end everything is given back.
    #[test]
    fn blocks_never_overlap(steps in prop::collection::vec(step(), 1..60)) {
        let slab = Slab::new();
        let mut live: HashMap<usize, Vec<*mut u8>> = HashMap::new();
        for step in steps {
            match step {
                Step::Take(class, count) => {
                    let size = Class::new(class).size();
                    let blocks = take(&slab, Class::new(class), count);
                    for block in &blocks {
                        fill(*block, size);
                    }
                    live.entry(class).or_default().extend(blocks);
                }
                Step::Give(class, from, count) => {
                    let blocks = live.entry(class).or_default();
                    if blocks.is_empty() { continue }
                    let from = from.index(blocks.len());
                    let to = (from + count).min(blocks.len());
                    let gone: Vec<_> = blocks.drain(from..to).collect();
                    for block in &gone { check(*block, Class::new(class).size()) }
                    give(&slab, Class::new(class), &gone);
                }
                Step::Trim => slab.trim(),
            }
            let used = live.iter().map(|(class, blocks)| Class::new(*class).size() * blocks.len());
            prop_assert_eq!(slab.statistics().used, used.sum::<usize>());
            prop_assert!(slab.statistics().reserved >= slab.statistics().used);
        }
        for (class, blocks) in live {
            for block in &blocks { check(*block, Class::new(class).size()) }
            give(&slab, Class::new(class), &blocks);
        }
        slab.trim();
        prop_assert_eq!(slab.statistics(), Statistics { reserved: 0, used: 0 });
    }
}

fn fill(block: *mut u8, size: usize) {
    let words = block.cast::<u64>();
    for word in 0..size / 8 {
        // SAFETY: the address is inside a block that the test owns.
        unsafe { words.add(word).write(block.addr() as u64 ^ word as u64) };
    }
}

fn check(block: *mut u8, size: usize) {
    let words = block.cast::<u64>();
    for word in 0..size / 8 {
        // SAFETY: the address is inside a block that the test owns.
        let found = unsafe { words.add(word).read() };
        assert_eq!(found, block.addr() as u64 ^ word as u64);
    }
}

/// Misuse aborts the program, so each kind is tested in a process of its own.
#[test]
#[cfg(all(debug_assertions, not(miri), not(fuzzing), not(watched)))]
fn a_double_free_is_found() {
    const KIND: &str = "ATS_SLAB_MISUSE";
    if let Ok(kind) = std::env::var(KIND) {
        let block = allocate(48);
        // SAFETY: none; the second call breaks the contract, and the test expects its detection.
        unsafe {
            free(block, 48);
            match kind.as_str() {
                "twice" => free(block, 48),
                _ => free(block.add(16), 48),
            }
        }
        return;
    }
    for kind in ["twice", "inside"] {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "slab::tests::a_double_free_is_found",
                "--exact",
                "--nocapture",
            ])
            .env(KIND, kind)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("memory is corrupted"),
            "{said}"
        );
    }
}
