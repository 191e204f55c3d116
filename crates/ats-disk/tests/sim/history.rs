//! Random histories of a store: over few keys, with long and short values.

use super::model::{Change, Mixed, PRIME, State, apply};
use super::random::Random;
use ats_store::MergeOperator;
use std::sync::Arc;

/// An operation on a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Some changes, as one; synced or not.
    Write(Vec<Change>, bool),
    Sync,
    Flush,
    Compact,
    /// One piece of background work.
    Work,
    /// A snapshot is taken.
    Snapshot,
    /// The oldest snapshot is compared with its expected records, and dropped.
    Release,
    /// The store is compared with its expected records.
    Check,
    /// The store is closed and opened again.
    Close,
    /// The process ends, and the store is opened by another one.
    Kill,
    /// A second goes by.
    Wait,
    /// The files are closed to which is written.
    Rest,
    /// The path of the directory leads elsewhere, until the store is opened again.
    Turn,
}

/// Returns the keys of a history: the empty one, prefixes of others, a long one, and those of each
/// way to merge.
pub(crate) fn keys() -> [Vec<u8>; 12] {
    let long = |last: u8| [&[b'k'; 150][..], &[last]].concat();
    let short = [
        &b""[..],
        b"\0",
        b"a",
        b"a\0",
        b"ab",
        b"abc",
        b"b",
        b"f",
        b"f1",
        b"p",
    ];
    let mut keys: [Vec<u8>; 12] = std::array::from_fn(|_| Vec::new());
    for (key, short) in keys.iter_mut().zip(short) {
        *key = short.to_vec();
    }
    keys[10] = long(0);
    keys[11] = long(255);
    keys
}

/// Returns the inverse modulo [`PRIME`].
fn inverse(of: u32) -> u32 {
    (1..PRIME)
        .find(|inverse| of * inverse % PRIME == 1)
        .unwrap_or(0)
}

/// Makes values that are told apart from each other.
struct Writer<'r> {
    random: &'r mut Random,
    keys: [Vec<u8>; 12],
    /// The next value has this number.
    number: u64,
    /// `true` if ranges are deleted.
    has_ranges: bool,
}

impl Writer<'_> {
    fn value(&mut self) -> Vec<u8> {
        self.number += 1;
        let mut value = format!("{}.", self.number).into_bytes();
        let len = match self.random.below(16) {
            0 => 0,
            1 => 1,
            2 => 60 + self.random.below(200),
            3 => 300 + self.random.below(900),
            _ => 2 + self.random.below(14),
        };
        let fill = b'a' + (self.number % 26) as u8;
        value.resize(len.max(value.len() * usize::from(len > 0)), fill);
        value
    }

    fn map(&mut self, state: &State, key: &[u8]) -> Vec<u8> {
        let current = state
            .get(key)
            .map(|value| [u32::from(value[0]), u32::from(value[1])]);
        let [a, b] = match (self.random.below(4), current) {
            // The operand that makes it the identity, so that the key is missing.
            (0, Some([a, b])) if a != 0 => [inverse(a), (PRIME - b) * inverse(a) % PRIME],
            (1, _) => [0, self.random.below(PRIME as usize) as u32],
            _ => [
                2 + self.random.below(PRIME as usize - 2) as u32,
                self.random.below(PRIME as usize) as u32,
            ],
        };
        vec![a as u8, b as u8]
    }

    fn change(&mut self, state: &State) -> Change {
        let key = self.random.below(self.keys.len());
        let key = self.keys[key].clone();
        let is_map = key.starts_with(b"f");
        match (self.random.below(10), is_map) {
            (0, _) if self.has_ranges => {
                let mut ends: Vec<Option<Vec<u8>>> = Vec::new();
                for _ in 0..2 {
                    let end = self.random.below(self.keys.len() + 3);
                    ends.push(self.keys.get(end).cloned());
                }
                // Now and then the range is empty.
                if ends[1].is_some() && ends[0] > ends[1] && !self.random.one_in(8) {
                    ends.swap(0, 1);
                }
                let high = ends.pop().flatten();
                Change::DeleteRange(ends.pop().flatten(), high)
            }
            (0..=2, _) => Change::Delete(key),
            (3..=5, true) => {
                let value = self.map(state, &key);
                if Mixed.is_absent(&key, &value) {
                    Change::Delete(key)
                } else {
                    Change::Put(key, value)
                }
            }
            (_, true) => {
                let value = self.map(state, &key);
                Change::Merge(key, value)
            }
            (3..=5, _) => Change::Put(key, self.value()),
            _ => {
                let mut value = self.value();
                if self.random.one_in(8) {
                    value.insert(0, b'=');
                }
                Change::Merge(key, value)
            }
        }
    }

    fn write(&mut self, state: &mut State, synced: bool) -> Operation {
        let count = match self.random.below(8) {
            0..=3 => 1,
            4 | 5 => 2,
            6 => 3,
            _ => 4 + self.random.below(6),
        };
        let mut changes = Vec::new();
        for _ in 0..count {
            let change = self.change(state);
            if let Some(next) = apply(state, std::slice::from_ref(&change)) {
                *state = next;
                changes.push(change);
            }
        }
        Operation::Write(changes, synced)
    }
}

/// Returns a history of so many operations of a store that contains this. `number` is from where
/// values are numbered.
pub(crate) fn random(
    random: &mut Random,
    state: &State,
    operations: usize,
    number: u64,
) -> Vec<Operation> {
    const OTHERS: [Operation; 15] = [
        Operation::Sync,
        Operation::Wait,
        Operation::Snapshot,
        Operation::Release,
        Operation::Check,
        Operation::Flush,
        Operation::Flush,
        Operation::Work,
        Operation::Work,
        Operation::Work,
        Operation::Close,
        Operation::Kill,
        Operation::Compact,
        Operation::Turn,
        Operation::Rest,
    ];
    // Number of writes among eight operations, and of synced ones among eight writes.
    let (writes, synced) = (random.pick(&[3, 5, 7]), random.pick(&[0, 1, 4, 8]));
    let has_ranges = random.one_in(2);
    let mut state = Arc::clone(state);
    let mut writer = Writer {
        random,
        keys: keys(),
        number,
        has_ranges,
    };
    let operation = |_| {
        if writer.random.below(8) < writes {
            let is_synced = writer.random.below(8) < synced;
            writer.write(&mut state, is_synced)
        } else {
            OTHERS[writer.random.below(OTHERS.len())].clone()
        }
    };
    (0..operations).map(operation).collect()
}
