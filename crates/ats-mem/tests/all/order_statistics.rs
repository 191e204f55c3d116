//! Counts of records, and the n-th record, in trees of several levels that change all the time.

use ats_mem::When;
use ats_mem::{
    CaTree, Change, Direction, End, KeyRange, Plain, Provided, RecordBox, Records, Skipped,
};
use ats_sync::pin;
use fastrand::Rng;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

type Tree = CaTree<Plain>;

/// Tail of keys that leave no tombstone in a leaf.
const TAIL: &[u8] = b"a tail that no head completes";

/// The keys of a test.
#[derive(Clone, Copy)]
struct Keys {
    tail: &'static [u8],
}

impl Keys {
    fn key(self, number: u64) -> Vec<u8> {
        [&number.to_be_bytes()[..], self.tail].concat()
    }

    fn put(self, tree: &Tree, number: u64) {
        let key = self.key(number);
        let done = tree.update(&key, &pin(), &mut |_| {
            Change::Put(RecordBox::new(&key, &[number], false))
        });
        assert_eq!(done, Ok(()));
    }

    fn remove(self, tree: &Tree, number: u64) {
        let key = self.key(number);
        let done = tree.update(&key, &pin(), &mut |_| Change::Remove);
        assert_eq!(done, Ok(()));
    }

    /// Removes the first or the last record. Returns its number.
    fn remove_at(self, tree: &Tree, end: End) -> Option<u64> {
        let mut removed = None;
        let done = tree.update_end(end, &pin(), &mut |record| {
            removed = record.map(|record| record.value()[0]);
            Change::Remove
        });
        assert_eq!(done, Ok(()));
        removed
    }

    fn skip(self, tree: &Tree, range: Range<u64>, direction: Direction, most: usize) -> Answer {
        let (low, high) = (self.key(range.start), self.key(range.end));
        let key_range = KeyRange {
            low: Some(&low),
            high: Some(&high),
        };
        let guard = pin();
        answer(tree.skip(key_range, direction, most, &guard, &mut || {
            ControlFlow::Continue(())
        }))
    }

    /// Does the same at one moment, if the tree can.
    fn skip_at_once(
        self,
        tree: &Tree,
        range: Range<u64>,
        direction: Direction,
        most: usize,
    ) -> Option<Answer> {
        let (low, high) = (self.key(range.start), self.key(range.end));
        let key_range = KeyRange {
            low: Some(&low),
            high: Some(&high),
        };
        let guard = pin();
        let skipped = tree.skip_at_once(key_range, direction, most, &guard);
        skipped.map(answer)
    }

    fn count_at_once(self, tree: &Tree, range: Range<u64>) -> Option<usize> {
        match self.skip_at_once(tree, range, Direction::Up, usize::MAX)? {
            Answer::All(count) => Some(count),
            Answer::Number(_) => panic!("there are no more records than numbers"),
        }
    }

