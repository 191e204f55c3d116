//! Pinning: the guards of the threads of the program, and the domain in which they are pinned. The
//! module [`epoch`](super) explains and proves the scheme.

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
    /// The slot of this thread, once it has one.
    static SLOT: Cell<Option<&'static Slot>> = Cell::new(None);

    /// Gives the slot back when the thread ends. Touched only when a slot is taken.
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
/// threads); at most three system calls and one for each thousand objects, none when there is
/// nothing to free. Any number of threads may call it at once. It must not be called by a `free`
/// function.
pub fn collect() -> usize {
    DOMAIN.collect()
}

/// The number of objects that wait to be freed, and their bytes, as stated by the threads that
/// retired them. Approximate while other threads retire; objects that a pinned thread is about to
/// free do not count. O(threads).
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
    /// Returns `true` if it is over; helps the epoch along if it is not.
    ///
    /// To be asked by a thread that is not pinned, now and then: it never ends while the asking
    /// thread is, and not before those threads unpin that were pinned at its beginning. O(1) if it
    /// is over, else O(threads) and at most three system calls. Frees nothing.
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

    /// Hands over an object that has been made unreachable: `free(pointer)` is called once, later,
    /// by any thread, when no thread can be looking at it any more. Until this guard goes, the
    /// caller too may go on reading it.
    ///
    /// `bytes` is about how much memory is kept from being used as long as the object is not freed:
    /// its own, and all other that is given back with it. Threads advance the epoch by it.
    ///
    /// Amortised O(1), and frees nothing: so it may be called under a lock. When the last guard of
    /// the thread goes, or is [pinned anew](Guard::repin), as a rule two objects are freed for each
    /// that was retired since then. At most one system call to advance the epoch, and one to wake
    /// the collector.
    ///
    /// # Safety
    /// - No thread that pins from now on can reach the object, and it is retired only once.
    /// - A thread that can still look at it does so under a guard taken before it became
    ///   unreachable.
    /// - `free` may be called with `pointer` from any thread, does not unwind, and does not call
    ///   [`collect`]. It may pin and retire.
    #[inline]
    pub unsafe fn retire(&self, pointer: *mut u8, bytes: usize, free: unsafe fn(*mut u8)) {
        // SAFETY: the caller says that no thread that pins from now on can reach the object and
        // that it is retired only once. The guard shows that the thread owns the slot (EPOCH-1) and
        // is pinned (EPOCH-2).
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
        // SAFETY: the caller says that no thread that pins from now on can reach the object, that
        // it is retired only once, and that it came from a box of `T`, as `free` expects (EPOCH-3).
        unsafe { self.retire(pointer.cast(), size_of::<T>(), free::<T>) }
    }

    /// A period at the end of which no thread is in what has been unlinked before this call: all
    /// that could have found it have dropped their guards, and what they did there can be seen.
    /// O(1).
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

    /// A number by which the thread can be told from others that live at the same time: of up to
    /// 256 threads no two have the same. It is the same under all guards of the thread, as a rule.
    #[inline]
    pub fn thread_tag(&self) -> u8 {
        self.slot.number as u8
    }

    /// Returns `true` if this is still the present epoch. If it is, and an earlier guard was pinned
    /// in it, then whatever could be reached under that guard has not been freed, and is not as
    /// long as this one lives: so a pointer can be remembered from one guard to the next, though it
    /// may lead to what was unlinked meanwhile.
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
