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
    // Files cannot be made, or neither made nor opened. The directory is open.
    for only_made in [true, false] {
        let directory = Directory::new();
        let hook = {
            let is_short = Arc::clone(&is_short);
            move |call, _: &_| {
                let takes_one = call == Call::Create || call == Call::Open && !only_made;
                if takes_one && is_short.load(Ordering::Relaxed) {
                    return Err(io::Error::from_raw_os_error(EMFILE));
                }
                Ok(())
            }
        };
        let options = Options::new()
            .file_system(HookedFs::new(hook))
            .background(false);
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
            let code = match &failed {
                Err(Error::Io { error, .. }) => error.code,
                _ => None,
            };
            assert_eq!(code, Some(EMFILE), "{failed:?}");
        }
        assert_eq!(store.get(&[7]), Ok(Some(b"3".to_vec())));
        is_short.store(false, Ordering::Relaxed);
        store.flush().expect("flushed");
        store.compact().expect("compacted");
        write(b"4");
        store.close().expect("closed");
        let store = open(directory.path(), &Options::new());
        assert!(all(&store).iter().all(|(_, value)| value == b"4"));
    }
}
