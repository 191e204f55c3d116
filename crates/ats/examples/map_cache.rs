//! A cache that threads share: results by their question, of which the oldest are removed.
//!
//! Run it with `cargo run --example map_cache`.

use ats::{HashMap, OrderedMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Results, and the order in which they came.
struct Cache {
    results: HashMap<String, u64>,
    ages: OrderedMap<u64, String>,
    clock: AtomicU64,
    room: usize,
}

impl Cache {
    fn new(room: usize) -> Self {
        Cache {
            results: HashMap::new(),
            ages: OrderedMap::new(),
            clock: AtomicU64::new(0),
            room,
        }
    }

    /// The result for a question, from the cache if it is there.
    fn get(&self, question: &str) -> u64 {
        if let Some(result) = self.results.get(question) {
            return result;
        }
        let result = answer(question);
        // One of the threads that have missed it stores it.
        if self.results.insert_new(question, result) {
            let now = self.clock.fetch_add(1, Ordering::Relaxed);
            self.ages.put(now, question);
            while self.ages.len() > self.room
                && let Some((_, oldest)) = self.ages.pop_first()
            {
                self.results.remove(oldest);
            }
        }
        result
    }
}

/// Takes long, one may think.
fn answer(question: &str) -> u64 {
    question.bytes().map(u64::from).sum()
}

fn main() {
    let cache = Cache::new(100);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..10_000 {
                    let question = format!("question {}", n % 150);
                    assert_eq!(cache.get(&question), answer(&question));
                }
            });
        }
    });
    assert!(cache.results.len() <= 100);
    println!(
        "{} results in {} bytes",
        cache.results.len(),
        cache.results.memory()
    );
}
