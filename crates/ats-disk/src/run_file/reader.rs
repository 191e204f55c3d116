//! Reading a run file.
//!
//! Opening a file reads its end: the footer, the top and the range deletes, which stay in memory.
//! Parts and blocks are read when they are needed, and are kept in the cache.

use super::block::Block;
use super::block_cache::{BlockCache, Cached, Reserved};
use super::frame::{self, Content, Identity};
use super::index::Index;
use super::meta::{Extent, FOOTER_END_BYTES, FileMeta, Footer};
use super::part::Part;
use crate::coding::{Damaged, Decoder};
use crate::entry::Kind;
use crate::error::Error;
use crate::fs;
use crate::median::{Median, middle};
use crate::operator_id::OperatorId;
use crate::range_deletes::RangeSet;
use ats_store::MayBlock;
use std::cell::Cell;
use std::ops::{ControlFlow, Deref, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Bytes of the end of a file that are read when it is opened. Footer, top and range deletes rarely
/// need more.
const END_BYTES: u64 = 8 << 10;

/// A buffer that is larger than this is not kept.
const MAX_BUFFER_BYTES: usize = 256 << 10;

/// Calls `work` with a buffer of a length, which has any content. It is one of the thread: to
/// allocate and free one for each block that is read takes as long as half of the copying.
fn with_buffer<R>(length: usize, work: impl FnOnce(&mut [u8]) -> R) -> R {
    thread_local! {
        static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    let mut buffer = BUFFER.take();
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
    let worked = work(&mut buffer[..length]);
    if buffer.len() <= MAX_BUFFER_BYTES {
        BUFFER.set(buffer);
    }
    worked
}

/// More is not read, checked and unpacked by callers that do not wait: it takes them too long.
const AT_ONCE_BYTES: usize = 64 << 10;

/// A run file that is open. See the [module](self).
pub(crate) struct RunFile {
    file: Box<dyn fs::File>,
    meta: FileMeta,
    identity: Identity,
    operator: Option<OperatorId>,
    end: End,
    pub(super) cache: Arc<BlockCache>,
    cache_file: u64,
    /// `true` if the system was told that parts are read.
    parts_are_read: AtomicBool,
    /// The parts that the file holds itself.
    pub(super) parts: Box<[OnceLock<Arc<Part>>]>,
    /// The bytes that they take of the budget of the cache.
    pub(super) held_bytes: AtomicUsize,
    /// The memory of the index of the parts.
    memory: Reserved,
}

/// A part, of the file or of the cache.
pub(super) enum FoundPart<'a> {
    Held(&'a Arc<Part>),
    Cached(Arc<Part>),
}

impl Deref for FoundPart<'_> {
    type Target = Part;

    #[inline]
    fn deref(&self) -> &Part {
        match self {
            FoundPart::Held(part) => part,
            FoundPart::Cached(part) => part,
        }
    }
}

impl FoundPart<'_> {
    /// Returns the part as long as the caller wants it.
    pub(super) fn into_arc(self) -> Arc<Part> {
        match self {
            FoundPart::Held(part) => Arc::clone(part),
            FoundPart::Cached(part) => part,
        }
    }
}

impl Drop for RunFile {
    fn drop(&mut self) {
        self.cache.release(*self.held_bytes.get_mut());
    }
}

/// The content of a file behind its parts.
#[derive(Default)]
pub(super) struct End {
    /// The index of parts. `None` if there are only range deletes.
    pub(super) top: Option<Index>,
    pub(super) range_deletes: Arc<RangeSet>,
    /// The extents of both, and of the footer.
    pub(super) top_extent: Extent,
    pub(super) range_deletes_extent: Extent,
    pub(super) footer_extent: Extent,
}

impl RunFile {
    /// Opens the file of which the manifest knows `meta`, of a store with this operator.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is another file, or damaged; [`Error::NewerFormat`];
    /// [`Error::OtherOperator`]; [`Error::Io`].
    pub(crate) fn open(
        file: Box<dyn fs::File>,
        meta: FileMeta,
        identity: Identity,
        operator: Option<&OperatorId>,
        cache: Arc<BlockCache>,
    ) -> Result<Self, Error> {
        let memory = Reserved::new(&cache, 0);
        let mut opened = RunFile {
            file,
            meta,
            identity,
            operator: operator.cloned(),
            end: End::default(),
            cache,
            cache_file: BlockCache::next_file(),
            parts_are_read: AtomicBool::new(false),
            parts: Box::default(),
            held_bytes: AtomicUsize::new(0),
            memory,
        };
        opened.end = opened.read_end()?;
        let parts = opened.end.top.as_ref().map_or(0, Index::len);
        opened.parts = (0..parts).map(|_| OnceLock::new()).collect();
        let top = opened.end.top.as_ref().map_or(0, Index::memory);
        let memory = top + size_of_val(&*opened.parts);
        opened.memory.set(memory);
        Ok(opened)
    }

