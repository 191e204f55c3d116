//! When memory that readers may still be looking at can be freed: epoch-based reclamation.
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
//! A retired object goes to the bag of its thread, tagged with the epoch of the moment. It is *ripe*
//! when three more epochs have begun. Freeing a whole bag at once makes threads fight in the
//! memory allocator; so every retirement takes at most two ripe objects, the oldest, out of the bag. They
//! are freed when the thread drops its last guard: a thread that retires may hold a lock, and objects can
//! take long to free, whatever it is that they own.
//!
//! # Advancing
//! After 128 retirements, or after retirements of objects that keep 256 KiB from being used, a thread
//! tries to begin the next epoch. That is possible when every pinned thread has the present one in
//! its slot. The number of bytes is what the thread that retires says: the object with all that is
//! freed with it, wherever that lies.
//!
//! What the last retirements of a thread leave in its bag is freed by the collector, a thread that
//! the program lends: see [`Collector`]. [`collect`] advances and frees on demand.
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
//! - of a thread that retires steadily: about four times 128 objects or four times (256 KiB plus what the
//!   largest object keeps), besides what an earlier delay has piled up, which shrinks by one object per
//!   retirement, and by what the collector frees of a bag of more than 4096 objects or 8 MiB;
//! - of a thread that retires fewer than 32 objects in 20 ms, and of one that has stopped: what it retired
//!   in the last 40 ms. All is freed within 100 ms of the last retirement, unless freeing itself takes
//!   longer, or the system keeps the collector from running.
//!
//! **A thread that stays pinned stops the epoch and nothing that is retired meanwhile is freed**: memory
//! grows by what is retired. It stays safe, and freeing resumes as soon as the guard goes. So a thread that
//! reads for long should call [`Guard::repin`] often, and no thread should wait, or make something large,
//! while it is pinned.
//!
//! # Invariants and why nothing is freed too early
//! Let `L` stand for the light half of the asymmetric fence and `H` for the heavy half. One `L` and
//! one `H` are always ordered: what comes before the first is visible after the second. Two `L` are
//! not.
//!
//! - E1. The part `own` of a slot is touched only by the thread that owns the slot. `owned` changes
//!   hands with acquire and release.
//! - E2. Retiring is: unlink the object, `L`, read the epoch `t`. Pinning is: read the epoch `r`,
//!   write it to the slot, `L`, read objects. The step from `e` to `e + 1` is: read `e`, `H`, see
//!   in every slot either nothing or `e`, compare-and-swap `e` to `e + 1`.
//! - E3. *When an object retired in `t` is freed, in `t + 3` or later, no thread sees it.*
//!   Consider the `H` of the step from `t + 1`, called `H1`, and that of the step from `t + 2`, called
//!   `H2`. The retiring `L` comes before `H1`: otherwise the retiring thread, reading the epoch after
//!   `L`, would have seen the `t + 1` that was there before `H1`. So after `H1` every thread sees the
//!   object unlinked. Now take a reader.
//!   - It read an epoch of `t + 2` or later, with acquire, so it reads after `H1` and does not find the
//!     object.
//!   - It read an older epoch and its `L` comes before `H2`: the scan of that step saw its slot and
//!     failed unless it had unpinned.
//!   - It read an older epoch and its `L` comes after `H2`, hence after `H1`: it does not find the
//!     object.
//!
//!   With only two epochs of grace the first case would include readers of `t + 1`, which is ordered
//!   after nothing but a step that the retiring thread has not noticed yet; a fence of the processor
//!   in every retirement would be needed instead.
//! - E4. *What a reader did happens before the freeing.* It unpins, and pins again, with release; the
//!   scan reads that and acquires; the epoch passes it on, by a chain of compare-and-swaps, to the
//!   thread that reads `t + 3` with acquire and frees.
//!
//! - E5. *What a guard of epoch `r` could reach is not freed under a later guard that reads `r`, too.* If
//!   it was retired at all, then in `t >= r - 1`, by the first case of E3, so it is freed in `r + 2` or
//!   later. The later guard read the present epoch after its `L`, and it was `r`. The step from `r + 1`
//!   begins after that, so its `H` comes after this `L`, and it fails as long as the guard lives.
//!
//! - E6. *When a [`Grace`] is over, no thread is in what was unlinked before it was asked for*, and what
//!   those that were in it did there has happened before. It reads the epoch after `L`, as retiring
//!   does, and is over in the epoch in which an object retired in its place would be freed, read with
//!   acquire: E3 and E4 hold for it as for the object.
//!
//! # Sources
//! Epochs: K. Fraser, *Practical lock-freedom*, 2004. Freeing a little at a time: D. Kim, T. Brown,
//! A. Singh, *Are your epochs too epic? Batch free can be harmful*, PPoPP 2024. Good for many short
//! reads; hazard pointers bound the garbage also under a stalled reader, but cost every pointer a
//! reader follows.

