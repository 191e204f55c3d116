//! Tests of typed maps.

mod derived;
mod disk;
mod keys;
mod model;
mod serialized;
mod threads;
mod values;
