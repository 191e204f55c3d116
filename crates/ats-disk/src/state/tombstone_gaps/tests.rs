//! Gaps beside a list of all writes.

use super::*;
use proptest::prelude::*;

const KEYS: u8 = 24;

#[derive(Clone, Debug)]
enum Event {
    /// A group of writes, each of a record or a delete, is told and made.
    Write(Vec<(u8, bool)>),
    /// The group of writes is published.
    Publish,
    BeginWalk,
    /// A walk has come through a range.
    EndWalk(prop::sample::Index, u8, Option<u8>),
    /// A walk has found that gaps would be of use.
    Activate,
}

#[derive(Default)]
struct Model {
    gaps: TombstoneGaps,
    /// The number and the key of each write, and `true` if it is that of a record.
    writes: Vec<(u64, u8, bool)>,
    visible: u64,
    walks: Vec<(u64, bool)>,
}

impl Model {
    fn last(&self) -> u64 {
        self.writes.last().map_or(0, |(seq, ..)| *seq)
    }

    fn has(&self, key: u8, at: u64) -> bool {
        let mut writes = self.writes.iter().rev();
        writes
            .find(|(seq, of, _)| *seq <= at && *of == key)
            .is_some_and(|(.., is_record)| *is_record)
    }

    fn run(&mut self, event: &Event) {
        match event {
            Event::Write(writes) => {
                self.visible = self.last();
                let first = self.visible + 1;
                let is_active = self.gaps.is_active();
                if is_active {
                    self.gaps.begin_group(Seq::new(first));
                }
                for (seq, (key, is_record)) in (first..).zip(writes) {
                    if is_active && *is_record {
                        self.gaps.note_record(Seq::new(seq), &[*key]);
                    }
                    self.writes.push((seq, *key, *is_record));
                }
            }
            Event::Publish => self.visible = self.last(),
            Event::BeginWalk => {
                let may_add = self.gaps.is_active() && self.gaps.begin_walk(Seq::new(self.visible));
                self.walks.push((self.visible, may_add));
            }
            Event::EndWalk(index, low, high) => {
                if self.walks.is_empty() {
                    return;
                }
                let index = index.index(self.walks.len());
                let (at, may_add) = self.walks.swap_remove(index);
                let mut keys = *low..high.unwrap_or(KEYS);
                let may_add =
                    may_add || self.gaps.is_active() && self.gaps.begin_walk(Seq::new(at));
                if may_add {
                    if !keys.any(|key| self.has(key, at)) {
                        let range = KeyRange {
                            low: Some(std::slice::from_ref(low)),
                            high: high.as_ref().map(std::slice::from_ref),
                        };
                        self.gaps.add(range, Seq::new(at), LEAST_PASSED);
                    }
                    self.gaps.end_walk();
                }
            }
            Event::Activate => {
                let is_free = self.visible == self.last();
                self.gaps
                    .activate(is_free.then_some(Seq::new(self.visible)));
            }
        }
    }

    /// Nothing is passed that a reader must find.
    fn check(&self) {
        let bounds = || (0..=KEYS).map(Some).chain([None]);
        for at in (0..=self.visible).rev().take(12) {
            let records: Vec<_> = (0..KEYS).filter(|key| self.has(*key, at)).collect();
            for bound in bounds() {
                let key = bound.as_ref().map(std::slice::from_ref);
                let up = self.gaps.find_behind(Direction::Up, key, Seq::new(at));
                let is_passed = |record: &u8| match &up {
                    Some(Behind::Bound(end)) => bound <= Some(*record) && [*record][..] < **end,
                    Some(Behind::End) => bound <= Some(*record),
                    None => false,
                };
                assert!(!records.iter().any(is_passed), "up from {bound:?}: {up:?}");
                let down = self.gaps.find_behind(Direction::Down, key, Seq::new(at));
                let is_below = |record: &u8| bound.is_none_or(|bound| *record < bound);
                let is_passed = |record: &u8| match &down {
                    Some(Behind::Bound(end)) => is_below(record) && [*record][..] >= **end,
                    Some(Behind::End) => is_below(record),
                    None => false,
                };
                let is_wrong = records.iter().any(is_passed);
                assert!(!is_wrong, "down from {bound:?}: {down:?}");
            }
        }
        let known = self.gaps.known.lock();
        let mut last: Option<&Gap> = None;
        for (low, gap) in &known.gaps {
            let is_apart = |last: &Gap| last.high.as_ref().is_some_and(|high| high < low);
            assert!(last.is_none_or(is_apart), "they overlap or touch");
            assert!(gap.high.as_ref().is_none_or(|high| low < high));
            last = Some(gap);
        }
    }
}

fn event() -> impl Strategy<Value = Event> {
    let write = (0..KEYS, prop::bool::weighted(0.3));
    let group = prop_oneof![
        prop::collection::vec(write.clone(), 1),
        prop::collection::vec(write, 1..4),
    ];
    let end = prop::option::weighted(0.8, 0..=KEYS);
    prop_oneof![
        6 => group.prop_map(Event::Write),
        3 => Just(Event::Publish),
        4 => Just(Event::BeginWalk),
        6 => (any::<prop::sample::Index>(), 0..KEYS, end)
            .prop_map(|(index, low, high)| Event::EndWalk(index, low, high)),
        2 => Just(Event::Activate),
    ]
}

