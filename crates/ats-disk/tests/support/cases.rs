//! How many random programs are run.

use proptest::prelude::ProptestConfig;

/// So many, unless `PROPTEST_CASES` says otherwise.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(cases),
    }
}
