//! Epoch-based reclamation: memory that readers may still be looking at is freed when none can be.
//!
//! Readers of the structures built on this take no lock, so a writer that removes an object cannot
//! know whether another thread still looks at it. It hands the object over ([`Guard::retire`]), and
//! the object is freed once every reader that could have seen it has moved on.
//!
//! # Pinning
//! A thread that is about to read shared objects first *pins* itself with [`pin`]. The thread
//! copies the global epoch, a number that only grows, to a slot of its own. The copy is the promise
//! "I may be looking at anything that was reachable since then". Dropping the [`Guard`] clears the
//! copy. Pinning writes only to the thread's own cache line, costs a few nanoseconds and nests:
//! inner guards only count. Slots are handed from threads that end to threads that begin and are
//! never freed.
//!
//! # Bags
//! A retired object goes to the bag of its thread, tagged with the epoch of the moment. It is
//! *ripe* when three more epochs have begun. Freeing a whole bag at once makes threads fight in the
//! memory allocator, and makes one operation pay for many; so every 32nd retirement takes at most
//! 64 ripe objects, the oldest, out of the bag, and one of a large object takes two. They are freed
//! when the thread drops its last guard: a thread that retires may hold a lock, and objects can
//! take long to free, whatever it is that they own.
//!
//! The owner of a bag enters it without an atomic change; other threads that empty it, which is
//! rare, execute the fences of all threads for that (`biased`).
//!
//! # Advancing
//! After 128 to 2048 retirements, as many as make the price of an attempt small (`advance_rate`),
//! or after retirements of objects that keep 256 KiB from being used, a thread tries to begin the
//! next epoch. That is possible when every pinned thread has the present one in its slot. The
//! number of bytes is what the thread that retires says: the object with all that is freed with it,
//! wherever that lies.
//!
//! The collector, a thread that the program lends, frees what the last retirements of a thread
//! leave in its bag: see [`Collector`]. [`collect`] advances and frees on demand.
//!
//! # Asymmetric fences
//! A reader must make its slot visible before it reads anything, which takes a full fence of about
//! 20 cycles each time it pins. Advancing is rarer by orders of magnitude. On Linux the advancing
//! thread therefore executes the fences of all threads, with the system call `membarrier`, and the
//! fence of the reader is one for the compiler alone. Elsewhere both sides execute ordinary fences,
//! and so they do from the moment on at which the system refuses the call: nothing is freed for one
//! second then. The module `barrier` proves why that is safe.
//!
//! # How much garbage there can be, and for how long
//! If no thread stays pinned, and there is a collector, then
//! - of a thread that retires steadily: about four times 2048 objects or four times (256 KiB plus
//!   what the largest object keeps), besides what an earlier delay has piled up, which shrinks by
//!   one object per retirement, and by what the collector frees of a bag of more than 16,384
//!   objects or 8 MiB;
//! - of a thread that retires fewer than 32 objects in 20 ms, and of one that has stopped: what it
//!   retired in the last 40 ms. All is freed within 100 ms of the last retirement, unless freeing
//!   itself takes longer, or the system keeps the collector from running.
//!
//! **A thread that stays pinned stops the epoch and nothing that is retired meanwhile is freed**:
//! memory grows by what is retired. It stays safe, and freeing resumes as soon as the guard goes.
//! So a thread that reads for long should call [`Guard::repin`] often, and no thread should wait,
//! or make something large, while it is pinned.
//!
//! # Invariants and why nothing is freed too early
//! Let `L` stand for the light half of the asymmetric fence and `H` for the heavy half. One `L` and
//! one `H` are always ordered: what comes before the first is visible after the second. Two `L` are
//! not.
//!
//! - EPOCH-1. The part `own` of a slot is touched only by the thread that owns the slot. `owned`
//!   changes hands with acquire and release.
//! - EPOCH-2. Retiring is: unlink the object, `L`, read the epoch `t`. Pinning is: read the epoch
//!   `r`, write it to the slot, `L`, read objects. The step from `e` to `e + 1` is: read `e`, `H`,
//!   see in every slot either nothing or `e`, compare-and-swap `e` to `e + 1`.
//! - EPOCH-3. *When an object retired in `t` is freed, in `t + 3` or later, no thread sees it.*
//!   Consider the `H` of the step from `t + 1`, called `H1`, and that of the step from `t + 2`,
//!   called `H2`. The retiring `L` comes before `H1`: otherwise the retiring thread, reading the
//!   epoch after `L`, would have seen the `t + 1` that was there before `H1`. So after `H1` every
//!   thread sees the object unlinked. Now take a reader.
//!   - It read an epoch of `t + 2` or later, with acquire, so it reads after `H1` and does not find
//!     the object.
//!   - It read an older epoch and its `L` comes before `H2`: the scan of that step saw its slot and
//!     failed unless it had unpinned.
//!   - It read an older epoch and its `L` comes after `H2`, hence after `H1`: it does not find the
//!     object.
//!
//!   With only two epochs of grace the first case would include readers of `t + 1`, which is
//!   ordered after nothing but a step that the retiring thread has not noticed yet; a fence of the
//!   processor in every retirement would be needed instead.
//! - EPOCH-4. *What a reader did happens before the freeing.* It unpins, and pins again, with
//!   release; the scan reads that and acquires; the epoch passes it on, by a chain of
//!   compare-and-swaps, to the thread that reads `t + 3` with acquire and frees.
//!
//! - EPOCH-5. *What a guard of epoch `r` could reach is not freed under a later guard that reads
//!   `r`, too.* If it was retired at all, then in `t >= r - 1`, by the first case of EPOCH-3, so it
//!   is freed in `r + 2` or later. The later guard read the present epoch after its `L`, and it was
//!   `r`. The step from `r + 1` begins after that, so its `H` comes after this `L`, and it fails as
//!   long as the guard lives.
//!
//! - EPOCH-6. *When a [`Grace`] is over, no thread is in what was unlinked before it was asked
//!   for*, and what those that were in it did there has happened before. It reads the epoch after
//!   `L`, as retiring does, and is over in the epoch in which an object retired in its place would
//!   be freed, read with acquire: EPOCH-3 and EPOCH-4 hold for it as for the object.
//!
//! - EPOCH-7. A slot stays where it is, and `next` as it was published, as long as the domain
//!   lives.
//!
//! # Sources
//! Epochs: K. Fraser, *Practical lock-freedom*, 2004. Freeing a little at a time: D. Kim, T. Brown,
//! A. Singh, *Are your epochs too epic? Batch free can be harmful*, PPoPP 2024. Good for many short
//! reads; hazard pointers bound the garbage also under a stalled reader, but cost every pointer a
//! reader follows.

mod advance_rate;
mod bag;
mod barrier;
mod biased;
mod collector;
mod domain;
mod guard;
#[cfg(all(test, loom))]
mod models;
mod slot;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod wake_up;

pub use collector::{Collector, Next, wake};
pub use guard::{Grace, Guard, collect, pending, pin};
