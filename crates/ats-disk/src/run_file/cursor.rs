//! Walks over the keys of a run file, in both directions.

use super::block::Block;
use super::block_cursor::BlockCursor;
use super::frame::{self, Content};
use super::part::Part;
use super::reader::RunFile;
use crate::coding::Damaged;
use crate::cursor::Cursor;
use crate::entry::Kind;
use crate::error::Error;
use ats_store::{Direction, MayBlock};
use std::ops::ControlFlow;
use std::sync::Arc;

/// The bytes of the first read ahead of a cursor that uses the cache. It comes with the second
/// block that is not cached, and each next one is twice as long. So a short walk does not read much
/// more than it needs.
const FIRST_AHEAD_BYTES: usize = 16 << 10;

/// The most that is read of the parts at a time, without the cache.
const PARTS_AHEAD_BYTES: usize = 64 << 10;

/// A cursor over a file.
pub(crate) struct FileCursor {
    file: Arc<RunFile>,
    use_cache: bool,
    direction: Direction,
    /// The number of the part, and the part. `None` before the first.
    part: Option<(usize, Arc<Part>)>,
    /// The number of the block within its part.
    block: usize,
    /// The offset of the block.
    offset: u64,
    walk: Option<BlockCursor>,
    /// `true` if it stands on a key.
    stands: bool,
    blocks: Window,
    /// Only without the cache.
    parts: Window,
}

/// A piece of the file that was read at once.
struct Window {
    offset: u64,
    bytes: Vec<u8>,
    /// Bytes that the next read has at least, if there are as many.
    ahead: usize,
    /// The most that `ahead` becomes.
    max_ahead: usize,
}

/// A piece of the file that is wanted: its offset and its length.
struct Wanted {
    piece: (u64, u64),
    /// The beginning and the end of the range that may be read ahead.
    limits: (u64, u64),
}

impl Window {
    fn new(max_ahead: usize) -> Self {
        Window {
            offset: 0,
            bytes: Vec::new(),
            ahead: 0,
            max_ahead,
        }
    }

    /// Returns `make` of the content of a frame. If the window does not have the frame, it moves
    /// there and reads the frames behind it in the direction, too, but not beyond the limits.
    fn frame<T>(
        &mut self,
        may_block: Option<MayBlock>,
        file: &RunFile,
        direction: Direction,
        wanted: &Wanted,
        content: Content,
        make: impl FnOnce(&[u8]) -> Result<T, Damaged>,
    ) -> Result<T, Error> {
        let (offset, length) = wanted.piece;
        if self.get(offset, length).is_none() {
            self.read(may_block, file, direction, wanted)?;
        }
        let frame = self.get(offset, length).ok_or(Damaged("ends early"));
        let seed = file.identity().seed(offset);
        frame
            .and_then(|frame| frame::open(frame, content, seed))
            .and_then(|content| make(&content))
            .map_err(|why| file.damage(offset, why))
    }

    fn get(&self, offset: u64, length: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        let length = usize::try_from(length).ok()?;
        self.bytes.get(start..)?.get(..length)
    }

    /// Moves to a piece, and reads it with the following ones in the direction.
    fn read(
        &mut self,
        may_block: Option<MayBlock>,
        file: &RunFile,
        direction: Direction,
        wanted: &Wanted,
    ) -> Result<(), Error> {
        let Wanted {
            piece: (offset, length),
            limits,
        } = *wanted;
        let ahead = length.max(self.ahead as u64);
        let end = offset.saturating_add(length);
        let (start, end) = match direction {
            Direction::Up => (offset, offset.saturating_add(ahead).min(limits.1).max(end)),
            Direction::Down => (end.saturating_sub(ahead).max(limits.0).min(offset), end),
        };
        let doubled = self.ahead.saturating_mul(2).max(FIRST_AHEAD_BYTES);
        self.ahead = doubled.min(self.max_ahead);
        self.offset = start;
        file.read_to(may_block, start, end - start, &mut self.bytes)
            .inspect_err(|_| self.bytes.clear())
    }
}

