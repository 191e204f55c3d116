//! The facts about a run file that are known without reading its records: in the manifest, and in
//! its footer.

use super::frame::Identity;
use crate::coding::{Damaged, Decoder, put_bytes, put_varint};
use crate::error::Error;
use crate::fs;
use crate::ids::{FileNumber, Seq};
use crate::operator_id::{self, OperatorId};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The format that is written, and the latest that is read.
pub(crate) const FORMAT: u32 = 1;

const MAGIC: [u8; 8] = *b"ats-run\n";

/// Bytes of a footer behind its fields: their length, the format, the magic, a checksum.
pub(crate) const FOOTER_END_BYTES: usize = 4 + 4 + 8 + 8;

/// A run file, as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileMeta {
    /// The number of the file, which no other file of the store has or had.
    pub(crate) number: FileNumber,
    /// The length of the file.
    pub(crate) bytes: u64,
    /// Entries of keys. A key has several if its operands could not be merged.
    pub(crate) entries: u64,
    /// Entries that are operands.
    pub(crate) operands: u64,
    /// Entries that are deletes.
    pub(crate) deletes: u64,
    /// Ranges that are deleted.
    pub(crate) range_deletes: u64,
    /// Bytes of the keys of all entries.
    pub(crate) key_bytes: u64,
    /// Bytes of the values of all entries.
    pub(crate) value_bytes: u64,
    /// The lower [bound](super::bounds) of its keys. `None` if there are only range deletes.
    pub(crate) first_key: Option<Arc<[u8]>>,
    /// The upper one.
    pub(crate) last_key: Option<Arc<[u8]>>,
    /// The first sequence number of the interval that the file covers.
    pub(crate) first_seq: Seq,
    /// The last one.
    pub(crate) last_seq: Seq,
}

impl FileMeta {
    /// Appends it, for [`decode`](FileMeta::decode).
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, self.number.get());
        put_varint(out, self.bytes);
        self.encode_content(out);
    }

    /// All but the number and the length, which the footer has otherwise.
    fn encode_content(&self, out: &mut Vec<u8>) {
        for number in [
            self.entries,
            self.operands,
            self.deletes,
            self.range_deletes,
            self.key_bytes,
            self.value_bytes,
            self.first_seq.get(),
            self.last_seq.get(),
        ] {
            put_varint(out, number);
        }
        match (&self.first_key, &self.last_key) {
            (Some(first), Some(last)) => {
                out.push(1);
                put_bytes(out, first);
                put_bytes(out, last);
            }
            _ => out.push(0),
        }
    }

    /// Reads the output of [`encode`](FileMeta::encode).
    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Self, Damaged> {
        let number = FileNumber::new(decoder.varint()?);
        let bytes = decoder.varint()?;
        Self::decode_content(number, bytes, decoder)
    }

    fn decode_content(
        number: FileNumber,
        bytes: u64,
        decoder: &mut Decoder<'_>,
    ) -> Result<Self, Damaged> {
        let mut meta = FileMeta {
            number,
            bytes,
            entries: decoder.varint()?,
            operands: decoder.varint()?,
            deletes: decoder.varint()?,
            range_deletes: decoder.varint()?,
            key_bytes: decoder.varint()?,
            value_bytes: decoder.varint()?,
            first_seq: Seq::new(decoder.varint()?),
            last_seq: Seq::new(decoder.varint()?),
            first_key: None,
            last_key: None,
        };
        match decoder.byte()? {
            0 if meta.entries == 0 => {}
            1 if meta.entries > 0 => {
                meta.first_key = Some(decoder.bytes()?.into());
                meta.last_key = Some(decoder.bytes()?.into());
            }
            _ => return Err(Damaged("has other key bounds than it can have")),
        }
        if meta.first_key > meta.last_key || meta.first_seq > meta.last_seq {
            return Err(Damaged("has bounds that are not in order"));
        }
        Ok(meta)
    }

    /// Returns the bounds of its keys.
    pub(crate) fn bounds(&self) -> Option<(&[u8], &[u8])> {
        self.first_key.as_deref().zip(self.last_key.as_deref())
    }
}

/// A frame of a file: its offset and its length. With the length 0 there is none.
pub(crate) type Extent = (u64, u64);

