//! Frames: the pieces of a file that are read as a whole, each with a checksum.
//!
//! A frame is a content, a byte for its type and its compression, and a checksum of both. The
//! checksum is seeded with the identity of the file and the offset of the frame. So bytes that were
//! written elsewhere, by a write that went astray or by a copy of a wrong file, do not pass as the
//! frame that is wanted here, although they may be a good frame where they belong. (Bairavasundaram
//! and others, "An Analysis of Data Corruption in the Storage Stack", 2008, found such writes on
//! disks of all classes.)

use crate::coding::{Damaged, Decoder, put_varint};
use crate::ids::FileNumber;
use crate::options::Compression;
use std::borrow::Cow;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Bytes of a frame behind its content.
pub(crate) const TRAILER_BYTES: usize = 9;

/// Contents above this are not compressed: they would need as much memory again, and LZ4 has a
/// limit of 2 GiB.
const MAX_COMPRESSED: usize = 1 << 30;
/// LZ4 does not make anything smaller than this part of it.
const LZ4_MAX_RATIO: usize = 255;

/// The content of a frame. The numbers are those of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Content {
    /// Records.
    Block = 0,
    /// The extents of the blocks of a part of the file, and the filter of their keys.
    Part = 1,
    /// The extents of the parts.
    Top = 2,
    /// The range deletes.
    RangeDeletes = 3,
}

/// The identity of a file under any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The store, by a number that no other store has.
    pub(crate) store: u128,
    /// The file, by a number that no other file of the store has or had.
    pub(crate) number: FileNumber,
}

impl Identity {
    /// Returns the seed of the checksum of a frame of this file.
    pub(crate) fn seed(self, offset: u64) -> u64 {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.store.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.get().to_le_bytes());
        bytes[24..].copy_from_slice(&offset.to_le_bytes());
        xxh3_64(&bytes)
    }
}

