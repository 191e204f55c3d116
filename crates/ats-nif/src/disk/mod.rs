//! Tables in directories: a store on disk, the description file, and calls that never block a
//! normal scheduler.

mod checkpoint;
mod closed;
mod description_file;
mod failure;
mod open_table;
mod pending;
mod replace;
mod settings;
#[cfg(feature = "forcing")]
mod stress_store;
mod table_merge;
mod table_store;
mod target;

pub use checkpoint::checkpoint;
pub use closed::{DescriptionHint, Side, copy, destroy, rename, repair};
pub use description_file::describe;
pub use failure::{Failure, word_of};
pub use open_table::{OpenTable, TableSnapshot};
pub use pending::{Pending, Record};
pub use replace::{Expected, Replace};
pub use settings::{Access, Settings};
#[cfg(feature = "forcing")]
pub use stress_store::StressStore;
pub use table_store::TableStore;
