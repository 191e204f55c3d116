//! Short histories of three threads on a few keys, recorded many times and checked for
//! linearizability. The threads are those of the system or, under `RUSTFLAGS="--cfg shuttle"`, of a
//! scheduler that switches between them at any access to an atomic.
//!
//! The keys are among others that no thread touches, so many that one key more or less splits a
//! leaf, or makes the hash table grow. The tree is forced to split and join its base nodes all the
//! time, too. A snapshot query is one read of all keys, and so is a rank query at one moment. Reads
//! that are no snapshot (`next`, `prev`, `scan`, and walks by many steps) are checked against their
//! contract: one read for each key they passed, each between the call and the return.

use crate::checker::{Clock, Event, linearizable};
use ats_mem::When;
use ats_mem::{
    Change, Direction, End, Plain, Provided, Record, RecordBox, Records, Totals, Transaction,
};
use ats_sync::pin;
use fastrand::Rng;
#[cfg(shuttle)]
use shuttle::{sync::Barrier, thread};
use std::ops::ControlFlow;
use std::sync::Arc;
#[cfg(not(shuttle))]
use std::{sync::Barrier, thread};

/// The keys of the histories, by their index.
pub(crate) const KEYS: usize = 4;
pub(crate) const THREADS: u64 = 3;
pub(crate) const CALLS: usize = 6;
pub(crate) const ROUNDS: u64 = 8000;

/// The value of each key.
pub(crate) type State = [Option<u64>; KEYS];

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// Wrote the new value and found the old one.
    Write(usize, Option<u64>, Option<u64>),
    /// Wrote the new value, without reading the old one, and returned `true` if there was one.
    WriteOver(usize, Option<u64>, bool),
    Read(usize, Option<u64>),
    /// Read several keys in one batch, found these values, and wrote one value under some of the
    /// keys.
    Batch(Vec<Part>, u64),
    /// Removed the record at an end: a key with its value, or none because the store was empty.
    TakeEnd(End, Option<(usize, u64)>),
    /// Found that this many of the keys were present.
    Size(i64),
    /// Found these values, and this many of the keys, at one moment.
    Query(State, i64),
    /// Skipped keys of a range, including fillers, and reached a key, or the end after this many.
    Skip(Skip, Result<u64, usize>),
}

/// A skip of keys in a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Skip {
    /// The first number of the range, and the first one beyond.
    pub(crate) range: (u64, u64),
    pub(crate) direction: Direction,
    pub(crate) most: usize,
    layout: Layout,
    /// Number of other keys.
    fillers: u64,
}

impl Skip {
    /// Returns the correct result.
    fn find(&self, state: &State) -> Result<u64, usize> {
        let there = (0..KEYS).filter(|index| state[*index].is_some());
        let there = there.map(|index| self.layout.keys[index]);
        let fillers = (0..self.fillers).map(|filler| 2 * filler);
        let (low, high) = self.range;
        let is_inside = |number: &u64| (low..high).contains(number);
        let mut numbers: Vec<u64> = there.chain(fillers).filter(is_inside).collect();
        numbers.sort_unstable();
        if self.direction == Direction::Down {
            numbers.reverse();
        }
        numbers.get(self.most).copied().ok_or(numbers.len())
    }
}

/// The part of a key in a batch.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    key: usize,
    found: Option<u64>,
    becomes: Becomes,
}

/// The part that a batch has made of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Becomes {
    Kept,
    New,
    Gone,
}

/// A function that skips keys at one moment, in a store with ranks, and has the store count first
/// if needed.
pub(crate) type SkipAtOnce<S> = fn(&S, &Skip) -> Option<Result<u64, usize>>;

