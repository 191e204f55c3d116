//! Names of tables: a map from a number (an atom) to a pointer, read without locks.
//!
//! Every operation on a named table begins with a look here, from all processors at once, so a
//! lookup must not write anything shared. (`ets` takes a lock on its name table for each.) The map is
//! an array of lists whose nodes never change; writers take a lock and publish by one store.
//!
//! # Invariants
//! - N1. Lists are changed only under the lock of the map.
//! - N2. A node never changes; a name that is taken out is unlinked by copying its predecessors, and
//!   the nodes are retired.

use ats_sync::Guard;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const BUCKETS: usize = 1 << 12;

/// A map from names to pointers to `T`. Whoever looks something up must keep the pointee alive by
/// other means: a pointer found under a guard may be retired, not freed, when its name is removed.
pub struct Names<T> {
    buckets: [AtomicPtr<Node<T>>; BUCKETS],
    writing: Mutex<()>,
}

struct Node<T> {
    name: u64,
    target: *const T,
    next: *mut Node<T>,
}

// SAFETY: nodes are plain data and are only handed out as copied pointers.
unsafe impl<T> Send for Names<T> {}
// SAFETY: as for `Send`; changes are serialized by the lock (N1).
unsafe impl<T> Sync for Names<T> {}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Names<T> {
    /// An empty map.
    pub const fn new() -> Self {
        Names {
            buckets: [const { AtomicPtr::new(ptr::null_mut()) }; BUCKETS],
            writing: Mutex::new(()),
        }
    }

    fn bucket(&self, name: u64) -> &AtomicPtr<Node<T>> {
        // Names are numbered densely above some tag bits: multiply to use all bits.
        let hash = name.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        &self.buckets[hash as usize % BUCKETS]
    }

    /// What a name stands for. O(1).
    #[inline]
    pub fn get(&self, name: u64, _guard: &Guard) -> Option<*const T> {
        let mut node = self.bucket(name).load(Ordering::Acquire);
        while !node.is_null() {
            // SAFETY: nodes are retired after they were unlinked (N2), so one found under a guard
            // lives as long as the guard.
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

    /// Gives a name to something, unless the name stands for something else already.
    pub fn insert(&self, name: u64, target: *const T, guard: &Guard) -> bool {
        let _held = self.lock();
        if self.get(name, guard).is_some() {
            return false;
        }
        self.link(name, target);
        true
    }

    /// Takes a name away from `target`; does nothing if it stands for something else.
    pub fn remove(&self, name: u64, target: *const T, guard: &Guard) -> bool {
        let _held = self.lock();
        if self.get(name, guard) != Some(target) {
            return false;
        }
        self.unlink(name, guard);
        true
    }

    /// Gives `target` the name `new` instead of `old`; fails if `new` is taken or `old` is not its.
    /// For a moment it has both names; it is never without one.
    pub fn rename(&self, old: u64, new: u64, target: *const T, guard: &Guard) -> bool {
        let _held = self.lock();
        if self.get(new, guard).is_some() || self.get(old, guard) != Some(target) {
            return false;
        }
        self.link(new, target);
        self.unlink(old, guard);
        true
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The caller holds the lock.
    fn link(&self, name: u64, target: *const T) {
        let bucket = self.bucket(name);
        let next = bucket.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node { name, target, next }));
        bucket.store(node, Ordering::Release);
    }

    /// The caller holds the lock; the name is there.
    fn unlink(&self, name: u64, guard: &Guard) {
        let bucket = self.bucket(name);
        let mut retired = Vec::new();
        let mut node = bucket.load(Ordering::Relaxed);
        let mut kept = Vec::new();
        let rest = loop {
            // SAFETY: the lists are changed only under the lock we hold (N1), so their nodes live.
            let current = unsafe { &*node };
            retired.push(node);
            if current.name == name {
                break current.next;
            }
            kept.push((current.name, current.target));
            node = current.next;
        };
        let mut head = rest;
        for (name, target) in kept.into_iter().rev() {
            let next = head;
            head = Box::into_raw(Box::new(Node { name, target, next }));
        }
        bucket.store(head, Ordering::Release);
        for node in retired {
            unsafe fn free<T>(raw: *mut u8) {
                // SAFETY: `raw` was made by `Box::into_raw` in `link` or `unlink`.
                drop(unsafe { Box::from_raw(raw.cast::<Node<T>>()) });
            }
            // SAFETY: the list was published without these nodes.
            unsafe { guard.retire(node.cast(), size_of::<Node<T>>(), free::<T>) };
        }
    }
}

impl<T> Drop for Names<T> {
    fn drop(&mut self) {
        for bucket in &mut self.buckets {
            let mut node = *bucket.get_mut();
            while !node.is_null() {
                // SAFETY: `link` and `unlink` make nodes by `Box::into_raw`, and nobody else uses the
                // map any more.
                node = unsafe { Box::from_raw(node) }.next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ats_sync::pin;

    #[test]
    fn names_stand_for_one_thing_at_a_time() {
        let names = Box::new(Names::<u8>::new());
        let guard = pin();
        let things = [1u8; 20_000];
        for (name, thing) in things.iter().enumerate() {
            assert!(names.insert(name as u64, thing, &guard));
            assert!(!names.insert(name as u64, thing, &guard));
        }
        for (name, thing) in things.iter().enumerate().filter(|(name, _)| name % 3 == 0) {
            assert!(!names.remove(name as u64, &things[name ^ 1], &guard));
            assert!(names.remove(name as u64, thing, &guard));
            assert!(!names.remove(name as u64, thing, &guard));
        }
        for (name, thing) in things.iter().enumerate() {
            let expected = (name % 3 != 0).then_some(ptr::from_ref(thing));
            assert_eq!(names.get(name as u64, &guard), expected);
        }
        assert!(names.rename(1, 3, &things[1], &guard));
        assert!(!names.rename(2, 4, &things[2], &guard), "4 is taken");
        assert_eq!(names.get(1, &guard), None);
        assert_eq!(names.get(3, &guard), Some(ptr::from_ref(&things[1])));
    }
}
