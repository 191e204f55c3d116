//! Erlang terms as data, without a virtual machine.
//!
//! | module | contents |
//! |---|---|
//! | [`term_ref`] | traits for terms in any representation: reading ([`TermRef`]) and building
//! ([`TermSink`]) |
//! | [`term`] | [`Term`], an owned term of every Erlang type, and Erlang's standard order |
//! | [`atom`] | [`Atom`], interned text |
//! | [`order`] | keys whose byte order is Erlang's standard order and whose equality is `==` |
//! | [`exact`] | keys whose byte equality is `=:=` |
//! | [`etf`] | the external term format, written and read from untrusted bytes |
//! | [`image`] | tuples as relocatable words, read in place |
//! | [`integer`] | [`Integer`], integers with arithmetic |
//!
//! No function recurses on the nesting of a term: terms a million levels deep are as safe as flat
//! ones.

pub mod atom;
pub mod etf;
pub mod exact;
mod ident;
pub mod image;
mod immediate;
pub mod integer;
mod keys;
pub mod order;
pub mod term;
pub mod term_ref;
mod zeros;

#[cfg(feature = "proptest")]
pub mod arbitrary;

pub use atom::Atom;
pub use integer::Integer;
pub use term::Term;
pub use term_ref::{FunIdent, Ident, Kind, Opaque, TermRef, TermSink};
pub use zeros::Zeros;
