//! The external term format of Erlang: terms as bytes for disks, networks and other programs.
//!
//! [`encode()`] writes what `term_to_binary(Term, [{minor_version, 2}])` writes in shape: UTF-8 atoms,
//! floats of 8 bytes, identifiers with 32-bit creations. [`encode_into`] writes terms wherever they live, for
//! instance in an [image](crate::image), without making a [`Term`](crate::Term) of them. [`decode()`] reads every
//! tag that OTP 25 to 27 write and the older ones they still read.
//!
//! The decoder accepts untrusted bytes. It never panics, does not recurse, allocates at most about
//! a hundred bytes for each byte of input whatever the lengths in it claim, makes at most as many
//! new atoms as it is [allowed](Atoms), and accepts nothing that is not a term: no NaN, no map with a
//! key twice, no bytes after the term. Compressed terms are rejected, since a few bytes of them may
//! stand for gigabytes.
//!
//! ```
//! use ats_term::{Term, etf};
//!
//! let term = Term::from(("counter", 1));
//! let bytes = etf::encode(&term)?;
//! assert_eq!(etf::decode(&bytes, etf::Options::default())?, term);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decode;
mod encode;

pub use decode::{Atoms, DecodeError, DecodeErrorKind, Options, decode, decode_first};
pub use encode::{Node, TooLarge, encode, encode_into, encode_on_node};

/// The byte every term begins with.
const VERSION: u8 = 131;

mod tag {
    //! The tags, under the names of the format's specification without `_EXT`.

    pub(super) const NEW_FLOAT: u8 = 70;
    pub(super) const BIT_BINARY: u8 = 77;
    pub(super) const COMPRESSED: u8 = 80;
    pub(super) const NEW_PID: u8 = 88;
    pub(super) const NEW_PORT: u8 = 89;
    pub(super) const NEWER_REFERENCE: u8 = 90;
    pub(super) const SMALL_INTEGER: u8 = 97;
    pub(super) const INTEGER: u8 = 98;
    pub(super) const FLOAT: u8 = 99;
    pub(super) const ATOM: u8 = 100;
    pub(super) const REFERENCE: u8 = 101;
    pub(super) const PORT: u8 = 102;
    pub(super) const PID: u8 = 103;
    pub(super) const SMALL_TUPLE: u8 = 104;
    pub(super) const LARGE_TUPLE: u8 = 105;
    pub(super) const NIL: u8 = 106;
    pub(super) const STRING: u8 = 107;
    pub(super) const LIST: u8 = 108;
    pub(super) const BINARY: u8 = 109;
    pub(super) const SMALL_BIG: u8 = 110;
    pub(super) const LARGE_BIG: u8 = 111;
    pub(super) const NEW_FUN: u8 = 112;
    pub(super) const EXPORT: u8 = 113;
    pub(super) const NEW_REFERENCE: u8 = 114;
    pub(super) const SMALL_ATOM: u8 = 115;
    pub(super) const MAP: u8 = 116;
    pub(super) const ATOM_UTF8: u8 = 118;
    pub(super) const SMALL_ATOM_UTF8: u8 = 119;
    pub(super) const V4_PORT: u8 = 120;
    pub(super) const LOCAL: u8 = 121;
}