    /// Asks the system to read what [`open`](RunFile::open) will read of a file.
    pub(crate) fn will_open(file: &dyn fs::File, meta: &FileMeta) {
        let end = meta.bytes.min(END_BYTES);
        file.will_read(meta.bytes - end, end);
    }

    /// Reads the end of the file from disk, and checks that it is the file that is expected.
    pub(super) fn read_end(&self) -> Result<End, Error> {
        let may_block = Some(MayBlock::here());
        let name = format!("run file {}", self.identity.number);
        let bytes = self.file.len();
        let bytes = bytes.map_err(|error| Error::io(&error, format_args!("measure {name}")))?;
        if bytes != self.meta.bytes {
            let wanted = self.meta.bytes;
            return Err(Error::corrupt(format_args!(
                "{name} has {bytes} bytes, not {wanted}"
            )));
        }
        let mut end = self.read(
            may_block,
            bytes - bytes.min(END_BYTES),
            bytes.min(END_BYTES),
        )?;
        let ends_early = || self.damage(0, Damaged("ends early"));
        let last = end
            .last_chunk::<FOOTER_END_BYTES>()
            .ok_or_else(ends_early)?;
        let length = Footer::length(last, &name)?;
        let offset = bytes.checked_sub(length).ok_or_else(ends_early)?;
        if length > end.len() as u64 {
            end = self.read(may_block, offset, length)?;
        }
        let footer = Footer::decode(&end[end.len() - length as usize..], bytes);
        let footer = footer.map_err(|why| self.damage(offset, why))?;
        if footer.identity != self.identity || footer.meta != self.meta {
            let why = Damaged("is not the file that is expected");
            return Err(self.damage(offset, why));
        }
        if footer.operator != self.operator {
            return Err(Error::OtherOperator {
                stored: footer.operator,
                given: self.operator.clone(),
            });
        }
        let mut read = End {
            top_extent: footer.top,
            range_deletes_extent: footer.range_deletes,
            footer_extent: (offset, length),
            ..End::default()
        };
        if footer.meta.entries > 0 {
            let top = self.read_of_end(may_block, &end, footer.top, Content::Top)?;
            let top = Index::decode(&mut Decoder::new(&top));
            read.top = Some(top.map_err(|why| self.damage(footer.top.0, why))?);
        }
        if footer.meta.range_deletes > 0 {
            let extent = footer.range_deletes;
            let ranges = self.read_of_end(may_block, &end, extent, Content::RangeDeletes)?;
            let ranges = RangeSet::decode(&ranges);
            read.range_deletes = Arc::new(ranges.map_err(|why| self.damage(extent.0, why))?);
        }
        Ok(read)
    }

    /// Returns the content of a frame. `end` are bytes that were read of the end of the file, which
    /// may have the frame.
    fn read_of_end(
        &self,
        may_block: Option<MayBlock>,
        end: &[u8],
        (offset, length): Extent,
        content: Content,
    ) -> Result<Vec<u8>, Error> {
        let end_offset = self.meta.bytes - end.len() as u64;
        let there = offset
            .checked_sub(end_offset)
            .and_then(|start| end.get(start as usize..)?.get(..length as usize));
        match there {
            Some(frame) => {
                let opened = frame::open(frame, content, self.identity.seed(offset));
                let opened = opened.map_err(|why| self.damage(offset, why))?;
                Ok(opened.into_owned())
            }
            None => self.read_frame(may_block, offset, length, content, |content| {
                Ok(content.to_vec())
            }),
        }
    }

    /// Makes an error about damage at an offset.
    pub(super) fn damage(&self, offset: u64, why: Damaged) -> Error {
        let number = self.identity.number;
        Error::corrupt(format_args!("run file {number} at offset {offset}: {why}"))
    }

