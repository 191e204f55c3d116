//! Mixes of operations on integer keys, uniform over [`KEYS`].

#[cfg(all(counted, test))]
use ats::terms::Limits;
use ats::terms::{CounterOp, Integer, Table, TableType, TermHost, Workspace};
use ats_term::Term;
use std::hint::black_box;

/// The number of different keys. Half of them are in a table at the beginning.
pub const KEYS: u64 = 1 << 20;

/// The number of keys of a table with a bound.
#[cfg(all(counted, test))]
const HOT: u64 = 1000;

/// Objects of a list, and calls of `next` in a chain.
const TEN: u64 = 10;

/// An odd number, so that its multiples reach every key; far from regular, so that they come in no
/// order.
const SCATTER: u64 = 0x9_e377;

/// A mix of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Lookups; half of them find an object.
    Lookup,
    /// Eight lookups of ten operations, an insert and a delete.
    Mostly,
    /// Inserts and deletes.
    Updates,
    /// `update_counter` of one key.
    OneCounter,
    /// `update_counter` of random keys.
    Counters,
    /// `insert` of a list of ten objects with random keys; counted as one operation.
    Lists,
    /// Ten calls of `next` from a random key on; counted as one operation.
    Chains,
    /// `info(size)`.
    Size,
}

impl Mix {
    /// All of them.
    pub const ALL: [Mix; 8] = [
        Mix::Lookup,
        Mix::Mostly,
        Mix::Updates,
        Mix::OneCounter,
        Mix::Counters,
        Mix::Lists,
        Mix::Chains,
        Mix::Size,
    ];

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Mix::Lookup => "100 % lookup",
            Mix::Mostly => "80 % lookup, 10 % insert, 10 % delete",
            Mix::Updates => "50 % insert, 50 % delete",
            Mix::OneCounter => "update_counter, one key",
            Mix::Counters => "update_counter, many keys",
            Mix::Lists => "insert of 10 objects",
            Mix::Chains => "10 times next",
            Mix::Size => "info(size)",
        }
    }

    /// Returns the name in files.
    pub fn id(self) -> &'static str {
        match self {
            Mix::Lookup => "lookup",
            Mix::Mostly => "80-10-10",
            Mix::Updates => "50-50",
            Mix::OneCounter => "one-counter",
            Mix::Counters => "counters",
            Mix::Lists => "lists",
            Mix::Chains => "next",
            Mix::Size => "size",
        }
    }

    /// Returns `true` if its operations must not write a line that another thread accesses.
    #[cfg(counted)]
    pub fn writes_nothing_shared(self) -> bool {
        matches!(self, Mix::Lookup | Mix::Chains)
    }

    /// Returns the number of operations, of all threads together, that is enough for stable counts.
    pub fn enough(self) -> u64 {
        match self {
            Mix::Lists | Mix::Chains => 1 << 16,
            Mix::Size => 1 << 14,
            _ => 1 << 20,
        }
    }
}

/// A table of pairs `{Key, Number}`.
pub struct Subject {
    table: Table<TermHost>,
}

/// Draws keys and objects.
pub struct Random(fastrand::Rng);

impl Random {
    fn key(&mut self) -> Term {
        number(self.0.u64(..KEYS))
    }

    fn object(&mut self) -> Term {
        Term::from((self.0.u64(..KEYS) as i64, self.0.u64(..) as i64 >> 8))
    }

    /// Returns a key of which the table has an object, unless that was deleted.
    fn present_key(&mut self) -> Term {
        number(present(self.0.u64(..KEYS / 2)))
    }
}

fn number(key: u64) -> Term {
    Term::from(key as i64)
}

/// Returns the keys that a table has at the beginning, in the order in which they are inserted.
fn present(index: u64) -> u64 {
    index * SCATTER % KEYS
}

/// Repeats a call while another writer holds its key.
fn insist<T>(mut call: impl FnMut() -> Result<T, ats::terms::Error>) -> T {
    loop {
        match call() {
            Ok(result) => return result,
            Err(ats::terms::Error::Busy) => std::thread::yield_now(),
            Err(error) => panic!("a table in memory does not fail so: {error:?}"),
        }
    }
}

impl Subject {
    /// Makes a table with half of the keys.
    pub fn new(table_type: TableType) -> Self {
        let subject = Subject {
            table: Table::new(table_type, 1),
        };
        let objects = (0..KEYS / 2).map(|index| Term::from((present(index) as i64, 0_i64)));
        let steps: Vec<Step> = objects.map(Step::Insert).collect();
        subject.work(&steps, || ());
        subject
    }

