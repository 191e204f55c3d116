//! Reading a log.

use super::writer::header_link;
use super::{
    ALIGNMENT, HEAD_BYTES, HEADER_BYTES, Head, LogIdentity, LogKind, Position, payload_checksum,
    u32_at,
};
use crate::error::Error;
use crate::fault_injection::{InjectedFault, is_injected};
use crate::fs::File;
use std::sync::Arc;

/// The bytes that are read at a time.
const READ_BYTES: usize = 1 << 18;

/// Reads the records of a log one after the other.
pub(crate) struct LogReader {
    file: Arc<dyn File>,
    name: String,
    identity: LogIdentity,
    seed: u64,
    /// The length of the file.
    end: u64,
    /// The offset at which the next record is expected.
    offset: u64,
    previous: u32,
    /// The durable position of the last record that was read.
    durable: Position,
    buffer: Vec<u8>,
    /// The offset of the buffer in the file.
    buffered: u64,
}

/// The next thing that a reader comes to.
pub(crate) enum Next<'a> {
    /// A record: its payload.
    Record(&'a [u8]),
    /// The end: no record, but maybe the beginnings of one. All records that are known to have been
    /// written were read.
    End,
}

impl LogReader {
    /// Opens a log. `Ok(None)` if its header was never finished: it has no records.
    pub(crate) fn open(
        file: Arc<dyn File>,
        name: &str,
        kind: LogKind,
    ) -> Result<Option<Self>, Error> {
        let mut header = [0; HEADER_BYTES];
        let read = file
            .read_at(&mut header, 0)
            .map_err(|error| Error::io(&error, format_args!("read of {name}")))?;
        let Some(identity) = LogIdentity::from_header(&header[..read], name)? else {
            return Ok(None);
        };
        if identity.kind != kind {
            return Err(Error::corrupt(format_args!(
                "{name} is a log of another kind"
            )));
        }
        Self::new(file, name, identity, header_link(&header)).map(Some)
    }

    /// Makes a log whose header cannot be read, but should tell this identity.
    pub(crate) fn without_header(
        file: Arc<dyn File>,
        name: &str,
        identity: LogIdentity,
    ) -> Result<Self, Error> {
        Self::new(file, name, identity, 0)
    }

    /// Before the first record, which follows on `previous`.
    fn new(
        file: Arc<dyn File>,
        name: &str,
        identity: LogIdentity,
        previous: u32,
    ) -> Result<Self, Error> {
        let end = file
            .len()
            .map_err(|error| Error::io(&error, format_args!("length of {name}")))?;
        Ok(LogReader {
            file,
            name: name.to_owned(),
            identity,
            seed: identity.seed(),
            end,
            offset: HEADER_BYTES as u64,
            previous,
            durable: Position {
                number: 0,
                offset: 0,
            },
            buffer: Vec::new(),
            buffered: 0,
        })
    }

    pub(crate) fn identity(&self) -> LogIdentity {
        self.identity
    }

    pub(crate) fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    /// Returns the position at which the next record is, or would be.
    pub(crate) fn position(&self) -> Position {
        Position {
            number: self.identity.number,
            offset: self.offset,
        }
    }

    /// Returns the next record. After the end: [`later_durable`](LogReader::later_durable) tells
    /// whether something was there.
    pub(crate) fn next(&mut self) -> Result<Next<'_>, Error> {
        let at = self.position();
        let Some(head) = self.head(at)? else {
            return Ok(Next::End);
        };
        if head.previous != self.previous || at.offset + head.record_bytes() > self.end + 7 {
            return Ok(Next::End);
        }
        let from = at.offset + HEAD_BYTES as u64;
        if !self.is_payload(&head, at)? {
            return Ok(Next::End);
        }
        let link = self
            .read(at.offset, HEAD_BYTES)?
            .map(|bytes| u32_at(bytes, 0));
        self.previous = link.unwrap_or_default();
        self.durable = head.durable;
        self.offset = at.offset + head.record_bytes();
        let payload = self.read(from, head.length as usize)?;
        Ok(payload.map_or(Next::End, Next::Record))
    }

    /// Up to where all logs were durable when the last record that was read was written.
    pub(crate) fn durable(&self) -> Position {
        self.durable
    }

    /// Goes to the next record after the end, however many are missing before it. Returns `true` if
    /// there is one.
    pub(crate) fn resync(&mut self) -> Result<bool, Error> {
        let mut offset = self.offset;
        while offset + HEAD_BYTES as u64 <= self.end {
            let at = Position {
                number: self.identity.number,
                offset,
            };
            if let Some(head) = self.head(at)?
                && at.offset + head.record_bytes() <= self.end + 7
                && self.is_payload(&head, at)?
            {
                self.offset = offset;
                self.previous = head.previous;
                return Ok(true);
            }
            offset += ALIGNMENT as u64;
        }
        Ok(false)
    }

    /// Returns the last position that records behind the end call durable. A position above the end
    /// tells that the end is none: the bytes there were spoilt.
    pub(crate) fn later_durable(&mut self) -> Result<Option<Position>, Error> {
        let mut found = None;
        let mut offset = self.offset;
        while offset + HEAD_BYTES as u64 <= self.end {
            let at = Position {
                number: self.identity.number,
                offset,
            };
            // A record of an earlier, failed write can stand there as well. It tells the truth,
            // too.
            match self.head(at)? {
                Some(head) if self.is_payload(&head, at)? => {
                    found = found.max(Some(head.durable));
                    offset += head.record_bytes();
                }
                _ => offset += ALIGNMENT as u64,
            }
        }
        Ok(found)
    }

    /// Returns the head at a position, if there is one.
    fn head(&mut self, at: Position) -> Result<Option<Head>, Error> {
        let seed = self.seed;
        let bytes = self.read(at.offset, HEAD_BYTES)?;
        Ok(bytes.and_then(|bytes| Head::decode(bytes, seed, at)))
    }

    /// Returns `true` if the payload of a record is the one that its head tells.
    fn is_payload(&mut self, head: &Head, at: Position) -> Result<bool, Error> {
        let seed = self.seed;
        let payload = self.read(at.offset + HEAD_BYTES as u64, head.length as usize)?;
        Ok(payload.is_some_and(|payload| {
            payload_checksum(payload, seed, at.offset) == head.payload
                || is_injected(InjectedFault::TornRecord)
        }))
    }

    /// Returns the bytes of the file; `None` if it ends before.
    fn read(&mut self, offset: u64, bytes: usize) -> Result<Option<&[u8]>, Error> {
        if offset
            .checked_add(bytes as u64)
            .is_none_or(|end| end > self.end)
        {
            return Ok(None);
        }
        let has = offset >= self.buffered
            && offset + bytes as u64 <= self.buffered + self.buffer.len() as u64;
        if !has {
            let most = usize::try_from(self.end - offset).unwrap_or(usize::MAX);
            self.buffer.resize(bytes.max(READ_BYTES).min(most), 0);
            self.buffered = offset;
            let read = self
                .file
                .read_at(&mut self.buffer, offset)
                .map_err(|error| Error::io(&error, format_args!("read of {}", self.name)))?;
            self.buffer.truncate(read);
        }
        let from = (offset - self.buffered) as usize;
        Ok(self.buffer.get(from..from + bytes))
    }
}