pub(crate) fn apply(state: &State, what: &What) -> Option<State> {
    let mut after = *state;
    match what {
        What::Size(size) => {
            let there = state.iter().flatten().count();
            return (*size == there as i64).then_some(after);
        }
        What::Query(found, size) => {
            let there = state.iter().flatten().count();
            return (found == state && *size == there as i64).then_some(after);
        }
        What::Skip(skip, found) => return (skip.find(state) == *found).then_some(after),
        What::Read(key, value) => return (state[*key] == *value).then_some(after),
        What::Write(key, new, old) => {
            after[*key] = *new;
            return (state[*key] == *old).then_some(after);
        }
        What::WriteOver(key, new, was_there) => {
            after[*key] = *new;
            return (state[*key].is_some() == *was_there).then_some(after);
        }
        What::Batch(found, new) => {
            for part in found {
                if state[part.key] != part.found {
                    return None;
                }
                match part.becomes {
                    Becomes::Kept => {}
                    Becomes::New => after[part.key] = Some(*new),
                    Becomes::Gone => after[part.key] = None,
                }
            }
        }
        What::TakeEnd(end, taken) => {
            let mut there = (0..KEYS).filter(|key| state[*key].is_some());
            let outermost = match end {
                End::First => there.next(),
                End::Last => there.next_back(),
            };
            if outermost != taken.map(|(key, _)| key) {
                return None;
            }
            if let Some((key, value)) = *taken {
                after[key] = None;
                return (state[key] == Some(value)).then_some(after);
            }
        }
    }
    Some(after)
}

/// A kind of store, and the keys of a history among the others in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// `true` if the store has an order, and adapts.
    ordered: bool,
    /// Approximate number of other keys: the even numbers from 0 on. Without them, the keys are at
    /// the ends of the store, and are taken from there.
    fillers: u64,
    keys: [u64; KEYS],
}

/// A tree. Full leaves have 34 keys, or 8 when interleavings are explored.
pub(crate) const TREE: Layout = if cfg!(shuttle) {
    Layout {
        ordered: true,
        fillers: 7,
        keys: [1, 5, 9, 15],
    }
} else {
    Layout {
        ordered: true,
        fillers: 33,
        keys: [1, 17, 31, 63],
    }
};

/// A tree of few keys, so that a base node that is split off is empty now and then.
pub(crate) const QUEUE: Layout = Layout {
    ordered: true,
    fillers: 0,
    keys: [1, 17, 31, 63],
};

/// An unordered store used like a queue.
pub(crate) const POOL: Layout = Layout {
    ordered: false,
    ..QUEUE
};

/// A hash table, which grows with its 33rd key.
pub(crate) const HASH_TABLE: Layout = Layout {
    ordered: false,
    fillers: 31,
    keys: [1, 17, 31, 63],
};

impl Layout {
    /// Returns the number of rounds: fewer with few other keys, which allow little variation.
    pub(crate) fn rounds(&self) -> u64 {
        match self.fillers {
            0 => ROUNDS / 4,
            _ => ROUNDS,
        }
    }

    pub(crate) fn key(&self, index: usize) -> [u8; 8] {
        self.keys[index].to_be_bytes()
    }

    /// Returns the index of a key, unless it is a filler.
    pub(crate) fn index(&self, key: &[u8]) -> Option<usize> {
        (0..KEYS).find(|index| self.key(*index) == key)
    }
}

/// One thread's part in a history.
pub(crate) struct Player<S> {
    store: Arc<S>,
    clock: Arc<Clock>,
    random: Rng,
    /// The next value of this player; players have disjoint values, so that all writes differ.
    next_value: u64,
    layout: Layout,
    skip_at_once: Option<SkipAtOnce<S>>,
    /// Number of fillers, and the totals of the store before.
    fillers: u64,
    base: Totals,
    events: Vec<Event<What>>,
}

