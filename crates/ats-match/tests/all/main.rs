//! Tests of the crate from outside, in one program: what they share is compiled once.

mod common;
mod functions;
mod keeps_key;
mod model;
mod parse;
mod plan;
mod rules;
mod work;
