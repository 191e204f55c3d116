//! Values that consist of other values.

use super::{AsValue, Value, ValueBytes, sum_of_lengths, take_part};
use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

const SOME: u8 = 1;

impl<V, W: AsValue<V>> AsValue<Option<V>> for Option<W> {
    fn encode(&self, bytes: &mut ValueBytes) {
        if let Some(value) = self {
            bytes.push(&[SOME]);
            value.encode(bytes);
        }
    }

    fn is_proven(&self) -> bool {
        self.as_ref().is_none_or(W::is_proven)
    }
}

impl<V: Value> Value for Option<V> {
    fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first() {
            None => Some(None),
            Some((&SOME, rest)) => V::decode(rest).map(Some),
            Some(_) => None,
        }
    }
}

impl<V: Value, W: AsValue<V>, const N: usize> AsValue<[V; N]> for [W; N] {
    fn encode(&self, bytes: &mut ValueBytes) {
        for value in self {
            bytes.push_part(value);
        }
    }

    fn is_proven(&self) -> bool {
        self.iter().all(W::is_proven)
    }
}

impl<V: Value, const N: usize> Value for [V; N] {
    const LEN: Option<usize> = match V::LEN {
        Some(len) => Some(len * N),
        None => None,
    };

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let values: Option<Vec<V>> = (0..N).map(|_| take_part(&mut bytes)).collect();
        bytes.is_empty().then_some(values?)?.try_into().ok()
    }
}

macro_rules! pointers {
    ($($pointer:ident),*) => {$(
        impl<V, W: AsValue<V> + ?Sized> AsValue<$pointer<V>> for $pointer<W> {
            fn encode(&self, bytes: &mut ValueBytes) {
                (**self).encode(bytes);
            }

            fn is_proven(&self) -> bool {
                (**self).is_proven()
            }
        }

        impl<V: Value> Value for $pointer<V> {
            const LEN: Option<usize> = V::LEN;

            fn decode(bytes: &[u8]) -> Option<Self> {
                V::decode(bytes).map($pointer::new)
            }
        }

        impl AsValue<$pointer<str>> for $pointer<str> {
            fn encode(&self, bytes: &mut ValueBytes) {
                bytes.push(self.as_bytes());
            }

            fn is_proven(&self) -> bool {
                true
            }
        }

        impl AsValue<$pointer<str>> for str {
            fn encode(&self, bytes: &mut ValueBytes) {
                bytes.push(self.as_bytes());
            }

            fn is_proven(&self) -> bool {
                true
            }
        }

        impl Value for $pointer<str> {
            fn decode(bytes: &[u8]) -> Option<Self> {
                std::str::from_utf8(bytes).ok().map($pointer::from)
            }
        }

        impl<V: Value> AsValue<$pointer<[V]>> for $pointer<[V]> {
            fn encode(&self, bytes: &mut ValueBytes) {
                V::encode_all(self, bytes);
            }

            fn is_proven(&self) -> bool {
                AsValue::<Vec<V>>::is_proven(&**self)
            }
        }

        impl<V: Value> Value for $pointer<[V]> {
            fn decode(bytes: &[u8]) -> Option<Self> {
                V::decode_all(bytes).map($pointer::from)
            }
        }
    )*};
}

pointers!(Box, Arc);

impl<T, W> AsValue<Cow<'static, T>> for Cow<'_, W>
where
    T: ToOwned + ?Sized + 'static,
    W: ToOwned + AsValue<T::Owned> + ?Sized,
{
    fn encode(&self, bytes: &mut ValueBytes) {
        (**self).encode(bytes);
    }

    fn is_proven(&self) -> bool {
        (**self).is_proven()
    }
}

impl<T> Value for Cow<'static, T>
where
    T: ToOwned + AsValue<T::Owned> + ?Sized,
    T::Owned: Value,
{
    const LEN: Option<usize> = T::Owned::LEN;

    fn decode(bytes: &[u8]) -> Option<Self> {
        T::Owned::decode(bytes).map(Cow::Owned)
    }
}

impl<T: ?Sized> AsValue<PhantomData<T>> for PhantomData<T> {
    fn encode(&self, _bytes: &mut ValueBytes) {}

    fn is_proven(&self) -> bool {
        true
    }
}

impl<T: ?Sized> Value for PhantomData<T> {
    const LEN: Option<usize> = Some(0);

    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.is_empty().then_some(PhantomData)
    }
}

macro_rules! tuples {
    ($(($($part:ident $value:ident $at:tt),*))*) => {$(
        impl<$($value: Value, $part: AsValue<$value>),*> AsValue<($($value,)*)> for ($($part,)*) {
            fn encode(&self, bytes: &mut ValueBytes) {
                $(bytes.push_part::<$value>(&self.$at);)*
            }

            fn is_proven(&self) -> bool {
                true $(&& self.$at.is_proven())*
            }
        }

        impl<$($value: Value),*> Value for ($($value,)*) {
            const LEN: Option<usize> = sum_of_lengths(&[$($value::LEN),*]);

            fn decode(mut bytes: &[u8]) -> Option<Self> {
                let tuple = ($(take_part::<$value>(&mut bytes)?,)*);
                bytes.is_empty().then_some(tuple)
            }
        }
    )*};
}

tuples! {
    (A V 0)
    (A V 0, B W 1)
    (A V 0, B W 1, C X 2)
    (A V 0, B W 1, C X 2, D Y 3)
    (A V 0, B W 1, C X 2, D Y 3, E Z 4)
    (A V 0, B W 1, C X 2, D Y 3, E Z 4, F U 5)
}
