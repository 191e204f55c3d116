//! Checks that every store has to pass. The tests of each store call them, here and in the crate of
//! the rival stores, which includes these files.

pub(crate) mod batches;
pub(crate) mod claims;
pub(crate) mod freeing;
pub(crate) mod ordered;
pub(crate) mod pop;
pub(crate) mod unordered;
