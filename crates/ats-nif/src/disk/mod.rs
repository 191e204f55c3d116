//! Tables in directories: a store on disk, the file that says which table it is of, and how schedulers are spared
//! waiting for it.

mod closed;
mod failure;
mod opened;
mod pending;
mod polite;
#[cfg(feature = "forcing")]
mod restless;
mod table_store;

pub use closed::{Side, Told, copy, destroy, rename, repair};
pub use failure::{Failure, word_of};
pub use opened::{Opened, Settings, describe};
pub use pending::{Expected, Pending, Record, replace};
pub use polite::{Polite, politely};
#[cfg(feature = "forcing")]
pub use restless::Restless;
pub use table_store::TableStore;
