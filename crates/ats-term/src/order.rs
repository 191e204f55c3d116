//! Order keys: bytes whose order is Erlang's standard order and whose equality is `==`.
//!
//! `memcmp` of two keys (the shorter of two equal prefixes first) is the comparison of their terms,
//! so an ordered table needs to know nothing about terms: `1` and `1.0` are one key, integers and
//! floats compare exactly at any size, and all tuples that begin with the same elements are
//! adjacent. The order is that of `erts_cmp_compound` in OTP 25, and that of native records from
//! the tests of OTP 29; it is
//!
//! ```text
//! number < atom < reference < fun < port < pid < tuple < native record < map < nil < list < bitstring
//! ```
//!
//! [`compare()`] needs no keys, for terms that are compared only once.
//!
//! # Format
//! A key begins with the tag of the term's class. Tags are `0x01..=0xFD`.
//!
//! | term | bytes after the tag |
//! |---|---|
//! | integer up to 8 bytes | magnitude, big endian, as many bytes as the tag says; complemented below zero |
//! | larger integer | ordered size of the magnitude, magnitude; both complemented below zero |
//! | float that is an integer | as the integer |
//! | other float `x` | key of the integer below `x`, `0xFE`, bits of the fraction of the absolute value of `x` as a float; complemented below zero |
//! | float within a map key | 8 bytes ordered as the float |
//! | atom | text, `00` |
//! | reference, port | node, creation, numbers, locality |
//! | pid | numbers, node, creation, locality |
//! | local fun | module, `00`, index, hash, number of captured values, their keys |
//! | external fun | module, `00`, function, `00`, arity |
//! | tuple | ordered size, keys of the elements |
//! | native record | module, `00`, name, `00`, `01` if exported or `00`, ordered number of fields, names with `00`, keys of values |
//! | opaque term of another kind | external term format as bytes |
//! | map | ordered size, keys of the keys ascending, keys of the values in that order |
//! | nil | |
//! | list | key of the head, key of the tail |
//! | bitstring | bytes, `00`, number of bits used of the last byte |
//!
//! *Text* and *bytes* of any length have every byte `00` written as `00 FF` and end with `00`. This
//! keeps `a` before `a\0` before `ab` because the byte after the last `00` is never `FF`: after an
//! atom it is a tag, elsewhere the format excludes it.
//!
//! *Ordered size* is one byte below 248, otherwise `247 + n` and `n` bytes big endian.
//!
//! # Prefixes
//! The key of `{a, 1, x}` begins with the key of the *prefix* `{a, 1, _}`, that is: tag, ordered
//! size and the keys of `a` and `1`. So does the key of `{a, 1.5, x}`, but there `0xFE` follows,
//! which is above every tag. Hence the keys that have the prefix `p` are exactly those in the
//! interval from `p` to `p ++ [0xFE]`, the end excluded; see [`prefix_bounds`] and [`Prefix`].

mod bounds;
mod compare;
mod format;
mod key;

pub use bounds::{Class, Prefix, binary_prefix_bounds, prefix_bounds, prefix_end, push_prefix_end};
pub use compare::{Question, compare, compare_within};
pub use format::{MAX_INT_KEY, number_of_order_key, order_key_int};
pub use key::{for_each_map, order_key, order_key_within};