mod bag;
mod barrier;
mod bell;
mod collector;
mod domain;
#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

pub use collector::{Collector, Next, wake};
use domain::{Domain, Slot};
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::marker::PhantomData;

#[cfg(not(any(loom, shuttle)))]
static DOMAIN: std::sync::LazyLock<Domain> = std::sync::LazyLock::new(Domain::new);
#[cfg(not(any(loom, shuttle)))]
use std::thread_local;

#[cfg(any(loom, shuttle))]
use crate::shim::{lazy_static, thread_local};
#[cfg(any(loom, shuttle))]
lazy_static! {
    static ref DOMAIN: Domain = Domain::new();
}

#[cfg(not(any(loom, shuttle)))]
thread_local! {
    /// The slot of this thread, once it has one. Constant and without destructor, so that reading
    /// it is one instruction or two.
    static SLOT: Cell<Option<&'static Slot>> = const { Cell::new(None) };

    /// Gives the slot back when the thread ends. Touched only when a slot is taken.
    static LEAVING: OnceCell<Leaving> = const { OnceCell::new() };
}
#[cfg(any(loom, shuttle))]
thread_local! {
    static SLOT: Cell<Option<&'static Slot>> = Cell::new(None);
    static LEAVING: OnceCell<Leaving> = OnceCell::new();
}

