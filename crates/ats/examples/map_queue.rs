//! A queue with priorities: threads put jobs into an ordered map, and others take the first.
//!
//! Run it with `cargo run --example map_queue`.

use ats::OrderedMap;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const JOBS: u64 = 10_000;

fn main() {
    // High priorities first, and those of the same priority in the order in which they came.
    let jobs: OrderedMap<(Reverse<u8>, u64), String> = OrderedMap::new();
    let arrivals = AtomicU64::new(0);
    let put = |priority: u8, text: &str| {
        let arrival = arrivals.fetch_add(1, Ordering::Relaxed);
        jobs.put((Reverse(priority), arrival), text);
    };
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for n in 0..JOBS / 2 {
                    put((n % 3) as u8, "work");
                }
            });
        }
    });
    put(9, "at once");
    assert_eq!(
        jobs.pop_first().map(|(_, text)| text).as_deref(),
        Some("at once")
    );

    let done = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut last = u8::MAX;
                while let Some(((Reverse(priority), _), _)) = jobs.pop_first() {
                    assert!(priority <= last);
                    last = priority;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(done.into_inner(), JOBS);
    println!("{JOBS} jobs done, each once");
}
