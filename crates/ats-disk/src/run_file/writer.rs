//! Writing a run file, from its first key to its last.
//!
//! Blocks are put together in a buffer of about 1 MiB, which is written when it is full. Parts are
//! kept until all blocks are written (1 % of the file) and follow them, then the range deletes, the
//! top and the footer. The file is synced from time to time, so that the sync at the end has little
//! left to do.

use super::block_builder::BlockBuilder;
use super::bounds;
use super::filter::FilterSize;
use super::frame::{Content, Identity, TRAILER_BYTES, seal};
use super::index::{IndexBuilder, separator};
use super::meta::{FileMeta, Footer};
use super::part::{PART_BYTES, PartBuilder};
use crate::entry::{Kind, MAX_BYTES, check_len};
use crate::error::Error;
use crate::fs;
use crate::ids::Seq;
use crate::keys::common_prefix;
use crate::operator_id::{self, OperatorId};
use crate::options::{Compression, Options};
use crate::range_deletes::RangeSet;
use std::borrow::Cow;
use std::io;

/// Bytes that are written at a time, about.
const CHUNK_BYTES: usize = 1 << 20;
/// Bytes that are written between two syncs, about.
const SYNC_BYTES: u64 = 8 << 20;

/// The form in which run files are written.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Approximate length of a block, uncompressed. A block is longer only by the entries of one
    /// key.
    block_bytes: usize,
    compression: Compression,
    filter_size: FilterSize,
    /// About how long a part is.
    pub(super) part_bytes: usize,
    operator: Option<OperatorId>,
}

impl Settings {
    /// Makes the form that the options of the store say.
    pub(crate) fn new(options: &Options) -> Self {
        Settings {
            // Offsets within a block have 32 bits.
            block_bytes: options.block_bytes.min(1 << 30),
            compression: options.compression,
            filter_size: FilterSize::for_rate(options.false_positives),
            part_bytes: PART_BYTES,
            operator: options.operator.as_deref().map(operator_id::of),
        }
    }
}

/// See the [module](self).
pub(crate) struct FileWriter {
    file: Box<dyn fs::File>,
    identity: Identity,
    settings: Settings,
    /// The bytes that are not written yet. It begins at `written`.
    chunk: Vec<u8>,
    written: u64,
    synced: u64,
    block: BlockBuilder,
    part: PartBuilder,
    /// Finished parts, behind each other, without their trailers, and how long each is.
    parts: Vec<u8>,
    part_lengths: Vec<usize>,
    top: IndexBuilder,
    first_key: Option<Box<[u8]>>,
    last_key: Vec<u8>,
    last_kind: Kind,
    /// The counts are right; the rest is not known yet.
    meta: FileMeta,
    /// The first error of the system. The content of the file is unknown since then, and `finish`
    /// says so.
    failed: Option<Error>,
    scratch: Vec<u8>,
}

