//! Bf-Tree: a B-tree in Rust with small pages in memory that buffer writes.
//!
//! Its files cannot be opened after a crash: its journal has no recovery yet. So it runs without
//! one, and in rows about writes it does less than the others. It is opened from the snapshot that
//! closing writes.

use super::{CACHE_BYTES, Engine, Merging, Outcome, Profile, read_and_write};
use crate::data::Record;
use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField, StorageBackend};
use std::path::{Path, PathBuf};

pub(super) const PROFILE: Profile = Profile {
    name: "bf-tree",
    package: "bf-tree",
    keeps_writes: false,
    merges: false,
    in_osmos: false,
    open,
};

/// The longest key and value together that Bf-Tree takes with its pages of 4096 bytes.
const RECORD_BYTES: usize = 1952;

struct Bf {
    tree: BfTree,
    folder: PathBuf,
    merging: Merging,
}

fn open(folder: &Path, merging: Merging) -> Outcome<Box<dyn Engine>> {
    let file = folder.join("rows.bftree");
    let tree = if file.exists() {
        BfTree::new_from_cpr_snapshot(&file, true, None, Some(CACHE_BYTES), None)
    } else {
        let mut config = Config::default();
        config
            .storage_backend(StorageBackend::Std)
            .file_path(&file)
            // One buffer serves reads and writes; its size must be a power of two.
            .cb_size_byte(CACHE_BYTES)
            .cb_max_key_len(32)
            .use_snapshot(true);
        BfTree::with_config(config, None)
    };
    Ok(Box::new(Bf {
        tree: tree.map_err(|error| format!("bf-tree: {error:?}"))?,
        folder: folder.to_path_buf(),
        merging,
    }))
}

impl Bf {
    fn insert(&self, key: &[u8], value: &[u8]) -> Outcome<()> {
        match self.tree.insert(key, value) {
            LeafInsertResult::Success => Ok(()),
            other => Err(format!("bf-tree: {other:?}").into()),
        }
    }
}

impl Engine for Bf {
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Outcome<()> {
        if durable {
            Err("bf-tree has no durable writes".into())
        } else {
            self.insert(key, value)
        }
    }

    fn put_all(&self, records: &[Record], durable: bool) -> Outcome<()> {
        for record in records {
            self.put(&record.key, &record.value, durable)?;
        }
        Ok(())
    }

    fn remove(&self, key: &[u8]) -> Outcome<()> {
        self.tree.delete(key);
        Ok(())
    }

    fn merge(&self, key: &[u8], operand: &[u8]) -> Outcome<()> {
        read_and_write(self, self.merging, key, operand)
    }

    fn get(&self, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Outcome<bool> {
        let mut buffer = [0; RECORD_BYTES];
        match self.tree.read(key, &mut buffer) {
            LeafReadResult::Found(length) => {
                see(&buffer[..length as usize]);
                Ok(true)
            }
            LeafReadResult::Deleted | LeafReadResult::NotFound => Ok(false),
            LeafReadResult::InvalidKey => Err("bf-tree: invalid key".into()),
        }
    }

    fn scan(&self, from: &[u8], count: usize, see: &mut dyn FnMut(&[u8], &[u8])) -> Outcome<()> {
        let mut buffer = [0; RECORD_BYTES];
        // A scan cannot start before the first key.
        let from = if from.is_empty() { &[0] } else { from };
        let mut rows = self
            .tree
            .scan_with_count(from, count, ScanReturnField::KeyAndValue)
            .map_err(|error| format!("bf-tree: {error:?}"))?;
        while let Some((key, value)) = rows.next(&mut buffer) {
            see(&buffer[..key], &buffer[key..key + value]);
        }
        Ok(())
    }

    fn settle(&self) -> Outcome<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        let Bf { tree, folder, .. } = *self;
        let (file, next) = (folder.join("rows.bftree"), folder.join("next.bftree"));
        tree.cpr_snapshot(&next);
        drop(tree);
        Ok(std::fs::rename(next, file)?)
    }
}
