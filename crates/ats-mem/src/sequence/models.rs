//! Models for `loom`: a key whose versions follow each other, and readers that find them, keep
//! them, and drop them. Nodes have four children.

use super::*;
use crate::explore::{check, check_long};
use crate::record::Plain;
use ats_sync::shim::atomic::{AtomicPtr, Ordering, quietly};
use ats_sync::{Guard, collect, pin};
use loom::sync::Arc;
use loom::thread;

/// The pointer at which readers find the current version.
struct Key(AtomicPtr<Sequence<Plain>>);

impl Key {
    /// Creates a key with the values 0 to `count - 1` at these positions.
    fn new(count: u64) -> Arc<Self> {
        quietly(|| {
            let empty = Sequence::new();
            let mut edit = empty.edit();
            (0..count).for_each(|number| _ = edit.push(&[number], false));
            Arc::new(Key(AtomicPtr::new(Box::into_raw(Box::new(edit.finish())))))
        })
    }

    fn find<'g>(&self, _guard: &'g Guard) -> &'g Sequence<Plain> {
        // SAFETY: versions are retired when they are replaced.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    /// Keeps the current version; returns `None` if it is taken over first.
    fn keep(&self) -> Option<Sequence<Plain>> {
        self.find(&pin()).share()
    }

    fn replace(&self, new: Sequence<Plain>, guard: &Guard) {
        let old = self.0.swap(Box::into_raw(Box::new(new)), Ordering::AcqRel);
        // SAFETY: the only writer has just replaced the old version.
        unsafe { guard.retire_box(old) };
    }

    /// Replaces the version by an edited one that takes over; the caller is the only writer.
    fn take_over(&self, change: impl FnOnce(&mut Edit<'_, Plain>)) {
        let guard = pin();
        let mut edit = self.find(&guard).edit();
        change(&mut edit);
        // SAFETY: the new version replaces the old one at once, and there is no other writer.
        let (new, leftovers) = unsafe { edit.finish_taking_over() };
        self.replace(new, &guard);
        // SAFETY: the old version was replaced, so it cannot be found any more.
        unsafe { leftovers.retire(&guard) };
    }

    fn share_and_replace(&self, change: impl FnOnce(&mut Edit<'_, Plain>)) {
        let guard = pin();
        let mut edit = self.find(&guard).edit();
        change(&mut edit);
        self.replace(edit.finish(), &guard);
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: no other thread has the key.
        drop(unsafe { Box::from_raw(self.0.load(Ordering::Acquire)) });
        collect();
    }
}

/// Returns the values of a version, each of which equals its position.
fn numbers(sequence: &Sequence<Plain>) -> Vec<u64> {
    let numbers = sequence.iter_from(0).map(|(at, words)| {
        assert_eq!(at, words[0]);
        at
    });
    let numbers: Vec<u64> = numbers.collect();
    assert_eq!(numbers.len(), sequence.len());
    numbers
}

fn together(key: &Arc<Key>, one: impl FnOnce(&Key) + 'static, other: impl FnOnce(&Key)) {
    let thread = {
        let key = Arc::clone(key);
        thread::spawn(move || one(&key))
    };
    other(key);
    thread.join().expect("thread");
}

#[test]
fn a_reader_meets_a_version_that_is_taken_over() {
    check_long(|| {
        let key = Key::new(5);
        together(
            &key,
            |key| {
                key.take_over(|edit| assert!(edit.remove(3)));
                collect();
            },
            |key| {
                let met = numbers(key.find(&pin()));
                assert!(met == [0, 1, 2, 3, 4] || met == [0, 1, 2, 4], "{met:?}");
            },
        );
        assert_eq!(numbers(key.find(&pin())), [0, 1, 2, 4]);
    });
}

/// Either the reader keeps a version before the writer takes it over, or the writer takes it over.
#[test]
fn a_version_is_kept_or_taken_over() {
    check_long(|| {
        let key = Key::new(2);
        together(
            &key,
            |key| key.take_over(|edit| assert!(edit.remove(1))),
            |key| {
                if let Some(kept) = key.keep() {
                    let met = numbers(&kept);
                    assert!(met == [0, 1] || met == [0], "{met:?}");
                }
            },
        );
        collect();
        assert_eq!(numbers(key.find(&pin())), [0]);
    });
}

/// A version that shares blocks with the one taken over is dropped meanwhile.
#[test]
fn a_kept_version_goes_while_its_successor_is_taken_over() {
    check(2, || {
        let key = Key::new(5);
        let kept = quietly(|| {
            let kept = key.keep().expect("nobody else is here");
            key.share_and_replace(|edit| assert!(edit.remove(3)));
            // Only one of the holders of the old version is left.
            collect();
            kept
        });
        together(
            &key,
            move |_| {
                assert_eq!(numbers(&kept), [0, 1, 2, 3, 4]);
                drop(kept);
            },
            |key| {
                // The new value goes into a node that both versions share.
                key.take_over(|edit| _ = edit.push(&[5], false));
                collect();
            },
        );
        assert_eq!(numbers(key.find(&pin())), [0, 1, 2, 4, 5]);
    });
}