proptest! {
    #[test]
    fn no_reader_misses_a_record(events in prop::collection::vec(event(), 1..60)) {
        let mut model = Model::default();
        for event in &events {
            model.run(event);
            model.check();
        }
    }
}

fn range<'k>(low: &'k [u8], high: &'k [u8]) -> KeyRange<'k> {
    KeyRange {
        low: Some(low),
        high: Some(high),
    }
}

fn active() -> TombstoneGaps {
    let gaps = TombstoneGaps::default();
    gaps.activate(Some(Seq::new(10)));
    assert!(gaps.begin_walk(Seq::new(10)));
    gaps
}

#[test]
fn gaps_that_touch_are_one() {
    let gaps = active();
    for (low, high) in [(b"b", b"c"), (b"d", b"e"), (b"c", b"d")] {
        gaps.add(range(low, high), Seq::new(10), LEAST_PASSED);
    }
    let up = |key: &[u8], at| gaps.find_behind(Direction::Up, Some(key), Seq::new(at));
    assert_eq!(up(b"b", 10), Some(Behind::Bound(b"e"[..].into())));
    assert_eq!(
        (up(b"b", 9), up(b"a", 10), up(b"e", 10)),
        (None, None, None)
    );
    let down = gaps.find_behind(Direction::Down, Some(b"e"), Seq::new(10));
    assert_eq!(down, Some(Behind::Bound(b"b"[..].into())));
    gaps.begin_group(Seq::new(11));
    gaps.note_record(Seq::new(11), b"c");
    assert_eq!(up(b"b", 11), Some(Behind::Bound(b"c"[..].into())));
    assert_eq!(up(b"c", 11), None);
    assert_eq!(up(b"c\0", 11), Some(Behind::Bound(b"e"[..].into())));
    // A key that was not seen breaks the gap.
    gaps.add(range(b"a", b"f"), Seq::new(10), LEAST_PASSED);
    assert_eq!(up(b"c", 11), None);
    assert_eq!(up(b"d", 11), Some(Behind::Bound(b"f"[..].into())));
    gaps.add(KeyRange::default(), Seq::new(11), LEAST_PASSED);
    assert_eq!(up(b"", 11), Some(Behind::End));
    assert_eq!(
        gaps.find_behind(Direction::Down, None, Seq::new(11)),
        Some(Behind::End)
    );
}

#[test]
fn memory_of_gaps_is_bounded() {
    let gaps = active();
    let long = [b'k'; LONGEST_BOUND + 1];
    gaps.add(range(b"a", &long), Seq::new(10), LEAST_PASSED);
    assert!(gaps.known.lock().gaps.is_empty());
    gaps.add(range(b"a", b"z"), Seq::new(10), u32::MAX);
    let heavy = || gaps.find_behind(Direction::Up, Some(b"a"), Seq::MAX - 1);
    assert!(heavy().is_some());
    for seq in 11..60_000_u32 {
        gaps.begin_group(Seq::new(seq.into()));
        let key = [b"t/", &seq.to_be_bytes()[..]].concat();
        gaps.note_record(Seq::new(seq.into()), &key);
    }
    let known = gaps.known.lock();
    assert_eq!(known.gaps.len(), MOST_GAPS);
    assert!(known.recent_bytes <= RECENT_BYTES && known.recent_from > Seq::new(10));
    drop(known);
    assert!(heavy().is_some(), "the gap with most keys stays");
    // The walk has seen too little now.
    gaps.add(range(b"a", b"z"), Seq::new(10), 100);
    assert_eq!(gaps.known.lock().gaps.len(), MOST_GAPS);
    gaps.end_walk();
    gaps.begin_group(Seq::new(60_001));
    assert!(gaps.known.lock().recent.is_empty());
    for seq in 60_001..=60_001 + u64::from(MOST_UNUSED) {
        gaps.note_record(Seq::new(seq), b"x");
    }
    gaps.begin_group(Seq::new(200_000));
    assert!(!gaps.is_active() && gaps.known.lock().gaps.is_empty());
}

#[test]
fn a_gap_is_looked_for_the_more_seldom_the_less_is_found() {
    let gaps = TombstoneGaps::default();
    let looks = |passed| {
        let mut looks = 0;
        for _ in 0..100_000 {
            if let Some(deletes) = gaps.count_deletes(1) {
                assert!(deletes >= DELETES);
                gaps.note_search(passed);
                looks += 1;
            }
        }
        looks
    };
    assert_eq!(looks(LEAST_PASSED), 100_000 / DELETES);
    assert!(looks(2) < 25);
    assert!(looks(LEAST_PASSED) > 700);
    assert!(
        gaps.count_deletes(5000)
            .is_some_and(|deletes| deletes >= 5000)
    );
}
