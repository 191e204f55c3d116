//! Copies of the process, by `fork`.

use crate::directory::Directory;
use ats_disk::{DiskStore, Error, Options};

/// A copy of the process, by fork, has the files of the store, and must not write to them.
#[test]
fn a_copy_of_the_process_only_reads() {
    let directory = Directory::new();
    let open = || DiskStore::open(directory.path(), Options::new());
    let store = open().expect("a new store");
    store.put(b"key", b"value").expect("written");
    // SAFETY: the copy has one thread, which takes locks that only this thread has taken, and ends
    // without returning.
    let copy = unsafe { libc::fork() };
    if copy == 0 {
        // SAFETY: it has no arguments that could be wrong. A copy that hangs is ended by it.
        unsafe { libc::alarm(20) };
        let reads = store.get(b"key") == Ok(Some(b"value".to_vec()));
        let refuses = matches!(store.put(b"key", b"other"), Err(Error::ReadOnly(_)));
        drop(store);
        // SAFETY: `_exit` runs no destructors and no handlers, so it cannot touch the parent's
        // files.
        unsafe { libc::_exit(i32::from(!reads) + 2 * i32::from(!refuses)) };
    }
    let mut status = -1;
    // SAFETY: it is a process that this one has begun, and the status has room.
    assert_eq!(unsafe { libc::waitpid(copy, &raw mut status, 0) }, copy);
    assert_eq!(status, 0);
    assert_eq!(open().err(), Some(Error::Locked));
    store.put(b"key", b"last").expect("written");
    drop(store);
    let store = open().expect("it is open no more");
    assert_eq!(store.get(b"key"), Ok(Some(b"last".to_vec())));
}
