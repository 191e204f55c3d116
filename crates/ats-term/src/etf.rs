//! The external term format of Erlang: terms as bytes for disks, networks and other programs.
//!
//! [`encode()`] writes the same form as `term_to_binary(Term, [{minor_version, 2}])`: UTF-8
//! atoms, floats of 8 bytes, identifiers with 32-bit creations. [`encode_into`] writes terms in any
//! representation, for instance in an [image](crate::image), without converting them to a
//! [`Term`](crate::Term). [`decode()`] reads every tag that OTP 25 to 27 write and the
//! older ones they still read.
//!
//! The decoder accepts untrusted bytes. It never panics, does not recurse, allocates at most about
//! a hundred bytes for each byte of input regardless of the lengths in it, makes at most as many
//! new atoms as it is [allowed](Atoms), and accepts only terms: no NaN, no map with
//! a key twice, no bytes after the term. Compressed terms are rejected, because a few bytes of them
//! may expand to gigabytes.
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
