//! A storage of [`openraft`] on a [`DiskStore`](ats_disk::DiskStore): keys and values of bytes that
//! several machines keep.
//!
//! ```
//! # use ats_disk::Options;
//! # let directory = std::env::temp_dir().join(format!("ats-openraft-{}", std::process::id()));
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let (log, machine) = ats_openraft::open(&directory, Options::new()).await?;
//! let data = machine.data();
//! // let raft = openraft::Raft::<ats_openraft::TypeConfig>::new(id, config, network, log, machine);
//! // raft.client_write(Request::put("pear", "40")).await?;
//! assert_eq!(data.get(b"pear").await?, None);
//! # drop((log, machine, data));
//! # Ok::<(), ats_disk::Error>(())
//! # }).unwrap();
//! # std::fs::remove_dir_all(&directory).ok();
//! ```
//!
//! # One store
//! The log, the vote and the data of a node are in one store, whose journal has all of its writes
//! in their order. A crash loses nothing but the newest of them. So it is enough to sync where Raft
//! makes a promise to another node:
//!
//! | write | synced |
//! |---|---|
//! | entries of the log | before their callback; entries that wait at the same time share one sync |
//! | the vote, a snapshot that was installed | before the call returns |
//! | changes of the data | not at all: the entries that make them are in the journal before them |
//! | truncating and purging the log | not at all: later entries of the journal bring them along |
//!
//! | module | contents |
//! |---|---|
//! | `keys` | the keys of the store: parts of the order of keys |
//! | `calls` | calls of the store that do not block the threads of tokio |
//! | `flusher` | the thread that syncs entries |
//! | `log` | the log and the vote |
//! | `snapshots` | files of snapshots |
//! | `machine` | the data |

mod calls;
mod flusher;
mod keys;
mod log;
mod machine;
mod snapshots;

pub use log::{Log, LogReader};
pub use machine::{Data, Machine, SnapshotBuilder};

use ats_disk::{DiskStore, Error, Options};
use serde::{Deserialize, Serialize};
use std::path::Path;

openraft::declare_raft_types!(
    /// The types of openraft that this storage is for.
    pub TypeConfig:
        D = Request,
        R = Done,
        SnapshotData = tokio::fs::File,
);

pub(crate) type NodeId = <TypeConfig as openraft::RaftTypeConfig>::NodeId;
pub(crate) type Node = <TypeConfig as openraft::RaftTypeConfig>::Node;
pub(crate) type LogId = openraft::LogId<NodeId>;
pub(crate) type StorageError = openraft::StorageError<NodeId>;
pub(crate) type IoError = openraft::StorageIOError<NodeId>;

/// A change of the data. None of them reads, so none waits for the disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Gives a key a value.
    Put {
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
    },
    /// Removes a key.
    Delete {
        /// The key.
        key: Vec<u8>,
    },
    /// Removes all keys from one on and below another; without one of them, from the first on or up
    /// to the last.
    DeleteRange {
        /// The first key to be removed.
        low: Option<Vec<u8>>,
        /// The first key above that stays.
        high: Option<Vec<u8>>,
    },
}

impl Request {
    /// Returns a change that gives a key a value.
    pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        let (key, value) = (key.into(), value.into());
        Request::Put { key, value }
    }
}

/// The answer to a change that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done;

/// Opens the storage in a directory, or makes one there. Options say nothing of when writes are on
/// disk, as the storage does that for each of them.
///
/// # Errors
/// Those of [`DiskStore::open`], and [`Error::Corrupt`] if something in the store is not of this
/// storage.
pub async fn open(directory: &Path, options: Options) -> Result<(Log, Machine), Error> {
    let directory = directory.to_owned();
    calls::blocking(move || {
        let store = DiskStore::open(&directory.join("store"), options)?;
        let machine = Machine::open(store.clone(), directory.join("snapshots"))?;
        Ok((Log::open(store)?, machine))
    })
    .await
}
