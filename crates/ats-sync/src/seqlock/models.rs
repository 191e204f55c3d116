//! Models for `loom`: published contents and their number, read by another thread.

use super::*;
use loom::sync::Arc;
use loom::thread;

struct Store {
    records: SeqlockNumber,
    visible: AtomicU64,
}

impl Store {
    fn new() -> Arc<Self> {
        Arc::new(Store {
            records: SeqlockNumber::new(0),
            visible: AtomicU64::new(0),
        })
    }

    fn publish(&self, visible: u64) {
        let step = || self.visible.store(visible, Ordering::Release);
        self.records.publish(visible as i64, step);
    }

    fn visible(&self) -> i64 {
        self.visible.load(Ordering::Acquire) as i64
    }

    fn number(&self) -> i64 {
        self.records.read().expect("threads of models may wait")
    }
}

/// Tries all interleavings with a bounded number of preemptions.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Another thread publishes twice: the number is neither behind contents read before, nor ahead of
/// contents read after.
#[test]
fn the_number_agrees_with_visible_contents() {
    check(|| {
        let store = Store::new();
        let publisher = {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                store.publish(1);
                store.publish(2);
            })
        };
        let before = store.visible();
        let number = store.number();
        let after = store.visible();
        assert!(
            before <= number && number <= after,
            "{before} {number} {after}"
        );
        publisher.join().unwrap();
        assert_eq!(store.number(), 2);
    });
}

/// A reader sees everything that a reader saw which ended before it began.
#[test]
fn readers_agree() {
    check(|| {
        let store = Store::new();
        let publisher = {
            let store = Arc::clone(&store);
            thread::spawn(move || store.publish(1))
        };
        let first = {
            let store = Arc::clone(&store);
            thread::spawn(move || store.visible())
        };
        let first = first.join().unwrap();
        let number = store.number();
        assert!(first <= number);
        assert!(number <= store.visible());
        publisher.join().unwrap();
    });
}
