//! Callers that may not block.

use crate::append::Append;
use crate::directory::Directory;
use crate::hooked::{Call, HookedFs};
use crate::{BLOCK, open, random};
use ats_disk::{AtomicStore, Batch, DiskStore, Durability, Error, MayBlock, Options};
use ats_store::{Change, Store};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

thread_local! {
    static MAY_NOT_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Returns a file system that counts the calls that may block, of threads that may not.
fn watch_blocking(waits: &Arc<AtomicU64>) -> Arc<HookedFs> {
    let waits = Arc::clone(waits);
    HookedFs::new(move |call, _| {
        if MAY_NOT_BLOCK.get() && call != Call::Reserve {
            waits.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })
}

/// Makes a call that may not block.
fn at_once<R>(work: impl FnOnce(Option<MayBlock>) -> R) -> R {
    MAY_NOT_BLOCK.set(true);
    let result = work(None);
    MAY_NOT_BLOCK.set(false);
    result
}

/// Makes a call that may not block, and again if it would have blocked. Returns `true` if it would
/// not have.
fn call<T>(work: impl Fn(Option<MayBlock>) -> Result<T, ats_store::Error>) -> (T, bool) {
    match at_once(&work) {
        Err(ats_store::Error::WouldBlock) => (work(BLOCK).expect("done when it may block"), false),
        done => (done.expect("done at once"), true),
    }
}

fn put(
    may_block: Option<MayBlock>,
    store: &dyn Store,
    key: &[u8],
    value: &[u8],
) -> Result<bool, ats_store::Error> {
    store.update(may_block, &[key], &mut |_: usize, _: Option<&[u8]>| {
        Change::Put(value.to_vec())
    })
}

fn get(
    may_block: Option<MayBlock>,
    store: &dyn Store,
    key: &[u8],
) -> Result<Option<Vec<u8>>, ats_store::Error> {
    let mut found = None;
    store.get(may_block, key, &mut |value| found = Some(value.to_vec()))?;
    Ok(found)
}

/// Gives a key of a store on disk a value, without blocking.
fn put_at_once(
    store: &DiskStore,
    key: &[u8],
    value: &[u8],
    durability: Durability,
) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.put(key, value)?;
    at_once(|_| store.try_write(&batch, durability))
}

/// Reads a key of a store on disk, without blocking.
fn get_at_once(store: &DiskStore, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut found = None;
    let mut read = |value: &[u8]| found = Some(value.to_vec());
    at_once(|_| store.try_get(key, &mut read))?;
    Ok(found)
}

/// Each thread has keys of its own, so it knows their values.
#[test]
fn calls_that_would_block_change_nothing() {
    const THREADS: u64 = 3;
    const CALLS: u64 = 6_000;
    let directory = Directory::new();
    let waits = Arc::new(AtomicU64::new(0));
    let options = Options::new()
        .operator(Arc::new(Append))
        .file_system(watch_blocking(&waits))
        .memtable_bytes(20_000)
        .cache_bytes(20_000)
        .block_bytes(256)
        .file_bytes(10_000)
        .fan_in(2)
        .background(true);
    let store = AtomicStore::new(open(directory.path(), &options));
    let (done_at_once, done_later) = (AtomicU64::new(0), AtomicU64::new(0));
    let run = |thread: u64| {
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for number in 0..CALLS {
            let random = random((thread, number));
            let key = format!("{thread}/{:04}", random % 500).into_bytes();
            let value = format!("<{number}>").into_bytes();
            let is_at_once = match random >> 32 & 7 {
                0..2 => {
                    let (_, is_at_once) = call(|may_block| put(may_block, &store, &key, &value));
                    model.insert(key, value);
                    is_at_once
                }
                2..4 => {
                    let merges = store.merges().expect("it has an operator");
                    let ((), is_at_once) = call(|may_block| merges.merge(may_block, &key, &value));
                    model.entry(key).or_default().extend(value);
                    is_at_once
                }
                4 => {
                    let remove = |_: usize, _: Option<&[u8]>| Change::Remove;
                    let (_, is_at_once) =
                        call(|may_block| store.update(may_block, &[&key], &mut { remove }));
                    model.remove(&key);
                    is_at_once
                }
                _ => {
                    let (found, is_at_once) = call(|may_block| get(may_block, &store, &key));
                    assert_eq!(found.as_ref(), model.get(&key));
                    is_at_once
                }
            };
            let count = if is_at_once {
                &done_at_once
            } else {
                &done_later
            };
            count.fetch_add(1, Ordering::Relaxed);
        }
        for (key, value) in model {
            assert_eq!(get(BLOCK, &store, &key), Ok(Some(value)));
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || run(thread));
        }
    });
    assert_eq!(waits.load(Ordering::Relaxed), 0);
    let (at_once, later) = (done_at_once.into_inner(), done_later.into_inner());
    assert!(
        at_once > 500 && later > 500,
        "{at_once} at once, {later} later"
    );
}

