//! The functions that Erlang calls, grouped by topic.
//!
//! All begin alike: they pin, find the table, check the caller's rights, and only then read the
//! other arguments. `ets` checks in this order, which decides the cause of an error.
//!
//! [`access`], [`arguments`], [`object_terms`] and [`slices`] hold shared code.

mod access;
mod arguments;
mod counters;
mod disk;
#[cfg(feature = "forcing")]
mod forcing;
mod info;
mod merge;
mod object_terms;
mod objects;
mod order_statistics;
mod pop;
mod range;
mod reading;
#[cfg(feature = "rivals")]
mod rival;
mod select;
mod several_keys;
mod slices;
mod snapshot;
mod tables;
mod take_all;
mod transact;
mod unprotected;
mod walks;

pub(crate) use reading::Reading;
pub(crate) use snapshot::{ChangedKeys, HeldSnapshot};
pub(crate) use take_all::TakenObjects;

use crate::sys;

/// Returns the function table for the VM.
pub(crate) fn all() -> Vec<sys::ErlNifFunc> {
    let mut functions = Vec::new();
    functions.extend(tables::functions());
    functions.extend(info::functions());
    functions.extend(objects::functions());
    functions.extend(several_keys::functions());
    functions.extend(counters::functions());
    functions.extend(walks::functions());
    functions.extend(select::functions());
    functions.extend(range::functions());
    functions.extend(order_statistics::functions());
    functions.extend(snapshot::functions());
    functions.extend(take_all::functions());
    functions.extend(unprotected::functions());
    functions.extend(pop::functions());
    functions.extend(merge::functions());
    functions.extend(transact::functions());
    functions.extend(disk::functions());
    #[cfg(feature = "forcing")]
    functions.extend(forcing::functions());
    functions
}
