//! Random operations of any kind, while base nodes are split and joined all the time.
//!
//! Each thread has keys of its own, whose values it knows exactly. Between them are keys that all
//! threads write to and no thread removes.

use crate::*;
use shuttle::rand::Rng;
use shuttle::rand::rngs::ThreadRng;
use std::collections::BTreeMap;

type Tree = CaTree<Plain>;

const THREADS: u64 = 3;
const CALLS: usize = 8;
/// Number of groups of keys: one lasting key, and one of each thread.
const GROUPS: u64 = 20;
const GROUP: u64 = THREADS + 1;

/// The keys of one thread, or the lasting ones.
#[derive(Clone, Copy)]
struct Keys {
    base: u64,
    owner: u64,
}

impl Keys {
    fn all(self) -> impl Iterator<Item = u64> + Clone {
        (0..GROUPS).map(move |group| self.base + group * GROUP + self.owner)
    }

    fn any(self, random: &mut ThreadRng) -> u64 {
        self.base + random.gen_range(0..GROUPS) * GROUP + self.owner
    }

    fn has(self, number: u64) -> bool {
        (number - self.base) % GROUP == self.owner
    }
}

struct Player {
    tree: Arc<Tree>,
    random: ThreadRng,
    own: Keys,
    stay: Keys,
    /// The values of the own keys.
    mine: BTreeMap<u64, u64>,
    next_value: u64,
}

impl Player {
    fn play(mut self) -> BTreeMap<u64, u64> {
        for _ in 0..CALLS {
            self.next_value += 1;
            match self.random.gen_range(0..19) {
                0 | 1 => self.put(),
                2 | 3 => self.put_over(),
                4 => self.remove(),
                5 | 6 => self.remove_any(),
                7..10 => self.batch(),
                10 => self.get(),
                11 => self.scan(),
                12 => self.walk(),
                13 => self.next(),
                14 => self.prev(),
                15..18 => self.skip(),
                _ => {
                    self.tree.join_idle(&pin());
                }
            }
        }
        self.mine
    }

    fn update(&mut self, number: u64, value: Option<u64>) -> Option<u64> {
        let (key, guard) = (key(number), pin());
        loop {
            let mut before = None;
            let done = self.tree.update(&key, &guard, &mut |current| {
                before = current.map(|record| record.value()[0]);
                match value {
                    Some(value) => Change::Put(RecordBox::new(&key, &[value], false)),
                    None => Change::Remove,
                }
            });
            match done {
                Ok(()) => return before,
                Err(Busy) => thread::yield_now(),
            }
        }
    }

    /// Changes a key like [`update`](Self::update), without reading the old record. Returns `true`
    /// if there was one.
    fn write_over(&mut self, number: u64, value: Option<u64>) -> bool {
        let (key, guard) = (key(number), pin());
        loop {
            let done = match value {
                Some(value) => {
                    let record = RecordBox::new(&key, &[value], false);
                    self.tree.put(&key, record, &guard)
                }
                None => self.tree.remove(&key, &guard),
            };
            match done {
                Ok(was_there) => return was_there,
                Err(Busy) => thread::yield_now(),
            }
        }
    }

    fn put_over(&mut self) {
        let (number, value) = (self.own.any(&mut self.random), self.next_value);
        let was_there = self.write_over(number, Some(value));
        let before = self.mine.insert(number, value);
        assert_eq!(was_there, before.is_some(), "put over {number}");
    }

    fn remove_any(&mut self) {
        let number = self.own.any(&mut self.random);
        let was_there = self.write_over(number, None);
        assert_eq!(
            was_there,
            self.mine.remove(&number).is_some(),
            "remove {number}"
        );
    }

    fn put(&mut self) {
        let (number, value) = (self.own.any(&mut self.random), self.next_value);
        let before = self.update(number, Some(value));
        assert_eq!(before, self.mine.insert(number, value), "put {number}");
    }

