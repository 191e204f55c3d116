//! Types of all forms, derived in a crate that knows `ats` by another name.

#![cfg(test)]
#![deny(warnings)]

use engine::{Key, KeyBytes, OrderedMap, Value};
use std::fmt::Debug;
use std::marker::PhantomData;

/// The crate as re-exported by another one.
mod again {
    pub(crate) mod deeper {
        pub(crate) use engine as ats;
    }
}

#[track_caller]
fn is_kept<T: Key + Value + PartialEq + Debug>(value: &T) {
    let map: OrderedMap<T, T> = OrderedMap::new();
    map.insert(value, value);
    let (key, kept) = map.first().expect("the pair is there");
    assert_eq!((&key, &kept), (value, value));
}

fn bytes<K: Key>(key: &K) -> KeyBytes {
    let mut bytes = KeyBytes::default();
    key.encode(&mut bytes);
    bytes
}

/// Checks that keys have the order that `Ord` gives them.
#[track_caller]
fn are_ordered<K: Key + Ord + Debug>(keys: &[K]) {
    for one in keys {
        for other in keys {
            let order = bytes(one).cmp(&bytes(other));
            assert_eq!(order, one.cmp(other), "{one:?}, {other:?}");
        }
    }
}

trait Linked {
    type Item;
    type Other;
}

#[derive(Debug, PartialEq)]
enum Link {}

impl Linked for Link {
    type Item = u8;
    type Other = String;
}

#[derive(Debug, PartialEq)]
enum NoKey {}

#[test]
fn generics() {
    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct OurNames<Key, Value, AsKey, AsValue, KeyBytes, ValueBytes, KeyReader>(
        Key,
        Value,
        AsKey,
        AsValue,
        KeyBytes,
        ValueBytes,
        KeyReader,
    );
    is_kept(&OurNames(
        1_u8,
        2_u16,
        true,
        'x',
        String::from("y"),
        (),
        [3_u8; 2],
    ));

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct Associated<T: Linked, U>
    where
        U: Linked<Other = String>,
        // The derives of std do not find these.
        <T as Linked>::Other: Debug + PartialEq,
        <U as Linked>::Item: Debug + PartialEq,
    {
        one: T::Item,
        several: (Option<T::Other>, Box<<U as Linked>::Item>),
        other: U::Other,
        nothing: PhantomData<(T, U)>,
    }
    is_kept(&Associated::<Link, Link> {
        one: 1,
        several: (Some("a".into()), Box::new(7)),
        other: "b".into(),
        nothing: PhantomData,
    });

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct OnlyInPhantom<'a, T: ?Sized, U>(u8, PhantomData<&'a T>, std::marker::PhantomData<U>);
    is_kept(&OnlyInPhantom::<str, NoKey>(1, PhantomData, PhantomData));

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct Defaults<T = u8, const N: usize = 2>([T; N])
    where
        T: Debug + PartialEq;
    is_kept(&Defaults([1_u8, 2]));
    is_kept(&Defaults::<String, 0>([]));

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    enum Either<L, R: Copy, const B: bool> {
        Left(L),
        Right { right: R },
        Both(Option<(L, R)>),
    }
    is_kept(&Either::<String, u8, true>::Left("a".into()));
    is_kept(&Either::<String, u8, true>::Right { right: 1 });
    is_kept(&Either::<String, u8, false>::Both(Some(("a".into(), 1))));

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct Lifetimes<'a: 'b, 'b, T: 'b>(T, PhantomData<(&'a u8, &'b T)>);
    is_kept(&Lifetimes(1_u8, PhantomData));
}

#[test]
fn names() {
    #[allow(non_camel_case_types, dead_code)]
    mod shadowed {
        pub(crate) struct Option;
        pub(crate) struct Some;
        pub(crate) struct Result;
        pub(crate) struct Vec;
        pub(crate) struct String;
        pub(crate) struct Box;
        pub(crate) struct usize;
        pub(crate) struct u8;
        pub(crate) struct u32;
        pub(crate) mod core {}
        pub(crate) mod std {}
        pub(crate) mod ats {}
        #[allow(non_upper_case_globals)]
        pub(crate) const bytes: () = ();
        #[allow(non_upper_case_globals)]
        pub(crate) const reader: () = ();
        #[allow(non_upper_case_globals)]
        pub(crate) const field_0: () = ();
        #[allow(non_upper_case_globals)]
        pub(crate) static value: () = ();

        #[derive(Debug, PartialEq, engine::Key, engine::Value)]
        #[ats(crate = "::engine")]
        pub(crate) enum Shadows {
            None,
            Some { bytes: u64, reader: i64 },
            Ok(char, i8),
        }

        #[derive(Debug, PartialEq, engine::Key, engine::Value)]
        #[ats(crate = "::engine")]
        pub(crate) struct Fields {
            pub(crate) value: u64,
            pub(crate) rest: u16,
        }

        impl Fields {
            pub(crate) const LEN: u64 = 1;
            pub(crate) fn encode(&self) {}
            pub(crate) fn decode() {}
        }
    }
    use shadowed::{Fields, Shadows};
    is_kept(&Shadows::None);
    is_kept(&Shadows::Some {
        bytes: 1,
        reader: 2,
    });
    is_kept(&Shadows::Ok('x', 3));
    is_kept(&Fields { value: 1, rest: 2 });
    Fields::decode();
    Fields { value: 1, rest: 2 }.encode();
    assert_eq!(Fields::LEN, 1);

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    #[allow(non_camel_case_types)]
    enum r#enum {
        r#type { r#fn: u8, r#match: String },
        r#struct(u8),
    }
    is_kept(&r#enum::r#type {
        r#fn: 1,
        r#match: "a".into(),
    });
    is_kept(&r#enum::r#struct(1));

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "crate::again::deeper::ats")]
    struct GivenOn {
        field: Option<u8>,
    }
    is_kept(&GivenOn { field: Some(1) });
}

