//! Names of tables: a map from a number (an atom) to a pointer, read without locks.
//!
//! Every operation on a named table begins with a lookup here, on all processors at once, so a
//! lookup must not write shared memory. (`ets` takes a lock on its name table for each.) The map
//! is an array of lists whose nodes never change; writers take the lock of the list, or of both
//! lists that a renaming concerns, and publish by one store.
//!
//! A thing with a name knows its name, and whether it exists: see [`Named`]. A node of the map is
//! only a hint, which counts if its thing agrees. So every change of names is one store, although a
//! renaming concerns two lists and a deletion an identifier beside the name:
//! - a name is given when its node is linked,
//! - a thing is renamed when its word changes: from then on the node of the old name, which is
//!   still linked, does not count, and that of the new name, which is linked already, does,
//! - a thing is deleted when it stops existing, even while its node is linked.
//!
//! # Invariants
//! - NAMES-1. A list changes only under its lock, and the name stored in a thing with a node only
//!   under the locks of both names. Of two locks, the one with the lower number is taken first.
//! - NAMES-2. A node never changes; a removal copies the node's predecessors and retires the old
//!   nodes.
//! - NAMES-3. A thing to which a linked node leads is not retired before the node is unlinked. So
//!   both live as long as a guard under which the node was found.
//! - NAMES-4. Between two changes there is at most one node for a name, and one for a thing: that
//!   of its name.
//! - NAMES-5. A thing that has stopped existing never exists again.
//!
//! # Correctness of a failed lookup
//! A reader walks through a list as it was at some moment. If the list has no node for the name, no
//! thing had the name then. If it has a node that does not count, its thing was renamed or deleted,
//! or is about to get the name. Each change gives a name to one thing or takes it from one
//! (NAMES-4), so between this thing and another with the same name there was a moment at which none
//! had it, during the walk.

use ats_sync::{CachePadded, Guard};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of lists. Pages without a used list take no memory.
const BUCKETS: usize = 1 << 14;
/// Number of locks, which the lists share.
const LOCKS: usize = 64;

/// A thing that can have a name.
pub trait Named {
    /// Returns the name, or the last one. If the thing is in a map, only the map changes it.
    fn name(&self) -> &AtomicU64;

    /// Returns `true` if the thing has not been deleted. Once `false`, it stays so for ever.
    fn exists(&self) -> bool;
}

/// The outcome of a renaming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renaming {
    /// The thing has the new name, and only that.
    Done,
    /// Another thing has the new name.
    Taken,
    /// The thing is deleted, or no longer has the name under which it was found.
    Gone,
}

/// A map from names to pointers to `T`. A found pointer is valid as long as the guard of its
/// lookup.
pub struct Names<T> {
    buckets: [AtomicPtr<Node<T>>; BUCKETS],
    writing: [CachePadded<Mutex<()>>; LOCKS],
}

struct Node<T> {
    name: u64,
    target: *const T,
    next: *mut Node<T>,
}

// SAFETY: nodes are plain data; things are handed out as pointers, and the map calls only the two
// methods of `Named` on them, for which `T` must be `Sync`.
unsafe impl<T: Sync> Send for Names<T> {}
// SAFETY: changes are serialized by the lock (NAMES-1), nodes never change (NAMES-2), and the map
// calls only methods of `Named` on things, for which `T` must be `Sync`.
unsafe impl<T: Sync> Sync for Names<T> {}

impl<T: Named> Default for Names<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Names<T> {
    /// Creates an empty map.
    #[expect(clippy::large_stack_arrays, reason = "it is made at compile time")]
    pub const fn new() -> Self {
        Names {
            buckets: [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS],
            writing: [const { CachePadded(Mutex::new(())) }; LOCKS],
        }
    }
}

impl<T: Named> Names<T> {
    fn bucket(&self, name: u64) -> &AtomicPtr<Node<T>> {
        &self.buckets[bucket_of(name)]
    }

    /// Returns the thing that has this name at some moment of the call. O(1).
    #[inline]
    pub fn get(&self, name: u64, guard: &Guard) -> Option<*const T> {
        let target = self.find_linked(name, guard)?;
        // SAFETY: the node was found under the guard, so its thing lives as long as the guard
        // (NAMES-3).
        let thing = unsafe { &*target };
        // Acquire: all writes made before the name was given are visible.
        let is_its_name = thing.name().load(Ordering::Acquire) == name;
        (is_its_name && thing.exists()).then_some(target)
    }

