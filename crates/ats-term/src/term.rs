//! Owned Erlang terms of every type.
//!
//! A [`Term`] is a value: cloning takes constant time because compound terms share their parts, and
//! parts never change. The types inside [`Term`] maintain the invariants of Erlang: a [`Float`] is
//! finite, a [`BigInt`] does not fit 64 bits, the keys of a [`Map`] are distinct.
//!
//! ```
//! use ats_term::{Atom, Term};
//!
//! let visits = Term::from((Atom::new("visits")?, "ada@example.org", 42));
//! assert_eq!(visits.to_string(), r#"{visits,<<"ada@example.org">>,42}"#);
//! assert_eq!(visits.as_tuple().unwrap()[2], Term::from(42));
//! # Ok::<(), ats_term::atom::AtomError>(())
//! ```
//!
//! Terms have two orders. `Term` does not implement `Ord`, so that one is not mistaken for the
//! other: [`Term::compare`] is Erlang's standard order (`<`, `==`), in which `1` equals `1.0`;
//! [`Term::compare_exact`] is the order of map keys, in which they differ. `==` between two `Term`s
//! in Rust is Erlang's `=:=` since OTP 27: `0.0` and `-0.0` differ.

mod bits;
mod builder;
mod compare;
mod convert;
mod display;
mod identifier;
mod map;
mod node;
mod number;
mod term_ref;

pub use bits::Bits;
pub use builder::{BuildError, Built, TermBuilder};
pub use identifier::Identifier;
pub use map::DuplicateKey;
pub use node::{Elements, ExternalFun, List, LocalFun, Map, NativeRecord, Term, Tuple};
pub use number::{BigInt, Float, NotFinite};
