//! Pinning: guards of the program's threads, and their global domain. The module [`epoch`](super)
//! explains and proves the scheme.

use super::domain::Domain;
use super::slot::Slot;
use crate::shim::{constants_of_threads, lazy_static};
use std::cell::{Cell, OnceCell};
use std::fmt;
use std::marker::PhantomData;

lazy_static! {
    pub(super) static ref DOMAIN: Domain = Domain::new();
}

constants_of_threads! {
    /// The slot of this thread, after its first pin.
    static SLOT: Cell<Option<&'static Slot>> = Cell::new(None);

    /// Gives the slot back when the thread exits. Accessed only when a slot is taken.
    static LEAVING: OnceCell<Leaving> = OnceCell::new();
}

struct Leaving(&'static Slot);

impl Drop for Leaving {
    fn drop(&mut self) {
        // A later guard, taken by the destructor of another thread-local, gets another slot.
        let _ = SLOT.try_with(|slot| slot.set(None));
        self.0.leave();
    }
}

/// Pins the calling thread: no object reachable from now on is freed while the guard lives.
///
/// Takes a few nanoseconds; nests; writes no memory that other threads write. The first call in a
/// thread may allocate.
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
    // The model checker drops the domain when its first thread ends, although others may not have
    // given their slots back yet.
    let registered = if cfg!(loom) {
        Ok(true)
    } else {
        LEAVING.try_with(|leaving| leaving.set(Leaving(slot)).is_ok())
    };
    if matches!(registered, Ok(true)) {
        SLOT.with(|own| own.set(Some(slot)));
    } else {
        // The thread is exiting and its destructors have run: the slot serves this guard only.
        slot.leave();
    }
    guard
}

/// Advances the epoch as far as pinned threads allow and frees the ripe objects of all threads.
/// Returns the number of objects freed.
///
/// If no thread is pinned, everything retired before the call is freed. O(objects freed plus
/// threads); at most three system calls and one for each thousand objects, none when there is
/// nothing to free. Any number of threads may call it at once. A `free` function must not call it.
pub fn collect() -> usize {
    DOMAIN.collect()
}

/// Returns the number of objects that wait to be freed, and their bytes as stated by the retiring
/// threads. Approximate while other threads retire; objects that a pinned thread is about to free
/// do not count. O(threads).
pub fn pending() -> (usize, usize) {
    DOMAIN.pending()
}

/// A grace period, after which no thread can access objects unlinked before: see [`Guard::grace`].
#[derive(Clone, Copy, Debug)]
#[must_use = "it says nothing until it is over"]
pub struct Grace {
    /// The epoch in which the period is over.
    end: u64,
}

impl Grace {
    /// Returns `true` if the period is over; otherwise tries to advance the epoch.
    ///
    /// Meant to be polled by a thread that is not pinned: the period never ends while that thread
    /// is, and not before all threads unpin that were pinned at its begin. O(1) if it is over, else
    /// O(threads) and at most three system calls. Frees nothing.
    pub fn is_over(self) -> bool {
        DOMAIN.has_come(self.end)
    }
}

/// A guard that keeps its thread pinned; see [`pin`].
#[must_use = "the thread stays pinned only as long as the guard lives"]
pub struct Guard {
    slot: &'static Slot,
    /// A marker: slots belong to threads, so a guard must stay on its thread.
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

    /// Retires an object that has been made unreachable: `free(pointer)` is called once, later, by
    /// any thread, when no thread can access it any more. The caller may go on reading it under
    /// this guard.
    ///
    /// `bytes` is the approximate amount of memory that freeing the object gives back: its own, and
    /// all other memory freed with it. It decides when threads advance the epoch.
    ///
    /// Amortised O(1), and frees nothing, so it may be called under a lock. When the last guard of
    /// the thread is dropped, or [repinned](Guard::repin), as a rule two objects are freed for each
    /// retirement since then. At most one system call to advance the epoch, and one to wake
    /// the collector.
    ///
    /// # Safety
    /// - No thread that pins from now on can reach the object, and it is retired only once.
    /// - A thread that can still access it does so under a guard taken before it became
    ///   unreachable.
    /// - `free` may be called with `pointer` from any thread, does not unwind, and does not call
    ///   [`collect`]. It may pin and retire.
    #[inline]
    pub unsafe fn retire(&self, pointer: *mut u8, bytes: usize, free: unsafe fn(*mut u8)) {
        // SAFETY: the caller promises that no thread that pins from now on can reach the object and
        // that it is retired only once. The guard shows that the thread owns the slot (EPOCH-1) and
        // is pinned (EPOCH-2).
        unsafe { DOMAIN.retire(self.slot, pointer, bytes, free) }
    }

    /// Retires an object in a box, like [`retire`](Guard::retire).
    ///
    /// # Safety
    /// The same as for `retire`; in addition `pointer` must come from [`Box::into_raw`].
    pub unsafe fn retire_box<T: Send>(&self, pointer: *mut T) {
        unsafe fn free<T>(pointer: *mut u8) {
            // SAFETY: the pointer came from a box of this type and no other thread has it.
            drop(unsafe { Box::from_raw(pointer.cast::<T>()) });
        }
        // SAFETY: the caller promises that no thread that pins from now on can reach the object,
        // that it is retired only once, and that it came from a box of `T`, as `free` expects
        // (EPOCH-3).
        unsafe { self.retire(pointer.cast(), size_of::<T>(), free::<T>) }
    }

    /// Begins a grace period, after which no thread can access objects unlinked before this call:
    /// all threads that could have found them have dropped their guards, and their writes are
    /// visible. O(1).
    pub fn grace(&self) -> Grace {
        Grace {
            end: DOMAIN.end_of_grace(),
        }
    }

    /// Returns the epoch in which the thread is pinned, for [`is_still`](Guard::is_still).
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.slot.epoch()
    }

    /// Returns a number that distinguishes the thread from others that live at the same time: among
    /// up to 256 threads no two have the same. As a rule it is the same under all guards of the
    /// thread.
    #[inline]
    pub fn thread_tag(&self) -> u8 {
        self.slot.number as u8
    }

    /// Returns `true` if this is still the current epoch. If it is, and an earlier guard was pinned
    /// in it, then no object reachable under that guard has been freed, or will be while this guard
    /// lives. So a pointer can be cached from one guard to the next, although its object may have
    /// been unlinked meanwhile.
    #[inline]
    pub fn is_still(&self, epoch: u64) -> bool {
        DOMAIN.is_still(epoch)
    }

    /// Unpins and pins again, so that a long scan does not delay reclamation. The exclusive borrow
    /// ensures that no earlier reference is used afterwards. Does nothing and returns `false` if
    /// the thread has another guard.
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
