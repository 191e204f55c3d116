//! A process that has too many open files gets errors, and goes on when it has fewer.

use crate::directory::Directory;
use crate::hooked::{Call, HookedFs};
use crate::{all, open};
use ats_disk::{Error, Options};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const EMFILE: i32 = 24;

#[test]
fn too_many_open_files_do_not_end_a_store() {
    let is_short = Arc::new(AtomicBool::new(false));
    let hook = {
        let is_short = Arc::clone(&is_short);
        move |call, _: &_| match matches!(call, Call::Create | Call::SyncDir)
            && is_short.load(Ordering::Relaxed)
        {
            true => Err(io::Error::from_raw_os_error(EMFILE)),
            false => Ok(()),
        }
    };
    // Only directories cannot be opened, or no files, either.
    for only_directories in [true, false] {
        let directory = Directory::new();
        let hook = hook.clone();
        let options = Options {
            file_system: HookedFs::new(move |call, path| match (call, only_directories) {
                (Call::Create, true) => Ok(()),
                _ => hook(call, path),
            }),
            threads: 0,
            ..Options::default()
        };
        let store = open(directory.path(), &options);
        let write = |value: &[u8]| {
            for key in 0..100_u8 {
                store.put(&[key], value).expect("written");
            }
        };
        write(b"1");
        store.flush().expect("flushed");
        write(b"2");
        store.flush().expect("flushed");
        write(b"3");
        is_short.store(true, Ordering::Relaxed);
        for failed in [store.flush(), store.compact(), store.flush()] {
            assert!(matches!(failed, Err(Error::Io { .. })), "{failed:?}");
        }
        assert_eq!(store.get(&[7]), Ok(Some(b"3".to_vec())));
        is_short.store(false, Ordering::Relaxed);
        store.flush().expect("flushed");
        store.compact().expect("compacted");
        write(b"4");
        store.close().expect("closed");
        let store = open(directory.path(), &Options::default());
        assert!(all(&store).iter().all(|(_, value)| value == b"4"));
    }
}