impl<S: Records<Plain>> Player<S> {
    pub(crate) fn play(mut self) -> Vec<Event<What>> {
        for _ in 0..CALLS {
            self.next_value += 1;
            let ends = self.layout.fillers == 0;
            match self.random.u64(..if ends { 24 } else { 21 }) {
                0 => self.write(Some(self.next_value)),
                1 | 2 => self.write_over(Some(self.next_value)),
                3 => self.write(None),
                4 => self.write_over(None),
                5 => self.batch(),
                6 => self.transact(),
                7 => self.scan(),
                8 if self.layout.ordered => self.scan_part(),
                9 if self.layout.ordered => self.step(),
                10 if self.layout.ordered => self.walk(),
                11 => {
                    self.store.join_idle(&pin());
                }
                13 | 14 => self.size(),
                15..18 => self.query(),
                18..21 => self.skip_at_once(),
                21.. => self.take_end(),
                _ => self.get(),
            }
        }
        self.events
    }

    pub(crate) fn write(&mut self, new: Option<u64>) {
        let (index, store) = (self.random.usize(..KEYS), &self.store);
        let key = self.layout.key(index);
        // One in three writes is a slow change.
        let alone = self.random.u64(..3) == 0;
        let update = || {
            let mut old = None;
            let guard = pin();
            let mut decide = |current: Option<&Record<Plain>>| {
                old = current.map(|record| record.value()[0]);
                if alone {
                    thread::yield_now();
                }
                match new {
                    Some(value) => Change::Put(RecordBox::new(&key, &[value], false)),
                    None => Change::Remove,
                }
            };
            let done = if alone {
                store.update_alone(&key, &guard, &mut decide)
            } else {
                store.update(&key, &guard, &mut decide)
            };
            done.map(|()| old)
        };
        let event = self
            .clock
            .record(update, |old| old.map(|old| What::Write(index, new, old)));
        self.push(event);
    }

    pub(crate) fn write_over(&mut self, new: Option<u64>) {
        let (index, store) = (self.random.usize(..KEYS), &self.store);
        let key = self.layout.key(index);
        let write = || match new {
            Some(value) => store.put(&key, RecordBox::new(&key, &[value], false), &pin()),
            None => store.remove(&key, &pin()),
        };
        let event = self.clock.record(write, |was_there| {
            was_there.map(|was_there| What::WriteOver(index, new, was_there))
        });
        self.push(event);
    }

    pub(crate) fn take_end(&mut self) {
        let end = match self.random.u64(..3) {
            0 => End::Last,
            _ => End::First,
        };
        let (store, layout) = (&self.store, self.layout);
        let take = || {
            let (mut taken, guard) = (None, pin());
            let done = store.update_end(end, &guard, &mut |current| match current {
                None => Change::Keep,
                Some(record) => {
                    let index = layout.index(record.key()).expect("one of the keys");
                    taken = Some((index, record.value()[0]));
                    Change::Remove
                }
            });
            done.map(|()| taken)
        };
        let event = self.clock.record(take, |taken| taken);
        let what = match event.what {
            Ok(taken) if layout.ordered => What::TakeEnd(end, taken),
            Ok(Some((index, value))) => What::Write(index, None, Some(value)),
            // An unordered store may find no record without having been empty at any single moment.
            Ok(None) | Err(ats_mem::Busy) => return,
        };
        self.events.push(Event {
            what,
            call: event.call,
            end: event.end,
        });
    }

