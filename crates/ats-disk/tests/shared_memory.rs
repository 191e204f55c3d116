//! Memory that all stores of the process share; so there is one test in this program.

#[path = "support/directory.rs"]
mod directory;

use ats_disk::{DiskStore, Options, set_shared_memory, shared_memory};
use directory::Directory;
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;
const STORES: usize = 60;

fn key(number: usize) -> [u8; 8] {
    (number as u64)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .to_be_bytes()
}

fn put(store: &DiskStore, numbers: std::ops::Range<usize>) {
    for number in numbers {
        store
            .put(&key(number), &[number as u8; 100])
            .expect("written");
    }
}

fn check(store: &DiskStore, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let value = store.get(&key(number)).expect("read");
        assert_eq!(value, Some(vec![number as u8; 100]));
    }
}

/// Waits until this is no more than so many bytes.
fn wait_for(bytes: impl Fn() -> usize, most: usize) {
    let end = Instant::now() + Duration::from_secs(60);
    while bytes() > most {
        assert!(Instant::now() < end, "{:?}", shared_memory());
        sleep(Duration::from_millis(5));
    }
}

fn memtables() -> usize {
    shared_memory().memtables
}

fn cache() -> usize {
    shared_memory().cache
}

#[test]
fn stores_share_a_budget() {
    assert_eq!(shared_memory().budget, 384 * MIB);
    set_shared_memory(12 * MIB);
    let directories: Vec<_> = (0..STORES).map(|_| Directory::new()).collect();
    let open = |directory: &Directory| {
        DiskStore::open(directory.path(), Options::new()).expect("it opens")
    };
    let stores: Vec<_> = directories.iter().map(open).collect();

    // Each store stays below the share of one memtable, 2 MiB: all together they have 12 MiB.
    let mut most = 0;
    for round in 0..10 {
        for store in &stores {
            put(store, round * 150..(round + 1) * 150);
            most = most.max(memtables());
        }
    }
    assert!((3 * MIB..8 * MIB).contains(&most), "{most}");
    wait_for(memtables, 4 * MIB);
    let info: Vec<_> = stores.iter().map(DiskStore::info).collect();
    let flushes: u64 = info.iter().map(|info| info.flushes).sum();
    assert!((10..200).contains(&flushes), "{flushes} flushes");
    assert!(info.iter().all(|info| info.memtable_bytes < 2 * MIB));

    // A store that writes much does not keep for long the memory that others need, and is not
    // stopped.
    put(&stores[0], 1500..60_000);
    assert!(stores[0].info().flushes >= 2);
    wait_for(memtables, 4 * MIB);

    // The blocks that were read are in one cache.
    for store in &stores {
        store.flush().expect("flushed");
    }
    scope(|scope| {
        for part in 0..3 {
            let stores = &stores;
            scope.spawn(move || {
                for store in stores.iter().skip(part).step_by(3) {
                    check(store, 0..1500);
                }
            });
        }
    });
    check(&stores[0], 0..60_000);
    // Merges may need buffers besides, for which half of the cache has given way.
    wait_for(cache, 8 * MIB);
    assert!(cache() > 2 * MIB, "{}", cache());
    let own: u64 = stores.iter().map(|store| store.info().cache_bytes).sum();
    assert!(own < cache() as u64);

    // The budget can be changed; memtables follow with the next write.
    for store in &stores {
        put(store, 0..100);
    }
    set_shared_memory(3 * MIB);
    wait_for(cache, 2 * MIB + MIB / 4);
    put(&stores[1], 100..200);
    wait_for(memtables, MIB);
    for store in &stores {
        check(store, 0..1500);
    }

    // A store with memory of its own takes none of it.
    drop(stores);
    assert_eq!((memtables(), cache()), (0, 0));
    let options = Options::new().memtable_bytes(MIB).cache_bytes(MIB);
    let store = DiskStore::open(directories[0].path(), options).expect("it opens");
    check(&store, 0..60_000);
    put(&store, 0..1000);
    assert_eq!((memtables(), cache()), (0, 0));
}
