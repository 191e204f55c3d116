//! The two kinds of tables that are looked at.

use ats::terms::TableType;

/// A kind of table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Implemented by the contention adapting tree.
    Ordered,
    /// Implemented by the hash table.
    Hash,
}

impl TableKind {
    /// Both.
    pub const ALL: [TableKind; 2] = [TableKind::Ordered, TableKind::Hash];

    /// Returns the name in tables and files.
    pub fn id(self) -> &'static str {
        match self {
            TableKind::Ordered => "ordered_set",
            TableKind::Hash => "set",
        }
    }

    /// Returns the kind that files call so.
    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.id() == id)
    }

    /// Returns the type of such a table.
    pub fn table_type(self) -> TableType {
        match self {
            TableKind::Ordered => TableType::OrderedSet,
            TableKind::Hash => TableType::Set,
        }
    }
}
