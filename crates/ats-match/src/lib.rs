//! Match specifications: the language in which `ets` is asked for objects.
//!
//! A specification is a term, a list of clauses `{Head, Guards, Body}`. [`parse`](fn@parse) reads
//! it into a [`Spec`], which is data that others can look at, to find out, say, which keys can
//! match at all. [`Program::new`] compiles it, and a [`Machine`] runs it on objects where they are,
//! without building anything but results.
//!
//! | module | what it gives |
//! |---|---|
//! | [`spec`] | [`Spec`], the specification as data |
//! | `function` | [`Function`], what guards and bodies may call |
//! | [`plan`] | [`Plan`](plan::Plan), which keys must be read at all |
//!
//! A specification means what it means in `ets`, also where the documentation of `ets` does not say
//! so: literals in heads are compared exactly, with floats by their bits; a map in a head matches
//! every map that has at least its pairs; an exception in a guard makes the clause fail, and in a
//! body it leaves `'EXIT'` in the place of what failed.
//!
//! Terms are known here, but not where objects live, and not the virtual machine.

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
mod machine;
mod matching;
mod outcome;
mod owned_image;
mod parse;
pub mod plan;
mod run;
mod run_term;
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
pub use spec::{Spec, Words};
