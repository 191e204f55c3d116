//! Writing a log.

use super::{
    ALIGNMENT, HEADER_BYTES, Head, LogIdentity, LogKind, Position, payload_checksum, record_bytes,
    u32_at,
};
use crate::error::is_full;
use crate::fs::File;
use std::io;
use std::sync::Arc;

/// The bounds of the room that is made on the disk ahead of writes: as much as the file has
/// already, but within these. Then a sync need not write where the file has grown, and small stores
/// stay small. Manifests get few records.
const LEAST_AHEAD: u64 = 64 << 10;
const LEAST_AHEAD_OF_MANIFEST: u64 = 4 << 10;
const MOST_AHEAD: u64 = 4 << 20;
/// The bounds of the number of zeros that are written ahead of records that are synced one by one:
/// as many as the file has bytes already, but within these. A sync of bytes that were written
/// before need not wait until the file system has noted where they are: two of three writes to the
/// disk are left.
const LEAST_FILL: u64 = 4 << 10;
const MOST_FILL: u64 = 128 << 10;
/// Records that are longer together than this get no zeros.
const LONGEST_FILLED: usize = 32 << 10;
/// More memory than this is not kept for the next records.
const KEPT_BYTES: usize = 1 << 20;

/// The preparation of the file behind the records that are written next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    /// Absence of any preparation, where there is little room.
    Nothing,
    /// Room on the disk.
    Room,
    /// Room, and zeros in it, for records that are synced at once.
    Zeros,
}

/// Writes records behind each other.
///
/// Records are gathered with [`append`](LogWriter::append), and written with one call of the system
/// by [`write`](LogWriter::write). If that fails, the next records are written at their offset.
pub(crate) struct LogWriter {
    /// Nothing while the file is closed.
    file: Option<Arc<dyn File>>,
    identity: LogIdentity,
    seed: u64,
    /// The offset of the next record.
    offset: u64,
    /// The checksum of the last head that was written.
    previous: u32,
    /// Up to where there is room on the disk.
    reserved: u64,
    ahead: Ahead,
    /// Up to where there were zeros before the records.
    filled: u64,
    gathered: Vec<u8>,
    /// The checksum of the last head that was gathered.
    last_gathered: u32,
}

impl LogWriter {
    /// Begins a log in a new file. Neither it nor its name is synced.
    pub(crate) fn create(file: Arc<dyn File>, identity: LogIdentity) -> io::Result<Self> {
        let header = identity.header();
        file.write_at(&header, 0)?;
        Ok(LogWriter {
            file: Some(file),
            identity,
            seed: identity.seed(),
            offset: HEADER_BYTES as u64,
            previous: header_link(&header),
            reserved: HEADER_BYTES as u64,
            ahead: Ahead::Room,
            filled: HEADER_BYTES as u64,
            gathered: Vec::new(),
            last_gathered: header_link(&header),
        })
    }

    /// Gathers a record, whose payload is these parts. `durable` is the position below which all
    /// logs of this kind are known to be durable.
    pub(crate) fn append(&mut self, payload: &[&[u8]], durable: Position) {
        let start = self.gathered.len();
        let at = Position {
            number: self.identity.number,
            offset: self.offset + start as u64,
        };
        let length: usize = payload.iter().map(|part| part.len()).sum();
        self.gathered
            .reserve(length + super::HEAD_BYTES + ALIGNMENT);
        self.gathered.resize(start + super::HEAD_BYTES, 0);
        for part in payload {
            self.gathered.extend_from_slice(part);
        }
        let sum = payload_checksum(
            &self.gathered[start + super::HEAD_BYTES..],
            self.seed,
            at.offset,
        );
        let head = Head {
            length: u32::try_from(length).expect("the lengths of batches are limited"),
            payload: sum,
            previous: self.last_gathered,
            durable,
        };
        let head = head.encode(self.seed, at);
        self.gathered[start..start + super::HEAD_BYTES].copy_from_slice(&head);
        self.last_gathered = u32_at(&head, 0);
        let end = start as u64 + record_bytes(length as u64);
        self.gathered.resize(end as usize, 0);
    }

