//! The types of tables.

/// The rule that says which keys are the same, and if a key can have several objects.
///
/// ```
/// use ats::TableType;
///
/// assert!(TableType::OrderedBag.is_bag() && TableType::OrderedBag.is_ordered());
/// assert_eq!(TableType::OrderedBag.name(), "ordered_bag");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableType {
    /// One object per key; keys are the same if `=:=`. No order.
    Set,
    /// One object per key; keys are the same if `==`, and in Erlang's standard order.
    OrderedSet,
    /// Any number of different objects per key; keys as in a set.
    Bag,
    /// Any number of objects per key; keys as in a set.
    DuplicateBag,
    /// Any number of different objects per key; keys as in an ordered set, and in their order.
    OrderedBag,
    /// Any number of objects per key; keys as in an ordered set, and in their order.
    OrderedDuplicateBag,
}

impl TableType {
    /// Returns `true` if a key can have several objects.
    #[must_use]
    pub fn is_bag(self) -> bool {
        !matches!(self, TableType::Set | TableType::OrderedSet)
    }

    /// Returns `true` if keys are the same if `==`, and the table has them in Erlang's standard
    /// order.
    #[must_use]
    pub fn is_ordered(self) -> bool {
        use TableType::{OrderedBag, OrderedDuplicateBag, OrderedSet};
        matches!(self, OrderedSet | OrderedBag | OrderedDuplicateBag)
    }

    /// Returns `true` if a key can have several objects, but none of them twice.
    #[must_use]
    pub fn is_distinct_bag(self) -> bool {
        matches!(self, TableType::Bag | TableType::OrderedBag)
    }

    /// The name in Erlang.
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