/// The end of a run file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) identity: Identity,
    pub(crate) operator: Option<OperatorId>,
    pub(crate) meta: FileMeta,
    /// The extent of the index of parts.
    pub(crate) top: Extent,
    pub(crate) range_deletes: Extent,
}

impl Footer {
    /// Reads the footer of a file with this name and length.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::NewerFormat`], [`Error::Io`].
    pub(crate) fn read(file: &dyn fs::File, bytes: u64, name: &str) -> Result<Self, Error> {
        let no_footer = || Error::corrupt("it has no footer");
        let read = |offset: u64, buffer: &mut [u8]| match file.read_at(buffer, offset) {
            Ok(read) if read == buffer.len() => Ok(()),
            Ok(_) => Err(no_footer()),
            Err(error) => Err(Error::io(&error, format_args!("read of {name}"))),
        };
        let mut end = [0; FOOTER_END_BYTES];
        let end_offset = bytes.checked_sub(FOOTER_END_BYTES as u64);
        read(end_offset.ok_or_else(no_footer)?, &mut end)?;
        let length = Footer::length(&end, name);
        // The end of a footer has its length in all formats.
        let fields = u32::from_le_bytes([end[0], end[1], end[2], end[3]]);
        let all = u64::from(fields) + FOOTER_END_BYTES as u64;
        let offset = bytes.checked_sub(all).ok_or_else(no_footer)?;
        let mut footer = vec![0; all as usize];
        read(offset, &mut footer)?;
        if let Err(error) = length {
            // A format that is not known is a later one only if nothing was spoilt.
            let (checked, checksum) = footer.split_at(footer.len() - 8);
            let is_whole = xxh3_64(checked).to_le_bytes() == *checksum;
            return Err(if is_whole { error } else { no_footer() });
        }
        let footer = Footer::decode(&footer, bytes);
        footer.map_err(|why| Error::corrupt(format_args!("the footer {why}")))
    }