    fn remove(&mut self) {
        let number = self.own.any(&mut self.random);
        let before = self.update(number, None);
        assert_eq!(before, self.mine.remove(&number), "remove {number}");
    }

    /// Writes own and lasting keys in one batch, or aborts before the last.
    fn batch(&mut self) {
        let mut numbers = BTreeMap::new();
        for _ in 0..3 {
            numbers.insert(self.own.any(&mut self.random), ());
            numbers.insert(self.stay.any(&mut self.random), ());
        }
        let numbers: Vec<u64> = numbers.into_keys().collect();
        let gives_up = self.random.gen_range(0..4) == 0;
        let keys: Vec<Vec<u8>> = numbers.iter().map(|number| key(*number)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let (guard, value) = (pin(), self.next_value);
        loop {
            let done = self.tree.update_many(&keys, &guard, &mut |index, current| {
                let found = current.map(|record| record.value()[0]);
                let number = numbers[index];
                if self.own.has(number) {
                    assert_eq!(found, self.mine.get(&number).copied(), "{number}")
                } else {
                    assert!(found.is_some(), "{number} has gone")
                }
                if gives_up && index + 1 == numbers.len() {
                    Change::Abort
                } else {
                    Change::Put(RecordBox::new(keys[index], &[value], false))
                }
            });
            match done {
                Ok(done) => {
                    assert_eq!(done, !gives_up);
                    break;
                }
                Err(Busy) => thread::yield_now(),
            }
        }
        if !gives_up {
            let own = numbers.into_iter().filter(|number| self.own.has(*number));
            self.mine.extend(own.map(|number| (number, value)));
        }
    }

    fn get(&mut self) {
        let number = self.own.any(&mut self.random);
        assert_eq!(get(&*self.tree, number), self.mine.get(&number).copied());
        let number = self.stay.any(&mut self.random);
        assert!(get(&*self.tree, number).is_some(), "{number} has gone");
    }

    /// Checks that the numbers met after `after` ascend, and are exactly the present own keys and
    /// all lasting ones.
    fn check(&self, met: &[u64], after: Option<u64>) {
        let behind = |number: &u64| Some(*number) > after;
        are_ascending_with(met, self.stay.all().filter(behind));
        let own = met.iter().copied().filter(|number| self.own.has(*number));
        let mine = self.mine.keys().copied().filter(behind);
        assert!(own.eq(mine), "{:?} are there, met {met:?}", self.mine);
    }

    fn scan(&mut self) {
        let after = match self.random.gen_range(0..2) {
            0 => None,
            _ => Some(self.own.base + self.random.gen_range(0..GROUPS * GROUP)),
        };
        let met = scan_from(&*self.tree, after);
        for (number, value) in &met {
            assert!(!self.own.has(*number) || self.mine.get(number) == Some(value));
        }
        let numbers: Vec<u64> = met.into_iter().map(|(number, _)| number).collect();
        self.check(&numbers, after);
    }

    fn walk(&mut self) {
        let upwards = self.random.gen_range(0..2) == 0;
        let mut met = walk_numbers(&self.tree, upwards);
        if !upwards {
            met.reverse();
        }
        self.check(&met, None);
    }

    fn next(&mut self) {
        let from = self.own.base + self.random.gen_range(0..GROUPS * GROUP);
        let guard = pin();
        let next = self.tree.next(&key(from), &guard).expect("ordered");
        let next = next.map(|record| number(record.key()));
        let own = self.mine.range(from + 1..).next().map(|(key, _)| *key);
        let stay = self.stay.all().find(|number| *number > from);
        self.check_step(next, from..u64::MAX, [own, stay]);
        assert!(next.is_none_or(|next| next > from), "{next:?} after {from}");
    }

    fn prev(&mut self) {
        let from = self.own.base + self.random.gen_range(0..GROUPS * GROUP);
        let guard = pin();
        let prev = self.tree.prev(&key(from), &guard).expect("ordered");
        let prev = prev.map(|record| number(record.key()));
        let own = self.mine.range(..from).next_back().map(|(key, _)| *key);
        let stay = self.stay.all().filter(|number| *number < from).last();
        // The same with all orders reversed.
        let turned = |number: u64| u64::MAX - number;
        let from = turned(from);
        self.check_step(
            prev.map(turned),
            from..u64::MAX,
            [own, stay].map(|it| it.map(turned)),
        );
        assert!(prev.is_none_or(|prev| turned(prev) > from));
    }

    /// Checks that a count includes the keys of this thread and the lasting ones, and no key that
    /// no thread has.
    fn skip(&mut self) {
        let end = GROUPS * GROUP;
        let from = self.random.gen_range(0..end);
        let to = self.random.gen_range(from..=end);
        let from = if from < end / 4 { 0 } else { from };
        let range = self.own.base + from..self.own.base + to;
        let own = self.mine.range(range.clone()).count();
        let known = own + self.stay.all().filter(|it| range.contains(it)).count();
        let others = range
            .clone()
            .filter(|it| !self.own.has(*it) && !self.stay.has(*it));
        let count = count(&self.tree, range.clone());
        let possible = known..=known + others.count();
        assert!(possible.contains(&count), "{count}, not {possible:?}");
        if known > 0 {
            let most = self.random.gen_range(0..known);
            for direction in [Direction::Up, Direction::Down] {
                let number = skip(&self.tree, range.clone(), direction, most);
                let number = number.expect("so many are known");
                assert!(range.contains(&number) && self.is_possible(number));
            }
        }
    }

    fn is_possible(&self, number: u64) -> bool {
        !self.own.has(number) || self.mine.contains_key(&number)
    }

    /// Checks that a step does not pass the first key that is known to be present.
    fn check_step(&self, to: Option<u64>, from: std::ops::Range<u64>, known: [Option<u64>; 2]) {
        for known in known.into_iter().flatten() {
            assert!(
                to.is_some_and(|to| to <= known),
                "{to:?}, not {known}, from {from:?}"
            );
        }
    }
}

#[test]
fn anything_goes() {
    explore_for(3 * TIME, || {
        let mut random = shuttle::rand::thread_rng();
        let base = [0, LONG][random.gen_range(0..2)];
        let keys = |owner| Keys { base, owner };
        let tree = fill::<Tree>(keys(0).all());
        tree.force_adaptation(random.gen_range(2..=4), random.gen_range(2..=4));
        let players: Vec<_> = (1..=THREADS)
            .map(|owner| {
                let mut mine = BTreeMap::new();
                quietly(|| {
                    for number in keys(owner).all().filter(|_| random.gen_range(0..3) == 0) {
                        put(&*tree, number, number);
                        mine.insert(number, number);
                    }
                });
                let player = Player {
                    tree: Arc::clone(&tree),
                    random: shuttle::rand::thread_rng(),
                    own: keys(owner),
                    stay: keys(0),
                    mine,
                    next_value: 1_000_000 * owner,
                };
                thread::spawn(move || player.play())
            })
            .collect();
        let mut expected: Vec<u64> = keys(0).all().collect();
        for player in players {
            expected.extend(player.join().expect("a player").into_keys());
        }
        expected.sort_unstable();
        assert_eq!(tree.len(), expected.len());
        assert_eq!(numbers(&*tree), expected);
        quietly(|| are_counted(&tree, &expected));
        quietly(|| {
            tree.force_adaptation(0, 0);
            let mut visits = 0;
            while !tree.join_idle(&pin()) {
                visits += 1;
                assert!(visits < 300, "{:?}", tree.adaptation());
            }
            let end = tree.adaptation();
            assert_eq!((end.base_nodes, end.route_nodes), (1, 0));
            assert_eq!(numbers(&*tree), expected);
            are_counted(&tree, &expected);
        });
    });
}
