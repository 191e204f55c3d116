//! Integration tests of the crate in one program, so that shared code is compiled once.

mod common;
mod functions;
mod keeps_key;
mod model;
mod parse;
mod plan;
mod rules;
mod shapes;
mod work;