#[test]
fn empty_ones() {
    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct Unit;
    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct Braces {}
    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct Parens();
    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    enum Never {}
    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    enum Variants {
        Unit,
        Braces {},
        Parens(),
    }
    is_kept(&Unit);
    is_kept(&Braces {});
    is_kept(&Parens());
    is_kept(&None::<Never>);
    for variant in [Variants::Unit, Variants::Braces {}, Variants::Parens()] {
        is_kept(&variant);
    }
}

#[test]
fn recursive_ones() {
    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    enum List<T> {
        Nil,
        Cons(T, Box<List<T>>),
    }
    is_kept(&List::Cons(
        1_u8,
        Box::new(List::Cons(2, Box::new(List::Nil))),
    ));

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct Node {
        left: Option<Box<Node>>,
        right: Option<Box<Self>>,
    }
    let leaf = || Node {
        left: None,
        right: None,
    };
    is_kept(&Node {
        left: Some(Box::new(leaf())),
        right: None,
    });

    #[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Key)]
    #[ats(crate = "engine")]
    struct Tree(u8, Vec<Tree>);
    are_ordered(&[
        Tree(1, vec![]),
        Tree(1, vec![Tree(0, vec![])]),
        Tree(1, vec![Tree(0, vec![Tree(2, vec![])])]),
    ]);
}

#[test]
fn layouts_and_macros() {
    #[derive(Clone, Copy, Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    #[repr(C, packed(2))]
    struct Packed {
        byte: u8,
        number: u64,
    }
    is_kept(&Packed { byte: 1, number: 2 });

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    #[repr(align(64))]
    struct Aligned(u8);
    is_kept(&Aligned(1));

    macro_rules! option {
        ($kind:ty) => {
            Option<$kind>
        };
    }
    macro_rules! define {
        ($name:ident, $kind:ty) => {
            #[derive(Debug, PartialEq, Key, Value)]
            #[ats(crate = "engine")]
            struct $name<T> {
                field: $kind,
                other: Option<T>,
            }
        };
    }
    define!(Made, (u8, String));
    is_kept(&Made {
        field: (1, "a".into()),
        other: Some(2_u8),
    });

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct OfMacro {
        field: option!(u8),
    }
    is_kept(&OfMacro { field: Some(1) });

    #[derive(Key, Value)]
    #[ats(crate = "engine")]
    struct OfParameter<T>(option!(T));
    let map: OrderedMap<OfParameter<u8>, OfParameter<bool>> = OrderedMap::new();
    map.insert(OfParameter(Some(1)), OfParameter(Some(true)));
    let first = map.first().map(|(key, value)| (key.0, value.0));
    assert_eq!(first, Some((Some(1), Some(true))));

    #[derive(Debug, PartialEq, Key, Value)]
    #[ats(crate = "engine")]
    struct Old {
        #[deprecated]
        field: u8,
    }
    #[allow(deprecated)]
    let old = Old { field: 1 };
    is_kept(&old);
}

#[test]
fn numbers_of_variants_are_their_order() {
    const TWENTY: isize = 20;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Key, Value)]
    #[ats(crate = "engine")]
    enum Numbers {
        Twenty = TWENTY,
        More,
        Minus = -3,
        Less,
    }
    use Numbers::{Less, Minus, More, Twenty};
    let all = [Twenty, More, Minus, Less];
    all.iter().for_each(is_kept);
    are_ordered(&all);

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Key, Value)]
    #[ats(crate = "engine")]
    #[repr(u64)]
    enum Wide {
        First(String) = u64::MAX - 1,
        Second,
        Third { field: u8 } = 0,
    }
    let all = [
        Wide::First("a".into()),
        Wide::Second,
        Wide::Third { field: 1 },
    ];
    all.iter().for_each(is_kept);
    are_ordered(&all);
}