    /// Returns the thing that the node for a name leads to, whether it counts or not.
    #[inline]
    fn find_linked(&self, name: u64, _guard: &Guard) -> Option<*const T> {
        let mut node = self.bucket(name).load(Ordering::Acquire);
        while !node.is_null() {
            // SAFETY: nodes are retired after they were unlinked (NAMES-2), so one found under a
            // guard lives as long as the guard.
            let Node {
                name: other,
                target,
                next,
            } = unsafe { &*node };
            if *other == name {
                return Some(*target);
            }
            node = *next;
        }
        None
    }

    /// Returns `true` if no thing has a name. The caller holds the lock of the name.
    fn is_free(&self, name: u64, guard: &Guard) -> bool {
        if self.get(name, guard).is_some() {
            return false;
        }
        if self.find_linked(name, guard).is_some() {
            // The thing is deleted, but its node has not been removed yet.
            self.unlink(name, guard);
        }
        true
    }

    /// Links `target` under the name that it stores, unless another thing has this name. One step.
    ///
    /// # Safety
    /// `target` must have no node in a map yet. It must be valid, and must not be freed before
    /// [`remove`](Names::remove) was called for it and all guards of that time are gone.
    pub unsafe fn insert(&self, target: *const T, guard: &Guard) -> bool {
        // SAFETY: the caller promises that `target` is valid until it is removed. It has no node
        // yet, so no other thread changes its name (NAMES-1).
        let name = unsafe { &*target }.name().load(Ordering::Relaxed);
        let _held = self.lock(name);
        if !self.is_free(name, guard) {
            return false;
        }
        self.link(name, target);
        true
    }

    /// Removes the name of `target`, which has stopped existing. Another thing that has got the
    /// name meanwhile keeps it.
    ///
    /// # Safety
    /// `target` must have been [inserted](Names::insert), and must not have been freed.
    pub unsafe fn remove(&self, target: *const T, guard: &Guard) {
        // SAFETY: the caller promises that `target` was inserted and has not been freed.
        let thing = unsafe { &*target };
        let (name, _held) = self.lock_name_of(thing, None);
        if self.find_linked(name, guard) == Some(target) {
            self.unlink(name, guard);
        }
    }

    /// Gives `target` the name `new` instead of its name, which must be `old` if that is given. One
    /// step: at no moment does it have two names or none.
    ///
    /// # Safety
    /// `target` must have been [inserted](Names::insert), and must not have been freed.
    pub unsafe fn rename(
        &self,
        target: *const T,
        old: Option<u64>,
        new: u64,
        guard: &Guard,
    ) -> Renaming {
        // SAFETY: the caller promises that `target` was inserted and has not been freed.
        let thing = unsafe { &*target };
        let (name, _held) = self.lock_name_of(thing, Some(new));
        let is_its = self.find_linked(name, guard) == Some(target) && thing.exists();
        if !is_its || old.is_some_and(|old| old != name) {
            return Renaming::Gone;
        }
        if !self.is_free(new, guard) {
            return Renaming::Taken;
        }
        self.link(new, target);
        // Release: a thread that sees the new name also sees all earlier writes.
        thing.name().store(new, Ordering::Release);
        self.unlink(name, guard);
        Renaming::Done
    }

