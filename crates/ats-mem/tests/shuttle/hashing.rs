//! Random operations of any kind on a hash table, while its buckets are split and joined and its
//! locks doubled and halved all the time.
//!
//! Each thread has keys of its own, whose values it knows exactly. Further keys are written by all
//! threads and removed by none.

use crate::*;
use ats_mem::HashTable;
use shuttle::rand::Rng;
use shuttle::rand::rngs::ThreadRng;
use std::collections::BTreeMap;

type Table = HashTable<Plain>;

const THREADS: u64 = 3;
/// Number of operations of a thread.
const OPERATIONS: usize = 10;
/// Numbers of keys of a thread, and of common keys.
const OWN: u64 = 12;
const COMMON: u64 = 6;

/// Returns the numbers of an owner; those of owner 0 belong to all.
fn numbers_of(base: u64, owner: u64) -> std::ops::Range<u64> {
    let from = base + 100 * owner;
    from..from + if owner == 0 { COMMON } else { OWN }
}

struct Player {
    table: Arc<Table>,
    random: ThreadRng,
    base: u64,
    owner: u64,
    mine: BTreeMap<u64, u64>,
    next_value: u64,
}

impl Player {
    fn play(mut self) -> BTreeMap<u64, u64> {
        for _ in 0..OPERATIONS {
            match self.random.gen_range(0..10) {
                0..3 => self.put(),
                3..5 => self.remove(),
                5 => self.put_several(),
                6 => self.put_common(),
                7 => self.look(),
                8 => self.scan(),
                _ => self.walk_fixed(),
            }
        }
        self.mine
    }

    fn any_own(&mut self) -> u64 {
        self.random.gen_range(numbers_of(self.base, self.owner))
    }

    fn any_common(&mut self) -> u64 {
        self.random.gen_range(numbers_of(self.base, 0))
    }

    fn value(&mut self) -> u64 {
        self.next_value += 1;
        self.next_value
    }

    fn put(&mut self) {
        let (number, value) = (self.any_own(), self.value());
        put(&*self.table, number, value);
        self.mine.insert(number, value);
    }

    fn remove(&mut self) {
        let number = self.any_own();
        remove(&*self.table, number);
        self.mine.remove(&number);
    }

    fn put_several(&mut self) {
        let mut numbers: Vec<u64> = (0..3).map(|_| self.any_own()).collect();
        numbers.push(self.any_common());
        numbers.sort_unstable();
        numbers.dedup();
        let value = self.value();
        put_all(&*self.table, &numbers, value);
        let own = numbers_of(self.base, self.owner);
        let own = numbers.into_iter().filter(|number| own.contains(number));
        self.mine.extend(own.map(|number| (number, value)));
    }

    fn put_common(&mut self) {
        let (number, value) = (self.any_common(), self.value());
        put(&*self.table, number, value);
    }

    fn look(&mut self) {
        let number = self.any_own();
        assert_eq!(get(&*self.table, number), self.mine.get(&number).copied());
        let number = self.any_common();
        assert!(get(&*self.table, number).is_some());
    }

    fn scan(&mut self) {
        let met = scan_from(&*self.table, None);
        self.check(met);
    }

    /// Walks from key to key, each under its own guard, and removes the keys that it has reached.
    fn walk_fixed(&mut self) {
        self.table.fix();
        let mut met = Vec::new();
        let mut removed = Vec::new();
        let mut here = {
            let guard = pin();
            let first = self.table.first(&guard);
            first.map(|record| (number(record.key()), record.value()[0]))
        };
        while let Some((number_met, value)) = here {
            met.push((number_met, value));
            if self.mine.contains_key(&number_met) && self.random.gen_range(0..4) == 0 {
                remove(&*self.table, number_met);
                removed.push(number_met);
            }
            let guard = pin();
            let next = self.table.next(&key(number_met), &guard);
            let next = next.expect("a fixed table knows what was removed");
            here = next.map(|record| (number(record.key()), record.value()[0]));
        }
        self.table.unfix();
        self.table.tidy(usize::MAX, &pin());
        self.check(met);
        for number in removed {
            self.mine.remove(&number);
        }
    }

    /// Checks that each key was met at most once, the own ones with their values, and all common
    /// ones.
    fn check(&self, met: Vec<(u64, u64)>) {
        let count = met.len();
        let met: BTreeMap<u64, u64> = met.into_iter().collect();
        assert_eq!(met.len(), count, "a key twice");
        let own = met.range(numbers_of(self.base, self.owner));
        assert!(own.eq(&self.mine), "{met:?}, not {:?}", self.mine);
        for number in numbers_of(self.base, 0) {
            assert!(met.contains_key(&number), "{number} is missing");
        }
    }
}

/// Runs the players. Returns `true` if locks were doubled and halved.
fn play() -> bool {
    let mut random = shuttle::rand::thread_rng();
    let base = 1000 * random.gen_range(0..1000);
    let table = fill::<Table>(numbers_of(base, 0));
    table.force_adaptation(random.gen_range(1..=4), random.gen_range(1..=4));
    let players: Vec<_> = (1..=THREADS)
        .map(|owner| {
            let mut mine = BTreeMap::new();
            quietly(|| {
                for number in numbers_of(base, owner).filter(|_| random.gen_range(0..3) == 0) {
                    put(&*table, number, number);
                    mine.insert(number, number);
                }
            });
            let player = Player {
                table: Arc::clone(&table),
                random: shuttle::rand::thread_rng(),
                base,
                owner,
                mine,
                next_value: 1_000_000 * owner,
            };
            thread::spawn(move || player.play())
        })
        .collect();
    let mut expected: Vec<u64> = numbers_of(base, 0).collect();
    for player in players {
        expected.extend(player.join().expect("a player").into_keys());
    }
    quietly(|| {
        table.force_adaptation(0, 0);
        expected.sort_unstable();
        let mut met = numbers(&*table);
        met.sort_unstable();
        assert_eq!(met, expected);
        assert_eq!(table.len(), expected.len());
        assert!(table.tidy(usize::MAX, &pin()));
        for number in expected {
            remove(&*table, number);
        }
        let buckets = table.buckets();
        assert_eq!((table.len(), buckets.lines), (0, 0));
        assert!(buckets.locks <= buckets.buckets);
        buckets.doublings > 0 && buckets.halvings > 0
    })
}

#[test]
fn anything_goes() {
    explore_reaching_for(3 * TIME, play);
}
