//! The operations of a writer: always the same for its number and that of the write.

use crate::map::Model;
use ats_disk::{Batch, DiskStore, Durability, Error};
use ats_store::KeyRange;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The number of writers.
pub(crate) const WRITERS: usize = 4;
/// The number of keys that a writer has to itself.
const KEYS: u64 = 30;
/// The number of keys that all writers share.
pub(crate) const SHARED: u64 = 3;

/// Returns a number that looks random, always the same for these.
pub(crate) fn random(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

pub(crate) enum Change {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// A write of a writer.
pub(crate) struct Operation {
    /// Changes of keys that no other writer has.
    pub(crate) own: Vec<Change>,
    /// `true` if it is made as a batch. Then it also says so to a key that all writers share.
    pub(crate) shared: Option<(Vec<u8>, Vec<u8>)>,
    durability: Durability,
}

/// Returns a key that all writers share.
pub(crate) fn shared_key(number: u64) -> Vec<u8> {
    vec![b's', number as u8]
}

/// Returns the keys that only this writer has.
pub(crate) fn own_keys(writer: usize) -> (Vec<u8>, Vec<u8>) {
    (vec![b'w', writer as u8], vec![b'w', writer as u8 + 1])
}

/// Returns the mark that a write appends to a key that all writers share.
pub(crate) fn mark(writer: usize, number: u64) -> Vec<u8> {
    [&[writer as u8], &number.to_be_bytes()[2..]].concat()
}

/// Returns all keys that only this writer has.
pub(crate) fn keys(writer: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..KEYS).map(move |number| own_key(writer, number))
}

fn own_key(writer: usize, number: u64) -> Vec<u8> {
    // Some keys are long.
    let rest = if number == 7 { 500 } else { number as usize };
    [&own_keys(writer).0[..], &[number as u8], &vec![b'k'; rest]].concat()
}

fn value(random: u64) -> Vec<u8> {
    let length = match random % 40 {
        0 => 6000,
        1 => 0,
        length => length * 5,
    };
    let mut value = (random as u32).to_be_bytes().repeat(length as usize / 4);
    // Values that hide all that is older, for the operator.
    if random.is_multiple_of(11) {
        value.insert(0, b'!');
    }
    value
}

impl Operation {
    /// Makes the write of a writer with this number.
    pub(crate) fn of(writer: usize, number: u64) -> Self {
        let random = |what: u64| random((writer, number, what));
        let change = |index: u64| {
            let key = own_key(writer, random(100 + index) % KEYS);
            let value = value(random(200 + index));
            match random(300 + index) % 16 {
                0..6 => Change::Put(key, value),
                6..9 => Change::Delete(key),
                9..15 => Change::Merge(key, value),
                _ => {
                    let other = own_key(writer, random(400 + index) % KEYS);
                    Change::DeleteRange(key.clone().min(other.clone()), key.max(other))
                }
            }
        };
        let is_batch = random(0).is_multiple_of(2);
        let changes = if is_batch { 1 + random(1) % 10 } else { 1 };
        let key = shared_key(random(2) % SHARED);
        Operation {
            own: (0..changes).map(change).collect(),
            shared: is_batch.then(|| (key, mark(writer, number))),
            durability: match random(3) % 8 {
                0 => Durability::Always,
                _ => Durability::System,
            },
        }
    }

    /// Makes it.
    pub(crate) fn write(&self, store: &DiskStore) -> Result<(), Error> {
        if let ([change], None) = (&self.own[..], &self.shared) {
            return match change {
                Change::Put(key, value) => store.put(key, value),
                Change::Delete(key) => store.delete(key),
                Change::Merge(key, operand) => store.merge(key, operand),
                Change::DeleteRange(low, high) => store.delete_range(KeyRange {
                    low: Some(low),
                    high: Some(high),
                }),
            };
        }
        let mut batch = Batch::new();
        for change in &self.own {
            match change {
                Change::Put(key, value) => batch.put(key, value)?,
                Change::Delete(key) => batch.delete(key)?,
                Change::Merge(key, operand) => batch.merge(key, operand)?,
                Change::DeleteRange(low, high) => batch.delete_range(KeyRange {
                    low: Some(low),
                    high: Some(high),
                })?,
            }
        }
        if let Some((key, mark)) = &self.shared {
            batch.merge(key, mark)?;
        }
        store.write_with(&batch, self.durability)
    }

    /// Makes the changes of the keys that no other writer has.
    pub(crate) fn apply(&self, model: &mut Model) {
        for change in &self.own {
            match change {
                Change::Put(key, value) => model.put(key, value),
                Change::Delete(key) => model.delete(key),
                Change::Merge(key, operand) => model.merge(key, operand),
                Change::DeleteRange(low, high) => model.delete_range(KeyRange {
                    low: Some(low),
                    high: Some(high),
                }),
            }
        }
    }
}
