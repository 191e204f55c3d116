//! fjall: an LSM engine in Rust, without merge operators.

use super::{BUFFER_BYTES, CACHE_BYTES, Engine, Merging, Outcome, Profile, read_and_write};
use crate::data::Record;
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;
use std::time::Duration;

pub(super) const PROFILE: Profile = Profile {
    name: "fjall",
    package: "fjall",
    keeps_writes: true,
    merges: false,
    in_osmos: true,
    open,
};

struct Fjall {
    rows: Keyspace,
    database: Database,
    merging: Merging,
}

fn open(folder: &Path, merging: Merging) -> Outcome<Box<dyn Engine>> {
    let database = Database::builder(folder)
        .cache_size(CACHE_BYTES as u64)
        .worker_threads(2)
        .open()?;
    let options = || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(BUFFER_BYTES as u64)
            .data_block_compression_policy(CompressionPolicy::all(CompressionType::None))
    };
    Ok(Box::new(Fjall {
        rows: database.keyspace("rows", options)?,
        database,
        merging,
    }))
}

impl Engine for Fjall {
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Outcome<()> {
        self.rows.insert(key, value)?;
        if durable {
            self.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn put_all(&self, records: &[Record], durable: bool) -> Outcome<()> {
        let mode = if durable {
            PersistMode::SyncData
        } else {
            // Without a mode a batch stays in a buffer of the process.
            PersistMode::Buffer
        };
        let mut batch = self.database.batch().durability(Some(mode));
        for record in records {
            batch.insert(&self.rows, record.key, record.value);
        }
        Ok(batch.commit()?)
    }

    fn remove(&self, key: &[u8]) -> Outcome<()> {
        Ok(self.rows.remove(key)?)
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Outcome<()> {
        read_and_write(self, self.merging, key, operand)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Outcome<bool> {
        let found = self.rows.get(key)?;
        if let Some(value) = &found {
            see(value);
        }
        Ok(found.is_some())
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()> {
        for row in self.rows.range(from..).take(count) {
            let (key, value) = row.into_inner()?;
            see(&key, &value);
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        self.rows.rotate_memtable_and_wait()?;
        // A merge that has not begun is not to be seen. So nothing may go on for a while.
        let mut quiet = 0;
        let mut before = self.database.compactions_completed();
        while quiet < 10 {
            std::thread::sleep(Duration::from_millis(5));
            let done = self.database.compactions_completed();
            let idle = self.database.outstanding_flushes() == 0
                && self.database.active_compactions() == 0
                && done == before;
            quiet = if idle { quiet + 1 } else { 0 };
            before = done;
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }
}
