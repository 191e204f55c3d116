//! The number of random programs to run.

use proptest::prelude::ProptestConfig;

/// Returns this number, unless `PROPTEST_CASES` says otherwise.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(cases),
    }
}