impl FileWriter {
    /// Begins a file, which is empty now.
    pub(crate) fn new(file: Box<dyn fs::File>, identity: Identity, settings: &Settings) -> Self {
        FileWriter {
            file,
            identity,
            chunk: Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8),
            written: 0,
            synced: 0,
            block: BlockBuilder::default(),
            part: PartBuilder::new(settings.filter_size),
            parts: Vec::new(),
            part_lengths: Vec::new(),
            top: IndexBuilder::default(),
            first_key: None,
            last_key: Vec::new(),
            last_kind: Kind::Delete,
            meta: FileMeta {
                number: identity.number,
                bytes: 0,
                entries: 0,
                operands: 0,
                deletes: 0,
                range_deletes: 0,
                key_bytes: 0,
                value_bytes: 0,
                first_key: None,
                last_key: None,
                first_seq: Seq::ZERO,
                last_seq: Seq::ZERO,
            },
            settings: settings.clone(),
            failed: None,
            scratch: Vec::new(),
        }
    }

    /// Adds an entry. Keys ascend; the entries of one key follow each other from the newest to the
    /// oldest, and all but the last are operands. A delete has no value.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the order is another one, and [`Error::TooLong`]; the entry is not
    /// added then, and others may follow. [`Error::Io`].
    pub(crate) fn add(&mut self, key: &[u8], kind: Kind, value: &[u8]) -> Result<(), Error> {
        check_len("a key", key.len(), MAX_BYTES)?;
        check_len("a value", value.len(), MAX_BYTES)?;
        if kind == Kind::Delete && !value.is_empty() {
            return Err(self.refuse("a delete has a value"));
        }
        let shared = common_prefix(&self.last_key, key);
        match (self.last_key.get(shared), key.get(shared)) {
            _ if self.first_key.is_none() => self.first_key = Some(key.into()),
            (None, None) => {
                if self.last_kind.is_base() {
                    return Err(self.refuse("there is an entry older than a base"));
                }
                if !self.block.has_room_for_older() {
                    let (what, len) = ("the record of a key", self.block.record_bytes());
                    let limit = u32::MAX as usize;
                    return Err(Error::TooLong { what, len, limit });
                }
                self.block.add_older(&mut self.chunk, kind, value);
                self.count(key, kind, value);
                return Ok(());
            }
            (Some(last), Some(next)) if last > next => return Err(self.refuse("keys descend")),
            (Some(_), None) => return Err(self.refuse("keys descend")),
            _ => {}
        }
        let limit = self.settings.block_bytes;
        let suffix = key.len() - shared;
        if self.block.is_empty() {
            self.block.begin(&self.chunk);
        } else if self.block.is_full(&self.chunk, limit, suffix, value.len()) {
            self.end_block(Some(key))?;
            self.block.begin(&self.chunk);
        }
        self.block.add(&mut self.chunk, shared, key, kind, value);
        self.part.add_key(key);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        self.count(key, kind, value);
        Ok(())
    }

    fn refuse(&self, why: &str) -> Error {
        Error::corrupt(format_args!(
            "run file {} is not written: {why}",
            self.identity.number
        ))
    }

    fn count(&mut self, key: &[u8], kind: Kind, value: &[u8]) {
        self.last_kind = kind;
        self.meta.entries += 1;
        self.meta.operands += u64::from(kind == Kind::Operand);
        self.meta.deletes += u64::from(kind == Kind::Delete);
        self.meta.key_bytes += key.len() as u64;
        self.meta.value_bytes += value.len() as u64;
    }

    /// Returns the [upper bound](bounds::upper) of the keys that were added, below `before`; `None`
    /// if there are none.
    pub(crate) fn upper(&self, before: Option<&[u8]>) -> Option<Cow<'_, [u8]>> {
        let is_there = self.first_key.is_some();
        is_there.then(|| bounds::upper(&self.last_key, before))
    }

    /// Returns the approximate bytes of memory of unwritten blocks and parts.
    pub(crate) fn memory(&self) -> usize {
        self.chunk.capacity() + self.parts.capacity() + self.scratch.capacity()
    }

    /// Returns the approximate length that the file would have if it ended here, without range
    /// deletes.
    pub(crate) fn bytes(&self) -> u64 {
        let buffered = self.chunk.len()
            + self.block.record_bytes()
            + self.parts.len()
            + self.part.bytes()
            + self.top.bytes();
        self.written + buffered as u64
    }

    /// Ends a block; the next one begins with this key, if there is one.
    fn end_block(&mut self, next: Option<&[u8]>) -> Result<(), Error> {
        let start = self.block.finish(&mut self.chunk);
        let offset = self.written + start as u64;
        let seed = self.identity.seed(offset);
        seal(
            &mut self.chunk,
            start,
            Content::Block,
            self.settings.compression,
            seed,
            &mut self.scratch,
        );
        self.part
            .add_block(offset, (self.chunk.len() - start) as u64);
        let separator = next.map(|next| separator(&self.last_key, next));
        match separator {
            Some(separator) if self.part.bytes() < self.settings.part_bytes => {
                self.part.separate(separator);
            }
            Some(separator) => {
                self.end_part();
                self.top.separate(separator);
            }
            None => self.end_part(),
        }
        if self.chunk.len() >= CHUNK_BYTES {
            self.write_chunk()
        } else {
            Ok(())
        }
    }

    fn end_part(&mut self) {
        let before = self.parts.len();
        self.part.finish(&mut self.parts);
        let length = self.parts.len() - before;
        self.part_lengths.push(length);
        self.top.add((length + TRAILER_BYTES) as u64);
    }

    /// Writes the buffer.
    fn write_chunk(&mut self) -> Result<(), Error> {
        let (number, offset) = (self.identity.number, self.written);
        let written = self.file.write_at(&self.chunk, offset);
        self.check(written, |error| {
            let what = format_args!("write run file {number} at offset {offset}");
            Error::io(error, what)
        })?;
        self.written += self.chunk.len() as u64;
        // Memory that a large value has needed is not kept.
        for buffer in [&mut self.chunk, &mut self.scratch] {
            buffer.clear();
            buffer.shrink_to(2 * CHUNK_BYTES);
        }
        if self.written - self.synced >= SYNC_BYTES {
            self.sync()
        } else {
            Ok(())
        }
    }

    fn sync(&mut self) -> Result<(), Error> {
        let number = self.identity.number;
        self.synced = self.written;
        let synced = self.file.sync();
        self.check(synced, |error| {
            Error::io(error, format_args!("sync run file {number}"))
        })
    }

    /// Remembers an error.
    fn check(
        &mut self,
        done: io::Result<()>,
        error: impl FnOnce(&io::Error) -> Error,
    ) -> Result<(), Error> {
        done.map_err(|done| {
            let error = error(&done);
            self.failed.get_or_insert(error).clone()
        })
    }

    /// Appends a frame with this content. Returns its offset and its length.
    fn put_frame(&mut self, content: Content, bytes: &[u8]) -> (u64, u64) {
        let start = self.chunk.len();
        let offset = self.written + start as u64;
        self.chunk.extend_from_slice(bytes);
        let seed = self.identity.seed(offset);
        seal(
            &mut self.chunk,
            start,
            content,
            Compression::None,
            seed,
            &mut self.scratch,
        );
        (offset, (self.chunk.len() - start) as u64)
    }

    /// Writes the rest of the file, and syncs it. The file covers the sequence numbers from
    /// `first_seq` to `last_seq`, both included, and deletes all that is older of these ranges. Its
    /// [`bounds`] are above `after` and below `before`, if these are there, as its keys are. Its
    /// name is not made durable here.
    ///
    /// # Errors
    /// [`Error::Io`], also if an earlier call has failed with it; [`Error::Corrupt`] if the
    /// interval is empty.
    pub(crate) fn finish(
        mut self,
        first_seq: Seq,
        last_seq: Seq,
        range_deletes: &RangeSet,
        (after, before): (Option<&[u8]>, Option<&[u8]>),
    ) -> Result<FileMeta, Error> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if first_seq > last_seq {
            return Err(self.refuse("its interval of sequence numbers is empty"));
        }
        if !self.block.is_empty() {
            self.end_block(None)?;
        }
        let parts = std::mem::take(&mut self.parts);
        let mut rest = &parts[..];
        let first_part = self.written + self.chunk.len() as u64;
        for length in std::mem::take(&mut self.part_lengths) {
            let (part, behind) = rest.split_at(length);
            rest = behind;
            self.put_frame(Content::Part, part);
            if self.chunk.len() >= CHUNK_BYTES {
                self.write_chunk()?;
            }
        }
        let mut bytes = Vec::new();
        let mut deletes_extent = (0, 0);
        if !range_deletes.is_empty() {
            range_deletes.encode(&mut bytes);
            deletes_extent = self.put_frame(Content::RangeDeletes, &bytes);
            self.meta.range_deletes = range_deletes.len() as u64;
        }
        let mut top = (0, 0);
        if !self.top.is_empty() {
            bytes.clear();
            self.top.encode(first_part, &mut bytes);
            top = self.put_frame(Content::Top, &bytes);
        }
        self.meta.first_seq = first_seq;
        self.meta.last_seq = last_seq;
        if let Some(first_key) = self.first_key.take() {
            self.meta.first_key = Some(bounds::lower(&first_key, after).into());
            self.meta.last_key = Some(bounds::upper(&self.last_key, before).into_owned().into());
        }
        let mut footer = Footer {
            identity: self.identity,
            operator: self.settings.operator.take(),
            meta: self.meta.clone(),
            top,
            range_deletes: deletes_extent,
        };
        footer.encode(&mut self.chunk);
        self.write_chunk()?;
        self.sync()?;
        footer.meta.bytes = self.written;
        Ok(footer.meta)
    }
}
