//! Arbitrary bytes: the decoder returns an error, or a term that survives encoding and decoding.

#![no_main]

use ats_term::etf::{Atoms, Options, decode_first, encode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // A fuzzer would fill the atom table in the long run, but node and module names must be new at
    // times.
    let options = Options {
        atoms: Atoms::New { limit: 2 },
    };
    match decode_first(input, options) {
        Ok((term, length)) => {
            assert!(length <= input.len());
            let bytes = encode(&term).expect("a term read from bytes is not too large");
            let (again, length) =
                decode_first(&bytes, options).expect("what was written is a term");
            assert_eq!(length, bytes.len());
            assert_eq!(again, term);
            assert!(!term.to_string().is_empty());
        }
        Err(error) => assert!(error.offset <= input.len()),
    }
});