fn open_store(directory: &Directory, durability: Durability) -> DiskStore {
    let options = Options::new().background(false).durability(durability);
    open(directory.path(), &options)
}

/// Blocks that the system has in memory are read at once, if it says so: it need not.
#[test]
fn blocks_in_the_page_cache_may_be_read() {
    let directory = Directory::new();
    let store = open_store(&directory, Durability::System);
    for key in 0..1000_u32 {
        store.put(&key.to_be_bytes(), &[7; 100]).expect("put");
    }
    store.close().expect("closed");
    let store = open_store(&directory, Durability::System);
    for key in 0..1000_u32 {
        match get_at_once(&store, &key.to_be_bytes()) {
            Ok(found) => assert_eq!(found, Some(vec![7; 100])),
            Err(error) => assert_eq!(error, Error::WouldBlock),
        }
        assert_eq!(store.get(&key.to_be_bytes()), Ok(Some(vec![7; 100])));
    }
}

#[test]
fn non_blocking_reads_use_memory_and_not_the_disk() {
    let directory = Directory::new();
    let store = open_store(&directory, Durability::System);
    // The first write begins the journal.
    assert_eq!(
        put_at_once(&store, b"k", b"u", Durability::System),
        Err(Error::WouldBlock)
    );
    assert_eq!(store.put(b"k", b"u"), Ok(()));
    assert_eq!(put_at_once(&store, b"k", b"v", Durability::System), Ok(()));
    assert_eq!(get_at_once(&store, b"k"), Ok(Some(b"v".to_vec())));
    store.close().expect("closed");
    // The file system of this store cannot tell which bytes are in memory.
    let options = Options::new()
        .file_system(watch_blocking(&Arc::default()))
        .background(false);
    let store = open(directory.path(), &options);
    for would_block in [true, false] {
        let found = get_at_once(&store, b"k");
        if would_block {
            assert_eq!(found, Err(Error::WouldBlock));
        } else {
            assert_eq!(found, Ok(Some(b"v".to_vec())));
        }
        // The block is cached from now on.
        assert_eq!(store.get(b"k"), Ok(Some(b"v".to_vec())));
        // A part and a block were read, once each.
        assert_eq!(store.info().cache_misses, 2);
    }
}

#[test]
fn non_blocking_writes_are_neither_durable_nor_large() {
    let directory = Directory::new();
    let store = open_store(&directory, Durability::Always);
    let refused = put_at_once(&store, b"k", b"v", Durability::Always);
    assert_eq!(refused, Err(Error::WouldBlock));
    assert_eq!(store.get(b"k"), Ok(None));
    let mut batch = Batch::new();
    batch.put(b"k", b"w").expect("not too long");
    store.put(b"first", b"").expect("written");
    let write = |batch: &Batch| at_once(|_| store.try_write(batch, Durability::System));
    assert_eq!(write(&batch), Ok(()));
    assert_eq!(store.get(b"k"), Ok(Some(b"w".to_vec())));
    batch
        .put(b"large", &vec![7; 1 << 20])
        .expect("not too long");
    assert_eq!(write(&batch), Err(Error::WouldBlock));
    assert_eq!(store.get(b"large"), Ok(None));
    let len_at_once = || at_once(|_| store.try_len());
    assert_eq!(len_at_once(), Err(Error::WouldBlock));
    assert_eq!(store.is_empty(), Ok(false));
    assert_eq!(store.len(), Ok(2));
    assert_eq!(len_at_once(), Ok(2));
}