impl FileCursor {
    /// Makes a cursor over all keys. With `use_cache` it takes blocks from the cache, and keeps
    /// blocks there that it reads from disk. It reads up to `read_ahead` bytes at a time. It reads
    /// nothing before it is sought.
    pub(crate) fn new(file: Arc<RunFile>, use_cache: bool, read_ahead: usize) -> Self {
        FileCursor {
            file,
            use_cache,
            direction: Direction::Up,
            part: None,
            block: 0,
            offset: 0,
            walk: None,
            stands: false,
            blocks: Window::new(read_ahead),
            parts: Window::new(read_ahead.min(PARTS_AHEAD_BYTES)),
        }
    }

    /// Makes the part with this number the one in which it is.
    fn enter_part(
        &mut self,
        may_block: Option<MayBlock>,
        number: usize,
    ) -> Result<Option<Arc<Part>>, Error> {
        let Some(top) = self.file.top() else {
            return Ok(None);
        };
        if number >= top.len() {
            return Ok(None);
        }
        if let Some((current, part)) = &self.part
            && *current == number
        {
            return Ok(Some(Arc::clone(part)));
        }
        let part = if self.use_cache {
            self.file.part(may_block, top, number)?.into_arc()
        } else {
            let (file, direction) = (&self.file, self.direction);
            let wanted = &Wanted {
                piece: top.piece(number),
                limits: top.extent(),
            };
            let parts = &mut self.parts;
            let part = parts.frame(may_block, file, direction, wanted, Content::Part, Part::new);
            Arc::new(part?)
        };
        self.part = Some((number, Arc::clone(&part)));
        Ok(Some(part))
    }

    /// Makes a block of a part the one in which it is.
    fn enter_block(
        &mut self,
        may_block: Option<MayBlock>,
        part: &Part,
        number: usize,
    ) -> Result<&mut BlockCursor, Error> {
        let (offset, length) = part.blocks.piece(number);
        let block = self.load_block(may_block, offset, length)?;
        self.block = number;
        self.offset = offset;
        Ok(match &mut self.walk {
            Some(walk) => {
                walk.enter(block);
                walk
            }
            walk => walk.insert(BlockCursor::new(block)),
        })
    }

    fn load_block(
        &mut self,
        may_block: Option<MayBlock>,
        offset: u64,
        length: u64,
    ) -> Result<Block, Error> {
        if self.use_cache
            && let Some(block) = self.file.cached_block(offset)
        {
            return Ok(block);
        }
        let (file, direction) = (&self.file, self.direction);
        let wanted = &Wanted {
            piece: (offset, length),
            limits: file.blocks_extent(),
        };
        let blocks = &mut self.blocks;
        let block = blocks.frame(
            may_block,
            file,
            direction,
            wanted,
            Content::Block,
            Block::new,
        )?;
        if self.use_cache {
            self.file.keep_block(offset, &block);
        }
        Ok(block)
    }

    /// Goes to the first key of the next block in the direction that has one, or to the end.
    fn next_block(&mut self, may_block: Option<MayBlock>) -> Result<bool, Error> {
        loop {
            let Some((part_number, part)) = self.part.clone() else {
                return Ok(false);
            };
            let next = match self.direction {
                Direction::Up => Some(self.block + 1).filter(|next| *next < part.blocks.len()),
                Direction::Down => self.block.checked_sub(1),
            };
            let (part, block) = match next {
                Some(block) => (part, block),
                None => {
                    let next = match self.direction {
                        Direction::Up => part_number.checked_add(1),
                        Direction::Down => part_number.checked_sub(1),
                    };
                    let next = next
                        .map(|number| self.enter_part(may_block, number))
                        .transpose()?;
                    let Some(part) = next.flatten() else {
                        return Ok(false);
                    };
                    let block = match self.direction {
                        Direction::Up => 0,
                        Direction::Down => part.blocks.len() - 1,
                    };
                    (part, block)
                }
            };
            let direction = self.direction;
            let walk = self.enter_block(may_block, &part, block)?;
            let found = match direction {
                Direction::Up => walk.seek_up(None),
                Direction::Down => walk.seek_down(None),
            };
            if found.map_err(|why| self.file.damage(self.offset, why))? {
                return Ok(true);
            }
        }
    }

