//! The memory of memtables, of the whole process; so nothing else is in this program.

#[path = "support/directory.rs"]
mod directory;

use ats_disk::{DiskStore, Options};
use ats_mem::slab;
use directory::Directory;
use std::thread::sleep;
use std::time::{Duration, Instant};

const MEMTABLE: usize = 16 << 20;

#[test]
fn memory_is_kept_while_there_are_writes_and_given_back_after_them() {
    let directory = Directory::new();
    let options = Options::new().memtable_bytes(MEMTABLE);
    let store = DiskStore::open(directory.path(), options).unwrap();
    // Beside twenty other programs the background takes long to write a memtable.
    let end = Instant::now() + Duration::from_secs(300);
    let (mut most_free, mut most) = (0, 0);
    // The loop ends when memory that a memtable has freed is seen, besides the memory that is made
    // ready ahead.
    let mut numbers = 0_u64..;
    while most_free <= 4 << 20 {
        assert!(Instant::now() < end, "only {most_free} were kept");
        for number in numbers.by_ref().take(1000) {
            let key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            store.put(&key, &[7; 200]).unwrap();
        }
        most_free = most_free.max(slab::free_bytes());
        most = most.max(slab::statistics().reserved);
    }
    assert!(most < 16 * MEMTABLE, "{most}");
    store.flush().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while slab::free_bytes() > 2 << 20 {
        assert!(Instant::now() < end, "{} are kept", slab::free_bytes());
        sleep(Duration::from_millis(100));
    }
    store.close().unwrap();
}
