//! The frames of a run file, past damage.
//!
//! All readable frames of a file are read. Its footer leads to the top, the top to the parts, a
//! part to blocks. Where one of them is damaged, the frames are found without it: the first begins
//! at 0, each begins where the one before ends, and a frame is one that passes its checksum. So one
//! knows where a frame begins and tries where it may end, of which the byte before the checksum
//! excludes most offsets. Behind a damaged frame one does not know where the next begins, and tries
//! that, too.

use super::survey::FoundFile;
use super::{Fault, LostKeys};
use crate::coding::{Damaged, Decoder};
use crate::cursor::Cursor;
use crate::entry::Kind;
use crate::error::Error;
use crate::fs::File;
use crate::range_deletes::RangeSet;
use crate::run_file::block::Block;
use crate::run_file::part::Part;
use crate::run_file::{
    BlockCursor, Content, FileMeta, Footer, Identity, Index, TRAILER_BYTES, is_upper, open_frame,
};
use ats_store::{Direction, MayBlock};
use std::ops::Bound;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// The bytes that are read at a time.
const READ_BYTES: u64 = 1 << 20;
/// A frame whose beginning is a guess is taken to be no longer than this.
const GUESSED_BYTES: u64 = 64 << 10;
/// The most bytes that are compared in one file in looking for the beginnings of frames.
const MOST_STEPS: u64 = 1 << 31;

/// A run file, as far as it can be read.
pub(super) struct ScannedFile {
    name: String,
    /// `None` if it is missing.
    file: Option<Arc<dyn File>>,
    identity: Identity,
    /// The description in the manifest or the footer.
    pub(super) meta: Option<FileMeta>,
    /// Blocks that are whole: their offsets and lengths.
    blocks: Vec<(u64, u64)>,
    /// The entries in them.
    pub(super) entries: u64,
    /// The lowest and the highest key in them, if there are any.
    pub(super) bounds: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) range_deletes: Arc<RangeSet>,
    /// `true` if there were, or may have been, range deletes that cannot be read.
    pub(super) has_lost_ranges: bool,
    /// Keys of which entries are lost. Ascending, and apart from each other and from the keys of
    /// the blocks.
    pub(super) lost: Vec<LostKeys>,
    /// The faults that were found.
    pub(super) faults: Vec<Fault>,
}

/// A piece of the blocks, in the order of offsets.
enum Piece {
    Block(u64, u64),
    /// Lost bytes: their beginning, and the reason.
    Lost(u64, &'static str),
}

/// The frames that were found in a file.
#[derive(Default)]
struct Found {
    pieces: Vec<Piece>,
    range_deletes: Option<RangeSet>,
    /// `true` if bytes of unknown meaning were lost behind the blocks.
    has_holes: bool,
    faults: Vec<(u64, &'static str)>,
}

impl ScannedFile {
    /// Reads a file. `meta` is its description in the manifest.
    pub(super) fn read(
        found: &FoundFile,
        file: Arc<dyn File>,
        identity: Identity,
        meta: Option<&FileMeta>,
    ) -> Self {
        let footer = found.footer.as_ref();
        let meta = meta.or(footer.map(|footer| &footer.meta));
        let mut window = Window::new(&*file, found.bytes, identity);
        let seen = match footer {
            Some(footer) => window.read_by_footer(footer),
            None => window.read_by_guess(0, found.bytes),
        };
        let mut scanned = ScannedFile {
            name: found.name.clone(),
            identity,
            meta: meta.cloned(),
            blocks: Vec::new(),
            entries: 0,
            bounds: None,
            has_lost_ranges: match (meta, &seen.range_deletes) {
                (_, Some(_)) => false,
                (Some(meta), None) => meta.range_deletes > 0,
                (None, None) => seen.has_holes,
            },
            range_deletes: Arc::new(seen.range_deletes.unwrap_or_default()),
            lost: Vec::new(),
            faults: Vec::new(),
            file: Some(Arc::clone(&file)),
        };
        for (offset, why) in seen.faults {
            scanned.fault(offset, why);
        }
        if scanned.has_lost_ranges {
            let what = "its deleted ranges are lost";
            let fault = Fault::new(&found.name, None, what).with_keys(LostKeys::ALL);
            scanned.faults.push(fault);
        }
        scanned.take_blocks(seen.pieces, &mut window);
        scanned
    }