    fn try_seek(
        &mut self,
        may_block: Option<MayBlock>,
        direction: Direction,
        bound: Option<&[u8]>,
    ) -> Result<bool, Error> {
        self.direction = direction;
        self.blocks.ahead = if self.use_cache {
            0
        } else {
            self.blocks.max_ahead
        };
        self.parts.ahead = self.parts.max_ahead;
        let Some(top) = self.file.top() else {
            return Ok(false);
        };
        let number = match (bound, direction) {
            (Some(bound), _) => top.find(bound),
            (None, Direction::Up) => 0,
            (None, Direction::Down) => top.len() - 1,
        };
        let Some(part) = self.enter_part(may_block, number)? else {
            return Ok(false);
        };
        let number = match (bound, direction) {
            (Some(bound), _) => part.blocks.find(bound),
            (None, Direction::Up) => 0,
            (None, Direction::Down) => part.blocks.len() - 1,
        };
        let walk = self.enter_block(may_block, &part, number)?;
        let found = match direction {
            Direction::Up => walk.seek_up(bound),
            Direction::Down => walk.seek_down(bound),
        };
        if found.map_err(|why| self.file.damage(self.offset, why))? {
            Ok(true)
        } else {
            // All keys of the block are beyond the bound. The next block has no such keys.
            self.next_block(may_block)
        }
    }

    fn try_advance(&mut self, may_block: Option<MayBlock>) -> Result<bool, Error> {
        let Some(walk) = &mut self.walk else {
            return Ok(false);
        };
        let found = match self.direction {
            Direction::Up => walk.step_up(),
            Direction::Down => walk.step_down(),
        };
        if found.map_err(|why| self.file.damage(self.offset, why))? {
            Ok(true)
        } else {
            self.next_block(may_block)
        }
    }

    /// Returns the offset of the block in which it stands.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the part in which it stands, with its number, and the number of the block within the
    /// part.
    pub(super) fn block_number(&self) -> Option<((usize, &Part), usize)> {
        let (number, part) = self.part.as_ref()?;
        Some(((*number, part), self.block))
    }

    /// Looks up a key in the block in which it stands.
    pub(super) fn get_in_block(
        &self,
        key: &[u8],
        visit: &mut dyn FnMut(Kind, &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Damaged> {
        let walk = self.walk.as_ref();
        walk.map_or(Ok(()), |walk| walk.block().get(key, visit))
    }

    #[inline]
    fn current(&self) -> Option<&BlockCursor> {
        self.walk.as_ref().filter(|_| self.stands)
    }
}

impl Cursor for FileCursor {
    fn seek(
        &mut self,
        may_block: Option<MayBlock>,
        direction: Direction,
        bound: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.stands = false;
        self.stands = self.try_seek(may_block, direction, bound)?;
        Ok(())
    }

    #[inline]
    fn advance(&mut self, may_block: Option<MayBlock>) -> Result<(), Error> {
        let stood = std::mem::replace(&mut self.stands, false);
        if stood {
            self.stands = self.try_advance(may_block)?;
        }
        Ok(())
    }

    #[inline]
    fn key(&self) -> Option<&[u8]> {
        self.current().map(BlockCursor::key)
    }

    #[inline]
    fn entries(&self) -> usize {
        self.current().map_or(0, BlockCursor::entries)
    }

    #[inline]
    fn entry(&self, index: usize) -> (Kind, &[u8]) {
        match self.current() {
            Some(walk) => walk.entry(index),
            None => (Kind::Delete, &[]),
        }
    }
}
