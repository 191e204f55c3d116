//! The ground floor: what lets threads share memory without waiting for each other.
//!
//! | module | what it holds |
//! |---|---|
//! | [`epoch`] | when memory that readers may still be looking at can be freed |
//! | [`lock`] | a lock of eight bytes that counts how often it was contended |
//! | [`census`] | exact sums over what many locks guard |
//! | [`seqlock`] | a number that changes in the same moment as what readers see elsewhere |
//! | [`count`] | what operations cost other processors, in a build made to count |
//! | [`counter`] | a counter that many threads can change without sharing a cache line |
//! | [`cache_padded`] | a value with cache lines of its own |
//! | [`thread`] | threads that work in the background, on all processors |
//!
//! Nothing here knows what is stored. Every primitive is written against one module, `shim`, that
//! is the standard library in an ordinary build, the model checker `loom` under `--cfg loom` and
//! the scheduler `shuttle` under `--cfg shuttle`, so that the code which is checked is the code
//! which runs. Under `--cfg counted` the same code [counts](count) what its operations cost other
//! processors.

pub mod backoff;
pub mod cache_padded;
pub mod census;
pub mod count;
pub mod counter;
pub mod epoch;
pub mod futex;
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
