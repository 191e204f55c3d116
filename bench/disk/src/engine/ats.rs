//! Ours: an LSM engine with merge operators.

use super::{BUFFER_BYTES, CACHE_BYTES, Engine, Merging, Outcome, Profile};
use crate::data::Record;
use ats_disk::{Batch, Compression, DiskStore, Durability, Options};
use ats_store::{Direction, MergeOperator, Merged};
use std::path::Path;
use std::sync::Arc;

pub(super) const PROFILE: Profile = Profile {
    name: "ats",
    package: "ats-disk",
    keeps_writes: true,
    merges: true,
    in_osmos: true,
    open,
};

/// Merges as the benchmark says.
struct Operator(Merging);

impl MergeOperator for Operator {
    fn name(&self) -> &str {
        match self.0 {
            Merging::Nothing => "nothing",
            Merging::Sum => "sum",
            Merging::Append => "append",
        }
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, ats_store::Error> {
        let mut value = Vec::with_capacity(earlier.len() + later.len());
        value.extend_from_slice(earlier);
        self.0.merge_into(&mut value, later);
        Ok(Merged::New(value))
    }

    fn merge_all(
        &self,
        _key: &[u8],
        values: &[&[u8]],
    ) -> Result<Option<Vec<u8>>, ats_store::Error> {
        let mut value = Vec::with_capacity(values.iter().map(|value| value.len()).sum());
        for later in values {
            self.0.merge_into(&mut value, later);
        }
        Ok(Some(value))
    }
}

struct Ats(DiskStore);

fn open(folder: &Path, merging: Merging) -> Outcome<Box<dyn Engine>> {
    let mut options = Options::new()
        .durability(Durability::System)
        .memtable_bytes(BUFFER_BYTES)
        .cache_bytes(CACHE_BYTES)
        .block_bytes(4096)
        .compression(Compression::None)
        .background(true);
    if merging != Merging::Nothing {
        options = options.operator(Arc::new(Operator(merging)));
    }
    Ok(Box::new(Ats(DiskStore::open(folder, options)?)))
}

fn durability(durable: bool) -> Durability {
    if durable {
        Durability::Always
    } else {
        Durability::System
    }
}

impl Engine for Ats {
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Outcome<()> {
        if !durable {
            return Ok(self.0.put(key, value)?);
        }
        let mut batch = Batch::new();
        batch.put(key, value)?;
        Ok(self.0.write_with(&batch, durability(true))?)
    }

    fn put_all(&self, records: &[Record], durable: bool) -> Outcome<()> {
        let mut batch = Batch::new();
        for record in records {
            batch.put(&record.key, &record.value)?;
        }
        Ok(self.0.write_with(&batch, durability(durable))?)
    }

    fn remove(&self, key: &[u8]) -> Outcome<()> {
        Ok(self.0.delete(key)?)
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Outcome<()> {
        Ok(self.0.merge(key, operand)?)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Outcome<bool> {
        Ok(self.0.get_with(key, see)?)
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()> {
        let mut rows = self.0.scan_lending(from.., Direction::Up)?;
        for _ in 0..count {
            let Some((key, value)) = rows.next()? else {
                break;
            };
            see(key, value);
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        Ok(self.0.settle()?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        Ok(self.0.close()?)
    }
}