    /// Locks a name.
    fn lock(&self, name: u64) -> MutexGuard<'_, ()> {
        self.lock_number(lock_of(name))
    }

    fn lock_number(&self, number: usize) -> MutexGuard<'_, ()> {
        // Lists are consistent at every moment, so a poisoned lock is harmless.
        let lock = &self.writing[number];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the name of a thing, and another name if given. Returns the name, which stays while
    /// the locks are held.
    fn lock_name_of(
        &self,
        thing: &T,
        other: Option<u64>,
    ) -> (u64, [Option<MutexGuard<'_, ()>>; 2]) {
        loop {
            let name = thing.name().load(Ordering::Relaxed);
            let (own, other) = (lock_of(name), other.map_or(lock_of(name), lock_of));
            let first = self.lock_number(own.min(other));
            let second = (own != other).then(|| self.lock_number(own.max(other)));
            if thing.name().load(Ordering::Relaxed) == name {
                return (name, [Some(first), second]);
            }
        }
    }

    /// Links a node for the name. The caller holds the lock of the name.
    fn link(&self, name: u64, target: *const T) {
        let bucket = self.bucket(name);
        let next = bucket.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { name, target, next }));
        bucket.store(node, Ordering::Release);
    }

    /// Unlinks the node of the name, which has one. The caller holds the lock of the name.
    fn unlink(&self, name: u64, guard: &Guard) {
        unsafe fn free<T>(raw: *mut u8) {
            // SAFETY: `raw` was made by `Box::into_raw` in `link` or `unlink`.
            drop(unsafe { Box::from_raw(raw.cast::<Node<T>>()) });
        }
        let bucket = self.bucket(name);
        let first = bucket.load(Ordering::Relaxed);
        let mut found = first;
        // SAFETY: the list is changed only under the lock we hold (NAMES-1), so its nodes live.
        while unsafe { (*found).name } != name {
            // SAFETY: the node is in the list, which is changed only under the lock we hold
            // (NAMES-1), so it lives.
            found = unsafe { (*found).next };
        }
        // SAFETY: the node is in the list, which is changed only under the lock we hold (NAMES-1),
        // so it lives.
        let rest = unsafe { (*found).next };
        // Copies of the nodes before it, in any order.
        let (mut head, mut node) = (rest, first);
        while node != found {
            // SAFETY: the node is in the list, which is changed only under the lock we hold
            // (NAMES-1), so it lives, and nodes never change (NAMES-2).
            let Node { name, target, next } = unsafe { &*node };
            let copy = Node {
                name: *name,
                target: *target,
                next: head,
            };
            (head, node) = (Box::into_raw(Box::new(copy)), *next);
        }
        bucket.store(head, Ordering::Release);
        let mut node = first;
        while node != rest {
            // SAFETY: the node has been unlinked under the lock we hold (NAMES-1); it is read here
            // before it is retired.
            let next = unsafe { (*node).next };
            // SAFETY: the list was published without this node, so no thread that pins from now on
            // finds it.
            unsafe { guard.retire(node.cast(), size_of::<Node<T>>(), free::<T>) };
            node = next;
        }
    }
}

/// Returns the list of a name.
fn bucket_of(name: u64) -> usize {
    // Names are dense numbers above some tag bits; the multiplication spreads them over all bits.
    let hash = name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    hash as usize % BUCKETS
}

/// Returns the number of a name's lock.
fn lock_of(name: u64) -> usize {
    bucket_of(name) % LOCKS
}

