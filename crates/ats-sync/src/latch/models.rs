//! Models for `loom`: readers, writers, and a thread that stops the latch.

use super::*;
use loom::sync::Arc;
use loom::thread;

struct Pair {
    turn: AtomicU64,
    words: [[AtomicU64; 2]; 2],
}

impl Pair {
    fn new() -> Arc<Self> {
        let word = |_| AtomicU64::new(0);
        Arc::new(Pair {
            turn: AtomicU64::new(0),
            words: [0, 1].map(|_| [0, 1].map(word)),
        })
    }

    fn latch(&self) -> Latch<'_> {
        Latch::new(&self.turn, self.words.each_ref().map(|copy| &copy[..]))
    }

    /// Adds a number to both words, and returns it if the change was made, else 0.
    fn add(&self, number: u64) -> u64 {
        let is_made = self.latch().change(|words| {
            assert_eq!(words[0], words[1]);
            words[0] += number;
            words[1] += number;
            true
        });
        if is_made { number } else { 0 }
    }

    /// Returns the words, which are equal at each moment.
    fn read(&self) -> u64 {
        let mut words = Vec::new();
        self.latch().read(&mut words);
        assert_eq!(words[0], words[1]);
        words[0]
    }
}

/// Tries all interleavings with a bounded number of preemptions.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// One thread changes the words two times, so that the copy that was current at first is written
/// again: a reader sees both words of one moment, and nothing older than what it has seen before.
#[test]
fn readers_see_one_moment() {
    check(|| {
        let pair = Pair::new();
        let writer = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || assert_eq!((pair.add(1), pair.add(1)), (1, 1)))
        };
        let first = pair.read();
        assert!(first <= pair.read());
        writer.join().unwrap();
        assert_eq!(pair.read(), 2);
    });
}

/// Two threads change the words: no change that was made is lost, and none that was not is seen.
#[test]
fn writers_lose_nothing() {
    check(|| {
        let pair = Pair::new();
        let writer = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.add(1))
        };
        let made = pair.add(2);
        let made = made + writer.join().unwrap();
        assert_eq!(pair.read(), made);
    });
}

/// A thread stops the latch beside a writer: the words stay, and the writer knows whether its
/// change is among them. If the latch is restarted, a change that was under way may be made.
#[test]
fn stopped_words_stay() {
    check(|| {
        let pair = Pair::new();
        let writer = {
            let pair = Arc::clone(&pair);
            thread::spawn(move || pair.add(1))
        };
        pair.latch().stop();
        let stopped = pair.read();
        assert_eq!(pair.read(), stopped);
        pair.latch().restart();
        pair.latch().stop();
        let last = pair.read();
        assert!(last >= stopped);
        let made = writer.join().unwrap();
        assert_eq!((pair.read(), made), (last, last));
    });
}
