//! Random writes and reads, beside a list of all writes.

use super::*;
use crate::entry::collapse::tests::operators::Affine;
use crate::entry::collapse::tests::{one_by_one, words};
use proptest::prelude::*;

/// The value that is older than the memtable, of all keys.
const OLDER: u64 = 0;
const KEYS: u8 = 4;

/// The effect of one record of a group.
#[derive(Clone, Debug)]
enum Step {
    Write(Kind, u8, Vec<u8>),
    DeleteRange(Option<u8>, Option<u8>),
}

/// An event of a history.
#[derive(Clone, Debug)]
enum Event {
    /// The records of a group, and whether one that is alone is told to be.
    Group(Vec<Step>, bool),
    TakeSnapshot,
    /// Ends one of the snapshots.
    EndSnapshot(prop::sample::Index),
}

/// All writes so far, and the values that may be read.
struct Model<'o> {
    operator: &'o dyn MergeOperator,
    memtable: Arc<Memtable>,
    older: Vec<u8>,
    steps: Vec<(u64, Step)>,
    /// Sequence numbers of writes that were alone.
    alone: Vec<u64>,
    snapshots: Vec<u64>,
    /// The sequence numbers that were published.
    published: Vec<u64>,
}

fn has(low: Option<u8>, high: Option<u8>, key: u8) -> bool {
    low.is_none_or(|low| low <= key) && high.is_none_or(|high| key < high)
}

impl Model<'_> {
    fn newest(&self) -> u64 {
        self.steps.last().map_or(0, |(seq, _)| *seq)
    }

    fn visible(&self) -> u64 {
        self.published.last().copied().unwrap_or(OLDER)
    }

    /// Returns the value of a key as of a sequence number.
    fn value(&self, key: u8, at: u64) -> Result<Option<Vec<u8>>, Error> {
        let mut entries = Vec::new();
        for (seq, step) in self.steps.iter().rev() {
            match step {
                _ if *seq > at => {}
                Step::DeleteRange(low, high) if has(*low, *high, key) => {
                    entries.push((Kind::Delete, Vec::new()));
                }
                Step::Write(kind, of, value) if *of == key => entries.push((*kind, value.clone())),
                _ => {}
            }
        }
        entries.push((Kind::Put, self.older.clone()));
        for (kind, value) in &mut entries {
            if *kind == Kind::Operand && self.operator.is_base(&[key], value) {
                *kind = Kind::Put;
            }
        }
        one_by_one(&entries, self.operator)
    }

    /// Returns the value of a key that a reader finds, unless it is too old.
    fn read(&self, key: u8, at: u64, is_snapshot: bool) -> Option<Result<Option<Vec<u8>>, Error>> {
        let mut chain = Chain::new();
        match self
            .memtable
            .get(&[key], Seq::new(at), is_snapshot, &mut chain)
        {
            Lookup::Complete => assert!(chain.is_complete()),
            Lookup::GoesOn => {
                assert!(!chain.is_complete());
                chain.push(Kind::Put, &self.older);
            }
            Lookup::TooOld => {
                assert!(chain.is_empty());
                return None;
            }
        }
        let value = chain.value(&[key], Some(self.operator));
        Some(value.map(|value| value.map(|value| value.into_owned())))
    }

    /// Reads all keys at all times that matter.
    fn check_reads(&self) {
        for key in 0..KEYS {
            for at in self.snapshots.iter().copied() {
                assert_eq!(self.read(key, at, true), Some(self.value(key, at)));
            }
            for at in self.published.iter().copied() {
                let newest = self.newest();
                let until = if self.alone.iter().any(|alone| *alone > at) {
                    newest
                } else {
                    at
                };
                match self.read(key, at, false) {
                    None => assert!(at < self.visible()),
                    Some(value) => assert!(
                        (at..=until).any(|seq| value == self.value(key, seq)),
                        "key {key} at {at}: {value:?}"
                    ),
                }
            }
        }
    }

    /// Walks over all keys at the times of snapshots.
    fn check_walks(&self) {
        for at in self.snapshots.iter().copied().chain([u64::MAX]) {
            let ranges = self.memtable.range_deletes(Seq::new(at));
            let expected: Vec<_> = (0..KEYS)
                .map(|key| (key, entries_at(&self.memtable, &[key], at).1))
                .filter(|(key, entries)| match &entries[..] {
                    [] => false,
                    // The walk leaves out keys that only a range deletes.
                    [(Kind::Delete, _)] => {
                        let versions = self.memtable.versions(&[*key]);
                        let newest = versions.iter().find(|version| version.seq <= at);
                        newest.is_some_and(|version| {
                            let covering = self
                                .memtable
                                .range_deletes
                                .newest_covering(&[*key], Seq::new(at));
                            covering.is_none_or(|covering| covering.get() < version.seq)
                        })
                    }
                    _ => true,
                })
                .collect();
            for key in 0..KEYS {
                let covering = self
                    .memtable
                    .range_deletes
                    .newest_covering(&[key], Seq::new(at));
                assert_eq!(ranges.covers(&[key]), covering.is_some());
            }
            let mut cursor = MemtableCursor::new(Arc::clone(&self.memtable), Seq::new(at), true);
            for bound in 0..=KEYS {
                let walk = |cursor: &mut MemtableCursor, direction| {
                    let mut found = Vec::new();
                    cursor.seek(None, direction, Some(&[bound])).unwrap();
                    while let Some(key) = cursor.key() {
                        let entries = (0..cursor.entries()).map(|index| cursor.entry(index));
                        let entries = entries.map(|(kind, value)| (kind, value.to_vec()));
                        found.push((key[0], entries.collect::<Vec<_>>()));
                        cursor.advance(None).unwrap();
                    }
                    found
                };
                let (below, above): (Vec<_>, Vec<_>) =
                    expected.iter().cloned().partition(|(key, _)| *key < bound);
                assert_eq!(walk(&mut cursor, Direction::Up), above);
                let below: Vec<_> = below.into_iter().rev().collect();
                assert_eq!(walk(&mut cursor, Direction::Down), below);
            }
        }
    }

    /// Checks the versions that are kept of a key that was just written.
    fn check_versions(&self, key: u8, retention: &Retention<'_>) {
        let versions = self.memtable.versions(&[key]);
        assert!(versions.is_sorted_by(|newer, older| newer.seq > older.seq));
        let stripe = |seq| retention.points_below(Seq::new(seq));
        for pair in versions.windows(2) {
            let is_same = stripe(pair[0].seq) == stripe(pair[1].seq);
            assert_eq!(is_same, pair[0].is_apart, "{versions:?} with {retention:?}");
            assert!(!is_same || pair[0].kind == Kind::Operand);
        }
    }

    fn apply(&mut self, steps: &[Step], alone: bool) {
        let snapshots = seqs(&self.snapshots);
        let retention = Retention {
            visible: Seq::new(self.visible()),
            snapshots: &snapshots,
            alone: alone && steps.len() == 1,
        };
        for step in steps {
            let seq = self.newest() + 1;
            self.steps.push((seq, step.clone()));
            match step {
                Step::Write(kind, key, value) => {
                    if retention.alone {
                        self.alone.push(seq);
                    }
                    let write = write(*kind, std::slice::from_ref(key), value, seq);
                    self.memtable.apply(write, &retention, Some(self.operator));
                    self.check_versions(*key, &retention);
                }
                Step::DeleteRange(low, high) => {
                    let range = KeyRange {
                        low: low.as_ref().map(std::slice::from_ref),
                        high: high.as_ref().map(std::slice::from_ref),
                    };
                    self.memtable.delete_range(range, Seq::new(seq));
                }
            }
            self.check_reads();
        }
        self.published.push(self.newest());
        self.check_reads();
    }

    fn run(mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::Group(steps, alone) => self.apply(steps, *alone),
                Event::TakeSnapshot => {
                    let at = self.visible();
                    if self.snapshots.last() != Some(&at) {
                        self.snapshots.push(at);
                    }
                }
                Event::EndSnapshot(_) if self.snapshots.is_empty() => {}
                Event::EndSnapshot(index) => {
                    self.snapshots.remove(index.index(self.snapshots.len()));
                }
            }
        }
        self.check_walks();
        let nodes = (0..KEYS)
            .flat_map(|key| self.memtable.versions(&[key]))
            .map(|version| version.node_bytes);
        assert_eq!(
            self.memtable.node_bytes.load(Ordering::Relaxed),
            nodes.sum::<usize>()
        );
    }
}

