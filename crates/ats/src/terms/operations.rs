//! The operations of a table on objects: one file for each kind, all of them functions of
//! [`Table`](crate::terms::Table).

pub(crate) mod change;
pub(crate) mod counter;
pub(crate) mod delete;
pub(crate) mod exchange;
pub(crate) mod in_place;
pub(crate) mod insert;
pub(crate) mod lifetime;
mod lookup;
mod many;
pub(crate) mod merge;
pub(crate) mod order_statistics;
mod several_keys;
pub(crate) mod transact;
pub(crate) mod walk;
