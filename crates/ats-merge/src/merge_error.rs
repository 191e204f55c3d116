//! The error of values that cannot be merged.

/// The reason why two values cannot be merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// The earlier value is not of the kind.
    Earlier,
    /// The later value is not of the kind, or not of that of the earlier one.
    Later,
    /// The sum is larger than a number may be.
    SystemLimit,
}
