//! The types of tables.

/// The type of a table: the equality and order of its keys, and whether a key can have several
/// objects.
///
/// ```
/// use ats::terms::TableType;
///
/// assert!(TableType::OrderedBag.is_bag() && TableType::OrderedBag.is_ordered());
/// assert_eq!(TableType::OrderedBag.name(), "ordered_bag");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableType {
    /// One object for each key. Keys are compared by `=:=`, and have no order.
    Set,
    /// One object for each key. Keys are compared by `==`, and are in Erlang's standard order.
    OrderedSet,
    /// Any number of different objects for each key. Keys are those of a set.
    Bag,
    /// Any number of objects for each key. Keys are those of a set.
    DuplicateBag,
    /// Any number of different objects for each key. Keys are those of an ordered set, in their
    /// order.
    OrderedBag,
    /// Any number of objects for each key. Keys are those of an ordered set, in their order.
    OrderedDuplicateBag,
}

impl TableType {
    /// Returns `true` if a key can have several objects.
    #[must_use]
    pub fn is_bag(self) -> bool {
        !matches!(self, TableType::Set | TableType::OrderedSet)
    }

    /// Returns `true` if keys are compared by `==`, and are in Erlang's standard order.
    #[must_use]
    pub fn is_ordered(self) -> bool {
        use TableType::{OrderedBag, OrderedDuplicateBag, OrderedSet};
        matches!(self, OrderedSet | OrderedBag | OrderedDuplicateBag)
    }

    /// Returns `true` if a key can have several objects, but no two equal ones.
    #[must_use]
    pub fn is_distinct_bag(self) -> bool {
        matches!(self, TableType::Bag | TableType::OrderedBag)
    }

    /// Returns the name of the type in Erlang.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            TableType::Set => "set",
            TableType::OrderedSet => "ordered_set",
            TableType::Bag => "bag",
            TableType::DuplicateBag => "duplicate_bag",
            TableType::OrderedBag => "ordered_bag",
            TableType::OrderedDuplicateBag => "ordered_duplicate_bag",
        }
    }
}
