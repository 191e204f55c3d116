//! Synchronization primitives by which threads share memory, mostly without waiting for each other.
//!
//! | module | contents |
//! |---|---|
//! | [`epoch`] | reclamation of memory that readers may still access |
//! | [`lock`] | a lock of eight bytes that counts how often it was contended |
//! | [`census`] | exact sums over parts that have a lock each |
//! | [`seqlock`] | a number that changes at the same moment as published data |
//! | [`latch`] | a few words that change together, which readers copy without waiting |
//! | [`count`] | the cost of operations for other processors, in an instrumented build |
//! | [`counter`] | a counter that many threads change without sharing a cache line |
//! | [`clock`] | the time by which deadlines are told |
//! | [`cache_padded`] | a value alone on its cache lines |
//! | [`thread`] | background threads, on all processors |
//!
//! No module knows the stored data. Every primitive uses one module, `shim`, that is the standard
//! library in an ordinary build, the model checker `loom` under `--cfg loom` and the scheduler
//! `shuttle` under `--cfg shuttle`, so that the code that is checked is the code that runs. Under
//! `--cfg counted` the same code [counts](count) the cost of its operations for other processors.

pub mod backoff;
pub mod cache_padded;
pub mod census;
pub mod clock;
pub mod count;
pub mod counter;
pub mod epoch;
pub mod futex;
pub mod latch;
pub mod lock;
#[doc(hidden)]
pub mod model;
pub mod seqlock;
#[doc(hidden)]
pub mod shim;
pub mod thread;

pub use backoff::Backoff;
pub use cache_padded::CachePadded;
pub use census::{Census, Gate};
pub use counter::ShardedCounter;
pub use epoch::{Collector, Grace, Guard, collect, pending, pin};
pub use lock::{Held, Lock};
pub use seqlock::SeqlockNumber;
