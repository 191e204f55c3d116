//! RocksDB: an LSM engine in C++, with merge operators.

use super::{BUFFER_BYTES, CACHE_BYTES, Engine, Merging, Outcome, Profile};
use crate::data::Record;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, MergeOperands, Options, WaitForCompactOptions,
    WriteBatch, WriteOptions,
};
use std::path::Path;

pub(super) const PROFILE: Profile = Profile {
    name: "rocksdb",
    package: "rocksdb",
    keeps_writes: true,
    merges: true,
    in_osmos: true,
    open,
};

struct RocksDb(DB);

fn open(folder: &Path, merging: Merging) -> Outcome<Box<dyn Engine>> {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(&Cache::new_hyper_clock_cache(CACHE_BYTES, 0));
    // Without it RocksDB has no filter; the others have one of about this size.
    table.set_bloom_filter(10.0, false);
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_block_based_table_factory(&table);
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(BUFFER_BYTES);
    // Two processors; the rest is as RocksDB has it by default.
    options.set_max_background_jobs(2);
    match merging {
        Merging::Nothing => {}
        Merging::Sum => options.set_merge_operator_associative("sum", merge_by(Merging::Sum)),
        Merging::Append => {
            options.set_merge_operator_associative("append", merge_by(Merging::Append));
        }
    }
    Ok(Box::new(RocksDb(DB::open(&options, folder)?)))
}

fn merge_by(
    merging: Merging,
) -> impl Fn(&[u8], Option<&[u8]>, &MergeOperands) -> Option<Vec<u8>> + Clone {
    move |_key, earlier, operands| {
        let bytes = operands.iter().map(<[u8]>::len).sum::<usize>();
        let mut value = Vec::with_capacity(bytes + earlier.map_or(0, <[u8]>::len));
        for operand in earlier.into_iter().chain(operands) {
            merging.merge_into(&mut value, operand);
        }
        Some(value)
    }
}

fn how(durable: bool) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(durable);
    options
}

impl Engine for RocksDb {
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Outcome<()> {
        match durable {
            true => self.0.put_opt(key, value, &how(true))?,
            false => self.0.put(key, value)?,
        }
        Ok(())
    }

    fn put_all(&self, records: &[Record], durable: bool) -> Outcome<()> {
        let mut batch = WriteBatch::default();
        for record in records {
            batch.put(record.key, record.value);
        }
        Ok(self.0.write_opt(batch, &how(durable))?)
    }

    fn remove(&self, key: &[u8]) -> Outcome<()> {
        Ok(self.0.delete(key)?)
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Outcome<()> {
        Ok(self.0.merge(key, operand)?)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Outcome<bool> {
        let found = self.0.get_pinned(key)?;
        if let Some(value) = &found {
            see(value);
        }
        Ok(found.is_some())
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()> {
        let mut rows = self.0.raw_iterator();
        rows.seek(from);
        for _ in 0..count {
            let Some((key, value)) = rows.item() else {
                break;
            };
            see(key, value);
            rows.next();
        }
        Ok(rows.status()?)
    }

    fn settle(&self) -> Outcome<()> {
        let mut options = WaitForCompactOptions::default();
        options.set_flush(true);
        Ok(self.0.wait_for_compact(&options)?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.0.flush_wal(true)?;
        self.0.cancel_all_background_work(true);
        Ok(())
    }
}