fn events(values: BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = Vec<Event>> {
    let key = || prop_oneof![3 => Just(0), 1 => 0..KEYS];
    let step = prop_oneof![
        2 => (key(), values.clone()).prop_map(|(key, value)| Step::Write(Kind::Put, key, value)),
        2 => key().prop_map(|key| Step::Write(Kind::Delete, key, Vec::new())),
        9 => (key(), values).prop_map(|(key, value)| Step::Write(Kind::Operand, key, value)),
        1 => (prop::option::of(0..KEYS), prop::option::of(0..KEYS))
            .prop_map(|(low, high)| Step::DeleteRange(low, high)),
    ];
    let group = prop_oneof![
        prop::collection::vec(step.clone(), 1),
        prop::collection::vec(step, 1..5),
    ];
    let event = prop_oneof![
        6 => (group, any::<bool>()).prop_map(|(steps, alone)| Event::Group(steps, alone)),
        1 => Just(Event::TakeSnapshot),
        1 => any::<prop::sample::Index>().prop_map(Event::EndSnapshot),
    ];
    prop::collection::vec(event, 0..25)
}

fn check(operator: &dyn MergeOperator, older: &[u8], events: &[Event]) {
    let model = Model {
        operator,
        memtable: Arc::new(Memtable::new()),
        older: older.to_vec(),
        steps: Vec::new(),
        alone: Vec::new(),
        snapshots: Vec::new(),
        published: vec![OLDER],
    };
    model.run(events);
}

proptest! {
    #[test]
    fn a_memtable_reads_as_the_list_of_its_writes(
        events in events((words(), prop::sample::select(vec![1, 1, 1, 30, 80]))
            .prop_map(|(word, times)| word.repeat(times)).boxed()),
    ) {
        check(&Append::default(), b"o", &events);
    }

    #[test]
    fn a_memtable_merges_in_order(events in events(Affine::values().boxed())) {
        check(&Affine, &Affine::value(7, 9), &events);
    }
}
