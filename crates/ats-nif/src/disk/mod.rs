//! Tables in directories: a store on disk, the file that says which table it is of, and how
//! schedulers are spared waiting for it.

mod closed;
mod described;
mod failure;
mod merging;
mod opened;
mod pending;
mod replace;
#[cfg(feature = "forcing")]
mod restless;
mod settings;
mod table_store;

pub use closed::{Side, Told, copy, destroy, rename, repair};
pub use described::describe;
pub use failure::{Failure, word_of};
pub use opened::{Frozen, Opened};
pub use pending::{Pending, Record};
pub use replace::{Expected, Replace};
#[cfg(feature = "forcing")]
pub use restless::Restless;
pub use settings::{Access, Settings};
pub use table_store::TableStore;
