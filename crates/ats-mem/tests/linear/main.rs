//! Short histories of three threads on a few keys, recorded many times and checked for linearizability.
//! The threads are those of the system or, under `RUSTFLAGS="--cfg shuttle"`, of a scheduler that
//! switches between them at any access to an atomic.
//!
//! The keys lie among others that nobody touches, so many that one key more or less splits a leaf,
//! or makes the hash table grow. Reads that are no snapshot (`next`, `prev`, `scan`) are checked as what
//! they promise to be: one read for each key they passed, all between the call and the return.
#![cfg(not(loom))]

mod checker;

use ats_mem::{Backend, CaTree, Change, HashTable, Plain, RecordBox};
use ats_sync::pin;
use checker::{Clock, Event, linearizable};
#[cfg(shuttle)]
use shuttle::{sync::Barrier, thread};
use std::ops::ControlFlow;
use std::sync::Arc;
#[cfg(not(shuttle))]
use std::{sync::Barrier, thread};

/// The keys of the histories, by their index.
const KEYS: usize = 4;
const THREADS: u64 = 3;
const CALLS: usize = 6;
const ROUNDS: u64 = 3000;

/// The value of each key.
type State = [Option<u64>; KEYS];

#[derive(Clone, Debug)]
enum What {
    /// Wrote the new value and found the old one.
    Write(usize, Option<u64>, Option<u64>),
    Read(usize, Option<u64>),
    /// Wrote one value under several keys, and found these.
    Batch(Vec<(usize, Option<u64>)>, u64),
}

fn apply(state: &State, what: &What) -> Option<State> {
    let mut after = *state;
    match what {
        What::Read(key, value) => return (state[*key] == *value).then_some(after),
        What::Write(key, new, old) => {
            after[*key] = *new;
            return (state[*key] == *old).then_some(after);
        }
        What::Batch(found, new) => {
            for (key, old) in found {
                if state[*key] != *old {
                    return None;
                }
                after[*key] = Some(*new);
            }
        }
    }
    Some(after)
}

/// Where the keys are among the fillers, which are even.
fn key(index: usize) -> [u8; 8] {
    [1u64, 17, 31, 63][index].to_be_bytes()
}

/// The index of a key, unless it is a filler.
fn index(key: &[u8]) -> Option<usize> {
    (0..KEYS).find(|index| self::key(*index) == key)
}

/// Numbers without much pattern (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    fn key(&mut self) -> usize {
        self.below(KEYS as u64) as usize
    }
}

/// One thread's part in a history.
struct Player<S> {
    store: Arc<S>,
    clock: Arc<Clock>,
    random: Random,
    /// Values of this player begin here, so that no two writes write the same.
    next_value: u64,
    ordered: bool,
    events: Vec<Event<What>>,
}

impl<S: Backend<Plain>> Player<S> {
    fn play(mut self) -> Vec<Event<What>> {
        for _ in 0..CALLS {
            self.next_value += 1;
            match self.random.below(10) {
                0..3 => self.write(Some(self.next_value)),
                3..5 => self.write(None),
                5..7 => self.batch(),
                7 => self.scan(),
                8 if self.ordered => self.step(),
                _ => self.get(),
            }
        }
        self.events
    }

    fn write(&mut self, new: Option<u64>) {
        let (index, store) = (self.random.key(), &self.store);
        let key = key(index);
        let update = || {
            let mut old = None;
            let guard = pin();
            let done = store.update(&key, &guard, &mut |current| {
                old = current.map(|record| record.value()[0]);
                match new {
                    Some(value) => Change::Put(RecordBox::new(&key, &[value], false)),
                    None => Change::Remove,
                }
            });
            done.map(|()| old)
        };
        let event = self
            .clock
            .record(update, |old| old.map(|old| What::Write(index, new, old)));
        self.push(event);
    }