    /// Makes a table with a bound and [`HOT`] keys, and reads each of them three times.
    #[cfg(all(counted, test))]
    pub fn bounded(table_type: TableType) -> Self {
        let limits = Limits {
            objects: Some(2 * HOT as usize),
            ..Limits::default()
        };
        let table = Table::new(table_type, 1).limited(limits);
        let subject = Subject {
            table: table.expect("the table is in memory"),
        };
        let objects = (0..HOT).map(|key| Term::from((key as i64, 0_i64)));
        let steps: Vec<Step> = objects.map(Step::Insert).collect();
        subject.work(&steps, || ());
        let reads: Vec<Step> = (0..HOT).map(|key| Step::Lookup(number(key))).collect();
        (0..3).for_each(|_| subject.work(&reads, || ()));
        subject
    }

    /// Draws lookups of the keys of a [bounded](Subject::bounded) table.
    #[cfg(all(counted, test))]
    pub fn draw_hot(operations: u64, seed: u64) -> Vec<Step> {
        let mut random = fastrand::Rng::with_seed(seed);
        let keys = (0..operations).map(|_| random.u64(..HOT));
        keys.map(|key| Step::Lookup(number(key))).collect()
    }

    /// Into how many parts with a lock each the table has adapted.
    #[cfg(counted)]
    pub fn parts(&self) -> usize {
        let bases = self.table.adaptation().map(|tree| tree.base_nodes);
        let locks = self.table.buckets().map(|buckets| buckets.locks);
        bases.or(locks).unwrap_or(1)
    }

    /// Draws the operations of a thread beforehand, so that random numbers are not part of a
    /// figure.
    pub fn draw(mix: Mix, operations: u64, seed: u64) -> Vec<Step> {
        let mut random = Random(fastrand::Rng::with_seed(seed));
        (0..operations)
            .map(|_| Step::draw(mix, &mut random))
            .collect()
    }

    /// Does these steps, and calls `before_each` before each.
    pub fn work(&self, steps: &[Step], mut before_each: impl FnMut()) {
        let mut work = Workspace::new();
        let mut bytes = Vec::new();
        let counter = CounterOp {
            position: 2,
            increment: Integer::Small(1),
            wrap: None,
        };
        for step in steps {
            before_each();
            match step {
                Step::Lookup(key) => {
                    let guard = ats::terms::pin();
                    let found = insist(|| self.table.lookup(key, &mut work, &guard));
                    black_box(found.is_some());
                }
                Step::Insert(object) => insist(|| self.table.insert(object, &mut work)),
                Step::Delete(key) => insist(|| self.table.delete(key, &mut work)),
                Step::Count(key) => {
                    let count = || {
                        self.table
                            .update_one_counter(key, &counter, None, &mut work)
                    };
                    black_box(insist(count));
                }
                Step::Insert10(objects) => {
                    insist(|| self.table.insert_many(objects.iter(), &mut work));
                }
                Step::Next10(key) => self.chain(key, &mut bytes),
                Step::Size => {
                    black_box(insist(|| self.table.len()));
                }
            }
        }
    }

    /// Walks from a key to the next, ten times or to the end.
    fn chain(&self, key: &Term, bytes: &mut Vec<u8>) {
        bytes.clear();
        self.table.key_bytes(key, bytes);
        for _ in 0..TEN {
            let guard = ats::terms::pin();
            let Some(next) = insist(|| self.table.next(bytes, &guard)) else {
                break;
            };
            bytes.clear();
            bytes.extend_from_slice(next.key_bytes());
        }
    }
}

/// One operation, with its arguments.
pub enum Step {
    /// `lookup`.
    Lookup(Term),
    /// `insert` of one object.
    Insert(Term),
    /// `delete` of a key.
    Delete(Term),
    /// `update_counter`.
    Count(Term),
    /// `insert` of a list.
    Insert10(Vec<Term>),
    /// Calls of `next`.
    Next10(Term),
    /// `info(size)`.
    Size,
}

impl Step {
    fn draw(mix: Mix, random: &mut Random) -> Self {
        // Draws one of the operations of a mix.
        let turn = match mix {
            Mix::Mostly => random.0.u64(..10),
            Mix::Updates => random.0.u64(..2),
            _ => 0,
        };
        match (mix, turn) {
            (Mix::Lookup, _) | (Mix::Mostly, 2..) => Step::Lookup(random.key()),
            (Mix::Mostly | Mix::Updates, 0) => Step::Insert(random.object()),
            (Mix::Mostly | Mix::Updates, _) => Step::Delete(random.key()),
            (Mix::OneCounter, _) => Step::Count(number(present(0))),
            (Mix::Counters, _) => Step::Count(random.present_key()),
            (Mix::Lists, _) => Step::Insert10((0..TEN).map(|_| random.object()).collect()),
            (Mix::Chains, _) => Step::Next10(random.present_key()),
            (Mix::Size, _) => Step::Size,
        }
    }
}