    /// Makes a file of which nothing can be read.
    pub(super) fn new_missing(name: &str, meta: &FileMeta) -> Self {
        let lost = meta.bounds().map(|(first, last)| LostKeys {
            low: Bound::Included(first.to_vec()),
            high: Bound::Included(last.to_vec()),
        });
        ScannedFile {
            name: name.to_owned(),
            file: None,
            identity: Identity {
                store: 0,
                number: meta.number,
            },
            meta: Some(meta.clone()),
            blocks: Vec::new(),
            entries: 0,
            bounds: None,
            range_deletes: Arc::default(),
            has_lost_ranges: meta.range_deletes > 0,
            lost: lost.into_iter().collect(),
            faults: Vec::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn fault(&mut self, offset: u64, why: &str) -> &mut Fault {
        self.faults.push(Fault::new(&self.name, Some(offset), why));
        self.faults.last_mut().expect("it was just pushed")
    }

    /// Entries that are lost, if that is known.
    pub(super) fn lost_entries(&self) -> Option<u64> {
        let meta = self.meta.as_ref()?;
        Some(meta.entries.saturating_sub(self.entries))
    }

    /// Reads the blocks, and keeps those that are whole.
    fn take_blocks(&mut self, pieces: Vec<Piece>, window: &mut Window<'_>) {
        // The beginning of a hole: behind this key, at this offset; and why.
        let mut hole: Option<(Bound<Vec<u8>>, u64, &'static str)> = None;
        let bounds = self.meta.as_ref().and_then(|meta| meta.bounds());
        let bounds_are_known = bounds.is_some();
        let (low, high) = match bounds {
            Some((first, last)) => (
                Bound::Included(first.to_vec()),
                Bound::Included(last.to_vec()),
            ),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        let mut before = low;
        for piece in pieces {
            let (offset, read) = match piece {
                Piece::Lost(offset, why) => (offset, Err(Damaged(why))),
                Piece::Block(offset, length) => {
                    let read = window.block(offset, length);
                    (
                        offset,
                        read.and_then(|block| Ok((length, ends(block, &before)?))),
                    )
                }
            };
            match read {
                Ok((length, Some((first, last, entries)))) => {
                    if let Some((low, offset, why)) = hole.take() {
                        self.lose(low, Bound::Excluded(first.clone()), offset, why);
                    }
                    self.blocks.push((offset, length));
                    self.entries += entries;
                    match &mut self.bounds {
                        Some((_, highest)) => highest.clone_from(&last),
                        bounds => *bounds = Some((first, last.clone())),
                    }
                    before = Bound::Excluded(last);
                }
                // The block has no entries.
                Ok((_, None)) => {}
                Err(Damaged(why)) if hole.is_none() => hole = Some((before.clone(), offset, why)),
                Err(Damaged(why)) => {
                    self.fault(offset, why);
                }
            }
        }
        let is_all = match (&before, &high) {
            (Bound::Excluded(last), Bound::Included(high)) => {
                // A bound that was shortened may be that of other keys, too.
                let entries = self.meta.as_ref().map(|meta| meta.entries);
                last >= high || is_upper(high, last) && entries == Some(self.entries)
            }
            // Without keys, or if it is not known which there were.
            _ => matches!(high, Bound::Unbounded),
        };
        match hole {
            // Behind the last key only the index is lost.
            Some((_, offset, why)) if is_all && bounds_are_known => {
                self.fault(offset, why);
            }
            Some((low, offset, why)) => self.lose(low, high, offset, why),
            None if is_all => {}
            None => self.lose(before, high, window.end, "ends early"),
        }
    }

    fn lose(&mut self, low: Bound<Vec<u8>>, high: Bound<Vec<u8>>, offset: u64, why: &str) {
        let keys = LostKeys { low, high };
        self.fault(offset, why).keys = Some(keys.clone());
        self.lost.push(keys);
    }

    /// Returns the lowest and the highest key that it answers for.
    pub(super) fn extent(&self) -> Option<(&[u8], &[u8])> {
        let known = self.meta.as_ref().and_then(|meta| meta.bounds());
        let found = self
            .bounds
            .as_ref()
            .map(|(low, high)| (&low[..], &high[..]));
        known.or(found)
    }
}

/// Returns the first and the last key of a block, and how many entries it has; `None` if it has no
/// keys. All its records are read, and their keys ascend from above `before`.
#[expect(clippy::type_complexity, reason = "it is used once")]
fn ends(block: Block, before: &Bound<Vec<u8>>) -> Result<Option<(Vec<u8>, Vec<u8>, u64)>, Damaged> {
    const ORDER: Damaged = Damaged("has keys that do not ascend");
    let mut walk = BlockCursor::new(block);
    if !walk.seek_up(None)? {
        return Ok(None);
    }
    let first = walk.key().to_vec();
    let ascends = match before {
        Bound::Unbounded => true,
        Bound::Included(low) => *low <= first,
        Bound::Excluded(low) => *low < first,
    };
    if !ascends {
        return Err(ORDER);
    }
    let (mut last, mut entries) = (first.clone(), walk.entries() as u64);
    while walk.step_up()? {
        if walk.key() <= &last[..] {
            return Err(ORDER);
        }
        last.clear();
        last.extend_from_slice(walk.key());
        entries += walk.entries() as u64;
    }
    Ok(Some((first, last, entries)))
}

/// A piece of a file, and the frames in it.
struct Window<'f> {
    file: &'f dyn File,
    end: u64,
    identity: Identity,
    offset: u64,
    bytes: Vec<u8>,
    steps: u64,
}

impl<'f> Window<'f> {
    fn new(file: &'f dyn File, end: u64, identity: Identity) -> Self {
        Window {
            file,
            end,
            identity,
            offset: 0,
            bytes: Vec::new(),
            steps: 0,
        }
    }

    /// Returns the bytes of the file.
    fn get(&mut self, offset: u64, length: u64) -> Result<&[u8], Damaged> {
        const EARLY: Damaged = Damaged("ends behind the file");
        let end = offset.checked_add(length).filter(|end| *end <= self.end);
        let end = end.ok_or(EARLY)?;
        if offset < self.offset || end > self.offset + self.bytes.len() as u64 {
            let wanted = length.max(READ_BYTES).min(self.end - offset);
            let wanted = usize::try_from(wanted).map_err(|_| EARLY)?;
            self.offset = offset;
            self.bytes.resize(wanted, 0);
            let mut read = self.file.read_at(&mut self.bytes, offset);
            if read.is_err() && wanted as u64 > length {
                // The part that follows may be the one that cannot be read.
                self.bytes.truncate(length as usize);
                read = self.file.read_at(&mut self.bytes, offset);
            }
            self.bytes.truncate(*read.as_ref().unwrap_or(&0));
            if read.is_err() {
                return Err(Damaged("cannot be read from the disk"));
            }
        }
        let start = (offset - self.offset) as usize;
        self.bytes.get(start..start + length as usize).ok_or(EARLY)
    }

    fn frame<T>(
        &mut self,
        (offset, length): (u64, u64),
        content: Content,
        make: impl FnOnce(&[u8]) -> Result<T, Damaged>,
    ) -> Result<T, Damaged> {
        let seed = self.identity.seed(offset);
        let frame = self.get(offset, length)?;
        make(&open_frame(frame, content, seed)?)
    }

    fn block(&mut self, offset: u64, length: u64) -> Result<Block, Damaged> {
        self.frame((offset, length), Content::Block, Block::new)
    }

    /// Returns the frames to which the footer leads.
    fn read_by_footer(&mut self, footer: &Footer) -> Found {
        let mut found = Found::default();
        if footer.range_deletes.1 > 0 {
            let read = self.frame(
                footer.range_deletes,
                Content::RangeDeletes,
                RangeSet::decode,
            );
            match read {
                Ok(deletes) => found.range_deletes = Some(deletes),
                Err(Damaged(why)) => found.faults.push((footer.range_deletes.0, why)),
            }
        }
        if footer.top.1 == 0 {
            return found;
        }
        let top = self.frame(footer.top, Content::Top, |top| {
            Index::decode(&mut Decoder::new(top))
        });
        let top = match top {
            Ok(top) => top,
            Err(Damaged(why)) => {
                found.faults.push((footer.top.0, why));
                let ends = [footer.range_deletes, footer.top];
                let ends = ends.into_iter().filter(|(_, length)| *length > 0);
                let end = ends.map(|(offset, _)| offset).min().unwrap_or(footer.top.0);
                let guessed = self.read_by_guess(0, end);
                found.pieces = guessed.pieces;
                found.faults.extend(guessed.faults);
                return found;
            }
        };
        // The blocks of parts that cannot be read lie between those of the others.
        let mut at = 0;
        let mut unknown = false;
        for number in 0..top.len() {
            let piece = top.piece(number);
            match self.frame(piece, Content::Part, Part::new) {
                Ok(part) => {
                    let (start, end) = part.blocks.extent();
                    if unknown && start > at {
                        self.guess(at, start, &mut found);
                    }
                    let blocks = (0..part.blocks.len()).map(|block| part.blocks.piece(block));
                    found
                        .pieces
                        .extend(blocks.map(|(offset, length)| Piece::Block(offset, length)));
                    (at, unknown) = (end, false);
                }
                Err(Damaged(why)) => {
                    found.faults.push((piece.0, why));
                    unknown = true;
                }
            }
        }
        if unknown {
            self.guess(at, top.extent().0, &mut found);
        }
        found
    }

    fn read_by_guess(&mut self, start: u64, end: u64) -> Found {
        let mut found = Found::default();
        self.guess(start, end, &mut found);
        found
    }

    /// Finds the frames between two offsets, of which the first is the beginning of a frame.
    fn guess(&mut self, start: u64, end: u64, found: &mut Found) {
        let (mut at, mut has_other) = (start, false);
        while at < end {
            let frame = self.frame_at(at, end).map(|frame| (at, frame));
            let frame = frame.or_else(|| self.next_frame(at + 1, end));
            let Some((offset, (length, content))) = frame else {
                break;
            };
            if offset > at {
                found.has_holes = true;
                if has_other {
                    found.faults.push((at, "is not a frame"));
                } else {
                    found.pieces.push(Piece::Lost(at, "is not a frame"));
                }
            }
            match content {
                Content::Block => found.pieces.push(Piece::Block(offset, length)),
                Content::RangeDeletes => {
                    let read = self.frame((offset, length), content, RangeSet::decode);
                    found.range_deletes = read.ok().or(found.range_deletes.take());
                    has_other = true;
                }
                Content::Part | Content::Top => has_other = true,
            }
            at = offset + length;
        }
        if at < end {
            found.has_holes = true;
            if has_other {
                // The footer is left, or damage behind the blocks.
                found.faults.push((at, "is not a frame"));
            } else {
                found.pieces.push(Piece::Lost(at, "is not a frame"));
            }
        }
    }

    /// Returns the next frame that begins at an offset or behind it.
    fn next_frame(&mut self, from: u64, end: u64) -> Option<(u64, (u64, Content))> {
        let mut offsets = from..end;
        offsets.find_map(|at| {
            let frame = if self.steps < MOST_STEPS {
                self.frame_at(at, end.min(at + GUESSED_BYTES))
            } else {
                return Some(None);
            };
            frame.map(|frame| Some((at, frame)))
        })?
    }

    /// Returns the length and the content of the frame that begins at an offset and ends before
    /// `end`.
    fn frame_at(&mut self, at: u64, end: u64) -> Option<(u64, Content)> {
        let seed = self.identity.seed(at);
        let mut hash = Xxh3::with_seed(seed);
        let mut hashed = 0;
        let mut have = READ_BYTES.min(end - at);
        let mut length = TRAILER_BYTES as u64;
        loop {
            let bytes = self.get(at, have).ok()?;
            let mut steps = 0;
            while length <= have {
                let (content, trailer) = bytes[..length as usize].split_at(length as usize - 8);
                let (before, what) = content.split_at(content.len() - 1);
                steps += 1;
                if let Some(kind) = may_end(before, what[0]) {
                    hash.update(&content[hashed..]);
                    hashed = content.len();
                    if hash.digest().to_le_bytes() == *trailer {
                        self.steps += steps;
                        return Some((length, kind));
                    }
                }
                length += 1;
            }
            self.steps += steps;
            if have == end - at {
                return None;
            }
            have = (2 * have).min(end - at);
        }
    }
}

/// Returns the content that a frame may have that ends with this byte before its checksum, and with
/// these bytes before that.
fn may_end(before: &[u8], what: u8) -> Option<Content> {
    match what {
        0x00 => Block::may_end(before).then_some(Content::Block),
        0x01 => Some(Content::Block),
        0x10 => Some(Content::Part),
        0x20 => Some(Content::Top),
        0x30 => Some(Content::RangeDeletes),
        _ => None,
    }
}

/// A walk up over the whole blocks of files, one after the other.
pub(super) struct ScanCursor {
    files: Vec<Arc<ScannedFile>>,
    /// The file, and the block in it, that come next.
    next: (usize, usize),
    walk: Option<BlockCursor>,
}

impl ScanCursor {
    /// Makes a cursor over files with ascending keys.
    pub(super) fn new(files: Vec<Arc<ScannedFile>>) -> Self {
        ScanCursor {
            files,
            next: (0, 0),
            walk: None,
        }
    }

    fn next_block(&mut self) -> Result<(), Error> {
        loop {
            let Some(file) = self.files.get(self.next.0) else {
                self.walk = None;
                return Ok(());
            };
            let Some((offset, length)) = file.blocks.get(self.next.1).copied() else {
                self.next = (self.next.0 + 1, 0);
                continue;
            };
            self.next.1 += 1;
            let mut walk = BlockCursor::new(file.block(offset, length)?);
            if walk
                .seek_up(None)
                .map_err(|why| file.change_error(offset, why))?
            {
                self.walk = Some(walk);
                return Ok(());
            }
        }
    }
}

impl ScannedFile {
    /// Returns a block that was whole.
    fn block(&self, offset: u64, length: u64) -> Result<Block, Error> {
        let mut bytes = vec![0; length as usize];
        let read = match &self.file {
            Some(file) => file.read_at(&mut bytes, offset),
            None => Ok(0),
        };
        let read =
            read.map_err(|error| Error::io(&error, format_args!("read of {}", self.name)))?;
        let content = if read == bytes.len() {
            open_frame(&bytes, Content::Block, self.identity.seed(offset))
        } else {
            Err(Damaged("ends early"))
        };
        let block = content.and_then(|content| Block::new(&content));
        block.map_err(|why| self.change_error(offset, why))
    }

    /// Returns the error of a file that was whole and is so no more.
    fn change_error(&self, offset: u64, why: Damaged) -> Error {
        Error::corrupt(format_args!("{} at offset {offset}: {why}", self.name))
    }
}

impl Cursor for ScanCursor {
    /// Only to the beginning.
    fn seek(
        &mut self,
        _: Option<MayBlock>,
        _direction: Direction,
        _bound: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.next = (0, 0);
        self.next_block()
    }

    fn advance(&mut self, _: Option<MayBlock>) -> Result<(), Error> {
        let up = self.walk.as_mut().map_or(Ok(false), BlockCursor::step_up);
        match up {
            Ok(true) => Ok(()),
            // All records were read before, so this is the end of the block.
            Ok(false) | Err(_) => self.next_block(),
        }
    }

    fn key(&self) -> Option<&[u8]> {
        self.walk.as_ref().map(BlockCursor::key)
    }

    fn entries(&self) -> usize {
        self.walk.as_ref().map_or(0, BlockCursor::entries)
    }

    fn entry(&self, index: usize) -> (Kind, &[u8]) {
        match &self.walk {
            Some(walk) => walk.entry(index),
            None => (Kind::Delete, &[]),
        }
    }
}