    /// Returns the bytes of the file.
    pub(super) fn read(
        &self,
        may_block: Option<MayBlock>,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.read_to(may_block, offset, length, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads bytes of the file, which replace those that `out` has.
    pub(super) fn read_to(
        &self,
        may_block: Option<MayBlock>,
        offset: u64,
        length: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let length = self.room(offset, length)?;
        out.clear();
        // Each reads about as much as the one before: no room is to be made for more.
        out.reserve_exact(length);
        out.resize(length, 0);
        self.fill(may_block, offset, out)
    }

    /// Memory for bytes at an offset, if there may be so many: the length was read from a file, so
    /// it may be anything.
    fn room(&self, offset: u64, length: u64) -> Result<usize, Error> {
        let end = offset.checked_add(length);
        usize::try_from(length)
            .ok()
            .filter(|_| end.is_some_and(|end| end <= self.meta.bytes))
            .ok_or_else(|| self.damage(offset, Damaged("would end behind the file")))
    }

    /// Fills `out` with bytes of the file.
    fn fill(&self, may_block: Option<MayBlock>, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        if may_block.is_none() {
            return self.fill_at_once(offset, out);
        }
        let read = self.file.read_at(out, offset).map_err(|error| {
            let number = self.identity.number;
            Error::io(
                &error,
                format_args!("read run file {number} at offset {offset}"),
            )
        })?;
        if read == out.len() {
            Ok(())
        } else {
            Err(self.damage(offset, Damaged("ends early")))
        }
    }

    /// Like [`fill`](Self::fill), but only from the memory of the system.
    fn fill_at_once(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        if out.len() > AT_ONCE_BYTES {
            return Err(Error::WouldBlock);
        }
        match self.file.read_at_once(out, offset) {
            Ok(Some(read)) if read == out.len() => Ok(()),
            _ => Err(Error::WouldBlock),
        }
    }

    /// Reads a frame from disk. Returns `make` of its content.
    fn read_frame<T>(
        &self,
        may_block: Option<MayBlock>,
        offset: u64,
        length: u64,
        content: Content,
        make: impl FnOnce(&[u8]) -> Result<T, Damaged>,
    ) -> Result<T, Error> {
        let length = self.room(offset, length)?;
        with_buffer(length, |frame| {
            self.fill(may_block, offset, frame)?;
            let opened = frame::open(frame, content, self.identity.seed(offset));
            let made = opened.and_then(|content| make(&content));
            made.map_err(|why| self.damage(offset, why))
        })
    }

    /// Returns a part that is not cached. With the first one of a file, the system is asked to read
    /// the others, too: they lie beside each other and are a hundredth of the file, and without
    /// them each read of a block waits for a part.
    #[cold]
    pub(super) fn read_part(
        &self,
        may_block: Option<MayBlock>,
        offset: u64,
        length: u64,
    ) -> Result<Arc<Part>, Error> {
        if let Some(top) = self.top()
            && !self.parts_are_read.swap(true, Ordering::Relaxed)
        {
            let (first, end) = top.extent();
            self.file.will_read(first, end - first);
        }
        self.read_frame(may_block, offset, length, Content::Part, Part::new)
            .map(Arc::new)
    }

    #[cold]
    fn read_block(
        &self,
        may_block: Option<MayBlock>,
        offset: u64,
        length: u64,
    ) -> Result<Block, Error> {
        self.read_frame(may_block, offset, length, Content::Block, Block::new)
    }

    /// Returns the part with this number, from memory or for it.
    #[inline]
    pub(super) fn part(
        &self,
        may_block: Option<MayBlock>,
        top: &Index,
        number: usize,
    ) -> Result<FoundPart<'_>, Error> {
        match self.parts[number].get() {
            Some(part) => {
                self.cache.on_held();
                Ok(FoundPart::Held(part))
            }
            None => self.part_to_hold(may_block, top, number),
        }
    }

    /// Returns the part with this number, which the file then holds, or the cache, if the file must
    /// not.
    #[cold]
    fn part_to_hold(
        &self,
        may_block: Option<MayBlock>,
        top: &Index,
        number: usize,
    ) -> Result<FoundPart<'_>, Error> {
        let (offset, length) = top.piece(number);
        let cached = self.cache.get(self.cache_file, offset);
        let (part, is_cached) = match cached {
            Some(Cached::Part(part)) => (part, true),
            _ => {
                let part = self.read_part(may_block, offset, length)?;
                self.cache.on_read();
                (part, false)
            }
        };
        let bytes = part.memory();
        if !self.cache.hold(bytes) {
            if !is_cached {
                let cached = Cached::Part(Arc::clone(&part));
                self.cache.insert(self.cache_file, offset, cached);
            }
            return Ok(FoundPart::Cached(part));
        }
        match self.parts[number].set(part) {
            Ok(()) => {
                self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            // Another thread was faster.
            Err(_) => self.cache.release(bytes),
        }
        let part = self.parts[number].get();
        Ok(FoundPart::Held(part.expect("it was just set")))
    }

    /// Returns the block at an offset, if it is cached.
    #[inline]
    pub(super) fn cached_block(&self, offset: u64) -> Option<Block> {
        match self.cache.get(self.cache_file, offset) {
            Some(Cached::Block(block)) => Some(block),
            _ => None,
        }
    }

    /// Keeps in the cache a block that was read.
    pub(super) fn keep_block(&self, offset: u64, block: &Block) {
        self.cache.on_read();
        let cached = Cached::Block(block.clone());
        self.cache.insert(self.cache_file, offset, cached);
    }

    /// Returns the facts that the manifest has about it.
    pub(crate) fn meta(&self) -> &FileMeta {
        &self.meta
    }

    /// Returns the identity of the file.
    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the extent of the index of parts. `None` if there are only range deletes.
    pub(super) fn top(&self) -> Option<&Index> {
        self.end.top.as_ref()
    }

    /// Returns the beginning of the first block, and the end of the last one.
    pub(super) fn blocks_extent(&self) -> (u64, u64) {
        (0, self.top().map_or(0, |top| top.extent().0))
    }

    /// Shows the entries of a key, from the newest to the oldest, until `visit` breaks. Range
    /// deletes are not considered. `hash` is the [`key_hash`](super::key_hash) of the key.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub(crate) fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        hash: u64,
        visit: &mut dyn FnMut(Kind, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let Some(top) = &self.end.top else {
            return Ok(());
        };
        let part = self.part(may_block, top, top.find(key))?;
        if !part.filter.may_contain(hash) {
            return Ok(());
        }
        let (offset, length) = part.blocks.piece(part.blocks.find(key));
        let block = self.block(may_block, offset, length)?;
        let shown = block.get(key, visit);
        shown.map_err(|why| self.damage(offset, why))
    }

    /// Returns a block, from the cache or for it.
    #[inline]
    fn block(&self, may_block: Option<MayBlock>, offset: u64, length: u64) -> Result<Block, Error> {
        if let Some(block) = self.cached_block(offset) {
            return Ok(block);
        }
        let block = self.read_block(may_block, offset, length)?;
        self.keep_block(offset, &block);
        Ok(block)
    }

    /// Returns the median of a range; `None` if it has few entries. Where the range lies within one
    /// part, that is read, and where it lies within one block, that.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub(crate) fn median(
        &self,
        may_block: Option<MayBlock>,
        low: &[u8],
        high: Option<&[u8]>,
    ) -> Result<Option<Median>, Error> {
        let Some(top) = self.top() else {
            return Ok(None);
        };
        let median = |index: &Index, within: &Range<usize>, entries: u64| Median {
            bound: index.separator(middle(within)),
            entries: entries * (within.len() as u64 + 1) / index.len() as u64,
        };
        let parts = top.find_within(low, high);
        if !parts.is_empty() {
            return Ok(Some(median(top, &parts, self.meta.entries)));
        }
        let part = self.part(may_block, top, parts.start)?;
        let blocks = part.blocks.find_within(low, high);
        if !blocks.is_empty() {
            let entries = self.meta.entries / top.len() as u64;
            return Ok(Some(median(&part.blocks, &blocks, entries)));
        }
        let (offset, length) = part.blocks.piece(blocks.start);
        let median = self.block(may_block, offset, length)?.median(low, high);
        median.map_err(|why| self.damage(offset, why))
    }

    /// Returns the ranges of keys that the file deletes from older runs.
    pub(crate) fn range_deletes(&self) -> &Arc<RangeSet> {
        &self.end.range_deletes
    }
}
