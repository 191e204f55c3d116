//! Values without parts.

use super::{AsValue, Value, ValueBytes};

/// Encodes values as the bytes of a number.
macro_rules! by {
    ($($type:ty, $number:ty, $to:expr, $from:expr
        $(, { $($of_as_value:tt)* } { $($of_value:tt)* })?;)*) => {$(
        impl AsValue<$type> for $type {
            $($($of_as_value)*)?

            #[inline]
            fn encode(&self, bytes: &mut ValueBytes) {
                let to: fn($type) -> $number = $to;
                bytes.push(&to(*self).to_le_bytes());
            }

            #[inline]
            fn as_word(&self) -> Option<u64> {
                const LEN: usize = size_of::<$number>();
                let to: fn($type) -> $number = $to;
                let mut word = [0; size_of::<u64>()];
                word.get_mut(..LEN)?.copy_from_slice(&to(*self).to_le_bytes());
                Some(u64::from_ne_bytes(word))
            }

            fn is_proven(&self) -> bool {
                true
            }
        }

        impl Value for $type {
            $($($of_value)*)?

            const LEN: Option<usize> = Some(size_of::<$number>());

            #[inline]
            fn decode(bytes: &[u8]) -> Option<Self> {
                let from: fn($number) -> Option<$type> = $from;
                from(<$number>::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}

by! {
    u8, u8, |it| it, Some, {
        fn as_bytes(values: &[u8]) -> Option<&[u8]> {
            Some(values)
        }
    } {
        fn encode_all<W: AsValue<u8>>(values: &[W], bytes: &mut ValueBytes) {
            match W::as_bytes(values) {
                Some(all) => bytes.push(all),
                None => values.iter().for_each(|value| value.encode(bytes)),
            }
        }

        fn decode_all(bytes: &[u8]) -> Option<Vec<u8>> {
            Some(bytes.to_vec())
        }
    };
    u16, u16, |it| it, Some;
    u32, u32, |it| it, Some;
    u64, u64, |it| it, Some;
    u128, u128, |it| it, Some;
    i8, i8, |it| it, Some;
    i16, i16, |it| it, Some;
    i32, i32, |it| it, Some;
    i64, i64, |it| it, Some;
    i128, i128, |it| it, Some;
    f32, f32, |it| it, Some;
    f64, f64, |it| it, Some;
    usize, u64, |it| it as u64, |number| number.try_into().ok();
    isize, i64, |it| it as i64, |number| number.try_into().ok();
    char, u32, u32::from, char::from_u32;
    bool, u8, u8::from, |number| match number {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    };
}

impl AsValue<()> for () {
    fn encode(&self, _bytes: &mut ValueBytes) {}

    fn is_proven(&self) -> bool {
        true
    }
}

impl Value for () {
    const LEN: Option<usize> = Some(0);

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(())
    }
}

impl AsValue<String> for str {
    #[inline]
    fn encode(&self, bytes: &mut ValueBytes) {
        bytes.push(self.as_bytes());
    }

    fn is_proven(&self) -> bool {
        true
    }
}

impl AsValue<String> for String {
    #[inline]
    fn encode(&self, bytes: &mut ValueBytes) {
        bytes.push(self.as_bytes());
    }

    fn is_proven(&self) -> bool {
        true
    }
}

impl Value for String {
    fn decode(bytes: &[u8]) -> Option<Self> {
        String::from_utf8(bytes.to_vec()).ok()
    }
}
