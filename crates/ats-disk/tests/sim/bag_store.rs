//! A bag store as a subject: each value of the model is several values of a key.

use super::disk_store;
use super::fs::SimFs;
use super::history::keys;
use super::model::Change;
use super::subject::{Content, Setup, Subject};
use super::transaction::Transaction;
use ats_disk::{BagStore, DiskStore, Error, Options};
use ats_store::bags::{push_value, split_values};
use ats_store::{BagValues, Change as Becomes, Direction, KeyRange, MayBlock, Store};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Bytes of the model's value that are one value.
const PART: usize = 5;
/// Begins the first part of a value, which may be empty.
const BEGINS: u8 = b'!';

/// Values that are equal if their bytes are. Those with the same first byte have the same hash.
struct Bytes;

impl BagValues for Bytes {
    fn hash(&self, value: &[u8]) -> Result<u64, ats_store::Error> {
        Ok(u64::from(value[0]))
    }

    fn is_equal(&self, one: &[u8], other: &[u8]) -> Result<bool, ats_store::Error> {
        Ok(one == other)
    }
}

/// Returns the key of the store, which begins no other one but as a bag store allows it.
fn stored_key(key: &[u8]) -> Vec<u8> {
    let escaped = key.iter().flat_map(|byte| match byte {
        0 => vec![0, 0xFF],
        byte => vec![*byte],
    });
    escaped.chain([0]).collect()
}

fn model_key(stored: &[u8]) -> Vec<u8> {
    let mut key = Vec::new();
    let mut bytes = stored[..stored.len() - 1].iter();
    while let Some(byte) = bytes.next() {
        key.push(*byte);
        if *byte == 0 {
            assert_eq!(bytes.next(), Some(&0xFF));
        }
    }
    key
}

fn stored_value(value: &[u8]) -> Vec<u8> {
    let mut values = Vec::new();
    for part in [&[BEGINS][..], value].concat().chunks(PART) {
        push_value(&mut values, part).expect("it is short");
    }
    values
}

fn model_value(stored: &[u8]) -> Vec<u8> {
    let parts: Result<Vec<_>, _> = split_values(stored).collect();
    let value = parts.expect("whole values").concat();
    value.strip_prefix(&[BEGINS]).expect("a beginning").to_vec()
}

fn collect(store: &dyn Store, range: KeyRange<'_>, direction: Direction) -> Result<Content, Error> {
    let (low, high) = (range.low.map(stored_key), range.high.map(stored_key));
    let range = KeyRange {
        low: low.as_deref(),
        high: high.as_deref(),
    };
    let mut content = Vec::new();
    let scanned = store.scan(
        Some(MayBlock::here()),
        range,
        direction,
        &mut |key, values| {
            content.push((model_key(key), model_value(values)));
            ControlFlow::Continue(())
        },
    );
    scanned.map(|()| content).map_err(of_store)
}

fn value_of(store: &dyn Store, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut found = None;
    let read = store.get(Some(MayBlock::here()), &stored_key(key), &mut |values| {
        found = Some(model_value(values));
    });
    read.map(|_| found).map_err(of_store)
}

/// The engine only names the failure in more detail.
fn of_store(error: ats_store::Error) -> Error {
    match error {
        ats_store::Error::Io(error) if error.kind == ErrorKind::ReadOnlyFilesystem => {
            Error::ReadOnly("it is not written to".into())
        }
        ats_store::Error::Io(error) => Error::Io {
            error,
            what: "a call of a bag store".into(),
        },
        error => Error::Corrupt(error.to_string()),
    }
}

/// Returns the keys that changes are about.
pub(crate) fn keys_of(changes: &[Change]) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    for change in changes {
        match change {
            Change::Put(key, _) | Change::Delete(key) | Change::Merge(key, _) => {
                all.insert(key.clone());
            }
            Change::DeleteRange(..) => all.extend(keys()),
        }
    }
    all
}

/// Returns options without an operator.
fn options(setup: &Setup, fs: &SimFs) -> Options {
    let mut options = disk_store::options(setup, fs);
    options.operator = None;
    options
}

impl Subject for BagStore {
    type Snapshot = Box<dyn Store>;
    const FLUSH_SYNCS: bool = true;
    const CLOSE_SYNCS: bool = true;
    const MARKS_SYNCS: bool = true;

    const PATH: &str = DiskStore::PATH;

    fn open(setup: &Setup, fs: &SimFs) -> Result<Self, Error> {
        let options = options(setup, fs);
        let store = DiskStore::open(Path::new(Self::PATH), options)?;
        Ok(BagStore::new(store, Arc::new(Bytes), false))
    }

    fn open_for_reading(setup: &Setup, fs: &SimFs) -> Result<Option<Self>, Error> {
        let options = options(setup, fs).read_only(true);
        match DiskStore::open(Path::new(Self::PATH), options) {
            // The store was never made.
            Err(Error::Missing) => Ok(None),
            opened => Ok(Some(BagStore::new(opened?, Arc::new(Bytes), false))),
        }
    }

    fn write(&self, changes: &[Change], synced: bool) -> Result<(), Error> {
        let keys: Vec<_> = keys_of(changes).into_iter().collect();
        let stored: Vec<_> = keys.iter().map(|key| stored_key(key)).collect();
        let stored: Vec<_> = stored.iter().map(Vec::as_slice).collect();
        let becomes = |value: Option<&[u8]>| match value {
            Some(value) => Becomes::Put(stored_value(value)),
            None => Becomes::Remove,
        };
        let mut plan = Transaction::new(&keys, changes, model_value, becomes);
        let updated = self.update(Some(MayBlock::here()), &stored, &mut plan);
        updated.map_err(of_store)?;
        if synced {
            self.records().store().sync()
        } else {
            Ok(())
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        value_of(self, key)
    }

    fn scan(&self, range: KeyRange<'_>, direction: Direction) -> Result<Content, Error> {
        collect(self, range, direction)
    }

    fn snapshot(&self) -> Result<Box<dyn Store>, Error> {
        Ok(self.freeze())
    }

    fn scan_snapshot(snapshot: &Box<dyn Store>, direction: Direction) -> Result<Content, Error> {
        collect(&**snapshot, KeyRange::default(), direction)
    }

    fn get_snapshot(snapshot: &Box<dyn Store>, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        value_of(&**snapshot, key)
    }

    fn sync(&self) -> Result<(), Error> {
        self.records().store().sync()
    }

    fn rest(&self) -> Result<(), Error> {
        self.records().store().close_logs()
    }

    fn flush(&self) -> Result<(), Error> {
        self.records().store().flush()
    }

    fn compact(&self) -> Result<(), Error> {
        self.records().store().compact()
    }

    fn work(&self) -> Result<bool, Error> {
        self.records().store().work()
    }

    fn close(self) -> Result<(), Error> {
        self.records().store().close()
    }
}
