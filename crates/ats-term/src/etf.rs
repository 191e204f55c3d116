//! The external term format of Erlang: terms as bytes for disks, networks and other programs.
//!
//! [`encode()`] writes what `term_to_binary(Term, [{minor_version, 2}])` writes in shape: UTF-8
//! atoms, floats of 8 bytes, identifiers with 32-bit creations. [`encode_into`] writes terms
//! wherever they live, for instance in an [image](crate::image), without making a
//! [`Term`](crate::Term) of them. [`decode()`] reads every tag that OTP 25 to 27 write and the
//! older ones they still read.
//!
//! The decoder accepts untrusted bytes. It never panics, does not recurse, allocates at most about
//! a hundred bytes for each byte of input whatever the lengths in it claim, makes at most as many
//! new atoms as it is [allowed](Atoms), and accepts nothing that is not a term: no NaN, no map with
//! a key twice, no bytes after the term. Compressed terms are rejected, since a few bytes of them
//! may stand for gigabytes.
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
mod error;
mod reader;
mod skip;
mod tag;

pub use decode::{Options, decode, decode_first, decode_sealed_fun};
pub use encode::{Node, TooLarge, encode, encode_into, encode_on_node};
pub use error::{DecodeError, DecodeErrorKind};
pub use reader::Atoms;
pub use skip::skip;
