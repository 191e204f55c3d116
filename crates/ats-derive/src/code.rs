//! The names in the traits, and the generated code.

use proc_macro2::TokenStream;

/// The names in a derived trait.
pub(crate) struct Words {
    /// The trait for decoding, and the one for encoding.
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

/// The generated code of a type. Its names have a prefix that no constant of the program has.
pub(crate) struct Code {
    /// Statements that encode a value.
    pub(crate) encode: TokenStream,
    /// Expression that is `true` if the parts are proven.
    pub(crate) is_proven: TokenStream,
    /// Expression that decodes a value, if there is one.
    pub(crate) decode: TokenStream,
}