    /// Writes some keys in one batch, and keeps others unchanged. Now and then aborts at the last
    /// key, after which no change may be visible.
    pub(crate) fn batch(&mut self) {
        let chosen: Vec<usize> = (0..KEYS).filter(|_| self.random.u64(..3) > 0).collect();
        let answers = chosen.iter().map(|_| self.random.u64(..6)).collect();
        let keys: Vec<[u8; 8]> = chosen.iter().map(|index| self.layout.key(*index)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let (store, new) = (&self.store, self.next_value);
        let mut writing = Writing {
            gives_up: self.random.u64(..4) == 0,
            keys: &keys,
            chosen: &chosen,
            answers,
            new,
            parts: Vec::new(),
        };
        let is_long = self.random.u64(..2) == 0;
        let update = || {
            if is_long {
                store.update_long_batch(&keys, &mut writing)
            } else {
                store.update_batch(&keys, &pin(), &mut writing)
            }
        };
        let event = self.clock.record(update, |done| done);
        if event.what == Ok(true) {
            let what = What::Batch(writing.parts, new);
            self.events.push(Event {
                what,
                call: event.call,
                end: event.end,
            });
        }
    }

    /// Reads some keys in one transaction, and decides by all their values together which of them
    /// get a new value, or go. Now and then gives up, after which no change may be visible.
    pub(crate) fn transact(&mut self) {
        let chosen: Vec<usize> = (0..KEYS).filter(|_| self.random.u64(..3) > 0).collect();
        let answers = chosen.iter().map(|_| self.random.u64(..6)).collect();
        let keys: Vec<[u8; 8]> = chosen.iter().map(|index| self.layout.key(*index)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let mut deciding = Deciding {
            gives_up_at: self.random.usize(..4 * (KEYS + 1)),
            keys: &keys,
            chosen: &chosen,
            answers,
            new: self.next_value,
            parts: Vec::new(),
            is_released: false,
        };
        let guard = self.random.bool().then(pin);
        let store = &self.store;
        let transact = || store.transact(&keys, guard.as_ref(), &mut deciding);
        let event = self.clock.record(transact, |done| done);
        assert!(deciding.is_released);
        if event.what == Ok(true) {
            self.events.push(Event {
                what: What::Batch(deciding.parts, self.next_value),
                call: event.call,
                end: event.end,
            });
        }
    }

    pub(crate) fn get(&mut self) {
        let (index, store) = (self.random.usize(..KEYS), &self.store);
        let key = self.layout.key(index);
        let get = || store.get(&key, &pin()).map(|record| record.value()[0]);
        let event = self.clock.record(get, |value| Ok(What::Read(index, value)));
        self.push(event);
    }

    /// Counts, and checks that bytes and objects belong to one moment.
    pub(crate) fn size(&mut self) {
        let (store, base) = (&self.store, self.base);
        let event = self.clock.record(
            || store.totals(),
            |totals| {
                totals.map(|totals| {
                    let size = totals.objects - base.objects;
                    let bytes = totals.bytes - base.bytes;
                    // A key of one word, a value of one word, and a header of one word, or of three
                    // if a batch needed room for any address.
                    assert!(
                        (24 * size..=40 * size).contains(&bytes),
                        "{bytes} of {size}"
                    );
                    What::Size(size)
                })
            },
        );
        self.push(event);
    }

    pub(crate) fn scan(&mut self) {
        let (store, layout) = (&self.store, self.layout);
        let scan = || {
            let mut state = State::default();
            let scanned = store.scan(None, When::NOW, &pin(), &mut |record| {
                if let Some(index) = layout.index(record.key()) {
                    let before = state[index].replace(record.value()[0]);
                    assert_eq!(before, None, "a scan met a key twice");
                }
                ControlFlow::Continue(())
            });
            assert_eq!(scanned, Ok(()));
            state
        };
        let event = self.clock.record(scan, |state| state);
        let reads = event.what.iter().enumerate();
        self.events.extend(reads.map(|(index, value)| Event {
            what: What::Read(index, *value),
            call: event.call,
            end: event.end,
        }));
    }

    /// Begins a query, reads its snapshot in several ways, some of it later, and ends it. Its
    /// moment is between the call and the return of the begin.
    pub(crate) fn query(&mut self) {
        let store = Arc::clone(&self.store);
        let begun = self
            .clock
            .record(|| store.begin(&mut || Ok(true)), |read_point| read_point);
        let Ok(Some(read_point)) = begun.what else {
            return;
        };
        let found = self.state_at(read_point.when());
        let size = read_point.objects - self.base.objects;
        self.events.push(Event {
            what: What::Query(found, size),
            call: begun.call,
            end: begun.end,
        });
        for _ in 0..self.random.u64(..3) {
            self.next_value += 1;
            match self.random.u64(..5) {
                0 => self.write(Some(self.next_value)),
                1 => self.write_over(Some(self.next_value)),
                2 => self.write_over(None),
                3 if self.random.bool() => self.batch(),
                3 => self.transact(),
                _ => {
                    self.store.reclaim(self.random.usize(..8), &pin());
                }
            }
        }
        assert_eq!(self.state_at(read_point.when()), found, "the moment stays");
        let guard = pin();
        for (index, value) in found.iter().enumerate() {
            let there = store.get_at(&self.layout.key(index), read_point.when(), &guard);
            assert_eq!(there.map(|record| record.value()[0]), *value);
        }
        drop(guard);
        store.end(read_point);
        if self.random.bool() {
            store.reclaim(self.random.usize(..8), &pin());
        }
    }

    /// Skips keys in a range at one moment, again if the store has to count first.
    pub(crate) fn skip_at_once(&mut self) {
        let Some(skip_at_once) = self.skip_at_once else {
            return;
        };
        let (one, other) = (self.random.u64(..70), self.random.u64(..70));
        let skip = Skip {
            range: (one.min(other), one.max(other)),
            direction: if self.random.bool() {
                Direction::Up
            } else {
                Direction::Down
            },
            most: match self.random.u64(..3) {
                0 => self.random.usize(..40),
                _ => usize::MAX,
            },
            layout: self.layout,
            fillers: self.fillers,
        };
        for _ in 0..4 {
            let store = &self.store;
            let event = self
                .clock
                .record(|| skip_at_once(store, &skip), |found| found);
            if let Some(found) = event.what {
                return self.events.push(Event {
                    what: What::Skip(skip, found),
                    call: event.call,
                    end: event.end,
                });
            }
        }
    }

    /// Returns the contents that a scan at a read point meets.
    fn state_at(&self, when: When) -> State {
        let mut state = State::default();
        let scanned = self.store.scan(None, when, &pin(), &mut |record| {
            if let Some(index) = self.layout.index(record.key()) {
                let before = state[index].replace(record.value()[0]);
                assert_eq!(before, None, "a query met a key twice");
            }
            ControlFlow::Continue(())
        });
        assert_eq!(scanned, Ok(()));
        state
    }

    /// Scans from a key on, and stops somewhere.
    pub(crate) fn scan_part(&mut self) {
        let (from, limit) = (self.random.usize(..KEYS), 1 + self.random.u64(..30));
        let (store, layout) = (&self.store, self.layout);
        let scan = || {
            let (mut met, mut last) = (Vec::new(), None);
            let mut left = limit;
            let scanned = store.scan(Some(&layout.key(from)), When::NOW, &pin(), &mut |record| {
                met.push((record.key().to_vec(), record.value()[0]));
                left -= 1;
                if left == 0 {
                    last = Some(record.key().to_vec());
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            });
            assert_eq!(scanned, Ok(()));
            (met, last)
        };
        let event = self.clock.record(scan, |met| met);
        let (met, last) = &event.what;
        assert!(met.windows(2).all(|pair| pair[0].0 < pair[1].0), "{met:?}");
        for index in from + 1..KEYS {
            let key = layout.key(index);
            if last.as_ref().is_some_and(|last| key[..] > last[..]) {
                break;
            }
            let found = met.iter().find(|(met, _)| *met == key);
            self.events.push(Event {
                what: What::Read(index, found.map(|(_, value)| *value)),
                call: event.call,
                end: event.end,
            });
        }
    }

    /// Steps to the key after, or before, another one.
    pub(crate) fn step(&mut self) {
        let from = self.layout.key(self.random.usize(..KEYS)).to_vec();
        let upwards = self.random.u64(..2) == 0;
        self.step_from(&from, upwards);
    }

    /// Walks step by step from a key to the second next, or to the end.
    pub(crate) fn walk(&mut self) {
        let from = self.random.usize(..KEYS);
        let upwards = self.random.u64(..2) == 0;
        let end = if upwards {
            self.layout.keys.get(from + 2).copied()
        } else {
            from.checked_sub(2).map(|end| self.layout.keys[end])
        };
        let mut here = self.layout.key(from).to_vec();
        while let Some(next) = self.step_from(&here, upwards) {
            assert!((next > here) == upwards, "{next:?} after {here:?}");
            here = next;
            if end.is_some_and(|end| here == end.to_be_bytes()) {
                break;
            }
        }
    }

    pub(crate) fn step_from(&mut self, from: &[u8], upwards: bool) -> Option<Vec<u8>> {
        let (store, layout) = (&self.store, self.layout);
        let step = || {
            let guard = pin();
            let found = if upwards {
                store.next(from, &guard)
            } else {
                store.prev(from, &guard)
            };
            let found = found.expect("ordered stores take any key");
            found.map(|record| (record.key().to_vec(), record.value()[0]))
        };
        let event = self.clock.record(step, |found| found);
        for other in 0..KEYS {
            let key = &layout.key(other)[..];
            if key == from || (key > from) != upwards {
                continue;
            }
            let value = match &event.what {
                Some((found, value)) if key == found => Some(*value),
                Some((found, _)) if (key < &found[..]) == upwards => None,
                // The key is beyond the found one.
                Some(_) => continue,
                None => None,
            };
            self.events.push(Event {
                what: What::Read(other, value),
                call: event.call,
                end: event.end,
            });
        }
        event.what.map(|(found, _)| found)
    }

    pub(crate) fn push(&mut self, event: Event<Result<What, ats_mem::Busy>>) {
        // A call that failed because of a batch has not happened.
        if let Ok(what) = event.what {
            self.events.push(Event {
                what,
                call: event.call,
                end: event.end,
            });
        }
    }
}

/// The changes of a batch to its keys.
pub(crate) struct Writing<'a> {
    gives_up: bool,
    keys: &'a [&'a [u8]],
    chosen: &'a [usize],
    /// A number for each key, which decides about its change.
    answers: Vec<u64>,
    new: u64,
    parts: Vec<Part>,
}

impl ats_store::BatchPlan<Record<Plain>, RecordBox<Plain>> for Writing<'_> {
    fn decide(&mut self, at: usize, current: Option<&Record<Plain>>) -> Change<Plain> {
        if self.gives_up && at + 1 == self.keys.len() {
            return Change::Abort;
        }
        match self.answers[at] {
            0 | 1 => Change::Later,
            _ => self.build(at, current),
        }
    }