/// Makes a frame of the content that `out` has from `start` on. `scratch` is memory to be used
/// again.
pub(crate) fn seal(
    out: &mut Vec<u8>,
    start: usize,
    content: Content,
    compression: Compression,
    seed: u64,
    scratch: &mut Vec<u8>,
) {
    let mut method = 0;
    if compression == Compression::Lz4 && compress(&out[start..], scratch) {
        out.truncate(start);
        out.extend_from_slice(scratch);
        method = 1;
    }
    out.push((content as u8) << 4 | method);
    let checksum = xxh3_64_with_seed(&out[start..], seed);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Compresses to `packed`. Returns `true` if that saves an eighth.
fn compress(content: &[u8], packed: &mut Vec<u8>) -> bool {
    if content.len() > MAX_COMPRESSED {
        return false;
    }
    packed.clear();
    put_varint(packed, content.len() as u64);
    let start = packed.len();
    let room = lz4_flex::block::get_maximum_output_size(content.len());
    packed.resize(start + room, 0);
    match lz4_flex::block::compress_into(content, &mut packed[start..]) {
        Ok(len) => packed.truncate(start + len),
        Err(_) => return false,
    }
    packed.len() <= content.len() - content.len() / 8
}

/// Returns the stored content of a frame that passes its checksum, and whether it is compressed.
fn check(frame: &[u8], content: Content, seed: u64) -> Result<(&[u8], bool), Damaged> {
    let split = frame.split_last_chunk::<8>();
    let (checked, checksum) = split.ok_or(Damaged("ends early"))?;
    if xxh3_64_with_seed(checked, seed) != u64::from_le_bytes(*checksum) {
        return Err(Damaged("has a wrong checksum"));
    }
    let (&what, stored) = checked.split_last().ok_or(Damaged("ends early"))?;
    if what >> 4 != content as u8 {
        return Err(Damaged("is not what is expected here"));
    }
    match what & 15 {
        0 => Ok((stored, false)),
        1 => Ok((stored, true)),
        _ => Err(Damaged("is compressed in an unknown way")),
    }
}

fn decompress(stored: &[u8]) -> Result<Vec<u8>, Damaged> {
    let mut decoder = Decoder::new(stored);
    let len = usize::try_from(decoder.varint()?);
    let packed = decoder.rest();
    let len = len.ok().filter(|len| len / LZ4_MAX_RATIO <= packed.len());
    let len = len.ok_or(Damaged("is longer than it can be"))?;
    let mut content = vec![0; len];
    match lz4_flex::block::decompress_into(packed, &mut content) {
        Ok(written) if written == len => Ok(content),
        _ => Err(Damaged("cannot be decompressed")),
    }
}

/// Returns the content of a frame.
pub(crate) fn open(frame: &[u8], content: Content, seed: u64) -> Result<Cow<'_, [u8]>, Damaged> {
    match check(frame, content, seed)? {
        (stored, false) => Ok(Cow::Borrowed(stored)),
        (stored, true) => decompress(stored).map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Identity = Identity {
        store: 7,
        number: FileNumber::new(3),
    };

    fn seal_alone(content: &[u8], compression: Compression) -> Vec<u8> {
        let mut out = content.to_vec();
        let seed = HERE.seed(100);
        seal(
            &mut out,
            0,
            Content::Block,
            compression,
            seed,
            &mut Vec::new(),
        );
        out
    }

    #[test]
    fn a_frame_passes_only_where_it_was_written() {
        let frame = seal_alone(b"content", Compression::None);
        assert_eq!(frame.len(), 7 + TRAILER_BYTES);
        let open_as =
            |content, identity: Identity, offset| open(&frame, content, identity.seed(offset));
        let opened = open_as(Content::Block, HERE, 100);
        assert_eq!(opened.as_deref(), Ok(&b"content"[..]));
        assert!(open_as(Content::Part, HERE, 100).is_err());
        assert!(open_as(Content::Block, HERE, 101).is_err());
        assert!(open_as(Content::Block, Identity { store: 8, ..HERE }, 100).is_err());
        assert!(
            open_as(
                Content::Block,
                Identity {
                    number: FileNumber::new(4),
                    ..HERE
                },
                100
            )
            .is_err()
        );
    }

    #[test]
    fn blocks_that_save_less_than_an_eighth_stay_uncompressed() {
        let mut scratch = Vec::new();
        let long = [7; 4096];
        assert!(compress(&long, &mut scratch) && scratch.len() < 50);
        let random: Vec<u8> = (0..512u64)
            .flat_map(|number| xxh3_64(&number.to_le_bytes()).to_le_bytes())
            .collect();
        assert!(!compress(&random, &mut scratch));
        assert!(!compress(b"", &mut scratch));
        for content in [&long[..], &random, b""] {
            let frame = seal_alone(content, Compression::Lz4);
            assert_eq!(
                frame.len() < content.len(),
                content.len() == long.len() && content[0] == content[1]
            );
            let opened = open(&frame, Content::Block, HERE.seed(100));
            assert_eq!(opened.as_deref(), Ok(content));
        }
    }

    #[test]
    fn no_bit_can_flip() {
        for compression in [Compression::None, Compression::Lz4] {
            let frame = seal_alone(&[5; 60], compression);
            for bit in 0..frame.len() * 8 {
                let mut frame = frame.clone();
                frame[bit / 8] ^= 1 << (bit % 8);
                assert!(open(&frame, Content::Block, HERE.seed(100)).is_err());
            }
            for len in 0..frame.len() {
                assert!(open(&frame[..len], Content::Block, HERE.seed(100)).is_err());
            }
        }
    }

    #[test]
    fn lengths_that_cannot_be_are_refused_before_room_is_made() {
        let mut stored = Vec::new();
        put_varint(&mut stored, 1 << 40);
        stored.extend([0; 100]);
        assert!(decompress(&stored).is_err());
        let mut stored = Vec::new();
        put_varint(&mut stored, 1000);
        stored.extend([0; 100]);
        assert!(decompress(&stored).is_err());
    }
}
