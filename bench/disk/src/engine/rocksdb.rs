//! RocksDB: an LSM engine in C++, with merge operators.

use super::{BUFFER_BYTES, CACHE_BYTES, Engine, Merging, Outcome, Profile};
use crate::data::Record;
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, MergeOperands, Options, WaitForCompactOptions,
    WriteBatch, WriteOptions,
};
use std::path::{Path, PathBuf};

pub(super) const PROFILE: Profile = Profile {
    name: "rocksdb",
    package: "rocksdb",
    keeps_writes: true,
    merges: true,
    in_osmos: true,
    open,
};

/// The line in the log of a RocksDB that was built for processors that cannot compute its
/// checksums.
const SLOW: &str = "Fast CRC32 supported: Not supported";

struct RocksDb {
    db: DB,
    folder: PathBuf,
}

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
    Ok(Box::new(RocksDb {
        db: DB::open(&options, folder)?,
        folder: folder.to_path_buf(),
    }))
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

fn write_options(durable: bool) -> WriteOptions {
    let mut options = WriteOptions::default();
    options.set_sync(durable);
    options
}

impl Engine for RocksDb {
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Outcome<()> {
        if durable {
            self.db.put_opt(key, value, &write_options(true))?
        } else {
            self.db.put(key, value)?
        }
        Ok(())
    }

    fn put_all(&self, records: &[Record], durable: bool) -> Outcome<()> {
        let mut batch = WriteBatch::default();
        for record in records {
            batch.put(record.key, record.value);
        }
        Ok(self.db.write_opt(batch, &write_options(durable))?)
    }

    fn remove(&self, key: &[u8]) -> Outcome<()> {
        Ok(self.db.delete(key)?)
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Outcome<()> {
        Ok(self.db.merge(key, operand)?)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Outcome<bool> {
        let found = self.db.get_pinned(key)?;
        if let Some(value) = &found {
            see(value);
        }
        Ok(found.is_some())
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()> {
        let mut rows = self.db.raw_iterator();
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
        Ok(self.db.wait_for_compact(&options)?)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.db.flush_wal(true)?;
        self.db.cancel_all_background_work(true);
        let RocksDb { db, folder } = *self;
        // Closing completes the log.
        drop(db);
        if std::fs::read_to_string(folder.join("LOG"))?.contains(SLOW) {
            Err(
                "RocksDB was built without the options in bench/.cargo/config.toml, \
                         which cargo reads in bench only"
                    .into(),
            )
        } else {
            Ok(())
        }
    }
}