    fn build(&mut self, at: usize, current: Option<&Record<Plain>>) -> Change<Plain> {
        let is_kept = self.answers[at].is_multiple_of(2);
        self.parts.push(Part {
            key: self.chosen[at],
            found: current.map(|record| record.value()[0]),
            becomes: if is_kept { Becomes::Kept } else { Becomes::New },
        });
        if is_kept {
            Change::Keep
        } else {
            Change::Put(RecordBox::new(self.keys[at], &[self.new], false))
        }
    }
}

/// The transaction of a history.
pub(crate) struct Deciding<'a> {
    /// The index of the key at whose change the transaction is aborted; or the number of keys if it
    /// decides for no change.
    gives_up_at: usize,
    keys: &'a [&'a [u8]],
    chosen: &'a [usize],
    /// A number for each key, which decides about its change.
    answers: Vec<u64>,
    new: u64,
    parts: Vec<Part>,
    is_released: bool,
}

impl Transaction<Plain> for Deciding<'_> {
    fn may_change(&self, at: usize) -> bool {
        self.answers[at] != 0
    }

    fn decide<'b>(&mut self, found: &'b dyn Fn(usize) -> Option<&'b Record<Plain>>) -> bool {
        let found = |at| found(at).map(|record| record.value()[0]);
        let values: Vec<Option<u64>> = (0..self.keys.len()).map(found).collect();
        // Each change depends on the values of all keys.
        let turn = values.iter().flatten().sum::<u64>() + values.len() as u64;
        let parts = values.iter().enumerate().map(|(at, found)| Part {
            key: self.chosen[at],
            found: *found,
            becomes: match (self.answers[at], (self.answers[at] + turn) % 3) {
                (0, _) | (_, 0) => Becomes::Kept,
                (_, 1) => Becomes::New,
                _ => Becomes::Gone,
            },
        });
        self.parts = parts.collect();
        self.gives_up_at != self.keys.len()
    }

    fn change(&mut self, at: usize, _: Option<&Record<Plain>>) -> Change<Plain> {
        if at == self.gives_up_at {
            return Change::Abort;
        }
        match self.parts[at].becomes {
            Becomes::Kept => Change::Keep,
            Becomes::New => Change::Put(RecordBox::new(self.keys[at], &[self.new], false)),
            Becomes::Gone => Change::Remove,
        }
    }

    fn release(&mut self, has_committed: bool) {
        assert!(!has_committed || self.parts.len() == self.keys.len());
        assert!(!self.is_released, "a transaction is released once");
        self.is_released = true;
    }
}

