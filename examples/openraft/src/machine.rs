//! The data: the result of the entries of the log.

use crate::snapshots::{Meta, Snapshots, name};
use crate::{Done, IoError, LogId, Node, NodeId, Request, StorageError, TypeConfig, calls, keys};
use ats_disk::{Batch, DiskStore, Durability, Error};
use openraft::storage::RaftStateMachine;
use openraft::{
    Entry, EntryPayload, OptionalSend, RaftSnapshotBuilder, Snapshot, StorageIOError,
    StoredMembership,
};
use std::path::PathBuf;
use tokio::fs::File;

/// The identity of the last entry that was applied, and the last membership.
type Applied = (Option<LogId>, StoredMembership<NodeId, Node>);

/// The data of a node, and its snapshots.
pub struct Machine {
    store: DiskStore,
    snapshots: Snapshots,
    applied: Applied,
}

impl Machine {
    pub(crate) fn open(store: DiskStore, directory: PathBuf) -> Result<Self, Error> {
        Ok(Machine {
            applied: calls::get(&store, keys::APPLIED)?.unwrap_or_default(),
            snapshots: Snapshots::open(store.clone(), directory)?,
            store,
        })
    }

    /// Returns the data of this node, for readers.
    #[must_use]
    pub fn data(&self) -> Data {
        Data {
            store: self.store.clone(),
        }
    }

    /// Adds the changes of an entry to a batch.
    fn add(batch: &mut Batch, request: &Request) -> Result<(), Error> {
        match request {
            Request::Put { key, value } => batch.put(&keys::data(key), value),
            Request::Delete { key } => batch.delete(&keys::data(key)),
            Request::DeleteRange { low, high } => {
                batch.delete_range(keys::data_between(low.as_deref(), high.as_deref()))
            }
        }
    }
}

impl RaftStateMachine<TypeConfig> for Machine {
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<Applied, StorageError> {
        Ok(self.applied.clone())
    }

    async fn apply<I>(&mut self, entries: I) -> Result<Vec<Done>, StorageError>
    where
        I: IntoIterator<Item = Entry<TypeConfig>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut batch = Batch::new();
        let mut applied = self.applied.clone();
        let mut done = Vec::new();
        for entry in entries {
            let log_id = entry.log_id;
            match entry.payload {
                EntryPayload::Blank => {}
                EntryPayload::Normal(request) => Machine::add(&mut batch, &request)
                    .map_err(|error| IoError::apply(log_id, &error))?,
                EntryPayload::Membership(members) => {
                    applied.1 = StoredMembership::new(Some(log_id), members);
                }
            }
            applied.0 = Some(log_id);
            done.push(Done);
        }
        // All of it, and how far it goes, is one change.
        let written = async {
            batch.put(keys::APPLIED, &calls::to_bytes(&applied))?;
            calls::write(&self.store, batch).await
        };
        written
            .await
            .map_err(|error| StorageIOError::write_state_machine(&error))?;
        self.applied = applied;
        Ok(done)
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        let (last_log_id, last_membership) = self.applied.clone();
        SnapshotBuilder {
            moment: self.store.snapshot(),
            meta: Meta {
                snapshot_id: name(last_log_id.as_ref()),
                last_log_id,
                last_membership,
            },
            snapshots: self.snapshots.clone(),
        }
    }

    async fn begin_receiving_snapshot(&mut self) -> Result<Box<File>, StorageError> {
        let snapshots = self.snapshots.clone();
        let file = calls::blocking(move || snapshots.receive()).await;
        let file = file.map_err(|error| IoError::write_snapshot(None, &error))?;
        Ok(Box::new(File::from_std(file)))
    }

    async fn install_snapshot(
        &mut self,
        meta: &Meta,
        snapshot: Box<File>,
    ) -> Result<(), StorageError> {
        let applied = (meta.last_log_id, meta.last_membership.clone());
        let (store, snapshots) = (self.store.clone(), self.snapshots.clone());
        let (state, named) = (applied.clone(), meta.clone());
        let received = snapshot.into_std().await;
        let installed = calls::blocking(move || {
            let mut batch = Batch::new();
            batch.delete_range(keys::ALL_DATA)?;
            batch.put(keys::APPLIED, &calls::to_bytes(&state))?;
            batch.put(keys::SNAPSHOT, &calls::to_bytes(&named))?;
            snapshots.install(
                named,
                received,
                &mut batch,
                // Syncs, since the leader relies on the installed snapshot.
                |batch| store.write_with(batch, Durability::Always),
            )
        });
        let signature = Some(meta.signature());
        installed
            .await
            .map_err(|error| IoError::write_snapshot(signature, &error))?;
        self.applied = applied;
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot<TypeConfig>>, StorageError> {
        let snapshots = self.snapshots.clone();
        let current = calls::blocking(move || snapshots.current()).await;
        let current = current.map_err(|error| IoError::read_snapshot(None, &error))?;
        Ok(current.map(to_snapshot))
    }
}

/// A moment of the data, of which a snapshot is made. Entries are applied meanwhile.
pub struct SnapshotBuilder {
    moment: ats_disk::Snapshot,
    meta: Meta,
    snapshots: Snapshots,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    async fn build_snapshot(&mut self) -> Result<Snapshot<TypeConfig>, StorageError> {
        let (snapshots, moment) = (self.snapshots.clone(), self.moment.clone());
        let meta = self.meta.clone();
        let built = calls::blocking(move || snapshots.build(&moment, meta)).await;
        let signature = Some(self.meta.signature());
        let built = built.map_err(|error| IoError::write_snapshot(signature, &error))?;
        Ok(to_snapshot(built))
    }
}

fn to_snapshot((meta, file): (Meta, std::fs::File)) -> Snapshot<TypeConfig> {
    Snapshot {
        meta,
        snapshot: Box::new(File::from_std(file)),
    }
}

/// Reads the data of a node, which may be behind that of the leader. A read that must not be is
/// made on the leader after [`ensure_linearizable`](openraft::Raft::ensure_linearizable).
#[derive(Clone)]
pub struct Data {
    store: DiskStore,
}

impl Data {
    /// Returns the value of a key.
    ///
    /// # Errors
    /// Those of [`DiskStore::get`].
    pub async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let (store, key) = (self.store.clone(), keys::data(key));
        calls::blocking(move || store.get(&key)).await
    }
}
