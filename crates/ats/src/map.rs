#[macro_use]
mod shared;

mod bounds;
mod builder;
#[cfg(feature = "disk")]
mod disk;
mod hash;
mod key;
mod kind;
mod limited;
mod making;
mod ordered;
mod piece;
mod records;
#[cfg(feature = "serde")]
mod serialize;
mod store;
mod store_of_map;
mod transaction;
mod value;
mod words;

pub use bounds::{ByteBounds, KeyBounds, KeyPrefix};
pub use builder::MapBuilder;
#[cfg(feature = "disk")]
pub use disk::{DiskBatch, DiskIter, DiskMap, DiskSnapshot, DiskTransaction};
pub use hash::{HashMap, Iter as HashIter, Snapshot as HashSnapshot};
pub use key::{AsKey, Key, KeyBytes, KeyReader};
pub use kind::{Limited, MapKind, Unlimited};
pub use ordered::{Iter as OrderedIter, OrderedMap, Snapshot as OrderedSnapshot};
pub use transaction::{MapView, TransactError};
#[cfg(feature = "serde")]
pub use value::Serde;
#[doc(hidden)]
pub use value::sum_of_lengths;
pub use value::{AsValue, Value, ValueBytes, take_part};
