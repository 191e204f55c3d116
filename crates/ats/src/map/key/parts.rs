//! Keys that consist of other keys.

use super::bytes::{KeyBytes, KeyReader, NONE, SOME};
use super::{AsKey, Key};
use ats_mem::ShortKey;
use std::cmp::Reverse;
use std::marker::PhantomData;
use std::time::Duration;

impl<K: Key, Q: AsKey<K>> AsKey<Vec<K>> for [Q] {
    fn encode(&self, bytes: &mut KeyBytes) {
        K::encode_all(self, bytes);
    }

    fn is_proven(&self) -> bool {
        self.iter().all(Q::is_proven)
    }
}

impl<K: Key, Q: AsKey<K>> AsKey<Vec<K>> for Vec<Q> {
    fn encode(&self, bytes: &mut KeyBytes) {
        K::encode_all(self, bytes);
    }

    fn is_proven(&self) -> bool {
        self.iter().all(Q::is_proven)
    }
}

impl<K: Key> Key for Vec<K> {
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        K::decode_all(reader)
    }
}

impl<K: Key, Q: AsKey<K>, const N: usize> AsKey<Vec<K>> for [Q; N] {
    fn encode(&self, bytes: &mut KeyBytes) {
        K::encode_all(self, bytes);
    }

    fn is_proven(&self) -> bool {
        self.iter().all(Q::is_proven)
    }
}

impl<K, Q: AsKey<K>, const N: usize> AsKey<[K; N]> for [Q; N] {
    fn encode(&self, bytes: &mut KeyBytes) {
        for value in self {
            value.encode(bytes);
        }
    }

    fn is_proven(&self) -> bool {
        self.iter().all(Q::is_proven)
    }
}

impl<K: Key, const N: usize> Key for [K; N] {
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        let keys: Option<Vec<K>> = (0..N).map(|_| K::decode(reader)).collect();
        keys?.try_into().ok()
    }
}

impl<K, Q: AsKey<K>> AsKey<Option<K>> for Option<Q> {
    fn encode(&self, bytes: &mut KeyBytes) {
        match self {
            None => bytes.push(&[NONE]),
            Some(value) => {
                bytes.push(&[SOME]);
                value.encode(bytes);
            }
        }
    }

    fn is_proven(&self) -> bool {
        self.as_ref().is_none_or(Q::is_proven)
    }
}

impl<K: Key> Key for Option<K> {
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        match reader.take()? {
            [NONE] => Some(None),
            [SOME] => K::decode(reader).map(Some),
            _ => None,
        }
    }
}

impl<K, Q: AsKey<K>> AsKey<Reverse<K>> for Reverse<Q> {
    fn encode(&self, bytes: &mut KeyBytes) {
        bytes.push_reversed(|bytes| self.0.encode(bytes));
    }

    fn is_proven(&self) -> bool {
        self.0.is_proven()
    }
}

impl<K: Key> Key for Reverse<K> {
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        reader.take_reversed(K::decode).map(Reverse)
    }
}

impl<K, Q: AsKey<K> + ?Sized> AsKey<Box<K>> for Box<Q> {
    fn encode(&self, bytes: &mut KeyBytes) {
        (**self).encode(bytes);
    }

    fn is_proven(&self) -> bool {
        (**self).is_proven()
    }
}

impl<K: Key> Key for Box<K> {
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        K::decode(reader).map(Box::new)
    }
}

impl<T: ?Sized> AsKey<PhantomData<T>> for PhantomData<T> {
    fn encode(&self, _bytes: &mut KeyBytes) {}

    fn is_proven(&self) -> bool {
        true
    }
}

impl<T: ?Sized> Key for PhantomData<T> {
    fn decode(_reader: &mut KeyReader<'_>) -> Option<Self> {
        Some(PhantomData)
    }
}

impl AsKey<Duration> for Duration {
    fn encode(&self, bytes: &mut KeyBytes) {
        (self.as_secs(), self.subsec_nanos()).encode(bytes);
    }

    fn is_proven(&self) -> bool {
        true
    }
}

impl Key for Duration {
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        match Key::decode(reader)? {
            (seconds, nanos @ ..1_000_000_000) => Some(Duration::new(seconds, nanos)),
            _ => None,
        }
    }
}

macro_rules! tuples {
    ($(($($part:ident $key:ident $at:tt),*))*) => {$(
        impl<$($key, $part: AsKey<$key>),*> AsKey<($($key,)*)> for ($($part,)*) {
            #[inline]
            fn encode(&self, _bytes: &mut KeyBytes) {
                $(self.$at.encode(_bytes);)*
            }

            #[inline]
            fn as_words(&self) -> Option<ShortKey> {
                let words = ShortKey::of(&[])?;
                $(let words = words.followed_by(self.$at.as_words()?)?;)*
                Some(words)
            }

            fn is_proven(&self) -> bool {
                true $(&& self.$at.is_proven())*
            }
        }

        impl<$($key: Key),*> Key for ($($key,)*) {
            #[inline]
            fn decode(_reader: &mut KeyReader<'_>) -> Option<Self> {
                Some(($($key::decode(_reader)?,)*))
            }
        }
    )*};
}

tuples! {
    ()
    (A K 0)
    (A K 0, B L 1)
    (A K 0, B L 1, C M 2)
    (A K 0, B L 1, C M 2, D N 3)
    (A K 0, B L 1, C M 2, D N 3, E O 4)
    (A K 0, B L 1, C M 2, D N 3, E O 4, F P 5)
    (A K 0, B L 1, C M 2, D N 3, E O 4, F P 5, G Q 6)
    (A K 0, B L 1, C M 2, D N 3, E O 4, F P 5, G Q 6, H R 7)
}
