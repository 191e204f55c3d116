//! The interface of engines, and a list of them.

use crate::data::Record;
use std::path::Path;

mod ats;
mod bf_tree;
mod fjall;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

/// The error of an engine.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Bytes of memory for the cache of reads.
pub const CACHE_BYTES: usize = 256 << 20;

/// Bytes of memory for buffered writes.
pub const BUFFER_BYTES: usize = 64 << 20;

/// The rule by which operands are merged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Merging {
    /// Operands are not merged.
    Nothing,
    /// The sum of numbers, eight bytes each, the least significant first.
    Sum,
    /// One behind the other.
    Append,
}

impl Merging {
    /// Merges an operand into a value.
    pub fn merge_into(self, value: &mut Vec<u8>, operand: &[u8]) {
        match self {
            Merging::Sum if !value.is_empty() => {
                let sum = number(value).wrapping_add(number(operand));
                value.clear();
                value.extend(sum.to_le_bytes());
            }
            Merging::Sum | Merging::Append => value.extend_from_slice(operand),
            Merging::Nothing => {}
        }
    }
}

/// Returns the number that a value of [`Merging::Sum`] is; 0 if it is none.
pub fn number(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// An open store. A write is handed to the system before it returns: if the process is killed, it
/// is not lost. A durable one is on the device.
pub trait Engine: Send + Sync {
    /// Gives a key a value.
    ///
    /// # Errors
    /// Those of the engine, as in all functions here.
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Outcome<()>;

    /// Gives several keys values, as one change.
    fn put_all(&self, records: &[Record], durable: bool) -> Outcome<()>;

    /// Removes a key.
    fn remove(&self, key: &[u8]) -> Outcome<()>;

    /// Merges an operand with the value of a key. An engine without merge operators reads and
    /// writes.
    fn merge(&self, key: &[u8], operand: &[u8]) -> Outcome<()>;

    /// Shows the value of a key; false if there is none.
    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Outcome<bool>;

    /// Shows at most `count` records in the order of keys, from a key on.
    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()>;

    /// Writes buffers out and waits until the engine has nothing to do in the background.
    fn settle(&self) -> Outcome<()>;

    /// Closes the store.
    fn close(self: Box<Self>) -> Outcome<()>;
}

/// The properties of an engine that are known before it is opened.
pub struct Profile {
    /// The name on the command line and in tables.
    pub name: &'static str,
    /// The package whose version counts.
    pub package: &'static str,
    /// `true` if a write survives the end of the process, and can be made durable. Others do not
    /// count as the best of the peers where something is written.
    pub keeps_writes: bool,
    /// `true` if it merges without reading.
    pub merges: bool,
    /// `true` if it takes part in the benchmark of osmos without being named.
    pub in_osmos: bool,
    /// Makes or opens a store in a folder that exists.
    pub open: fn(&Path, Merging) -> Outcome<Box<dyn Engine>>,
}

/// All engines, in the order of the tables.
pub const ENGINES: &[Profile] = &[
    ats::PROFILE,
    #[cfg(feature = "rocksdb")]
    rocksdb::PROFILE,
    fjall::PROFILE,
    redb::PROFILE,
    bf_tree::PROFILE,
];

/// Returns the engine with a name.
pub fn find(name: &str) -> Option<&'static Profile> {
    ENGINES.iter().find(|profile| profile.name == name)
}

/// Merges by a read and a write, for engines that cannot do better.
fn read_and_write(
    engine: &dyn Engine,
    merging: Merging,
    key: &[u8],
    operand: &[u8],
) -> Outcome<()> {
    let mut value = Vec::new();
    engine.get(key, &mut |bytes| value.extend_from_slice(bytes))?;
    merging.merge_into(&mut value, operand);
    engine.put(key, &value, false)
}
