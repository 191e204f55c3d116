//! Numbers and byte strings of all formats, and reading them without trust.
//!
//! A *varint* is a number of up to 64 bits in groups of seven bits, the lowest group first; the top
//! bit of a byte says that another byte follows. A *byte string* is its length as a varint, and
//! then its bytes.

use std::fmt;

/// Bytes that no writer makes, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damaged(pub(crate) &'static str);

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

const ENDS_EARLY: Damaged = Damaged("ends early");

/// Appends a varint.
#[inline]
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a byte string.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads the varint at `at`, and moves `at` behind it.
#[inline(always)]
pub(crate) fn varint_at(bytes: &[u8], at: &mut usize) -> Result<u64, Damaged> {
    // Nearly all numbers of a block are below 2^14.
    match bytes.get(*at) {
        Some(&first) if first < 0x80 => {
            *at += 1;
            return Ok(u64::from(first));
        }
        Some(&first) => {
            if let Some(&second) = bytes.get(*at + 1)
                && second < 0x80
            {
                *at += 2;
                return Ok(u64::from(first & 0x7f) | u64::from(second) << 7);
            }
        }
        None => return Err(ENDS_EARLY),
    }
    long_varint_at(bytes, at)
}

#[cold]
fn long_varint_at(bytes: &[u8], at: &mut usize) -> Result<u64, Damaged> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or(ENDS_EARLY)?;
        *at += 1;
        let group = u64::from(byte & 0x7f);
        if group << shift >> shift != group {
            break;
        }
        value |= group << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Damaged("a number has more than 64 bits"))
}

/// Reads fields from the front of some bytes.
#[derive(Clone)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Decoder { rest: bytes }
    }

    /// Returns the bytes that are not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn varint(&mut self) -> Result<u64, Damaged> {
        let mut at = 0;
        let value = varint_at(self.rest, &mut at)?;
        self.rest = &self.rest[at..];
        Ok(value)
    }

    /// Reads a varint that counts things, each of which takes at least one of the following bytes.
    /// So it is safe to make room for as many, if they are not large.
    pub(crate) fn count(&mut self) -> Result<usize, Damaged> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(ENDS_EARLY),
        }
    }

    /// Returns the next `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Returns a byte string.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Damaged> {
        let len = self.count()?;
        self.take(len)
    }

    /// Returns the next bytes, of a number that the type knows.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Returns the next byte.
    pub(crate) fn byte(&mut self) -> Result<u8, Damaged> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// Returns `true` if nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Fails if something is left.
    pub(crate) fn end(&self) -> Result<(), Damaged> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(Damaged("has bytes left over"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_are_read_as_they_were_written() {
        let powers = (0..64).map(|shift| 1u64 << shift);
        let values = powers.flat_map(|power| [power - 1, power, power + 1]);
        for value in values.chain([u64::MAX]) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let bits = (64 - value.leading_zeros()).max(1);
            assert_eq!(bytes.len(), bits.div_ceil(7) as usize);
            let mut decoder = Decoder::new(&bytes);
            assert_eq!(decoder.varint(), Ok(value));
            assert_eq!(decoder.end(), Ok(()));
            for len in 0..bytes.len() {
                assert_eq!(Decoder::new(&bytes[..len]).varint(), Err(ENDS_EARLY));
            }
        }
        for last in [2, 0x7f, 0x80] {
            let mut bytes = [0xff; 12];
            bytes[9] = last;
            assert!(Decoder::new(&bytes).varint().is_err());
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused_before_room_is_made() {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, u64::MAX);
        assert_eq!(Decoder::new(&bytes).bytes(), Err(ENDS_EARLY));
        assert_eq!(Decoder::new(&bytes).count(), Err(ENDS_EARLY));
        let mut bytes = Vec::new();
        put_bytes(&mut bytes, b"abc");
        assert_eq!(Decoder::new(&bytes).bytes(), Ok(&b"abc"[..]));
        assert_eq!(Decoder::new(&bytes[..3]).bytes(), Err(ENDS_EARLY));
        assert_eq!(Decoder::new(&bytes).array::<5>(), Err(ENDS_EARLY));
    }
}
