//! The external term format, for terms that the NIF interface can neither show nor build.
//!
//! The bytes read here were written by this VM. They begin with the version byte, unless a function
//! says otherwise.

use crate::env::{OwnEnv, VmWord};
use crate::sys;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Version byte, with which encoded terms begin.
pub const VERSION: u8 = 131;
const BIT_BINARY_EXT: u8 = 77;
const ATOM_EXT: u8 = 100;
const SMALL_BIG_EXT: u8 = 110;
const LARGE_BIG_EXT: u8 = 111;
const EXPORT_EXT: u8 = 113;
const SMALL_ATOM_EXT: u8 = 115;
/// Tag of an atom in UTF-8, followed by a length of two bytes.
pub const ATOM_UTF8_EXT: u8 = 118;
const SMALL_ATOM_UTF8_EXT: u8 = 119;

/// A nominal environment for [`Etf::of`]: the call requires one, but the VM neither reads nor
/// writes it, so all threads share it. Set by [`load`].
static NOMINAL: AtomicPtr<sys::ErlNifEnv> = AtomicPtr::new(std::ptr::null_mut());

/// Creates the nominal environment when the library is loaded.
pub fn load() {
    if NOMINAL.load(Ordering::Relaxed).is_null() {
        let env = std::mem::ManuallyDrop::new(OwnEnv::new());
        NOMINAL.store(env.raw(), Ordering::Relaxed);
    }
}

/// The error of a term that is too long for the external term format, for example because it
/// contains a binary above 4 GiB.
#[derive(Clone, Copy, Debug)]
pub struct TooLong;

/// A term in the external term format, written by the VM. Frees its bytes when dropped.
pub struct Etf {
    bin: sys::ErlNifBinary,
}

impl Etf {
    /// Encodes a term, on any thread. O(size), without yielding. A term that is [`TooLong`] panics,
    /// so the caller must not hold a lock.
    pub fn of(term: VmWord<'_>) -> Self {
        Self::within_limits(term).unwrap_or_else(|too_long| resume_unwind(Box::new(too_long)))
    }

    /// Encodes a term, on any thread. O(size), without yielding. The VM computes the size before it
    /// writes.
    pub fn within_limits(term: VmWord<'_>) -> Result<Self, TooLong> {
        let mut bin = sys::ErlNifBinary::empty();
        let nominal = NOMINAL.load(Ordering::Relaxed);
        // SAFETY: the term is valid (ENV-2); the VM only reads it and fills `bin`.
        let done = unsafe { sys::enif_term_to_binary(nominal, term.raw(), &raw mut bin) };
        match done {
            0 => Err(TooLong),
            _ => Ok(Etf { bin }),
        }
    }

    /// Returns the bytes, with the version byte.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the VM made `data` point to that many bytes, which are ours until released.
        unsafe { std::slice::from_raw_parts(self.bin.data, self.bin.size) }
    }
}

impl Drop for Etf {
    fn drop(&mut self) {
        // SAFETY: `enif_term_to_binary` has filled the binary, and only `drop` releases it.
        unsafe { sys::enif_release_binary(&raw mut self.bin) }
    }
}

/// Reads an atom without version byte; returns its text and the remaining bytes.
pub fn atom(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (len, rest) = match tag {
        SMALL_ATOM_EXT | SMALL_ATOM_UTF8_EXT => {
            let (&len, rest) = rest.split_first()?;
            (len as usize, rest)
        }
        ATOM_EXT | ATOM_UTF8_EXT => {
            let (len, rest) = rest.split_first_chunk::<2>()?;
            (u16::from_be_bytes(*len) as usize, rest)
        }
        _ => return None,
    };
    let (text, rest) = rest.split_at_checked(len)?;
    let text = match tag {
        ATOM_EXT | SMALL_ATOM_EXT => text.iter().map(|&byte| byte as char).collect(),
        _ => String::from_utf8(text.to_vec()).ok()?,
    };
    Some((text, rest))
}

/// Encodes the atom with this text; returns `None` if the text is too long for an atom.
pub fn encode_atom(text: &str) -> Option<Vec<u8>> {
    let len = u16::try_from(text.len()).ok()?.to_be_bytes();
    Some([&[VERSION, ATOM_UTF8_EXT], &len[..], text.as_bytes()].concat())
}

/// Returns `true` if a fun is external (`fun M:F/A`) and no closure.
pub fn is_external_fun(etf: &[u8]) -> bool {
    etf.get(1) == Some(&EXPORT_EXT)
}

/// Returns the bytes of a bitstring that does not end at a byte, and the number of bits used in the
/// last byte; `None` for other terms.
pub fn bitstring(etf: &[u8]) -> Option<(&[u8], usize)> {
    match etf {
        [_, BIT_BINARY_EXT, _, _, _, _, last_bits, bytes @ ..] => {
            Some((bytes, *last_bits as usize))
        }
        _ => None,
    }
}

/// Encodes a bitstring that does not end at a byte.
pub fn encode_bitstring(bytes: &[u8], bits: usize) -> Vec<u8> {
    let mut etf = Vec::with_capacity(7 + bytes.len());
    etf.extend([VERSION, BIT_BINARY_EXT]);
    etf.extend((bytes.len() as u32).to_be_bytes());
    etf.push((bits % 8) as u8);
    etf.extend(bytes);
    etf
}

/// Returns sign and magnitude of an integer beyond 64 bits.
pub fn integer(etf: &[u8]) -> (bool, &[u8]) {
    let (negative, magnitude) = match etf {
        [_, SMALL_BIG_EXT, _, sign, magnitude @ ..]
        | [_, LARGE_BIG_EXT, _, _, _, _, sign, magnitude @ ..] => (*sign != 0, magnitude),
        _ => unreachable!("an integer beyond 64 bits"),
    };
    (negative, trim(magnitude))
}

/// Encodes an integer of any size.
pub fn encode_integer(negative: bool, magnitude: &[u8]) -> Vec<u8> {
    let mut etf = Vec::with_capacity(7 + magnitude.len());
    match u8::try_from(magnitude.len()) {
        Ok(len) => etf.extend([VERSION, SMALL_BIG_EXT, len]),
        Err(_) => {
            etf.extend([VERSION, LARGE_BIG_EXT]);
            etf.extend((magnitude.len() as u32).to_be_bytes());
        }
    }
    etf.push(u8::from(negative));
    etf.extend(magnitude);
    etf
}

/// Removes zero bytes at the most significant end of a magnitude.
pub fn trim(magnitude: &[u8]) -> &[u8] {
    let len = magnitude
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    &magnitude[..len]
}
