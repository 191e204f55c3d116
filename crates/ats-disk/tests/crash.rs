//! The machine stops at any call, and anything may survive of the unsynced writes: a store that is
//! opened again has its contents after some write, and no synced write is lost. The module `sim`
//! tells how a machine may treat a store.
//!
//! The number of points that are visited is printed with `--nocapture`. With
//! `ATS_DISK_CRASH_SECONDS` in the environment, other histories are visited for so long.

mod sim;
#[path = "sim/tests.rs"]
mod simulator;

use ats_disk::fault_injection::{InjectedFault, inject};
use ats_disk::{BagStore, DiskStore};
use sim::expiring::Expiring;
use sim::explore::Case;
use sim::liar::Lie;
use sim::subject::Subject;
use sim::toy::{Toy, injected};
use std::ops::Range;
use std::time::Instant;

/// Visits all points of these seeds, or of others if the environment says so. Returns their number.
fn all_are_right<S: Subject>(seeds: Range<u64>) -> u64 {
    let start = Instant::now();
    let (mut histories, mut visited) = (0, 0);
    for seed in Case::seeds(seeds) {
        visited += Case::random(seed).check::<S>();
        histories += 1;
    }
    println!(
        "{visited} points of {histories} histories in {:?}",
        start.elapsed()
    );
    visited
}

/// Returns the number of points that were visited until something was wrong.
fn is_caught<S: Subject>(lie: Option<Lie>, seeds: u64) -> Option<u64> {
    let mut visited = 0;
    for seed in 0..seeds {
        let mut case = Case::random(seed);
        case.setup.lie = lie;
        let (more, explored) = case.explore::<S>();
        visited += more;
        if explored.is_err() {
            return Some(visited);
        }
    }
    None
}

#[test]
fn a_right_toy_passes() {
    let visited = all_are_right::<Toy<{ injected::NOTHING }>>(0..30);
    assert!(visited > 15_000, "{visited}");
}

#[test]
fn toys_with_injected_faults_are_caught() {
    macro_rules! caught {
        ($($fault:ident),*) => {$(
            let caught = is_caught::<Toy<{ injected::$fault }>>(None, 20);
            println!("{}: {caught:?}", stringify!($fault));
            assert!(caught.is_some());
        )*};
    }
    caught!(
        UNCHECKED,
        BEHIND,
        RENAMED_EARLY,
        NAME_UNSYNCED,
        IN_PARTS,
        UNSYNCED
    );
}

#[test]
fn lies_to_a_toy_are_caught() {
    for lie in [
        Lie::Sync("log"),
        Lie::Sync("log.new"),
        Lie::SyncSeldom("log"),
        Lie::SyncDir,
        Lie::SyncDirSeldom,
        Lie::Exchange("log"),
        Lie::Short("log", 100),
    ] {
        let caught = is_caught::<Toy<{ injected::NOTHING }>>(Some(lie), 20);
        println!("{lie:?}: {caught:?}");
        assert!(caught.is_some());
    }
}

#[test]
fn stops_lose_nothing_that_was_synced() {
    let visited = all_are_right::<DiskStore>(0..15);
    assert!(visited > 7_500, "{visited}");
}

/// Keys with many values are as whole as others, and values stay in their order.
#[test]
fn stops_lose_nothing_of_bags() {
    let visited = all_are_right::<BagStore>(1..3);
    assert!(visited > 6_000, "{visited}");
}

/// Records that have expired do not come back, whatever the clock says after a start, and no others
/// are lost.
#[test]
fn stops_bring_back_nothing_that_has_expired() {
    let visited = all_are_right::<Expiring>(0..2);
    assert!(visited > 4_000, "{visited}");
}

#[test]
fn lies_to_the_store_are_caught() {
    for lie in [
        Lie::Sync("journal"),
        Lie::Sync("run"),
        Lie::Sync("manifest"),
        Lie::SyncSeldom("journal"),
        Lie::SyncSeldom("manifest"),
        Lie::SyncDir,
        Lie::SyncDirSeldom,
        Lie::Exchange("journal"),
        Lie::Exchange("manifest"),
        Lie::Exchange("run"),
        Lie::Short("journal", 100),
        Lie::Short("manifest", 100),
        Lie::Short("run", 100),
        Lie::Paths,
    ] {
        let caught = is_caught::<DiskStore>(Some(lie), 20);
        println!("{lie:?}: {caught:?}");
        assert!(caught.is_some());
    }
}

#[test]
fn faults_of_the_store_are_caught() {
    for fault in [
        InjectedFault::TornRecord,
        InjectedFault::Order,
        InjectedFault::EarlyEdit,
        InjectedFault::RepairedForReading,
    ] {
        inject(Some(fault));
        let caught = is_caught::<DiskStore>(None, 40);
        inject(None);
        println!("{fault:?}: {caught:?}");
        assert!(caught.is_some(), "{fault:?}");
    }
}