    /// Appends the footer, without `meta.bytes`, which follows from the length of the file.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.identity.store.to_le_bytes());
        put_varint(out, self.identity.number.get());
        operator_id::encode(self.operator.as_ref(), out);
        self.meta.encode_content(out);
        for (offset, length) in [self.top, self.range_deletes] {
            put_varint(out, offset);
            put_varint(out, length);
        }
        // Two keys and a name have less than 4 GiB.
        let fields = (out.len() - start) as u32;
        out.extend_from_slice(&fields.to_le_bytes());
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&MAGIC);
        let checksum = xxh3_64(&out[start..]);
        out.extend_from_slice(&checksum.to_le_bytes());
    }

    /// The number of bytes of the footer, by the last [`FOOTER_END_BYTES`] of a file; the file is
    /// named by the error.
    pub(super) fn length(end: &[u8; FOOTER_END_BYTES], file: &str) -> Result<u64, Error> {
        let damaged = || Error::corrupt(format_args!("{file} has no footer"));
        let mut decoder = Decoder::new(end);
        let mut number = || decoder.array().map(u32::from_le_bytes);
        let fields = number().map_err(|_| damaged())?;
        let found = number().map_err(|_| damaged())?;
        match decoder.array() {
            Ok(MAGIC) if found > FORMAT => Err(Error::NewerFormat {
                file: file.to_string(),
                found,
                known: FORMAT,
            }),
            Ok(MAGIC) if found == FORMAT => Ok(u64::from(fields) + FOOTER_END_BYTES as u64),
            _ => Err(damaged()),
        }
    }

    /// Reads a footer, given all of its bytes, of a file with the length `file_bytes`.
    pub(super) fn decode(footer: &[u8], file_bytes: u64) -> Result<Self, Damaged> {
        let split = footer.split_last_chunk::<8>();
        let (checked, checksum) = split.ok_or(Damaged("ends early"))?;
        if xxh3_64(checked) != u64::from_le_bytes(*checksum) {
            return Err(Damaged("has a wrong checksum"));
        }
        let fields = footer.len().checked_sub(FOOTER_END_BYTES);
        let fields = fields.and_then(|fields| footer.get(..fields));
        let mut decoder = Decoder::new(fields.ok_or(Damaged("ends early"))?);
        let identity = Identity {
            store: u128::from_le_bytes(decoder.array()?),
            number: FileNumber::new(decoder.varint()?),
        };
        let operator = operator_id::decode(&mut decoder)?;
        let meta = FileMeta::decode_content(identity.number, file_bytes, &mut decoder)?;
        let mut extent = || Ok((decoder.varint()?, decoder.varint()?));
        let footer = Footer {
            identity,
            operator,
            meta,
            top: extent()?,
            range_deletes: extent()?,
        };
        decoder.end()?;
        Ok(footer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(keys: bool) -> FileMeta {
        FileMeta {
            number: FileNumber::new(300),
            bytes: 70_000,
            entries: if keys { 1000 } else { 0 },
            operands: 10,
            deletes: 20,
            range_deletes: 3,
            key_bytes: u64::MAX,
            value_bytes: 1 << 40,
            first_key: keys.then(|| b""[..].into()),
            last_key: keys.then(|| b"last"[..].into()),
            first_seq: Seq::new(1),
            last_seq: Seq::new(1 << 50),
        }
    }

    #[test]
    fn encoded_metadata_are_decoded() {
        for meta in [meta(true), meta(false)] {
            let mut bytes = Vec::new();
            meta.encode(&mut bytes);
            for len in 0..bytes.len() {
                assert!(FileMeta::decode(&mut Decoder::new(&bytes[..len])).is_err());
            }
            bytes.push(7);
            let mut decoder = Decoder::new(&bytes);
            assert_eq!(FileMeta::decode(&mut decoder).as_ref(), Ok(&meta));
            assert_eq!(decoder.rest(), [7]);
        }
    }

    #[test]
    fn bounds_that_cannot_be_are_refused() {
        let fails = |change: &dyn Fn(&mut FileMeta)| {
            let mut meta = meta(true);
            change(&mut meta);
            let mut bytes = Vec::new();
            meta.encode(&mut bytes);
            FileMeta::decode(&mut Decoder::new(&bytes)).is_err()
        };
        assert!(!fails(&|_| {}));
        assert!(fails(&|meta| meta.first_key = Some(b"lasu"[..].into())));
        assert!(fails(&|meta| meta.first_seq = Seq::new(1 << 51)));
        assert!(fails(&|meta| meta.entries = 0));
        assert!(fails(&|meta| meta.first_key = None));
    }

    fn footer(operator: Option<OperatorId>) -> Footer {
        Footer {
            identity: Identity {
                store: 1 << 100,
                number: FileNumber::new(300),
            },
            operator,
            meta: meta(true),
            top: (1000, 20),
            range_deletes: (0, 0),
        }
    }

    #[test]
    fn no_bit_of_a_footer_can_flip() {
        for operator in [None, Some((String::from("sum"), 7))] {
            let footer = footer(operator);
            let mut bytes = Vec::new();
            footer.encode(&mut bytes);
            let length = |bytes: &[u8]| {
                let end = bytes.last_chunk().expect("it is long enough");
                Footer::length(end, "a file")
            };
            assert_eq!(length(&bytes), Ok(bytes.len() as u64));
            assert_eq!(Footer::decode(&bytes, 70_000).as_ref(), Ok(&footer));
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(Footer::decode(&bytes, 70_000).is_err());
            }
            for len in 0..bytes.len() {
                assert!(Footer::decode(&bytes[..len], 70_000).is_err());
            }
        }
    }

    #[test]
    fn newer_formats_are_told_from_damaged_files() {
        let mut bytes = Vec::new();
        footer(None).encode(&mut bytes);
        let mut end: [u8; FOOTER_END_BYTES] = *bytes.last_chunk().expect("it is long enough");
        end[4] = FORMAT as u8 + 1;
        let newer = Error::NewerFormat {
            file: String::from("a file"),
            found: FORMAT + 1,
            known: FORMAT,
        };
        assert_eq!(Footer::length(&end, "a file"), Err(newer));
        end[4] = 0;
        assert!(matches!(
            Footer::length(&end, "a file"),
            Err(Error::Corrupt(_))
        ));
        end[4] = FORMAT as u8;
        end[8] = b'A';
        assert!(matches!(
            Footer::length(&end, "a file"),
            Err(Error::Corrupt(_))
        ));
    }
}
