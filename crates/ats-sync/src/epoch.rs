//! Epoch-based reclamation: memory is freed once no reader can still access it.
//!
//! Readers of the structures built on this take no lock, so a writer that removes an object cannot
//! know whether another thread still reads it. It retires the object ([`Guard::retire`]), which is
//! freed once every reader that could have seen it has moved on.
//!
//! # Pinning
//! A thread that is about to read shared objects first *pins* itself with [`pin`]. The thread
//! copies the global epoch, a number that only grows, to a slot of its own. The copy announces "I
//! may access anything that was reachable since then". Dropping the [`Guard`] clears the
//! copy. Pinning writes only to the thread's own cache line, costs a few nanoseconds and nests:
//! inner guards only count. New threads reuse the slots of exited ones; slots are never freed.
//!
//! # Bags
//! A retired object goes to the bag of its thread, tagged with the current epoch. It is *ripe* when
//! three more epochs have begun. Freeing a whole bag at once causes contention in the memory
//! allocator, and makes one operation pay for many; so every 32nd retirement takes at most 64 ripe
//! objects, the oldest, out of the bag, and that of a large object takes two. They are freed when
//! the thread drops its last guard: a thread that retires may hold a lock, and objects can take
//! long to free, because of the data that they own.
//!
//! The owner of a bag enters it without an atomic read-modify-write; the rare other threads that
//! empty it pay by executing the fences of all threads (`biased`).
//!
//! # Advancing
//! After 128 to 2048 retirements, depending on the cost of an attempt (`advance_rate`), or after
//! retirements of objects that hold 256 KiB, a thread tries to advance the epoch. That is possible
//! when every pinned thread has the current one in its slot. The retiring thread states the number
//! of bytes: the object with all memory that is freed with it.
//!
//! The collector, a thread that the program provides, frees the objects that the last retirements
//! of a thread leave in its bag: see [`Collector`]. [`collect`] advances and frees on demand.
//!
//! # Asymmetric fences
//! A reader must make its slot visible before it reads anything, which takes a full fence of about
//! 20 cycles each time it pins. Advancing is rarer by orders of magnitude. On Linux the advancing
//! thread therefore executes the fences of all threads, with the system call `membarrier`, and the
//! fence of the reader is one for the compiler alone. On other systems both sides execute ordinary
//! fences, and so they do once the system refuses the call; then nothing is freed for one second.
//! The module `barrier` proves why that is safe.
//!
//! # Bounds of garbage
//! If no thread stays pinned, and there is a collector, then
//! - a thread that retires steadily keeps about four times 2048 objects or four times (256 KiB plus
//!   the size of the largest object), besides the backlog of an earlier delay, which shrinks by one
//!   object per retirement, and by the objects that the collector frees from a bag of more than
//!   16,384 objects or 8 MiB;
//! - a thread that retires fewer than 32 objects in 20 ms, or that has stopped, keeps its
//!   retirements of the last 40 ms. All is freed within 100 ms of the last retirement, unless
//!   freeing itself takes longer, or the system keeps the collector from running.
//!
//! **A thread that stays pinned stops the epoch, and no object retired meanwhile is freed**: memory
//! grows with every retirement. It stays safe, and freeing resumes as soon as the guard is dropped.
//! So a thread that reads for long should call [`Guard::repin`] often, and no thread should wait,
//! or build something large, while it is pinned.
//!
//! # Invariants, and why nothing is freed too early
//! Let `L` stand for the light half of the asymmetric fence and `H` for the heavy half. One `L` and
//! one `H` are always ordered: everything before the first is visible after the second. Two `L` are
//! not.
//!
//! - EPOCH-1. Only the thread that owns a slot accesses its part `own`. `owned`
//!   changes hands with acquire and release.
//! - EPOCH-2. Retiring is: unlink the object, `L`, read the epoch `t`. Pinning is: read the epoch
//!   `r`, write it to the slot, `L`, read objects. The step from `e` to `e + 1` is: read `e`, `H`,
//!   see in every slot either idle or `e`, compare-and-swap `e` to `e + 1`.
//! - EPOCH-3. *When an object retired in `t` is freed, in `t + 3` or later, no thread can access
//!   it.* Consider the `H` of the step from `t + 1`, called `H1`, and that of the step from `t +
//!   2`, called `H2`. The retiring `L` comes before `H1`: otherwise the retiring thread, reading
//!   the epoch after `L`, would have seen the `t + 1` that was there before `H1`. So after `H1`
//!   every thread sees the object unlinked. Now take a reader.
//!   - It read an epoch of `t + 2` or later, with acquire, so it reads after `H1` and does not find
//!     the object.
//!   - It read an older epoch and its `L` comes before `H2`: the scan of that step saw its slot and
//!     failed unless it had unpinned.
//!   - It read an older epoch and its `L` comes after `H2`, hence after `H1`: it does not find the
//!     object.
//!
//!   With only two epochs of grace the first case would include readers of `t + 1`, which is
//!   ordered only after a step that the retiring thread has not noticed yet; then every retirement
//!   would need a processor fence.
//! - EPOCH-4. *All accesses of a reader happen before the freeing.* The reader unpins, and pins
//!   again, with release; the scan reads that and acquires; the epoch passes it on, by a chain of
//!   compare-and-swaps, to the thread that reads `t + 3` with acquire and frees.
//!
//! - EPOCH-5. *An object that a guard of epoch `r` could reach is not freed under a later guard
//!   that reads `r`, too.* If it was retired at all, then in `t >= r - 1`, by the first case of
//!   EPOCH-3, so it is freed in `r + 2` or later. The later guard read the current epoch after its
//!   `L`, and it was `r`. The step from `r + 1` begins after that, so its `H` comes after this `L`,
//!   and it fails as long as the guard lives.
//!
//! - EPOCH-6. *When a [`Grace`] is over, no thread can access an object unlinked before it began*,
//!   and all earlier accesses have happened before. It reads the epoch after `L`, like a
//!   retirement, and is over in the epoch in which an object retired at its begin would be freed,
//!   read with acquire: EPOCH-3 and EPOCH-4 hold for it as for such an object.
//!
//! - EPOCH-7. A slot does not move, and its `next` does not change after publication, as long as
//!   the domain lives.
//!
//! # Sources
//! Epochs: K. Fraser, *Practical lock-freedom*, 2004. Freeing a little at a time: D. Kim, T. Brown,
//! A. Singh, *Are your epochs too epic? Batch free can be harmful*, PPoPP 2024. Good for many short
//! reads; hazard pointers bound the garbage even under a stalled reader, but cost something for
//! every pointer a reader follows.

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
