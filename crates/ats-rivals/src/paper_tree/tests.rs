//! The moments at which base nodes are split and joined, and that nothing is lost meanwhile.

use super::adapt::MOST_LEVELS;
use super::base::Base;
use super::*;
use ats_mem::Backend;
use ats_mem::record::{Plain, RecordBox};
use ats_sync::pin;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// A map whose records are retired and freed as a store would.
#[derive(Default)]
struct Store(Routes<Plain>);

impl Drop for Store {
    fn drop(&mut self) {
        for record in self.0.all() {
            // SAFETY: no other code has the map, which does not look at its records again.
            drop(unsafe { RecordBox::from_raw(record.as_ptr()) });
        }
    }
}

impl Store {
    /// Puts a value of a key or takes it out, and returns the one that was there.
    fn write(&self, key: u64, value: Option<u64>) -> Option<u64> {
        let (guard, key) = (pin(), key.to_be_bytes());
        let mut gone = None;
        self.0.change(&key, &guard, &mut |here| {
            gone = here;
            let Some(value) = value else {
                return Exchange::Take;
            };
            let new = RecordBox::new(&key, &[value], false).into_raw();
            // SAFETY: a record of the store is freed by retiring only, hence after the guard.
            Exchange::Put(unsafe { &*new })
        });
        let gone = gone?;
        // SAFETY: this thread has just taken it out.
        unsafe { ats_mem::record::retire(std::ptr::from_ref(gone).cast_mut(), &guard) };
        Some(gone.value()[0])
    }

    fn get(&self, key: u64) -> Option<u64> {
        let guard = pin();
        let record = self.0.get(&key.to_be_bytes(), &guard)?;
        Some(record.value()[0])
    }

    /// Looks at a key as a writer that leaves it as it is.
    fn touch(&self, key: u64, look: &mut dyn FnMut()) {
        self.0.change(&key.to_be_bytes(), &pin(), &mut |_| {
            look();
            Exchange::Keep
        });
    }

    fn numbers(&self, up: bool, from: u64, most: usize) -> Vec<u64> {
        let (guard, mut found) = (pin(), Vec::new());
        let from = from.to_be_bytes();
        match up {
            true => (self.0).gather(Bound::Included(&from), most, &guard, &mut found),
            false => (self.0).gather_down(Some(&from), most, &guard, &mut found),
        }
        let number = |record: &Record<Plain>| {
            u64::from_be_bytes(record.key().try_into().expect("keys are numbers"))
        };
        found.into_iter().map(number).collect()
    }

    fn adaptation(&self) -> Adaptation {
        self.0.adaptation(&pin())
    }

    /// Lets another thread wait for the lock of a key's base node. The statistics that come of it
    /// are its own.
    fn contend(&self, key: u64) {
        let (arrived, arrives) = channel();
        thread::scope(|scope| {
            self.touch(key, &mut || {
                let arrived = arrived.clone();
                scope.spawn(move || {
                    let _ = arrived.send(());
                    self.touch(key, &mut || {});
                });
                let _ = arrives.recv();
                // It is about to find the lock held.
                thread::sleep(Duration::from_millis(20));
            });
        });
    }
}

#[test]
fn waiting_writers_split_a_base_node() {
    let store = Store::default();
    for key in 0..100 {
        store.write(key, Some(key));
    }
    let mut waits = 0;
    while store.adaptation().base_nodes == 1 {
        store.contend(50);
        waits += 1;
        assert!(waits < 20, "{:?}", store.adaptation());
    }
    // 100 writes that did not wait, and each wait comes with another one that did not: 250 less 1.
    assert!(waits >= 5);
    let now = store.adaptation();
    assert_eq!((now.route_nodes, now.splits, now.depth), (1, 1, 1));
    assert_eq!(now.contended + now.uncontended, 100 + 2 * waits);
    assert!(store.numbers(true, 0, 1000).into_iter().eq(0..100));
    assert!(store.numbers(false, 100, 1000).into_iter().rev().eq(0..100));
}

/// A single record cannot be parted.
#[test]
fn a_base_node_of_one_record_is_not_split() {
    let store = Store::default();
    store.write(7, Some(7));
    (0..8).for_each(|_| store.contend(7));
    assert_eq!(store.adaptation().splits, 0);
}

#[cfg(feature = "forcing")]
fn split_store(keys: u64) -> Store {
    let store = Store::default();
    store.0.force_adaptation(1, 0);
    for key in 0..keys {
        store.write(key, Some(key));
    }
    store.0.force_adaptation(0, 0);
    store
}

#[cfg(feature = "forcing")]
#[test]
fn writers_that_never_wait_join_base_nodes() {
    let store = split_store(2);
    assert_eq!(store.adaptation().base_nodes, 2);
    for _ in 0..1000 {
        store.touch(0, &mut || {});
    }
    assert_eq!(store.adaptation().joins, 0);
    store.touch(0, &mut || {});
    let now = store.adaptation();
    assert_eq!((now.base_nodes, now.route_nodes, now.joins), (1, 0, 1));
    assert_eq!(store.numbers(true, 0, 10), [0, 1]);
}

/// Keys that ascend always split the last base node.
#[cfg(feature = "forcing")]
#[test]
fn routes_are_no_deeper_than_they_may_be() {
    let store = split_store(200);
    let now = store.adaptation();
    assert_eq!(now.depth, MOST_LEVELS);
    assert!(store.numbers(true, 0, 1000).into_iter().eq(0..200));
    for most in [1, 2, 50] {
        let found = store.numbers(false, 150, most);
        assert!(found.into_iter().eq((0..150).rev().take(most)));
    }
}

