//! A cache that threads share: answers by their question. An answer is there for a minute, and the
//! cache keeps the hundred that are asked for most.
//!
//! Run it with `cargo run --example map_cache`.

use ats::{HashMap, Limited};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Takes long, one may think.
fn answer(question: &str) -> u64 {
    question.bytes().map(u64::from).sum()
}

fn main() {
    let cache: HashMap<String, u64, Limited> = HashMap::builder()
        .ttl(Duration::from_secs(60))
        .max_len(100)
        .build();
    let calls = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..10_000 {
                    let question = format!("question {}", n % 150);
                    // One of the threads that miss an answer makes it; the others wait for it.
                    let found = cache.get_or_insert_with(&question, || {
                        calls.fetch_add(1, Ordering::Relaxed);
                        answer(&question)
                    });
                    assert_eq!(found, answer(&question));
                }
            });
        }
    });
    assert!(cache.len() <= 100);
    println!(
        "{} answers in {} bytes; {} were made, {} removed",
        cache.len(),
        cache.memory(),
        calls.into_inner(),
        cache.evicted()
    );
}
