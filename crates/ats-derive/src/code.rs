//! The words of the traits, and the code that is made.

use proc_macro2::TokenStream;

/// The words of a trait that is derived.
pub(crate) struct Words {
    /// The trait that reads, and the one that writes.
    pub(crate) reads: &'static str,
    pub(crate) writes: &'static str,
    pub(crate) bytes: &'static str,
    pub(crate) is_key: bool,
}

pub(crate) const KEY: Words = Words {
    reads: "Key",
    writes: "AsKey",
    bytes: "KeyBytes",
    is_key: true,
};

pub(crate) const VALUE: Words = Words {
    reads: "Value",
    writes: "AsValue",
    bytes: "ValueBytes",
    is_key: false,
};

/// The code of a type: names in it begin so that no constant of the program has them.
pub(crate) struct Code {
    /// The statements that write a value.
    pub(crate) encode: TokenStream,
    /// The expression that tells if the parts are proven.
    pub(crate) is_proven: TokenStream,
    /// The expression that reads a value, if it is there.
    pub(crate) decode: TokenStream,
}