#[cfg(feature = "forcing")]
#[test]
fn base_nodes_that_are_empty_are_joined() {
    for descends in [false, true] {
        let store = split_store(200);
        for key in 0..200 {
            let key = if descends { 199 - key } else { key };
            assert_eq!(store.write(key, None), Some(key));
        }
        let now = store.adaptation();
        assert_eq!((now.base_nodes, now.route_nodes), (1, 0));
        assert_eq!(store.0.node_bytes(&pin()), Base::<Plain>::default().bytes());
    }
}

/// A walk goes on behind a base node without records, which stays if its neighbour is locked when
/// it could be joined.
#[cfg(feature = "forcing")]
#[test]
fn an_empty_base_node_does_not_end_a_walk() {
    let store = split_store(3);
    let now = store.adaptation();
    assert_eq!((now.base_nodes, now.depth), (3, 2));
    // Keys 0 and 2 are held by this thread while another takes the one between them.
    store.touch(0, &mut || {
        store.touch(2, &mut || {
            thread::scope(|scope| {
                scope.spawn(|| assert_eq!(store.write(1, None), Some(1)));
            });
        });
    });
    assert_eq!(store.adaptation().base_nodes, 3);
    assert_eq!(store.numbers(true, 0, 10), [0, 2]);
    assert_eq!(store.numbers(false, 10, 10), [2, 0]);
    // The next write there joins it.
    store.touch(1, &mut || {});
    assert_eq!(store.adaptation().base_nodes, 2);
}

#[cfg(feature = "forcing")]
#[test]
fn a_panic_changes_nothing_and_unlocks() {
    let store = split_store(10);
    for key in [3, 77] {
        let before = store.get(key);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            store.touch(key, &mut || panic!("as is wanted here"));
        }));
        assert!(panicked.is_err());
        assert_eq!(store.get(key), before);
        // Another thread can go on, and split and join.
        thread::scope(|scope| {
            scope.spawn(|| {
                store.0.force_adaptation(2, 3);
                for _ in 0..10 {
                    assert_eq!(store.write(key, Some(5)), before);
                    assert_eq!(store.write(key, before), Some(5));
                }
                store.0.force_adaptation(0, 0);
            });
        });
    }
    assert_eq!(store.numbers(true, 0, 100).len(), 10);
}

/// Threads write keys of their own between those of others, while walks look at keys that are
/// always there.
#[cfg(feature = "forcing")]
#[test]
fn nothing_is_lost_while_all_is_split_and_joined() {
    const WRITERS: u64 = 3;
    const KEYS: u64 = 100;
    const STEPS: u64 = if cfg!(debug_assertions) {
        30_000
    } else {
        200_000
    };
    let store = Store::default();
    for key in 0..KEYS {
        store.write(key * 8, Some(key));
    }
    store.0.force_adaptation(3, 4);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (store, is_over) = (&store, &is_over);
        for up in [true, false] {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(99);
                while !is_over.load(Ordering::Relaxed) {
                    let from = random.u64(..8 * KEYS);
                    let most = random.usize(1..=200);
                    let mut found = store.numbers(up, from, most);
                    let stable = (0..KEYS).map(|key| key * 8);
                    let stable: Vec<u64> = match up {
                        true => stable.filter(|key| *key >= from).collect(),
                        false => {
                            found.reverse();
                            stable.filter(|key| *key < from).collect()
                        }
                    };
                    assert!(found.is_sorted_by(|one, other| one < other), "{found:?}");
                    let is_all = found.len() < most;
                    let (low, high) = (found.first().copied(), found.last().copied());
                    let passed = |key: &u64| match up {
                        _ if is_all => true,
                        true => high.is_some_and(|high| *key <= high),
                        false => low.is_some_and(|low| *key >= low),
                    };
                    found.retain(|key| key % 8 == 0);
                    assert!(found.into_iter().eq(stable.into_iter().filter(passed)));
                    let key = random.u64(..KEYS);
                    assert_eq!(store.get(key * 8), Some(key));
                }
            });
        }
        let writers: Vec<_> = (1..=WRITERS)
            .map(|id| {
                scope.spawn(move || {
                    let mut random = fastrand::Rng::with_seed(id);
                    let mut mine = BTreeMap::new();
                    for step in 0..STEPS {
                        let key = random.u64(..KEYS) * 8 + id;
                        let value = random.bool().then_some(step);
                        let before = match value {
                            Some(value) => mine.insert(key, value),
                            None => mine.remove(&key),
                        };
                        assert_eq!(store.write(key, value), before);
                    }
                    mine
                })
            })
            .collect();
        let mut expected: BTreeMap<u64, u64> = (0..KEYS).map(|key| (key * 8, key)).collect();
        for writer in writers {
            expected.extend(writer.join().expect("no panic"));
        }
        is_over.store(true, Ordering::Relaxed);
        let there = store.numbers(true, 0, usize::MAX);
        assert!(there.iter().eq(expected.keys()));
        let values = there.into_iter().filter_map(|key| store.get(key));
        assert!(values.eq(expected.into_values()));
    });
    let now = store.adaptation();
    assert!(now.splits > 100 && now.joins > 100, "{now:?}");
    assert_eq!(now.splits - now.joins, now.route_nodes as u64);
    assert_eq!(now.base_nodes, now.route_nodes + 1);
}

#[test]
fn the_store_tells_how_it_has_adapted() {
    let store = PaperTree::<Plain>::new();
    let put = store.update(b"key", &pin(), &mut |_| {
        ats_mem::Change::Put(RecordBox::new(b"key", &[1], false))
    });
    assert_eq!(put, Ok(()));
    let now = store.adaptation();
    assert_eq!((now.base_nodes, now.depth, now.uncontended), (1, 0, 1));
}
