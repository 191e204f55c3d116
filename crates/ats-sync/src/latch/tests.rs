use super::*;
use std::sync::atomic::AtomicBool;
use std::thread;

struct Words {
    turn: AtomicU64,
    copies: [Vec<AtomicU64>; 2],
}

impl Words {
    fn new(number: usize) -> Self {
        let copy = || (0..number).map(|_| AtomicU64::new(0)).collect();
        Words {
            turn: AtomicU64::new(0),
            copies: [copy(), copy()],
        }
    }

    fn latch(&self) -> Latch<'_> {
        Latch::new(&self.turn, self.copies.each_ref().map(|copy| &copy[..]))
    }

    fn read(&self) -> Vec<u64> {
        let mut words = Vec::new();
        self.latch().read(&mut words);
        words
    }
}

#[test]
fn changes_are_read() {
    for number in [1, 2, WORDS_MOST] {
        let words = Words::new(number);
        for round in 1..=5 {
            assert!(words.latch().change(|current| {
                assert!(current.iter().all(|word| *word == round - 1));
                current.fill(round);
                true
            }));
            assert_eq!(words.read(), vec![round; number]);
        }
    }
}

#[test]
fn a_change_that_is_not_made_leaves_the_words() {
    let words = Words::new(2);
    for _ in 0..3 {
        assert!(!words.latch().change(|current| {
            current.fill(9);
            false
        }));
        assert_eq!(words.read(), [0, 0]);
    }
    assert!(words.latch().change(|current| {
        current[1] = 7;
        true
    }));
    assert_eq!(words.read(), [0, 7]);
}

#[test]
fn a_stopped_latch_does_not_change() {
    let words = Words::new(1);
    let set = |to| {
        words.latch().change(|current| {
            current[0] = to;
            true
        })
    };
    words.latch().stop();
    assert!(!set(1));
    words.latch().restart();
    assert!(set(2));
    // The latch is stopped while a change is under way.
    assert!(!words.latch().change(|current| {
        words.latch().stop();
        current[0] = 3;
        true
    }));
    assert_eq!(words.read(), [2]);
    words.latch().restart();
    assert!(set(4));
    assert_eq!(words.read(), [4]);
}

#[test]
fn a_claim_that_is_never_given_up_stops_no_reader() {
    let words = Words::new(2);
    let is_changed = words.latch().change(|current| {
        assert!(!words.latch().change(|_| true), "the turn is claimed");
        assert_eq!(words.read(), [0, 0]);
        current.fill(1);
        true
    });
    assert!(is_changed);
    assert_eq!(words.read(), [1, 1]);
}

#[test]
fn a_panic_of_a_change_gives_up_the_claim() {
    let words = Words::new(1);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        words.latch().change(|_| panic!("of the change"))
    }));
    assert!(panicked.is_err());
    assert!(words.latch().change(|current| {
        current[0] = 1;
        true
    }));
    assert_eq!(words.read(), [1]);
}

#[test]
fn readers_beside_writers_see_one_moment() {
    let (words, end) = (Words::new(5), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !end.load(Ordering::Relaxed) {
                    let read = words.read();
                    assert!(read.iter().all(|word| *word == read[0]) && read[0] >= last);
                    last = read[0];
                }
            });
        }
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let add = |current: &mut [u64]| {
                    for word in current {
                        *word += 1;
                    }
                    true
                };
                let words = &words;
                scope.spawn(move || {
                    (0..200_000).filter(|_| words.latch().change(add)).count() as u64
                })
            })
            .collect();
        let made: u64 = (writers.into_iter().map(|writer| writer.join().unwrap())).sum();
        end.store(true, Ordering::Relaxed);
        assert_eq!(words.read(), [made; 5]);
    });
}