    fn count(self, tree: &Tree, range: Range<u64>) -> usize {
        match self.skip(tree, range, Direction::Up, usize::MAX) {
            Answer::All(count) => count,
            Answer::Number(_) => panic!("there are no more records than numbers"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Number(u64),
    All(usize),
}

fn answer(skipped: Skipped<'_, Plain>) -> Answer {
    match skipped {
        Skipped::At(record, _) => Answer::Number(record.value()[0]),
        Skipped::All(skipped) => Answer::All(skipped),
        Skipped::Paused { .. } => panic!("nobody said so"),
    }
}

/// The numbers that are present.
struct Model(Vec<bool>);

impl Model {
    fn remove_at(&mut self, end: End) -> Option<u64> {
        let mut there = self.there(0..self.0.len() as u64);
        let number = match end {
            End::First => there.next(),
            End::Last => there.next_back(),
        }?;
        drop(there);
        self.0[number as usize] = false;
        Some(number)
    }

    fn there(&self, range: Range<u64>) -> impl DoubleEndedIterator<Item = u64> {
        range.filter(|number| self.0[*number as usize])
    }

    fn skip(&self, range: Range<u64>, direction: Direction, most: usize) -> Answer {
        let there = || self.there(range.clone());
        let next = match direction {
            Direction::Up => there().nth(most),
            Direction::Down => there().nth_back(most),
        };
        match next {
            Some(number) => Answer::Number(number),
            None => Answer::All(there().count()),
        }
    }
}

/// Checks counts after rows, random writes, and removals of whole ranges, which split, share, merge
/// and remove counted leaves and inner nodes.
fn counts_agree(tail: &'static [u8], splits: u32, joins: u32) {
    const NUMBERS: u64 = 12_000;
    let keys = Keys { tail };
    let tree = Tree::new();
    tree.force_adaptation(splits, joins);
    let mut model = Model(vec![false; NUMBERS as usize + 1]);
    let mut random = Rng::with_seed(u64::from(splits));
    for _ in 0..150 {
        let start = random.u64(..NUMBERS);
        let what = random.u64(..4);
        let len = if what < 2 { 600 } else { 150 };
        for step in 0..len {
            let (number, there) = match what {
                0 => (start + step, true),
                1 => (start + len - step, step % 40 == 0),
                _ => (random.u64(..NUMBERS), what == 2),
            };
            let number = number.min(NUMBERS - 1);
            model.0[number as usize] = there;
            if there {
                keys.put(&tree, number);
            } else {
                keys.remove(&tree, number);
            }
            if step % 50 != 0 {
                continue;
            }
            for end in [End::First, End::Last] {
                assert_eq!(keys.remove_at(&tree, end), model.remove_at(end));
            }
            let (one, other) = (random.u64(..NUMBERS), random.u64(..NUMBERS));
            let range = match random.u64(..3) {
                0 => 0..NUMBERS,
                1 => one.min(other)..one.max(other),
                _ => one..(one + 100).min(NUMBERS),
            };
            let most = random.u64(..=range.end - range.start) as usize;
            for direction in [Direction::Up, Direction::Down] {
                let expected = model.skip(range.clone(), direction, most);
                assert_eq!(keys.skip(&tree, range.clone(), direction, most), expected);
                let at_once = keys.skip_at_once(&tree, range.clone(), direction, most);
                assert_eq!(at_once, Some(expected));
            }
            let expected = model.there(range.clone()).count();
            assert_eq!(keys.count(&tree, range), expected);
        }
    }
    let there = model.there(0..NUMBERS).count();
    assert_eq!((tree.len(), keys.count(&tree, 0..NUMBERS)), (there, there));
}

#[test]
fn counts_agree_in_one_part() {
    counts_agree(b"", 0, 0);
}

#[test]
fn counts_agree_without_tombstones() {
    counts_agree(TAIL, 0, 0);
}

#[test]
fn counts_agree_in_many_parts() {
    counts_agree(b"", 50, 0);
}

#[test]
fn counts_agree_while_parts_come_and_go() {
    counts_agree(b"", 7, 8);
    counts_agree(TAIL, 40, 41);
}

/// An aborted batch does not change the counts.
#[test]
fn undone_batches_do_not_count() {
    let keys = Keys { tail: b"" };
    let tree = Tree::new();
    (0..4000).for_each(|number| keys.put(&tree, 2 * number));
    assert_eq!(keys.count(&tree, 0..8000), 4000);
    let batch: Vec<Vec<u8>> = (0..8000)
        .step_by(3)
        .map(|number| keys.key(number))
        .collect();
    let batch: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
    for done in [false, true] {
        let result = tree.update_many(&batch, &pin(), &mut |index, _| match index {
            2000 if !done => Change::Abort,
            _ => Change::Put(RecordBox::new(batch[index], &[0], false)),
        });
        assert_eq!(result, Ok(done));
        let new = if done {
            (0..8000).step_by(3).filter(|n| n % 2 == 1).count()
        } else {
            0
        };
        assert_eq!(keys.count(&tree, 0..8000), 4000 + new);
        assert_eq!(keys.count(&tree, 0..4000), 2000 + new.div_ceil(2));
    }
}

/// A count that pauses whenever it may, and continues from there.
#[test]
fn paused_counts_go_on() {
    let keys = Keys { tail: b"" };
    let (first, last) = (keys.key(10), keys.key(99_990));
    for direction in [Direction::Up, Direction::Down] {
        let tree = Tree::new();
        (0..100_000).for_each(|number| keys.put(&tree, number));
        let (mut low, mut high) = (first.clone(), last.clone());
        let (mut total, mut pauses) = (0, 0);
        loop {
            let key_range = KeyRange {
                low: Some(&low),
                high: Some(&high),
            };
            let guard = pin();
            match tree.skip(key_range, direction, usize::MAX, &guard, &mut || {
                ControlFlow::Break(())
            }) {
                Skipped::At(..) => panic!("there are no more records than numbers"),
                Skipped::All(skipped) => {
                    total += skipped;
                    break;
                }
                Skipped::Paused { skipped, bound } => {
                    assert!(skipped > 0 && key_range.has(&bound));
                    total += skipped;
                    pauses += 1;
                    match direction {
                        Direction::Up => low = bound,
                        Direction::Down => high = bound,
                    }
                }
            }
        }
        assert_eq!(total, 99_980);
        assert!(pauses >= 7, "{pauses} pauses");
    }
}

/// The memory of counts is freed with the nodes.
#[test]
fn counting_takes_little_memory() {
    let keys = Keys { tail: b"" };
    let trees = [(); 2].map(|()| Tree::new());
    for tree in &trees {
        (0..50_000).for_each(|number| keys.put(tree, number));
    }
    let [bytes, counted] = trees.each_ref().map(|tree| tree.bytes());
    assert_eq!(bytes, counted);
    assert_eq!(keys.count(&trees[1], 0..50_000), 50_000);
    let counted = trees[1].bytes();
    assert!(counted > bytes && counted - bytes < bytes / 50);
    assert_eq!(keys.count(&trees[1], 0..50_000), 50_000);
    assert_eq!(trees[1].bytes(), counted);
    for tree in &trees {
        (0..50_000).for_each(|number| keys.remove(tree, number));
    }
    let [bytes, counted] = trees.each_ref().map(|tree| tree.bytes());
    assert!(counted - bytes < 4_000, "{bytes} {counted}");
}

/// Writers change some keys, while another thread counts the keys between them, which no writer
/// changes.
#[test]
fn counts_of_unchanged_keys_are_exact_beside_writers() {
    const NUMBERS: u64 = 20_000;
    let keys = Keys { tail: b"" };
    let tree = Tree::new();
    tree.force_adaptation(300, 300);
    (0..NUMBERS)
        .step_by(2)
        .for_each(|number| keys.put(&tree, number));
    let end = AtomicBool::new(false);
    thread::scope(|scope| {
        let tree = &tree;
        let end = &end;
        let writers: Vec<_> = (1..3)
            .map(|seed| {
                scope.spawn(move || {
                    let mut random = Rng::with_seed(seed);
                    for _ in 0..60_000 {
                        // Each writer has its own odd numbers.
                        let number = random.u64(..NUMBERS / 4) * 4 + 2 * seed - 1;
                        match random.u64(..2) {
                            0 => keys.put(tree, number),
                            _ => keys.remove(tree, number),
                        }
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            let mut random = Rng::with_seed(77);
            while !end.load(Relaxed) {
                let start = random.u64(..NUMBERS / 2) * 2;
                let len = random.u64(..NUMBERS - start);
                let range = start..start + len;
                let stay = len.div_ceil(2) as usize;
                let count = keys.count(tree, range.clone());
                assert!(
                    (stay..=len as usize).contains(&count),
                    "{count} in {range:?}"
                );
                let most = random.usize(..=stay);
                for direction in [Direction::Up, Direction::Down] {
                    match keys.skip(tree, range.clone(), direction, most) {
                        Answer::Number(number) => {
                            assert!(range.contains(&number));
                            let skipped = match direction {
                                Direction::Up => range.start..number,
                                Direction::Down => number + 1..range.end,
                            };
                            let len = skipped.end - skipped.start;
                            let least = (skipped.start.next_multiple_of(2)..skipped.end).step_by(2);
                            assert!(least.count() <= most && most as u64 <= len);
                        }
                        Answer::All(skipped) => assert_eq!(most, stay.max(skipped)),
                    }
                }
            }
        });
        for writer in writers {
            writer.join().expect("a writer");
        }
        end.store(true, Relaxed);
    });
    let mut there = 0;
    let scanned = tree.scan(None, When::NOW, &pin(), &mut |_| {
        there += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(scanned, Ok(()));
    assert_eq!((tree.len(), keys.count(&tree, 0..NUMBERS)), (there, there));
}

/// Runs writers beside a thread that counts at one moment, until it has had several results. On a
/// busy machine it gets few, so the writers run for longer then, and pause at times.
fn count_at_once_beside(
    tree: &Tree,
    range: Range<u64>,
    write: impl Fn(u64) + Sync,
    check: impl Fn(usize) + Sync,
) {
    const LEAST_ROUNDS: u64 = 6_000;
    const MOST_ROUNDS: u64 = 45_000;
    const FEW_ANSWERS: usize = 100;
    let keys = Keys { tail: b"" };
    let writing = AtomicUsize::new(2);
    let answers = AtomicUsize::new(0);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (write, writing, answers) = (&write, &writing, &answers);
            scope.spawn(move || {
                let goes_on =
                    |round: &u64| *round < LEAST_ROUNDS || answers.load(Relaxed) <= FEW_ANSWERS;
                for round in (0..MOST_ROUNDS).take_while(goes_on) {
                    write(2 * round + writer);
                    if round % 100 == 0 {
                        thread::sleep(Duration::from_micros(100));
                    }
                }
                writing.fetch_sub(1, Relaxed);
            });
        }
        while writing.load(Relaxed) > 0 {
            match keys.count_at_once(tree, range.clone()) {
                Some(count) => {
                    check(count);
                    answers.fetch_add(1, Relaxed);
                }
                None => drop(keys.count(tree, range.clone())),
            }
        }
    });
    let answers = answers.load(Relaxed);
    assert!(answers > FEW_ANSWERS, "{answers} answers");
}

/// Each of two writers moves a token upwards: it puts the next one before it removes the old one. A
/// count at one moment finds one or two tokens of each writer.
#[test]
fn counts_at_once_see_each_token() {
    let keys = Keys { tail: b"" };
    for (splits, joins) in [(0, 0), (40, 40), (40, 0)] {
        let tree = Tree::new();
        tree.force_adaptation(splits, joins);
        (0..2).for_each(|number| keys.put(&tree, number));
        let write = |number| {
            let key = |number| number % 2 + 2 * (number / 2 * 7919 % 10_000);
            keys.put(&tree, key(number + 2));
            keys.remove(&tree, key(number));
        };
        let check = |count| assert!((2..=4).contains(&count), "{count} tokens");
        count_at_once_beside(&tree, 0..20_000, write, check);
    }
}

/// Writers put lists of five new keys, or abort after the fourth; a count finds all of a list or
/// none.
#[test]
fn counts_at_once_see_whole_batches() {
    let keys = Keys { tail: b"" };
    for (splits, joins) in [(0, 0), (100, 100), (100, 0)] {
        let tree = Tree::new();
        tree.force_adaptation(splits, joins);
        let write = |number: u64| {
            let list = (0..5).map(|part| keys.key(number + 100_000 * part));
            let list: Vec<_> = list.collect();
            let list: Vec<&[u8]> = list.iter().map(Vec::as_slice).collect();
            let gives_up = number.is_multiple_of(3);
            let put = || {
                tree.update_many(&list, &pin(), &mut |at, _| match at {
                    4 if gives_up => Change::Abort,
                    _ => Change::Put(RecordBox::new(list[at], &[number], false)),
                })
            };
            while put() != Ok(!gives_up) {
                thread::yield_now();
            }
        };
        let check = |count| assert!(count % 5 == 0, "{count} keys of lists of 5");
        count_at_once_beside(&tree, 0..1_000_000, write, check);
    }
}

/// Returns the shortest time of a few runs.
fn time(mut act: impl FnMut()) -> Duration {
    let times = (0..5).map(|_| {
        let begun = Instant::now();
        act();
        begun.elapsed()
    });
    times.min().expect("some")
}

/// A count after a few writes does not visit everything again.
#[test]
fn counting_is_fast() {
    const NUMBERS: u64 = 400_000;
    let keys = Keys { tail: b"" };
    let tree = Tree::new();
    let mut random = Rng::with_seed(5);
    (0..NUMBERS).for_each(|number| keys.put(&tree, 2 * number));
    let scan = time(|| {
        let mut met = 0;
        let scanned = tree.scan(None, When::NOW, &pin(), &mut |_| {
            met += 1;
            ControlFlow::Continue(())
        });
        assert_eq!((scanned, met), (Ok(()), tree.len()));
    });
    let _warm = keys.count(&tree, 0..2 * NUMBERS);
    let count = (0..5).map(|_| {
        (0..100).for_each(|_| keys.put(&tree, random.u64(..2 * NUMBERS)));
        let begun = Instant::now();
        let count = keys.count(&tree, 1..2 * NUMBERS);
        let elapsed = begun.elapsed();
        assert_eq!(count + 1, tree.len());
        elapsed
    });
    let count = count.min().expect("some");
    assert!(
        count * 100 < scan,
        "counted in {count:?}, scanned in {scan:?}"
    );
}
