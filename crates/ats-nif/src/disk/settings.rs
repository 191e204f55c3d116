//! Options of the opening of a table.

use super::description_file::{TABLE_FILES, directory_failure};
use super::failure::{Failure, word_of};
use super::table_merge::TableMerge;
use crate::atoms::KnownAtom;
use ats::terms::program_merge::is_same;
use ats::terms::{Description, TableType};
use ats_disk::fs::{RealFs, Sharing};
use ats_disk::offline::sweep_beside;
use ats_disk::{Compression, Durability, Error, Lifetime, Options, StoreDirectory};
use ats_store::{MergeOperator, SystemError};
use ats_term::Zeros;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Smallest limit for the size of a run's file.
const LEAST_FILE_BYTES: u64 = 1 << 20;

/// Mode in which a table is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only: nothing in the directory is written.
    Read,
    /// Read and write.
    ReadWrite,
}

/// Options of the opening of a table. `None` keeps the value that the table was made with, or the
/// default.
pub struct Settings {
    /// `true` to make the table if it does not exist.
    pub create: bool,
    /// `true` to make the table in a temporary directory until it is published.
    pub temporary: bool,
    /// The mode.
    pub access: Access,
    /// Type of the table.
    pub table_type: Option<TableType>,
    /// The position of the key in objects, from 1.
    pub key_position: Option<usize>,
    /// The merge of values, as a [`Description`] has it.
    pub merge: Option<Vec<u8>>,
    /// The formats by which the program encodes keys and values, as in a [`Description`].
    pub format: Option<Vec<u8>>,
    /// The lifetime of objects that are written without one of their own: [`Lifetime::For`] or
    /// [`Lifetime::Forever`].
    pub lifetime: Option<Lifetime>,
    /// The rule for zeros of a new table.
    pub zeros: Zeros,
    /// The moment at which a write is durable.
    pub durability: Durability,
    /// Approximate size of a block.
    pub block_bytes: Option<usize>,
    /// Memory budget in bytes. `None` uses the budget that tables share.
    pub memory: Option<usize>,
    /// Largest number of keys in a memtable that is not full otherwise.
    pub memtable_keys: Option<usize>,
    /// Compression of the files written.
    pub compression: Compression,
    /// Time without reads after which the snapshot of a call or of a continuation expires. `None`
    /// means never.
    pub continuation_age: Option<Duration>,
    /// Largest number of bytes that snapshots held by programs may keep in memory.
    pub snapshot_memory: usize,
}

impl Settings {
    /// Opens and locks the directory, which is made in its parent if this is wanted. Returns `true`
    /// with it if it was made; its name is not durable then.
    pub(super) fn lock_directory(
        &self,
        directory: &Path,
    ) -> Result<(StoreDirectory, bool), Failure> {
        let sharing = match self.access {
            Access::Read => Sharing::Shared,
            Access::ReadWrite => Sharing::Exclusive,
        };
        if self.access == Access::ReadWrite {
            sweep_beside(directory, &TABLE_FILES);
        }
        let open = || StoreDirectory::open(Arc::new(RealFs), directory, sharing);
        match open() {
            Err(Error::Missing) if self.create => {
                TableMerge::of(&self.description())?;
                // A mistyped path must not create directories.
                if !directory.parent().is_some_and(Path::is_dir) {
                    let text = "the directory in which it shall be is not there";
                    return Err(Failure::new(KnownAtom::Enoent, text));
                }
                let made = std::fs::create_dir(directory);
                made.or_else(|error| match error.kind() {
                    ErrorKind::AlreadyExists => Ok(()),
                    _ => Err(Failure::new(word_of(SystemError::of(&error)), error)),
                })?;
                open().map(|locked| (locked, true))
            }
            locked => locked.map(|locked| (locked, false)),
        }
        .map_err(directory_failure)
    }

    /// Returns the description of a new table.
    pub(super) fn description(&self) -> Description {
        Description {
            table_type: self.table_type.unwrap_or(TableType::Set),
            key_position: self.key_position.unwrap_or(1),
            zeros: self.zeros,
            merge: self.merge.clone().unwrap_or_default(),
            has_shared: false,
            format: self.format.clone().unwrap_or_default(),
            lifetime: self.lifetime,
        }
    }

    /// Returns the description of an existing table that is opened like this: another lifetime
    /// holds from now on.
    pub(super) fn renewed(&self, description: Description) -> Description {
        Description {
            lifetime: self.lifetime.or(description.lifetime),
            ..description
        }
    }

    /// Checks that an existing table has the wanted properties.
    pub(super) fn check(&self, description: &Description) -> Result<(), Failure> {
        if self
            .table_type
            .is_some_and(|wanted| wanted != description.table_type)
        {
            let text = format!("the table is of type {}", description.table_type.name());
            return Err(Failure::new(KnownAtom::TypeMismatch, text));
        }
        if self
            .key_position
            .is_some_and(|wanted| wanted != description.key_position)
        {
            let text = format!("the table has its keys at {}", description.key_position);
            return Err(Failure::new(KnownAtom::KeyposMismatch, text));
        }
        if self
            .merge
            .as_ref()
            .is_some_and(|wanted| !is_same(wanted, &description.merge))
        {
            let text = "the table was made with another merge";
            return Err(Failure::new(KnownAtom::MergeMismatch, text));
        }
        if self.lifetime.is_some() && description.lifetime.is_none() {
            let text = "the table was made without the option ttl";
            return Err(Failure::new(KnownAtom::TtlMismatch, text));
        }
        if self
            .format
            .as_ref()
            .is_some_and(|wanted| *wanted != description.format)
        {
            let text = "the table was made with another format";
            return Err(Failure::new(KnownAtom::FormatMismatch, text));
        }
        Ok(())
    }

    /// Returns the options of the store.
    pub(super) fn options(
        &self,
        create: bool,
        description: &Description,
        operator: Option<Arc<dyn MergeOperator>>,
    ) -> Options {
        let mut options = Options::new()
            .create(create)
            .durability(self.durability)
            .compression(self.compression)
            .snapshot_memory(self.snapshot_memory);
        options.operator = operator;
        options.lifetime = description.lifetime;
        options.snapshot_age = self.continuation_age;
        options.memtable_keys = self.memtable_keys;
        if let Some(block_bytes) = self.block_bytes {
            options = options.block_bytes(block_bytes);
        }
        if let Some(memory) = self.memory {
            // Two memtables may be in use at a time, which together take a third of the memory.
            let memtable_bytes = memory / 6;
            // The space reserved for a full disk is as large as a file.
            let file_bytes = (memtable_bytes as u64).clamp(LEAST_FILE_BYTES, options.file_bytes);
            options = options
                .memtable_bytes(memtable_bytes)
                .file_bytes(file_bytes)
                .cache_bytes(memory / 3 * 2);
        }
        options
    }
}
