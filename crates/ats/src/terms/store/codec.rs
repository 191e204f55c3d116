//! Objects as bytes that mean the same in every process, for stores of bytes.
//!
//! The value of a record is the objects of its key, oldest first, each behind its length.
//!
//! ```text
//!   length, 4 bytes | object | length | object | ...        lengths: least significant byte first
//! ```

use crate::terms::error::Error;
use ats_store::bags::split_values;
use ats_term::image::{
    Built, Host, HostKind, ImageBuilder, Object, Scratch, TermHost, decode_object, for_each_owned,
};
use ats_term::term::TermBuilder;
use ats_term::{Term, Zeros, etf};

/// An encoding of objects of a host as bytes that every process understands.
///
/// An object that is written and read again is `=:=` to the original, as far as the encoding
/// allows.
pub trait Codec<H: Host>: Send + Sync {
    /// Appends an object.
    ///
    /// # Errors
    /// [`ats_store::Error::TooLong`] if the encoding cannot represent the object. Part of it may
    /// have been appended then.
    fn write(&self, object: Object<'_, H>, out: &mut Vec<u8>) -> Result<(), Error>;

    /// Decodes an object, and passes it to `keep`. `keep` is called once, unless this fails.
    ///
    /// # Errors
    /// [`Error::Storage`] if the bytes are not an object.
    fn read(&self, bytes: &[u8], keep: &mut dyn FnMut(Built<'_, H>)) -> Result<(), Error>;
}

/// The codec of owned terms in the [external term format](etf).
#[derive(Clone, Copy, Debug)]
pub struct TermCodec {
    /// The table's rule for zeros, for the keys of maps.
    pub zeros: Zeros,
}

impl Codec<TermHost> for TermCodec {
    fn write(&self, object: Object<'_, TermHost>, out: &mut Vec<u8>) -> Result<(), Error> {
        let mut builder = TermBuilder::new();
        let built = decode_object(object, &mut builder, &mut Scratch::new());
        let term = builder.finish(built);
        let term = term.expect("what was a term can be built again");
        etf::encode_into(&term, out).map_err(|etf::TooLarge| TOO_LONG)
    }

    fn read(&self, bytes: &[u8], keep: &mut dyn FnMut(Built<'_, TermHost>)) -> Result<(), Error> {
        // The bytes were written by `write`, so their atoms were made before, in this process or
        // another.
        let term = etf::decode(bytes, etf::Options::TRUSTED).map_err(|_| CORRUPT)?;
        let mut image = ImageBuilder::<&Term>::new(self.zeros);
        image.encode_object(&term).map_err(|_| CORRUPT)?;
        keep(image.take());
        Ok(())
    }
}

/// The error for bytes that are not an object.
pub(crate) const CORRUPT: Error = Error::Storage(ats_store::Error::Corrupt);

/// The error for an object that is too long for its encoding.
const TOO_LONG: Error = Error::Storage(ats_store::Error::TooLong {
    len: 1 << 32,
    limit: u32::MAX as usize,
});

const LENGTH_BYTES: usize = size_of::<u32>();

/// Returns a lower bound of the bytes of an object in any encoding: the bytes of its large
/// binaries. O(number of boxes).
pub(crate) fn least_bytes<H: Host>(object: Object<'_, H>) -> usize {
    let mut bytes = 0_usize;
    // SAFETY: the words are those of an object, which lives as long as it is borrowed here.
    unsafe {
        for_each_owned::<H>(object.words(), |host_box| {
            if let HostKind::Bits(bits) = H::kind(host_box) {
                bytes = bytes.saturating_add(bits / 8);
            }
        });
    }
    bytes
}

/// Appends the length of an object, and the object.
pub(crate) fn write_object<H: Host>(
    codec: &dyn Codec<H>,
    object: Object<'_, H>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    codec.write(object, out)?;
    let len = out.len() - start - LENGTH_BYTES;
    let len = u32::try_from(len).map_err(|_| TOO_LONG)?;
    out[start..start + LENGTH_BYTES].copy_from_slice(&len.to_le_bytes());
    Ok(())
}

/// Iterates over the objects of a value.
pub(crate) fn objects(value: &[u8]) -> impl Iterator<Item = Result<&[u8], Error>> {
    split_values(value).map(|object| object.map_err(Error::from))
}
