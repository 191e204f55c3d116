//! The objects of one key of a bag, and their changes.
//!
//! The record of a key holds a few objects one after the other
//! ([`ObjectList`](ats_term::image::ObjectList)); a change copies them all. That is fast while they
//! are few. A key with many objects becomes a [large bag](large), and stays one until it is
//! removed.

mod buffers;
mod decided;
mod large;
mod objects;
mod rules;
mod selected;
mod since;

pub(crate) use buffers::{Buffers, NewObject};
pub(crate) use decided::{Decided, keep, remove};
pub(crate) use large::{Large, objects_from};
pub(crate) use objects::is_quick;
pub(crate) use rules::{OldVersion, Rules, TooMany};
pub(crate) use selected::{Replace, Replacement, Selected};