    /// Writes some keys as one. Now and then gives up at the last key, after which nothing may have
    /// happened.
    fn batch(&mut self) {
        let chosen: Vec<usize> = (0..KEYS).filter(|_| self.random.below(3) > 0).collect();
        let gives_up = self.random.below(4) == 0;
        let keys: Vec<[u8; 8]> = chosen.iter().map(|index| key(*index)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        let (store, new) = (&self.store, self.next_value);
        let mut found = Vec::new();
        let update = || {
            store.update_many(&keys, &pin(), &mut |at, current| {
                if gives_up && at + 1 == keys.len() {
                    return Change::Abort;
                }
                found.push((chosen[at], current.map(|record| record.value()[0])));
                Change::Put(RecordBox::new(keys[at], &[new], false))
            })
        };
        let event = self.clock.record(update, |done| done);
        if event.what == Ok(true) {
            let what = What::Batch(found, new);
            self.events.push(Event {
                what,
                call: event.call,
                end: event.end,
            });
        }
    }

    fn get(&mut self) {
        let (index, store) = (self.random.key(), &self.store);
        let get = || {
            store
                .get(&key(index), &pin())
                .map(|record| record.value()[0])
        };
        let event = self.clock.record(get, |value| Ok(What::Read(index, value)));
        self.push(event);
    }

    fn scan(&mut self) {
        let store = &self.store;
        let scan = || {
            let mut state = State::default();
            let scanned = store.scan(None, &pin(), &mut |record| {
                if let Some(index) = index(record.key()) {
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

    /// The key behind, or before, another one.
    fn step(&mut self) {
        let (from, store) = (self.random.key(), &self.store);
        let upwards = self.random.below(2) == 0;
        let step = || {
            let (key, guard) = (key(from), pin());
            let found = match upwards {
                true => store.next(&key, &guard),
                false => store.prev(&key, &guard),
            };
            let found = found.expect("ordered stores take any key");
            found.map(|record| (record.key().to_vec(), record.value()[0]))
        };
        let event = self.clock.record(step, |found| found);
        for other in (0..KEYS).filter(|other| *other != from && (*other > from) == upwards) {
            let value = match &event.what {
                Some((found, value)) if key(other)[..] == found[..] => Some(*value),
                Some((found, _)) if (key(other)[..] < found[..]) == upwards => None,
                // Beyond what was found.
                Some(_) => continue,
                None => None,
            };
            self.events.push(Event {
                what: What::Read(other, value),
                call: event.call,
                end: event.end,
            });
        }
    }

    fn push(&mut self, event: Event<Result<What, ats_mem::Busy>>) {
        // What a batch was in the way of has not happened.
        if let Ok(what) = event.what {
            self.events.push(Event {
                what,
                call: event.call,
                end: event.end,
            });
        }
    }
}

#[cfg(not(shuttle))]
fn histories<S: Backend<Plain> + Default + 'static>(ordered: bool) {
    (1..=ROUNDS).for_each(|round| history::<S>(ordered, round));
}

#[cfg(shuttle)]
fn histories<S: Backend<Plain> + Default + 'static>(ordered: bool) {
    use shuttle::{Config, Runner, rand::Rng, scheduler::RandomScheduler};
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    Runner::new(RandomScheduler::new(ROUNDS as usize), config).run(move || {
        history::<S>(ordered, shuttle::rand::thread_rng().gen_range(1..ROUNDS));
    });
}

fn history<S: Backend<Plain> + Default + 'static>(ordered: bool, round: u64) {
    let store = S::default();
    // 30, 31 or 32 fillers: one to three keys make the leaf split, or the table grow.
    for filler in 0..30 + round % 3 {
        let key = (2 * filler).to_be_bytes();
        let put = store.update(&key, &pin(), &mut |_| {
            Change::Put(RecordBox::new(&key, &[0], false))
        });
        assert_eq!(put, Ok(()));
    }
    let (store, clock) = (Arc::new(store), Arc::new(Clock::default()));
    let start = Arc::new(Barrier::new(THREADS as usize));
    let play = |number: u64| {
        let player = Player {
            store: Arc::clone(&store),
            clock: Arc::clone(&clock),
            random: Random(round * THREADS + number),
            next_value: 1000 * number,
            ordered,
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
    // A few of the histories are too long for the checker: those of many scans.
    if events.len() <= 64 {
        let explained = linearizable(State::default(), &events, apply);
        assert!(explained, "round {round}: no order explains {events:#?}");
    }
}

#[test]
fn the_tree_is_linearizable() {
    histories::<CaTree<Plain>>(true);
}

#[test]
fn the_hash_table_is_linearizable() {
    histories::<HashTable<Plain>>(false);
}