impl<T> Drop for Names<T> {
    fn drop(&mut self) {
        for bucket in &mut self.buckets {
            let mut node = *bucket.get_mut();
            while !node.is_null() {
                // SAFETY: `link` and `unlink` make nodes by `Box::into_raw`, and `&mut self` means
                // that no other thread uses the map.
                node = unsafe { Box::from_raw(node) }.next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ats_sync::pin;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    struct Thing {
        name: AtomicU64,
        exists: AtomicBool,
    }

    impl Named for Thing {
        fn name(&self) -> &AtomicU64 {
            &self.name
        }

        fn exists(&self) -> bool {
            self.exists.load(Ordering::Acquire)
        }
    }

    impl Thing {
        fn new(name: u64) -> Self {
            Thing {
                name: AtomicU64::new(name),
                exists: AtomicBool::new(true),
            }
        }
    }

    /// A map of names, and the things in it, which outlive it.
    struct Things<'t>(Names<Thing>, &'t [Thing]);

    impl Things<'_> {
        fn get(&self, name: u64) -> Option<usize> {
            let found = self.0.get(name, &pin())?;
            self.1.iter().position(|thing| ptr::eq(thing, found))
        }

        fn insert(&self, thing: usize) -> bool {
            // SAFETY: each test inserts a thing once, and things outlive the map.
            unsafe { self.0.insert(&raw const self.1[thing], &pin()) }
        }

        fn delete(&self, thing: usize) {
            self.1[thing].exists.store(false, Ordering::Release);
        }

        fn remove(&self, thing: usize) {
            // SAFETY: the thing was inserted by this test, and things outlive the map.
            unsafe { self.0.remove(&raw const self.1[thing], &pin()) }
        }

        fn rename(&self, thing: usize, old: Option<u64>, new: u64) -> Renaming {
            // SAFETY: only inserted things are renamed, and things outlive the map.
            unsafe { self.0.rename(&raw const self.1[thing], old, new, &pin()) }
        }
    }

    #[test]
    fn names_stand_for_one_thing_at_a_time() {
        const THINGS: u64 = if cfg!(miri) { 100 } else { 20_000 };
        let things: Vec<Thing> = (0..2 * THINGS).map(|at| Thing::new(at % THINGS)).collect();
        let names = Things(Names::new(), &things);
        let numbers = 0..THINGS as usize;
        for at in numbers.clone() {
            assert!(names.insert(at));
            assert!(!names.insert(at + THINGS as usize), "the name is taken");
        }
        for at in numbers.clone().filter(|at| at % 3 == 0) {
            names.delete(at);
            assert_eq!(names.get(at as u64), None);
            names.remove(at);
        }
        for at in numbers {
            let expected = (at % 3 != 0).then_some(at);
            assert_eq!(names.get(at as u64), expected);
        }
        assert_eq!(names.rename(1, None, 3), Renaming::Done);
        assert_eq!(names.rename(2, None, 4), Renaming::Taken);
        assert_eq!(
            names.rename(2, Some(5), 6),
            Renaming::Gone,
            "that is not its name"
        );
        assert_eq!(names.get(1), None);
        assert_eq!(names.get(3), Some(1));
    }

    #[test]
    fn deleted_entries_free_their_names_at_once() {
        let things = [Thing::new(7), Thing::new(7), Thing::new(8)];
        let names = Things(Names::new(), &things);
        assert!(names.insert(0));
        assert!(names.insert(2));
        names.delete(0);
        assert_eq!(names.get(7), None);
        assert!(names.insert(1), "although it was not removed yet");
        names.remove(0);
        assert_eq!(names.get(7), Some(1), "this name is not that of the other");
        names.delete(1);
        assert_eq!(names.rename(1, None, 9), Renaming::Gone);
        assert_eq!(names.rename(2, Some(8), 7), Renaming::Done);
        names.remove(1);
        assert_eq!((names.get(7), names.get(8)), (Some(2), None));
    }

    /// Threads that have a thing, but not its name, rename it to names of their own: all succeed.
    #[test]
    fn renamings_beside_each_other_all_succeed() {
        const ROUNDS: u64 = if cfg!(miri) { 20 } else { 20_000 };
        let things = [Thing::new(0)];
        let names = &Things(Names::new(), &things);
        assert!(names.insert(0));
        thread::scope(|scope| {
            for thread in 1..=3 {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let new = thread << 32 | round;
                        assert_eq!(names.rename(0, None, new), Renaming::Done);
                    }
                });
            }
        });
        let last = things[0].name.load(Ordering::Relaxed);
        assert_eq!((last as u32, names.get(last)), (ROUNDS as u32 - 1, Some(0)));
    }

    /// The name runs through ascending numbers. A thread that has found the thing under one number
    /// never finds it under a smaller one, and still finds it under that or a larger one.
    #[test]
    fn a_thing_has_one_name_at_a_time() {
        const ROUNDS: u64 = if cfg!(miri) { 50 } else { 100_000 };
        let things = [Thing::new(0)];
        let names = &Things(Names::new(), &things);
        assert!(names.insert(0));
        thread::scope(|scope| {
            scope.spawn(move || {
                for new in 1..=ROUNDS {
                    assert_eq!(names.rename(0, Some(new - 1), new), Renaming::Done);
                }
            });
            let (mut seen, mut found) = (0, 0u64);
            while seen < ROUNDS {
                match names.get(seen + 1) {
                    Some(_) => {
                        seen += 1;
                        found += 1;
                        assert_eq!(names.get(seen - 1), None, "{seen} has been seen");
                    }
                    None if names.get(seen).is_none() => seen += 1,
                    None => {}
                }
            }
            assert_eq!(names.get(ROUNDS), Some(0));
            assert!(found <= ROUNDS);
        });
    }

    /// Threads that want a name as soon as it is free: only one has it at a time.
    #[test]
    fn a_name_is_given_to_one() {
        const ROUNDS: usize = if cfg!(miri) { 10 } else { 2_000 };
        let things: Vec<Thing> = (0..3 * ROUNDS).map(|_| Thing::new(5)).collect();
        let names = &Things(Names::new(), &things);
        let holders = &AtomicU64::new(0);
        thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || {
                    for at in thread * ROUNDS..(thread + 1) * ROUNDS {
                        while !names.insert(at) {
                            thread::yield_now();
                        }
                        assert_eq!(holders.fetch_add(1, Ordering::Relaxed), 0);
                        assert_eq!(names.get(5), Some(at));
                        holders.fetch_sub(1, Ordering::Relaxed);
                        names.delete(at);
                        names.remove(at);
                    }
                });
            }
        });
        assert_eq!(names.get(5), None);
    }
}
