//! Merges: functions that make one value out of an earlier and a later one.
//!
//! A [`Merge`] is *associative*: merging `a` with `b` and the result with `c` gives the same as
//! merging `a` with the merge of `b` and `c`. It keeps the order of time: the earlier value stands
//! before the later one. So it does not matter which values are merged first, as long as neighbours
//! in time are merged. Writes can be merged one by one into a value in memory, or be kept apart and
//! merged later, in any groups.
//!
//! | merge | values | result | from |
//! |---|---|---|---|
//! | `replace`, `last` | any terms | the later one | `put` in all stores |
//! | `first` | any terms | the earlier one | |
//! | `{last, N}` | tuples of `N` elements or more | that of which the element `N` is greater; of two that are `==` the later one | timestamps of cells in Bigtable and Cassandra |
//! | `sum` | numbers | that of `+` | `uint64_sum_delete` of osmos, `UInt64AddOperator` of RocksDB |
//! | `min`, `max` | any terms | that of `erlang:min/2` and `max/2`: the earlier one of two that are `==` | `MaxOperator` of RocksDB, `max(x)`, `min(x)` of FoundationDB |
//! | `statistics` | numbers, and `{Min, Max, Sum, Count}` | the least and the greatest, the sum, and how many there were | |
//! | `append` | proper lists, or binaries | the earlier one with the later one behind it | `StringAppendOperator` of RocksDB |
//! | `union` | `ordsets`, or maps | the union; of two elements that are `==` the earlier one, of two values of the same key of a map the later one | joins of grow-only sets (Shapiro et al., 2011) |
//! | `intersection` | `ordsets`, or maps | the common elements, chosen as by `union`: `ordsets:intersection/2` leaves open which of two elements that are `==` | |
//! | `{vector, [Merge]}` | tuples of that size | each element merged by its own merge; vectors in each other up to 8 deep | `uint64_vector_sum_delete` of osmos |
//! | `{prune, Merge}` | as of `Merge`, which is `sum`, `append` or `union` | the same, but an empty value counts as missing | `delete` of osmos |
//!
//! The values of a merge form a *kind*, and a merge of two values of the kind is of the kind (but
//! for sums that are larger than a number may be). A term that is no value of the kind is refused,
//! also as the first one: see [`Merge::accepts`]. Lists and binaries, and ordered sets and maps,
//! are of the same kind, but not merged with each other.
//!
//! # Laws
//! | merge | identity: merged with it, all stay the same | base: older values do not matter | counts as missing |
//! |---|---|---|---|
//! | `replace`, `last` | | every value | |
//! | `first`, `{last, N}`, `min`, `max`, `statistics` | | | |
//! | `sum` | 0 | | |
//! | `append` | `[]` of lists, `<<>>` of binaries | | |
//! | `union` | `[]` of sets, `#{}` of maps | | |
//! | `intersection` | | `[]`, `#{}` | |
//! | `{vector, Merges}` | identities as elements | bases as elements | elements that all count as missing, at least one |
//! | `{prune, Merge}` | that of `Merge`, of all its values | | the identity |
//!
//! A value that counts as missing is neutral as the earlier one, so it makes no difference whether
//! a store has removed it before the next value comes ([`Merge::is_absent`]). That is why
//! `intersection` has none, and why 0 of `sum` stays: a counter that was counted down to 0 is
//! there. Operands older than a base need not be read ([`Merge::is_base`]), and are never refused
//! then.
//!
//! Sums of floats are associative up to rounding, as floats are, and one order of adding may be
//! larger than a number may be where another is not. A sum of 0 and `-0.0` is `0.0`, but for
//! `{prune, sum}`.
//!
//! # Complexity
//! Numbers, and merges that keep one of two values without comparing them, take O(1). Comparing
//! takes O(size) if both are tuples, lists, maps or bitstrings. `append`, `union` and
//! `intersection` take O(size of both), of maps expected.
//!
//! Values are terms inside images in any memory. The result is a [`Merged`], which borrows from
//! them where it can, and is itself a term of which an image can be made.

mod lists;
mod merge;
mod merge_error;
mod merged;
mod number;
mod order;
mod sets;
mod simple;
mod statistics;

pub use merge::Merge;
pub use merge_error::MergeError;
pub use merged::{Merged, MergedTerm};
pub use simple::Simple;