    /// Writes the gathered records. After an error, any part of them may be there, until it is
    /// [truncated](LogWriter::truncate).
    pub(crate) fn write(&mut self) -> io::Result<()> {
        let written = self
            .reserve()
            .and_then(|()| self.fill())
            .and_then(|()| self.file()?.write_at(&self.gathered, self.offset));
        match written {
            Ok(()) => {
                self.offset += self.gathered.len() as u64;
                self.previous = self.last_gathered;
            }
            Err(_) => self.last_gathered = self.previous,
        }
        self.gathered.clear();
        self.gathered.shrink_to(KEPT_BYTES);
        written
    }

    /// Removes for good the remains of a failed write. After an error it is unknown which of them
    /// are there.
    pub(crate) fn truncate(&mut self) -> io::Result<()> {
        self.reserved = self.offset;
        self.filled = self.offset;
        self.file()?.set_len(self.offset)?;
        self.file()?.sync()
    }

    /// Sets the preparation of the file behind the records that are written from now on.
    pub(crate) fn set_ahead(&mut self, ahead: Ahead) {
        self.ahead = ahead;
    }

    /// Writes zeros where the records after the gathered ones will be, as far as there is room.
    fn fill(&mut self) -> io::Result<()> {
        static ZEROS: [u8; MOST_FILL as usize] = [0; MOST_FILL as usize];
        let end = self.gathered_end();
        let bytes = self.zeros().min(self.reserved.saturating_sub(end));
        if bytes > 0 {
            self.file()?.write_at(&ZEROS[..bytes as usize], end)?;
            self.filled = end + bytes;
        }
        Ok(())
    }

    /// Returns the number of zeros that the gathered records should have behind them.
    fn zeros(&self) -> u64 {
        let end = self.gathered_end();
        let is_wanted = self.ahead == Ahead::Zeros && self.gathered.len() <= LONGEST_FILLED;
        if is_wanted && end > self.filled {
            end.clamp(LEAST_FILL, MOST_FILL)
        } else {
            0
        }
    }

    fn gathered_end(&self) -> u64 {
        self.offset + self.gathered.len() as u64
    }

    /// Makes room for the gathered records, for zeros behind them, and for more.
    fn reserve(&mut self) -> io::Result<()> {
        let end = self.gathered_end();
        if end + self.zeros() <= self.reserved || self.ahead == Ahead::Nothing {
            return Ok(());
        }
        let least = match self.identity.kind {
            LogKind::Journal => LEAST_AHEAD,
            LogKind::Manifest => LEAST_AHEAD_OF_MANIFEST,
        };
        // A lack of room ahead does not mean that this record has none; its write tells.
        self.reserve_ahead(end + end.clamp(least, MOST_AHEAD))
    }

    /// Makes room for that many bytes of later writes, or for fewer if there is not so much.
    pub(crate) fn reserve_ahead(&mut self, bytes: u64) -> io::Result<()> {
        if bytes <= self.reserved {
            return Ok(());
        }
        match self.file()?.reserve(bytes) {
            Ok(()) => self.reserved = bytes,
            Err(error) if is_full(error.kind()) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns the file, for syncing it.
    ///
    /// # Errors
    /// An error if it is closed.
    pub(crate) fn file(&self) -> io::Result<&Arc<dyn File>> {
        let is_closed = || io::Error::other("the log is closed");
        self.file.as_ref().ok_or_else(is_closed)
    }

    /// Returns `true` if the file is open.
    pub(crate) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// Closes the file. The records that were written should be durable: an error of the system
    /// that comes later is told nobody.
    pub(crate) fn close(&mut self) {
        self.file = None;
    }

    /// Goes on with the file, which was closed.
    ///
    /// # Errors
    /// An error if the file is another one, or has become shorter; and other errors of the system.
    pub(crate) fn reopen(&mut self, file: Arc<dyn File>) -> io::Result<()> {
        let mut header = [0; HEADER_BYTES];
        let read = file.read_at(&mut header, 0)?;
        if read < HEADER_BYTES || header != self.identity.header() || file.len()? < self.offset {
            return Err(io::Error::other("it was changed meanwhile"));
        }
        self.file = Some(file);
        self.filled = self.offset;
        Ok(())
    }

    /// Returns the end of the written records.
    pub(crate) fn position(&self) -> Position {
        Position {
            number: self.identity.number,
            offset: self.offset,
        }
    }
}

/// The value that the first record has instead of the checksum of the head before.
pub(super) fn header_link(header: &[u8; HEADER_BYTES]) -> u32 {
    u32_at(header, 56)
}
