//! Numbers and other keys of a fixed length.

use super::bytes::{KeyBytes, KeyReader};
use super::{AsKey, Key};
use ats_mem::ShortKey;

macro_rules! unsigned {
    ($($type:ty)*) => {$(
        impl AsKey<$type> for $type {
            #[inline]
            fn encode(&self, bytes: &mut KeyBytes) {
                bytes.push(&self.to_be_bytes());
            }

            #[inline]
            fn as_words(&self) -> Option<ShortKey> {
                ShortKey::of(&self.to_be_bytes())
            }

            fn is_proven(&self) -> bool {
                true
            }
        }

        impl Key for $type {
            #[inline]
            fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
                reader.take().map(Self::from_be_bytes)
            }
        }
    )*};
}

unsigned!(u16 u32 u64 u128);

/// Encodes a number as another number with the same order.
macro_rules! by {
    ($($type:ty, $number:ty, $to:expr, $from:expr;)*) => {$(
        impl AsKey<$type> for $type {
            #[inline]
            fn encode(&self, bytes: &mut KeyBytes) {
                let to: fn($type) -> $number = $to;
                to(*self).encode(bytes);
            }

            #[inline]
            fn as_words(&self) -> Option<ShortKey> {
                let to: fn($type) -> $number = $to;
                to(*self).as_words()
            }

            fn is_proven(&self) -> bool {
                true
            }
        }

        impl Key for $type {
            #[inline]
            fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
                let from: fn($number) -> Option<$type> = $from;
                from(<$number>::decode(reader)?)
            }
        }
    )*};
}

by! {
    i8, u8, |it| it.cast_unsigned() ^ 1 << 7, |number| Some((number ^ 1 << 7).cast_signed());
    i16, u16, |it| it.cast_unsigned() ^ 1 << 15, |number| Some((number ^ 1 << 15).cast_signed());
    i32, u32, |it| it.cast_unsigned() ^ 1 << 31, |number| Some((number ^ 1 << 31).cast_signed());
    i64, u64, |it| it.cast_unsigned() ^ 1 << 63, |number| Some((number ^ 1 << 63).cast_signed());
    i128, u128, |it| it.cast_unsigned() ^ 1 << 127,
        |number| Some((number ^ 1 << 127).cast_signed());
    usize, u64, |it| it as u64, |number| number.try_into().ok();
    isize, i64, |it| it as i64, |number| number.try_into().ok();
    f32, u32, |it| ordered_32(it.to_bits()), |number| Some(f32::from_bits(bits_32(number)));
    f64, u64, |it| ordered_64(it.to_bits()), |number| Some(f64::from_bits(bits_64(number)));
    bool, u8, u8::from, |number| match number {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
    char, u32, u32::from, char::from_u32;
}

/// Returns an integer in the order of all floats.
fn ordered_32(bits: u32) -> u32 {
    if bits >> 31 == 1 {
        !bits
    } else {
        bits | 1 << 31
    }
}

/// Returns the bits of the float with this integer.
fn bits_32(number: u32) -> u32 {
    if number >> 31 == 1 {
        number ^ 1 << 31
    } else {
        !number
    }
}

fn ordered_64(bits: u64) -> u64 {
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

fn bits_64(number: u64) -> u64 {
    if number >> 63 == 1 {
        number ^ 1 << 63
    } else {
        !number
    }
}

/// Sequences of bytes are encoded as texts.
impl AsKey<u8> for u8 {
    #[inline]
    fn encode(&self, bytes: &mut KeyBytes) {
        bytes.push(&[*self]);
    }

    #[inline]
    fn as_words(&self) -> Option<ShortKey> {
        ShortKey::of(&[*self])
    }

    fn as_bytes(keys: &[Self]) -> Option<&[u8]> {
        Some(keys)
    }

    fn is_proven(&self) -> bool {
        true
    }
}

impl Key for u8 {
    #[inline]
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        reader.take().map(|[byte]| byte)
    }

    fn encode_all<Q: AsKey<Self>>(keys: &[Q], bytes: &mut KeyBytes) {
        match Q::as_bytes(keys) {
            Some(text) => bytes.push_text(text),
            None => {
                let mut text = KeyBytes::default();
                for key in keys {
                    key.encode(&mut text);
                }
                bytes.push_text(text.as_slice());
            }
        }
    }

    fn decode_all(reader: &mut KeyReader<'_>) -> Option<Vec<Self>> {
        reader.take_text()
    }
}
