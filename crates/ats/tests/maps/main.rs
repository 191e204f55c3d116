//! Tests of typed maps.

mod attributes;
mod derived;
mod disk;
mod keys;
mod making;
mod model;
mod serialized;
mod threads;
mod values;
