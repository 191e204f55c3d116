//! Running match specifications on tables.
//!
//! A [`Query`] is a compiled specification together with a plan: the parts of a table that it
//! reads. It is run in slices: each does about as much work as fits in its [time](Slice), and
//! leaves a [`Cursor`] from which the next slice continues. A cursor is plain data and holds no
//! part of the table, so the caller may stop a query at any time without any effect on other
//! threads.
//!
//! A table without order need not be fixed between slices, because a [walk](ats_mem::Records::walk)
//! follows an order that does not depend on the layout of the table, and can begin behind any key.
//!
//! ```
//! use ats::terms::select::{Cursor, Progress, Query, Runner, Selection, Slice};
//! use ats::terms::{Direction, Table, TableType, TermHost, Workspace, Zeros};
//! use ats_match::{Environment, FunctionSet, Options, Program, Words, parse};
//! use ats_term::image::atom_word;
//! use ats_term::{Atom, Term};
//! use std::ops::ControlFlow;
//! use std::sync::Arc;
//!
//! /// A program that is not a process of the Erlang VM.
//! struct NoProcess;
//!
//! fn word(text: &str) -> u64 {
//!     atom_word(Atom::new(text).expect("a short text").id())
//! }
//!
//! // SAFETY: the words are those of atoms of the host of terms.
//! unsafe impl Environment for NoProcess {
//!     fn self_word(&self) -> Option<u64> {
//!         None
//!     }
//!     fn node_word(&self) -> u64 {
//!         word("nonode@nohost")
//!     }
//!     fn atom_word(&self, text: &str) -> Option<u64> {
//!         Some(word(text))
//!     }
//! }
//!
//! let table = Table::<TermHost>::new(TableType::OrderedSet, 1);
//! let mut work = Workspace::new();
//! for key in 0..1000 {
//!     table.insert(&Term::from((key, "object")), &mut work)?;
//! }
//!
//! // [{{'$1', '_'}, [{'<', '$1', 3}], ['$_']}]
//! let atom = |text| Term::Atom(Atom::new(text).expect("a short text"));
//! let head = Term::from((atom("$1"), atom("_")));
//! let guards = Term::from(vec![Term::from((atom("<"), atom("$1"), 3))]);
//! let body = Term::from(vec![atom("$_")]);
//! let spec = Term::from(vec![Term::from((head, guards, body))]);
//! let options = Options {
//!     zeros: Zeros::Distinct,
//!     functions: FunctionSet::ALL,
//!     whole_bytes: true,
//!     // SAFETY: the words are those of atoms of the host of terms.
//!     words: unsafe { Words::new(word("true"), word("false"), word("EXIT")) },
//! };
//! let spec = parse(&spec, &options).expect("a specification");
//!
//! // Reads the keys below 3, and no others.
//! let query = Query::new(Arc::new(Program::new(spec)), &table);
//! let (mut cursor, mut runner) = (Cursor::new(Direction::Up), Runner::new(Zeros::Distinct));
//! let mut results = 0;
//! loop {
//!     let progress = table.select(
//!         &mut Selection {
//!             query: &query,
//!             cursor: &mut cursor,
//!             runner: &mut runner,
//!             environment: &NoProcess,
//!             slice: &Slice::new(),
//!             guard: &ats::terms::pin(),
//!             read_point: None,
//!         },
//!         &mut |_| {
//!             results += 1;
//!             ControlFlow::Continue(())
//!         },
//!     )?;
//!     if progress == Progress::Done {
//!         break;
//!     }
//! }
//! assert_eq!(results, 3);
//! # Ok::<(), ats::terms::Error>(())
//! ```

mod change;
mod cursor;
mod query;
mod read;
mod rerun;
mod walk;

pub use change::Changed;
pub use cursor::{At, Cursor, Progress};
pub use query::Query;
pub use read::{Runner, Selection};
pub use walk::Slice;
