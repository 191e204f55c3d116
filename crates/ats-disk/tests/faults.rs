//! Calls fail, the disk is full, bits flip: a store then says so or is right, and loses no
//! acknowledged write.

mod sim;

use ats_disk::fault_injection::{InjectedFault, inject};
use ats_disk::{BagStore, DiskStore};
use sim::broken::Broken;
use sim::expiring::Expiring;
use sim::explore::Case;
use sim::fault::{Break, Calls, EINTR, EIO, EMFILE, ENOSPC};
use sim::salvaged::Counts;
use sim::subject::Subject;
use sim::toy::{Toy, injected};
use std::ops::Range;
use std::time::Instant;

/// Fails each call of a history in each way. Returns the number of histories that were run.
fn fail<S: Subject>(broken: &Broken) -> Result<u64, String> {
    let mut runs = 0;
    for (of, how, forever) in [
        (Calls::ALL, Break::Nothing(EIO), false),
        (Calls::ALL, Break::Nothing(ENOSPC), false),
        (Calls::WRITE, Break::Half(EIO), false),
        (Calls::WRITE, Break::Half(ENOSPC), false),
        (Calls::WRITE, Break::All(EIO), false),
        (Calls::SYNC, Break::Nothing(EIO), false),
        (Calls::SYNCING, Break::Half(EIO), false),
        (Calls::SYNCING, Break::All(EIO), false),
        (Calls::ALL, Break::Nothing(EIO), true),
        (Calls::CHANGING, Break::Nothing(EIO), true),
        (Calls::SYNCING, Break::Nothing(EIO), true),
        (Calls::WRITE, Break::Half(ENOSPC), true),
        (Calls::ALL, Break::Stop, true),
    ] {
        runs += broken.fail::<S>(of, how, forever)?;
    }
    Ok(runs)
}

/// Everything that may happen to a history.
fn break_all<S: Subject>(seed: u64) -> Result<[u64; 4], String> {
    let broken = Broken::random(seed, 20);
    let mut counts = [fail::<S>(&broken)?, 0, 0, 0];
    for failures in [1, 3] {
        counts[1] += broken.fill::<S>(failures)?;
    }
    for close in [true, false] {
        let (bits, errors) = broken.flip::<S>(close)?;
        counts[2] += bits;
        counts[3] += errors;
    }
    Ok(counts)
}

fn all_are_right<S: Subject>(seeds: Range<u64>) -> [u64; 4] {
    let mut sum = [0; 4];
    for seed in seeds {
        match break_all::<S>(seed) {
            Ok(counts) => (0..4).for_each(|of| sum[of] += counts[of]),
            Err(wrong) => panic!("{wrong}"),
        }
    }
    sum
}

#[test]
fn a_right_toy_passes() {
    let start = Instant::now();
    let [failed, filled, bits, errors] = all_are_right::<Toy<{ injected::NOTHING }>>(0..3);
    println!(
        "{failed} failed calls, {filled} full disks, {bits} bits of which {errors} made \
         errors, in {:?}",
        start.elapsed()
    );
    assert!(failed > 500 && filled > 10 && bits > 10_000 && errors > 1000);
}

#[test]
fn toys_with_injected_faults_are_caught() {
    macro_rules! caught {
        ($($fault:ident),*) => {$(
            let wrong = (0..10).find_map(|seed| break_all::<Toy<{ injected::$fault }>>(seed).err());
            println!("{}: {:?}", stringify!($fault), wrong.as_ref().and_then(|w| w.lines().next()));
            assert!(wrong.is_some());
        )*};
    }
    caught!(UNCHECKED, BEHIND, TRIED_AGAIN, TRUSTING, LEFT, LENIENT);
}

#[test]
fn calls_that_fail_lose_nothing() {
    let (start, mut failed) = (Instant::now(), 0);
    for seed in Case::seeds(0..2) {
        let broken = Broken::random(seed, 20);
        let mut runs = fail::<DiskStore>(&broken);
        // A signal makes no call fail; descriptors may be used up for a moment, or for long.
        for (of, how, forever) in [
            (Calls::ALL, Break::Nothing(EINTR), false),
            (Calls::OPENING, Break::Nothing(EMFILE), false),
            (Calls::OPENING, Break::Nothing(EMFILE), true),
        ] {
            runs = runs.and_then(|runs| Ok(runs + broken.fail::<DiskStore>(of, how, forever)?));
        }
        failed += runs.unwrap_or_else(|wrong| panic!("{wrong}"));
    }
    println!("{failed} failed calls in {:?}", start.elapsed());
    assert!(failed > 1500, "{failed}");
}

#[test]
fn faults_of_the_store_are_caught() {
    for (fault, of, error) in [
        (InjectedFault::Interrupted, Calls::ALL, EINTR),
        (InjectedFault::Unwritten, Calls::OPENING, EMFILE),
    ] {
        inject(Some(fault));
        let how = Break::Nothing(error);
        let caught = (0..20).find(|seed| {
            let broken = Broken::random(*seed, 20);
            broken.fail::<DiskStore>(of, how, false).is_err()
        });
        inject(None);
        println!("{fault:?}: {caught:?}");
        assert!(caught.is_some(), "{fault:?}");
    }
}

#[test]
fn a_full_disk_is_survived() {
    let (start, mut filled) = (Instant::now(), 0);
    for seed in Case::seeds(0..10) {
        for failures in [1, 3] {
            let broken = Broken::random(seed, 20).fill::<DiskStore>(failures);
            filled += broken.unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
    println!("{filled} full disks in {:?}", start.elapsed());
    assert!(filled > 100, "{filled}");
}

/// Transactions, which read all their keys before they change one, are done as a whole or not at
/// all.
#[test]
fn transactions_survive_a_full_disk() {
    let mut filled = 0;
    for seed in Case::seeds(0..2) {
        let broken = Broken::random(seed, 20);
        for full in [broken.fill::<BagStore>(1), broken.fill::<Expiring>(1)] {
            filled += full.unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
    assert!(filled > 8, "{filled}");
}

#[test]
fn flipped_bits_are_found() {
    let (start, mut bits, mut errors) = (Instant::now(), 0, 0);
    for seed in Case::seeds(0..2) {
        for close in [true, false] {
            let broken = Broken::random(seed, 20).flip::<DiskStore>(close);
            let (more, more_errors) = broken.unwrap_or_else(|wrong| panic!("{wrong}"));
            bits += more;
            errors += more_errors;
        }
    }
    println!(
        "{bits} bits, of which {errors} made errors, in {:?}",
        start.elapsed()
    );
    assert!(bits > 30_000 && errors > 30_000, "{bits} {errors}");
}

#[test]
fn damaged_stores_are_salvaged() {
    let (start, mut all) = (Instant::now(), Counts::default());
    for seed in Case::seeds(0..2) {
        for close in [true, false] {
            let saved = Broken::random(seed, 20).salvage(close);
            let saved = saved.unwrap_or_else(|wrong| panic!("{wrong}"));
            all.damaged += saved.damaged;
            all.whole += saved.whole;
            all.records.0 += saved.records.0;
            all.records.1 += saved.records.1;
        }
    }
    println!("{all:?} in {:?}", start.elapsed());
    assert!(
        all.damaged > 20_000 && all.whole > all.damaged / 4,
        "{all:?}"
    );
    assert!(all.records.0 > all.records.1 / 3 * 2, "{all:?}");
}
