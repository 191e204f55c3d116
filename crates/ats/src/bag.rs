//! The objects of one key of a bag, and how they change.
//!
//! A few objects lie one after the other in the record of the key
//! ([`ObjectList`](ats_term::image::ObjectList)); to change them copies them all. That is fast
//! while they are few. Once they are not, the key becomes a [large bag](large), and stays one until
//! it is removed.

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
pub(crate) use rules::{Rules, TooMany};
pub(crate) use selected::{Replace, Replacement, Selected};
