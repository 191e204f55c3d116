//! Stores for comparison, by their names.

use crate::table::TableType;

/// A store to compare with the one that tables of a type have: see [`ats_mem::rivals`]. For experiments; nothing is paid
/// for it by tables that have another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// A balanced tree behind one readers-writer lock, for tables with an order.
    SingleLock,
    /// A concurrent skip list, for tables with an order.
    SkipList,
    /// The contention adapting tree as its paper describes it, for tables with an order.
    PaperTree,
    /// The lock-free contention adapting tree, for tables with an order.
    LockFreeTree,
    /// The hash map of the standard library behind a lock with reader groups, for tables without an order.
    HashMap,
}

impl Rival {
    /// Whether tables of this type can be in it.
    pub fn suits(self, table_type: TableType) -> bool {
        match self {
            Rival::SingleLock | Rival::SkipList | Rival::PaperTree | Rival::LockFreeTree => {
                table_type == TableType::OrderedSet
            }
            Rival::HashMap => !table_type.is_ordered(),
        }
    }
}
