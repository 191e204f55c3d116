//! Match specifications: the query language of `ets`.
//!
//! A specification is a term, a list of clauses `{Head, Guards, Body}`. [`parse`](fn@parse) reads
//! it into a [`Spec`], which is plain data that other code can inspect, for example to find the
//! keys that can match at all. [`Program::new`] compiles it, and a [`Machine`] runs it on objects
//! in place, without building anything but results.
//!
//! | module | main type |
//! |---|---|
//! | [`spec`] | [`Spec`], the specification as data |
//! | `function` | [`Function`], the functions of guards and bodies |
//! | [`plan`] | [`Plan`](plan::Plan), the keys that must be read at all |
//!
//! A specification means the same as in `ets`, including undocumented behaviour: literals in heads
//! are compared exactly, with floats by their bits; a map in a head matches every map that has at
//! least its pairs; an exception in a guard makes the clause fail, and in a body it turns the
//! result into `'EXIT'`.
//!
//! The crate knows terms, but neither tables nor the virtual machine.

mod arithmetic;
mod code;
mod compare;
mod compile;
mod environment;
mod error;
mod evaluation_error;
mod fingerprint;
mod function;
mod functions;
mod keeps_key;
mod literals;
mod machine;
mod matching;
mod outcome;
mod owned_image;
mod parse;
pub mod plan;
mod run;
mod run_term;
mod shape;
mod show;
pub mod spec;
mod value;

pub use code::Program;
pub use environment::Environment;
pub use error::Error;
pub use function::{Function, FunctionSet};
pub use machine::Machine;
pub use outcome::{Outcome, Writer};
pub use parse::{Options, parse};
pub use run_term::RunTerm;
pub use shape::Shape;
pub use spec::{Spec, Words};
