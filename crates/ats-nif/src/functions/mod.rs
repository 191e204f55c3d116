//! The functions that Erlang calls, by what they are about.
//!
//! All begin alike: pin, find the table, check that the caller may do this, and only then look at
//! the other arguments. `ets` checks in this order, and it decides which cause an error names.
//!
//! [`access`], [`arguments`], [`object_terms`] and [`slices`] have what they share.

mod access;
mod arguments;
mod counters;
mod disk;
#[cfg(feature = "forcing")]
mod forcing;
mod info;
mod merge;
mod moment;
mod object_terms;
mod objects;
mod order_statistics;
mod pop;
mod range;
#[cfg(feature = "rivals")]
mod rival;
mod select;
mod slices;
mod snapshot;
mod tables;
mod take_all;
mod unprotected;
mod walks;

pub(crate) use moment::Reading;
pub(crate) use snapshot::{ChangedKeys, HeldSnapshot};
pub(crate) use take_all::TakenObjects;

use crate::sys;

/// The functions of this module, for the VM.
pub(crate) fn all() -> Vec<sys::ErlNifFunc> {
    let mut functions = Vec::new();
    functions.extend(tables::functions());
    functions.extend(info::functions());
    functions.extend(objects::functions());
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
    functions.extend(disk::functions());
    #[cfg(feature = "forcing")]
    functions.extend(forcing::functions());
    functions
}