struct Leaving(&'static Slot);

impl Drop for Leaving {
    fn drop(&mut self) {
        // A guard taken after this, by the destructor of another thread-local, gets another slot.
        let _ = SLOT.try_with(|slot| slot.set(None));
        self.0.leave();
    }
}

/// Pins the calling thread: nothing that is reachable from now on is freed while the guard lives.
///
/// A few nanoseconds; nests; writes no memory that other threads write. The first call in a thread
/// may allocate.
#[inline]
pub fn pin() -> Guard {
    match SLOT.with(Cell::get) {
        Some(slot) => Guard::new(slot),
        None => pin_first(),
    }
}

#[cold]
fn pin_first() -> Guard {
    let slot = DOMAIN.take_slot();
    let guard = Guard::new(slot);
    // The model checker drops the domain when its first thread ends, though others may not have
    // given their slots back yet.
    let registered = match cfg!(loom) {
        true => Ok(true),
        false => LEAVING.try_with(|leaving| leaving.set(Leaving(slot)).is_ok()),
    };
    if matches!(registered, Ok(true)) {
        SLOT.with(|own| own.set(Some(slot)));
    } else {
        // The thread is ending and its destructors have run: the slot serves this guard only.
        slot.leave();
    }
    guard
}

/// Advances the epoch as far as pinned threads allow and frees what is ripe, no matter which thread
/// retired it. Returns how many objects were freed.
///
/// If no thread is pinned, everything retired before the call is freed. O(objects freed plus
/// threads); at most three system calls, none when there is nothing to free. Any number of threads
/// may call it at once. It must not be called by a `free` function.
pub fn collect() -> usize {
    DOMAIN.collect()
}

/// How many objects wait to be freed, and how many bytes these are, as stated by the threads that retired
/// them. Approximate while other threads retire; objects that a pinned thread is about to free do not
/// count. O(threads).
pub fn pending() -> (usize, usize) {
    DOMAIN.pending()
}

/// A period at the end of which no thread is left in something: see [`Guard::grace`].
#[derive(Clone, Copy, Debug)]
#[must_use = "it says nothing until it is over"]
pub struct Grace {
    /// The epoch in which it is over.
    end: u64,
}

impl Grace {
    /// Whether it is over; helps the epoch along if it is not.
    ///
    /// To be asked by a thread that is not pinned, now and then: it never ends while the asking thread is,
    /// and not before those threads unpin that were pinned at its beginning. O(1) if it is over, else
    /// O(threads) and at most three system calls. Frees nothing.
    pub fn is_over(self) -> bool {
        DOMAIN.has_come(self.end)
    }
}

/// Keeps its thread pinned; see [`pin`].
#[must_use = "the thread stays pinned only as long as the guard lives"]
pub struct Guard {
    slot: &'static Slot,
    /// Slots belong to threads, so a guard must stay on its own.
    _not_send: PhantomData<*mut ()>,
}

impl Guard {
    #[inline]
    fn new(slot: &'static Slot) -> Self {
        DOMAIN.pin(slot);
        Self {
            slot,
            _not_send: PhantomData,
        }
    }

    /// Hands over an object that has been made unreachable: `free(pointer)` is called once, later, by
    /// any thread, when no thread can be looking at it any more. Until this guard goes, the caller
    /// too may go on reading it.
    ///
    /// `bytes` is about how much memory is kept from being used as long as the object is not freed: its
    /// own, and all other that is given back with it. Threads advance the epoch by it.
    ///
    /// Amortised O(1), and frees nothing: so it may be called under a lock. When the last guard of the thread
    /// goes, or is [pinned anew](Guard::repin), at most two objects are freed for each that was retired
    /// since then. At most one system call to advance the epoch, and one to wake the collector.
    ///
    /// # Safety
    /// - No thread that pins from now on can reach the object, and it is retired only once.
    /// - A thread that can still look at it does so under a guard taken before it became
    ///   unreachable.
    /// - `free` may be called with `pointer` from any thread, does not unwind, and does not call
    ///   [`collect`]. It may pin and retire.
    #[inline]
    pub unsafe fn retire(&self, pointer: *mut u8, bytes: usize, free: unsafe fn(*mut u8)) {
        // SAFETY: the contract is handed on; the guard shows that the thread owns the slot and is
        // pinned.
        unsafe { DOMAIN.retire(self.slot, pointer, bytes, free) }
    }

    /// [`retire`](Guard::retire) for an object in a box.
    ///
    /// # Safety
    /// As for `retire`; `pointer` came from [`Box::into_raw`].
    pub unsafe fn retire_box<T: Send>(&self, pointer: *mut T) {
        unsafe fn free<T>(pointer: *mut u8) {
            // SAFETY: the pointer came from a box of this type and no other thread has it.
            drop(unsafe { Box::from_raw(pointer.cast::<T>()) });
        }
        // SAFETY: the contract is handed on.
        unsafe { self.retire(pointer.cast(), size_of::<T>(), free::<T>) }
    }

    /// A period at the end of which no thread is in what has been unlinked before this call: all that could
    /// have found it have dropped their guards, and what they did there can be seen. O(1).
    pub fn grace(&self) -> Grace {
        Grace {
            end: DOMAIN.end_of_grace(),
        }
    }

    /// The epoch in which the thread is pinned, for [`is_still`](Guard::is_still).
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.slot.epoch()
    }

    /// Whether this is still the present epoch. If it is, and an earlier guard was pinned in it, then
    /// whatever could be reached under that guard has not been freed, and is not as long as this one
    /// lives: so a pointer can be remembered from one guard to the next, though it may lead to what was
    /// unlinked meanwhile.
    #[inline]
    pub fn is_still(&self, epoch: u64) -> bool {
        DOMAIN.is_still(epoch)
    }

    /// Lets go of everything read so far and pins anew, so that a long scan does not keep memory
    /// from being freed. That nothing read before is used afterwards is what the exclusive borrow
    /// is for. Does nothing and returns `false` if the thread has another guard.
    pub fn repin(&mut self) -> bool {
        DOMAIN.repin(self.slot)
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        self.slot.unpin();
    }
}
