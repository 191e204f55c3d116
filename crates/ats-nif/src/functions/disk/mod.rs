//! Functions that only tables in directories have.
//!
//! All other functions treat a table on disk like any table. [`access`] and [`terms`] are shared by
//! the functions here.

mod access;
mod attempt;
mod closed;
mod diff;
mod endings;
mod files;
mod held_snapshot;
mod info;
mod merge;
mod open;
mod read;
mod snapshot;
mod stage;
mod take_all;
mod terms;
mod walk;
mod write;

use crate::sys;

pub(super) fn functions() -> Vec<sys::ErlNifFunc> {
    let mut functions = Vec::new();
    functions.extend(open::functions());
    functions.extend(closed::functions());
    functions.extend(read::functions());
    functions.extend(walk::functions());
    functions.extend(snapshot::functions());
    functions.extend(held_snapshot::functions());
    functions.extend(diff::functions());
    functions.extend(write::functions());
    functions.extend(attempt::functions());
    functions.extend(stage::functions());
    functions.extend(take_all::functions());
    functions.extend(merge::functions());
    functions.extend(files::functions());
    functions.extend(info::functions());
    functions
}