#[cfg(not(shuttle))]
pub(crate) fn histories<S: Records<Plain> + Default + 'static>(
    layout: Layout,
    skip_at_once: Option<SkipAtOnce<S>>,
) {
    (1..=layout.rounds()).for_each(|round| history(layout, round, skip_at_once));
}

#[cfg(shuttle)]
pub(crate) fn histories<S: Records<Plain> + Default + 'static>(
    layout: Layout,
    skip_at_once: Option<SkipAtOnce<S>>,
) {
    use shuttle::{Config, Runner, rand::Rng, scheduler::RandomScheduler};
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    Runner::new(RandomScheduler::new(layout.rounds() as usize), config).run(move || {
        let round = shuttle::rand::thread_rng().gen_range(1..ROUNDS);
        history(layout, round, skip_at_once);
    });
}

pub(crate) fn history<S: Records<Plain> + Default + 'static>(
    layout: Layout,
    round: u64,
    skip_at_once: Option<SkipAtOnce<S>>,
) {
    let store = S::default();
    // The number of fillers varies: one to four keys make the leaf split, or the table grow.
    let fillers = layout.fillers.checked_sub(1);
    let fillers = fillers.map_or(0, |fillers| fillers + round % 3);
    for filler in 0..fillers {
        let key = (2 * filler).to_be_bytes();
        let put = store.update(&key, &pin(), &mut |_| {
            Change::Put(RecordBox::new(&key, &[0], false))
        });
        assert_eq!(put, Ok(()));
    }
    let base = store.totals().expect("this thread may wait");
    // Converts a period of forced splits or joins; below 2, none is forced.
    let adapts = |one_in: u64| if one_in < 2 { 0 } else { one_in as u32 };
    store.force_adaptation(adapts(round / 3 % 5), adapts(round / 15 % 5));
    let (store, clock) = (Arc::new(store), Arc::new(Clock::default()));
    let start = Arc::new(Barrier::new(THREADS as usize));
    let play = |number: u64| {
        let player = Player {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            random: Rng::with_seed(round * THREADS + number),
            next_value: 1000 * number,
            layout,
            skip_at_once,
            fillers,
            base,
            events: Vec::new(),
        };
        let start = Arc::clone(&start);
        thread::spawn(move || {
            start.wait();
            player.play()
        })
    };
    let players: Vec<_> = (0..THREADS).map(play).collect();
    let events = players.into_iter().map(|player| player.join());
    let events: Vec<_> = events
        .flat_map(|events| events.expect("a player"))
        .collect();
    let mut left = 1000;
    while !store.reclaim(5, &pin()) {
        left -= 1;
        assert!(left > 0, "no query is left");
    }
    let totals = store.totals().expect("this thread may wait");
    let (objects, bytes) = (totals.objects - base.objects, totals.bytes - base.bytes);
    assert!((24 * objects..=40 * objects).contains(&bytes));
    // A few of the histories are too long for the checker: those of many scans.
    if events.len() <= 64 {
        let explained = linearizable(State::default(), &events, apply);
        assert!(explained, "round {round}: no order explains {events:#?}");
    }
}
