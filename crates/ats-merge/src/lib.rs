//! Merges: functions that make one value out of an earlier and a later one.
//!
//! A [`Merge`] is *associative*: merging `a` with `b` and the result with `c` gives what merging `a` with
//! the merge of `b` and `c` gives. It keeps the order of time: the earlier value stands before the later
//! one. So it does not matter which values are merged first, as long as neighbours in time are merged.
//! Writes can be merged one by one into a value in memory, or be kept apart and merged later, in any groups.
//!
//! | merge | values | result |
//! |---|---|---|
//! | `sum` | numbers | what `+` gives; for floats associative up to rounding, as floats are |
//! | `min`, `max` | any terms | what `erlang:min/2` and `max/2` give: the earlier one of two that are `==` |
//! | `first`, `last` | any terms | the earlier or the later one |
//! | `append` | proper lists, or binaries | the earlier one with the later one behind it |
//! | `union` | `ordsets`, or maps | the union; of two elements that are `==` the earlier one, of two values of the same key of a map the later one |
//! | `{vector, [Merge]}` | tuples of that size | each element merged by its own merge; no vector within a vector |
//!
//! The values of a merge form a *kind*, and a merge of two values of the kind is of the kind (but for sums
//! that are larger than a number may be). What is no value of the kind is refused, also as the first one:
//! see [`Merge::takes`].
//!
//! Values are terms inside images, wherever they are kept. What is made of them is a [`Merged`], which
//! borrows what it can, and is itself a term of which an image can be made.

mod merge;
mod merged;
mod refused;
mod sets;

pub use merge::{Merge, Simple};
pub use merged::{Merged, MergedTerm};
pub use refused::Refused;
