//! Logs: files of checksummed records that only grow at their end. The journal and the manifest are
//! logs.
//!
//! A reader of a log after a crash must tell three things apart: the end of the log, a record of
//! which a part is missing because the machine stopped, and a record that was on disk and was
//! spoilt. So each record has
//!
//! - a checksum of its head and one of its payload, both of which depend on the store, the file and
//!   the offset: a record of another file or offset does not pass;
//! - the checksum of the record before: remains of an earlier, failed write behind the end do not
//!   pass for a continuation;
//! - the position up to which the logs were known to be durable when it was written. A bad record
//!   below a position that a later record calls durable was spoilt; one above it was never
//!   finished. This is after the journal of Pebble, which writes that position beside its records.
//!
//! `docs/inside/disk-format.md` has the bytes.

mod reader;
mod writer;

pub(crate) use reader::{LogReader, Next};
pub(crate) use writer::{Ahead, LogWriter};

use crate::error::Error;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Bytes before the first record.
pub(crate) const HEADER_BYTES: usize = 64;
/// Bytes of a record before its payload.
const HEAD_BYTES: usize = 32;
/// Records begin at multiples of this.
const ALIGNMENT: usize = 8;
const MAGIC: [u8; 8] = *b"ats log\n";
/// The version of the format of logs, and of the payloads of journals and manifests.
pub(crate) const PLAIN_FORMAT: u32 = 1;
/// The version of manifests of stores whose records expire.
pub(crate) const FORMAT_OF_LIFETIMES: u32 = 2;

/// The purpose of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum LogKind {
    Journal = 1,
    Manifest = 2,
}

/// The identity of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogIdentity {
    pub(crate) store: u128,
    pub(crate) kind: LogKind,
    pub(crate) number: u64,
    /// The version of its format.
    pub(crate) format: u32,
}

impl LogIdentity {
    /// Returns the seed of the checksums of this log.
    fn seed(&self) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(&self.store.to_le_bytes());
        hash.update(&(self.kind as u32).to_le_bytes());
        hash.update(&self.number.to_le_bytes());
        hash.digest()
    }

    /// Returns the bytes with which the file begins.
    pub(crate) fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&self.format.to_le_bytes());
        header[12..16].copy_from_slice(&(self.kind as u32).to_le_bytes());
        header[16..32].copy_from_slice(&self.store.to_le_bytes());
        header[32..40].copy_from_slice(&self.number.to_le_bytes());
        let checksum = xxh3_64_with_seed(&header[..56], 0);
        header[56..].copy_from_slice(&checksum.to_le_bytes());
        header
    }

    /// Returns the identity that a header tells. `Ok(None)` if it is none: it was never finished,
    /// or it was spoilt.
    pub(crate) fn from_header(header: &[u8], file: &str) -> Result<Option<Self>, Error> {
        if header.len() < HEADER_BYTES || header[..8] != MAGIC {
            return Ok(None);
        }
        if u64_at(header, 56) != xxh3_64_with_seed(&header[..56], 0) {
            return Ok(None);
        }
        let kind = match u32_at(header, 12) {
            1 => Some(LogKind::Journal),
            2 => Some(LogKind::Manifest),
            _ => None,
        };
        let found = u32_at(header, 8);
        let known = match kind {
            Some(LogKind::Journal) => PLAIN_FORMAT,
            _ => FORMAT_OF_LIFETIMES,
        };
        if found > known {
            return Err(Error::NewerFormat {
                file: file.to_owned(),
                found,
                known,
            });
        }
        let Some(kind) = kind else {
            return Ok(None);
        };
        let mut store = [0; 16];
        store.copy_from_slice(&header[16..32]);
        Ok(Some(LogIdentity {
            store: u128::from_le_bytes(store),
            kind,
            number: u64_at(header, 32),
            format: found,
        }))
    }
}

/// A position in the logs of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) number: u64,
    pub(crate) offset: u64,
}

/// The head of a record.
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | checksum of the rest of the head |
/// | 4 | 4 | length of the payload, not 0 |
/// | 8 | 8 | checksum of the payload |
/// | 16 | 4 | checksum of the head of the record before; of the first record, of the file's header |
/// | 20 | 4 | how many logs before this one the durable position is |
/// | 24 | 8 | its offset |
struct Head {
    length: u32,
    payload: u64,
    previous: u32,
    durable: Position,
}

impl Head {
    fn encode(&self, seed: u64, at: Position) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        head[4..8].copy_from_slice(&self.length.to_le_bytes());
        head[8..16].copy_from_slice(&self.payload.to_le_bytes());
        head[16..20].copy_from_slice(&self.previous.to_le_bytes());
        // Farther back than can be said is as good as a position that says nothing.
        let (back, offset) = match u32::try_from(at.number - self.durable.number) {
            Ok(back) => (back, self.durable.offset),
            Err(_) => (u32::MAX, 0),
        };
        head[20..24].copy_from_slice(&back.to_le_bytes());
        head[24..].copy_from_slice(&offset.to_le_bytes());
        let checksum = head_checksum(&head, seed, at.offset);
        head[..4].copy_from_slice(&checksum.to_le_bytes());
        head
    }

    /// Returns the head at a position; `None` if there is none.
    fn decode(head: &[u8], seed: u64, at: Position) -> Option<Self> {
        let length = u32_at(head, 4);
        if length == 0 || u32_at(head, 0) != head_checksum(head, seed, at.offset) {
            return None;
        }
        let number = at.number.checked_sub(u64::from(u32_at(head, 20)))?;
        Some(Head {
            length,
            payload: u64_at(head, 8),
            previous: u32_at(head, 16),
            durable: Position {
                number,
                offset: u64_at(head, 24),
            },
        })
    }

    /// Returns the bytes from the beginning of the record to that of the next.
    fn record_bytes(&self) -> u64 {
        record_bytes(u64::from(self.length))
    }
}

/// Returns the bytes of a record with a payload of this length.
fn record_bytes(payload: u64) -> u64 {
    (HEAD_BYTES as u64 + payload).next_multiple_of(ALIGNMENT as u64)
}

fn head_checksum(head: &[u8], seed: u64, offset: u64) -> u32 {
    xxh3_64_with_seed(&head[4..HEAD_BYTES], seed ^ offset.rotate_left(32)) as u32
}

fn payload_checksum(payload: &[u8], seed: u64, offset: u64) -> u64 {
    xxh3_64_with_seed(payload, seed ^ offset.rotate_left(32))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}
