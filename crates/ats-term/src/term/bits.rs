//! Binaries and bitstrings.

use std::fmt;
use std::sync::Arc;

/// A binary or bitstring.
#[derive(Clone, PartialEq, Eq)]
pub struct Bits {
    /// The bytes, as many as the bits need; unused low bits of the last byte are zero.
    bytes: Arc<[u8]>,
    bits: usize,
}

impl Bits {
    /// Creates a bitstring from the first `bits` bits of `bytes`; returns `None` if there are
    /// fewer.
    #[must_use]
    pub fn new(bytes: &[u8], bits: usize) -> Option<Bits> {
        let used = bytes.get(..bits.div_ceil(8))?;
        let mut bytes: Arc<[u8]> = used.into();
        if !bits.is_multiple_of(8) {
            // The allocation is new, so there is no other reference to it.
            let last = Arc::get_mut(&mut bytes)?.last_mut()?;
            *last &= 0xFF << (8 - bits % 8);
        }
        Some(Bits { bytes, bits })
    }

    /// Creates a binary from these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Bits {
        Bits {
            bytes: bytes.into(),
            bits: bytes.len() * 8,
        }
    }

    /// Creates a binary that shares its bytes with other owners.
    #[must_use]
    pub fn from_shared(bytes: Arc<[u8]>) -> Bits {
        let bits = bytes.len() * 8;
        Bits { bytes, bits }
    }

    /// Returns the bytes; the unused low bits of the last one are zero.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes as shared memory.
    #[must_use]
    pub fn shared_bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Returns the number of bits.
    #[must_use]
    pub fn bit_len(&self) -> usize {
        self.bits
    }

    /// Returns `true` if the bits fill whole bytes.
    #[must_use]
    pub fn is_binary(&self) -> bool {
        self.bits.is_multiple_of(8)
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
