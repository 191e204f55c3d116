//! Running match specifications on tables.
//!
//! A [`Query`] is a compiled specification together with the plan of what a table has to read for
//! it. It is run in slices: each does about as much as fits in its [time](Slice), and leaves a
//! [`Cursor`] from which the next one goes on. A cursor is plain data and holds nothing of the
//! table, so the caller that runs a query may stop at any time without any effect on other threads.
//!
//! That a table without order need not be fixed between slices follows from how it is
//! [scanned](ats_mem::Backend::resume_scan): in an order that does not depend on its layout, from
//! behind any key.

mod change;
mod cursor;
mod query;
mod read;
mod rerun;
mod walk;

pub use change::Changed;
pub use cursor::{At, Cursor, Progress};
pub use query::Query;
pub use read::{Runner, Selection};
pub use walk::Slice;
