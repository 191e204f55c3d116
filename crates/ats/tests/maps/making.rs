//! Tests of values that are made when they are missing.

use ats::{AsValue, HashMap, Limited, OrderedMap, Value, ValueBytes};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Barrier, mpsc};
use std::thread;

#[test]
fn a_herd_makes_one_call() {
    let map: HashMap<u64, u64> = HashMap::new();
    let (calls, start) = (AtomicU64::new(0), Barrier::new(64));
    thread::scope(|scope| {
        for thread in 0..64 {
            let (map, calls, start) = (&map, &calls, &start);
            scope.spawn(move || {
                for key in 0..20 {
                    start.wait();
                    let made = map.get_or_insert_with(key, || {
                        thread::yield_now();
                        calls.fetch_add(1, Ordering::Relaxed);
                        key * 1_000 + thread
                    });
                    assert_eq!(Some(made), map.get(key));
                }
            });
        }
    });
    assert_eq!(calls.into_inner(), 20);
}

/// Threads that wait get the value, even if a map keeps none.
#[test]
fn a_herd_gets_the_value_of_a_map_that_keeps_none() {
    let map: HashMap<u64, String, Limited> = HashMap::builder().max_len(0).build();
    let (begun, has_begun) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    thread::scope(|scope| {
        let map = &map;
        let maker = scope.spawn(move || {
            map.get_or_insert_with(1, || {
                begun.send(()).expect("it is awaited");
                goes_on.recv().expect("it is sent");
                "made".into()
            })
        });
        has_begun.recv().expect("it begins");
        let waiter = scope.spawn(move || map.get_or_insert_with(1, || "made again".into()));
        // Another key does not wait.
        assert_eq!(map.get_or_insert_with(2, || "other".into()), "other");
        go_on.send(()).expect("it is awaited");
        assert_eq!(maker.join().expect("it is made"), "made");
        let waited = waiter.join().expect("it is made");
        assert!(waited == "made" || waited == "made again");
    });
    assert!(map.is_empty());
}

/// One thread goes on for each call that panics or fails.
#[test]
fn a_call_that_panics_or_fails_lets_one_waiter_go_on() {
    let map: OrderedMap<u64, u64> = OrderedMap::new();
    let (running, most) = (AtomicU64::new(0), AtomicU64::new(0));
    let (calls, start) = (AtomicU64::new(0), Barrier::new(16));
    thread::scope(|scope| {
        for thread in 0..16 {
            let (map, running, most) = (&map, &running, &most);
            let (calls, start) = (&calls, &start);
            scope.spawn(move || {
                start.wait();
                let make = || {
                    let beside = running.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(beside, Ordering::SeqCst);
                    thread::yield_now();
                    running.fetch_sub(1, Ordering::SeqCst);
                    match calls.fetch_add(1, Ordering::SeqCst) {
                        4 => Ok(7),
                        odd if odd % 2 == 1 => Err("it fails"),
                        _ => panic!("a test panics"),
                    }
                };
                let made = catch_unwind(AssertUnwindSafe(|| map.try_get_or_insert_with(1, make)));
                assert!(
                    !matches!(made, Ok(Ok(other)) if other != 7),
                    "{thread}: {made:?}"
                );
            });
        }
    });
    assert_eq!((calls.into_inner(), most.into_inner()), (5, 1));
    assert_eq!(map.get(1), Some(7));
}

fn message(panicked: Box<dyn std::any::Any + Send>) -> String {
    *panicked.downcast().expect("a text")
}

#[test]
fn a_call_within_itself_panics_by_name() {
    let map: HashMap<String, u64> = HashMap::new();
    let inner = || map.get_or_insert_with("pear", || 1);
    let panicked = catch_unwind(AssertUnwindSafe(|| map.get_or_insert_with("pear", inner)));
    let message = message(panicked.expect_err("it panics"));
    assert!(
        message.contains("\"pear") && message.contains("asks for that value"),
        "{message}"
    );
    // Other keys, other maps, and another try do no harm.
    let other: HashMap<String, u64> = HashMap::new();
    let inner = || map.get_or_insert_with("fig", || other.get_or_insert_with("pear", || 5));
    assert_eq!(map.get_or_insert_with("pear", inner), 5);
    assert_eq!((map.get("fig"), other.get("pear")), (Some(5), Some(5)));
}

#[test]
fn threads_that_wait_for_each_other_panic_by_name() {
    for _ in 0..50 {
        let map: HashMap<u64, u64> = HashMap::new();
        let both = Barrier::new(3);
        let made = thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|key| {
                    let (map, both) = (&map, &both);
                    scope.spawn(move || {
                        map.get_or_insert_with(key, || {
                            both.wait();
                            map.get_or_insert_with((key + 1) % 3, || 100 + key)
                        })
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join())
                .collect::<Vec<_>>()
        });
        let panics = made.into_iter().filter_map(Result::err).map(message);
        let panics: Vec<_> = panics.collect();
        assert!(!panics.is_empty() && panics.iter().all(|text| text.contains("asks for that")));
    }
}

static LIVING: AtomicI64 = AtomicI64::new(0);

/// A value that counts the values that live.
#[derive(Debug)]
struct Counted(u32);

impl Counted {
    fn new(number: u32) -> Self {
        LIVING.fetch_add(1, Ordering::SeqCst);
        Counted(number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVING.fetch_sub(1, Ordering::SeqCst);
    }
}

impl AsValue<Counted> for Counted {
    fn encode(&self, bytes: &mut ValueBytes) {
        bytes.push(&self.0.to_le_bytes());
    }
}

impl Value for Counted {
    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Counted::new(u32::from_le_bytes(bytes.try_into().ok()?)))
    }
}

/// Checks that every value is dropped, whatever becomes of the call.
#[test]
fn all_values_are_dropped() {
    let map: HashMap<u64, Counted, Limited> = HashMap::builder().max_len(50).build();
    thread::scope(|scope| {
        for thread in 0..4 {
            let map = &map;
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for number in 0..5_000 {
                    let key = random.u64(..100);
                    match random.u32(..6) {
                        0 => drop(map.insert(key, Counted::new(number))),
                        1 => drop(map.remove(key)),
                        2 => drop(map.compute(key, |old| old.map(|old| Counted::new(old.0 + 1)))),
                        3 => drop(map.try_get_or_insert_with(key, || Err(Counted::new(0)))),
                        4 => drop(map.iter().take(5).collect::<Vec<_>>()),
                        _ => drop(map.get_or_insert_with(key, || Counted::new(number))),
                    }
                }
            });
        }
    });
    assert!(map.len() <= 50);
    drop(map);
    assert_eq!(LIVING.load(Ordering::SeqCst), 0);
}
