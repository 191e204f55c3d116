//! The log and the vote.

use crate::flusher::Flusher;
use crate::{IoError, LogId, NodeId, StorageError, TypeConfig, calls, keys};
use ats_disk::{Batch, DiskStore, Error};
use ats_store::{Direction, SystemError};
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{Entry, LogState, OptionalSend, RaftLogReader, Vote};
use std::fmt::Debug;
use std::ops::RangeBounds;

/// About how many bytes of entries are sent to another node at once.
const BYTES_AT_ONCE: usize = 1 << 20;

/// The log and the vote of a node.
pub struct Log {
    store: DiskStore,
    flusher: Flusher,
}

impl Log {
    /// Opens the log that is in a store.
    pub(crate) fn open(store: DiskStore) -> Result<Self, Error> {
        let flusher = Flusher::start(store.clone());
        let flusher = flusher.map_err(|error| Error::Io {
            what: format!("starting a thread: {error}"),
            error: SystemError::of(&error),
        })?;
        Ok(Log { store, flusher })
    }

    /// Removes the entries of a range of indexes, whose number is of no concern: it is one change.
    fn remove(batch: &mut Batch, indexes: impl RangeBounds<u64>) -> Result<(), Error> {
        batch.delete_range(keys::entries(indexes))
    }
}

impl RaftLogStorage<TypeConfig> for Log {
    type LogReader = LogReader;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, StorageError> {
        let store = self.store.clone();
        let state = calls::blocking(move || {
            let purged: Option<LogId> = calls::get(&store, keys::PURGED)?;
            let last = store.scan(keys::entries(..)).next_back().transpose()?;
            let last = last.map(|(_, entry)| calls::from_bytes(&entry));
            let last: Option<Entry<TypeConfig>> = last.transpose()?;
            Ok::<_, Error>(LogState {
                last_purged_log_id: purged,
                last_log_id: last.map(|entry| entry.log_id).or(purged),
            })
        });
        Ok(state.await.map_err(|error| IoError::read_logs(&error))?)
    }

    async fn get_log_reader(&mut self) -> LogReader {
        LogReader {
            store: self.store.clone(),
        }
    }

    async fn save_vote(&mut self, vote: &Vote<NodeId>) -> Result<(), StorageError> {
        let written =
            async { calls::write_durably(&self.store, calls::put(keys::VOTE, vote)?).await };
        Ok(written.await.map_err(|error| IoError::write_vote(&error))?)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<NodeId>>, StorageError> {
        let store = self.store.clone();
        let vote = calls::blocking(move || calls::get(&store, keys::VOTE)).await;
        Ok(vote.map_err(|error| IoError::read_vote(&error))?)
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), StorageError> {
        let written =
            async { calls::write(&self.store, calls::put(keys::COMMITTED, &committed)?).await };
        Ok(written.await.map_err(|error| IoError::write(&error))?)
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, StorageError> {
        let store = self.store.clone();
        let committed = calls::blocking(move || calls::get(&store, keys::COMMITTED)).await;
        Ok(committed.map_err(|error| IoError::read(&error))?.flatten())
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<TypeConfig>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry<TypeConfig>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut batch = Batch::new();
        let added = entries.into_iter().try_for_each(|entry| {
            batch.put(&keys::entry(entry.log_id.index), &calls::to_bytes(&entry))
        });
        // Readers see them from now on, and a sync that begins from now on is for them.
        let written = async { calls::write(&self.store, added.map(|()| batch)?).await };
        match written.await {
            Ok(()) => {
                self.flusher.flush(callback);
                Ok(())
            }
            Err(error) => {
                callback.log_io_completed(Err(std::io::Error::other(error.clone())));
                Err(IoError::write_logs(&error).into())
            }
        }
    }

    async fn truncate(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let written = async {
            let mut batch = Batch::new();
            Log::remove(&mut batch, log_id.index..)?;
            calls::write(&self.store, batch).await
        };
        Ok(written.await.map_err(|error| IoError::write_logs(&error))?)
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), StorageError> {
        let written = async {
            let mut batch = calls::put(keys::PURGED, &log_id)?;
            Log::remove(&mut batch, ..=log_id.index)?;
            calls::write(&self.store, batch).await
        };
        Ok(written.await.map_err(|error| IoError::write_logs(&error))?)
    }
}

impl RaftLogReader<TypeConfig> for Log {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry<TypeConfig>>, StorageError> {
        self.get_log_reader().await.try_get_log_entries(range).await
    }
}

/// Reads the log.
pub struct LogReader {
    store: DiskStore,
}

impl LogReader {
    /// Returns the entries of a range of keys, until they have `most` bytes.
    async fn read(
        &self,
        indexes: impl RangeBounds<u64>,
        most: usize,
    ) -> Result<Vec<Entry<TypeConfig>>, StorageError> {
        let (store, keys) = (self.store.clone(), keys::entries(indexes));
        let entries = calls::blocking(move || {
            let mut scan = store.scan_lending(keys, Direction::Up)?;
            let mut entries = Vec::new();
            let mut bytes = 0;
            while bytes < most
                && let Some((_, entry)) = scan.next()?
            {
                bytes += entry.len();
                entries.push(calls::from_bytes(entry)?);
            }
            Ok::<_, Error>(entries)
        });
        Ok(entries.await.map_err(|error| IoError::read_logs(&error))?)
    }
}

impl RaftLogReader<TypeConfig> for LogReader {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry<TypeConfig>>, StorageError> {
        self.read(range, usize::MAX).await
    }

    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry<TypeConfig>>, StorageError> {
        self.read(start..end, BYTES_AT_ONCE).await
    }
}
