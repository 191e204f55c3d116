//! Versions compared with a map from positions to values, and block counts compared with the actual
//! references.

use super::block::Link;
use super::node::{FANOUT, MAX_HEIGHT, height_for};
use super::*;
use crate::record::Release;
use ats_sync::pin;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};

/// Values that decrement a counter, whose address is the first word, when released.
struct Counted;

impl Release for Counted {
    unsafe fn release(value: &[u64]) {
        let counter = std::ptr::with_exposed_provenance::<AtomicI64>(value[0] as usize);
        // SAFETY: `Owners::value` below makes owning values, with a counter that is never freed.
        unsafe { &*counter }.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A counter of owning values.
#[derive(Clone, Copy)]
struct Owners(&'static AtomicI64);

impl Owners {
    fn new() -> Self {
        Owners(Box::leak(Box::new(AtomicI64::new(0))))
    }

    fn push(self, edit: &mut Edit<'_, Counted>, rest: &[u64]) -> (u64, Vec<u64>) {
        let address = std::ptr::from_ref(self.0).expose_provenance() as u64;
        let words = [&[address], rest].concat();
        self.0.fetch_add(1, Ordering::Relaxed);
        (edit.push(&words, true), words)
    }

    fn replace(
        self,
        edit: &mut Edit<'_, Counted>,
        position: u64,
        rest: &[u64],
    ) -> (bool, Vec<u64>) {
        let address = std::ptr::from_ref(self.0).expose_provenance() as u64;
        let words = [&[address], rest].concat();
        self.0.fetch_add(1, Ordering::Relaxed);
        (edit.replace(position, &words, true), words)
    }

    fn await_count(self, alive: i64) {
        collect_until(|| self.0.load(Ordering::Relaxed) == alive);
    }
}

/// Frees garbage until `done`, which other tests of the program can delay.
fn collect_until(mut done: impl FnMut() -> bool) {
    for _ in 0..5_000 {
        ats_sync::collect();
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("something is not given back");
}

type Model = BTreeMap<u64, Vec<u64>>;

/// A version, and its expected contents.
struct Version {
    sequence: Sequence<Counted>,
    model: Model,
}

impl Version {
    fn check(&self) {
        let (sequence, model) = (&self.sequence, &self.model);
        assert_eq!(sequence.len(), model.len());
        assert_eq!(sequence.is_empty(), model.is_empty());
        let all: Vec<_> = model.iter().map(|(at, words)| (*at, &words[..])).collect();
        assert_eq!(sequence.iter_from(0).collect::<Vec<_>>(), all);
        let down = sequence.iter_back_from(u64::MAX);
        assert!(down.eq(all.iter().rev().copied()));
        let next = sequence.next_position();
        for position in (0..next + 3).chain([next + 1_000, 1 << 40, u64::MAX]) {
            let expected = model.get(&position).map(Vec::as_slice);
            assert_eq!(sequence.get(position), expected, "{position}");
        }
        for from in (0..next + 2).step_by(7).chain([u64::MAX]) {
            let expected = model.range(from..).next();
            let found = sequence.iter_from(from).next();
            assert_eq!(found, expected.map(|(at, words)| (*at, &words[..])));
            let expected = model.range(..=from).next_back();
            let found = sequence.iter_back_from(from).next();
            assert_eq!(found, expected.map(|(at, words)| (*at, &words[..])));
        }
        let mut bytes = 0;
        let mut met = HashMap::new();
        if let Some(root) = sequence.root {
            assert!(sequence.height >= height_for(next - 1));
            bytes = blocks(root, sequence.height, &mut met);
        }
        assert_eq!(sequence.bytes(), bytes);
    }
}

/// Counts the links to blocks below a link, and to its own block, if it is met for the first time.
/// Returns the bytes below it.
fn blocks(link: Link, height: u32, met: &mut HashMap<*mut u8, u32>) -> usize {
    assert!(!link.is_draft());
    let links = met.entry(link.pointer()).or_default();
    *links += 1;
    if *links > 1 {
        return 0;
    }
    // SAFETY: the versions are alive, and heights imply the kind of blocks.
    unsafe {
        if height == 0 {
            return link.value().bytes();
        }
        let node = link.node();
        assert_ne!(node.bitmap(), 0, "a node without children");
        let below = node.links().iter();
        node.bytes()
            + below
                .map(|child| blocks(*child, height - 1, met))
                .sum::<usize>()
    }
}

/// Returns `true` if each block has as many references as there are links to it.
fn counts_are_right(versions: &[Version]) -> bool {
    let mut met = HashMap::new();
    for Version { sequence, .. } in versions {
        if let Some(root) = sequence.root {
            blocks(root, sequence.height, &mut met);
        }
    }
    met.iter().all(|(pointer, links)| {
        // SAFETY: the pointer is that of a block of a live version.
        let count = unsafe { Link::of_pointer(*pointer).count() };
        assert!(count >= *links, "{count} references and {links} links");
        count == *links
    })
}

#[derive(Clone, Debug)]
enum Act {
    Push(u8, Vec<u64>),
    /// Remove the existing value with this rank.
    Remove(prop::sample::Index),
    /// Remove a number of values from this rank on.
    RemoveRange(prop::sample::Index, u8),
    /// Replace the value with this rank.
    Replace(prop::sample::Index, Vec<u64>),
}

#[derive(Clone, Debug)]
enum Step {
    Share(Vec<Act>),
    TakeOver(Vec<Act>),
    Abandon(Vec<Act>),
    Handle,
    Drop,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (1..6u8, prop::collection::vec(any::<u64>(), 0..4)).prop_map(|(n, w)| Act::Push(n, w)),
        1 => (30..120u8, Just(vec![7])).prop_map(|(n, words)| Act::Push(n, words)),
        4 => any::<prop::sample::Index>().prop_map(Act::Remove),
        1 => (any::<prop::sample::Index>(), 1..90u8).prop_map(|(at, n)| Act::RemoveRange(at, n)),
        3 => (any::<prop::sample::Index>(), prop::collection::vec(any::<u64>(), 0..4))
            .prop_map(|(at, words)| Act::Replace(at, words)),
    ];
    prop::collection::vec(act, 0..6)
}

fn step() -> impl Strategy<Value = (prop::sample::Index, Step)> {
    let step = prop_oneof![
        3 => acts().prop_map(Step::Share),
        6 => acts().prop_map(Step::TakeOver),
        1 => acts().prop_map(Step::Abandon),
        1 => Just(Step::Handle),
        2 => Just(Step::Drop),
    ];
    (any::<prop::sample::Index>(), step)
}

fn act(acts: &[Act], edit: &mut Edit<'_, Counted>, model: &mut Model, owners: Owners) {
    for act in acts {
        match act {
            Act::Push(times, words) => {
                for _ in 0..*times {
                    let (position, words) = owners.push(edit, words);
                    assert_eq!(model.insert(position, words), None);
                }
            }
            Act::Replace(..) if model.is_empty() => {
                assert!(!edit.replace(0, &[1], false));
            }
            Act::Replace(at, words) => {
                let position = *model.keys().nth(at.index(model.len())).expect("in range");
                let (replaced, words) = owners.replace(edit, position, words);
                assert!(replaced);
                model.insert(position, words);
            }
            Act::Remove(_) | Act::RemoveRange(..) if model.is_empty() => {
                assert!(edit.is_empty() && !edit.remove(0));
            }
            Act::Remove(at) => {
                let position = *model.keys().nth(at.index(model.len())).expect("in range");
                model.remove(&position);
                assert!(edit.remove(position) && !edit.remove(position));
            }
            Act::RemoveRange(at, count) => {
                let at = at.index(model.len());
                let positions = model.keys().skip(at).take(usize::from(*count));
                for position in positions.copied().collect::<Vec<_>>() {
                    model.remove(&position);
                    assert!(edit.remove(position));
                }
            }
        }
        assert_eq!(edit.len(), model.len());
        for (position, words) in model.iter().step_by(5) {
            assert_eq!(edit.get(*position), Some(&words[..]));
        }
    }
}

fn run(step: Step, at: usize, versions: &mut Vec<Version>, owners: Owners) {
    let Version { sequence, model } = &versions[at];
    let mut new_model = model.clone();
    match step {
        Step::Share(acts) => {
            let mut edit = sequence.edit();
            act(&acts, &mut edit, &mut new_model, owners);
            let sequence = edit.finish();
            versions.push(Version {
                sequence,
                model: new_model,
            });
        }
        Step::TakeOver(acts) => {
            let mut edit = sequence.edit();
            act(&acts, &mut edit, &mut new_model, owners);
            // SAFETY: the new version replaces the old one below, and no other thread uses it.
            let (sequence, leftovers) = unsafe { edit.finish_taking_over() };
            // The leftovers can be read until the guard is dropped.
            let guard = pin();
            // SAFETY: readers of the old version below have a guard of this moment.
            unsafe { leftovers.retire(&guard) };
            versions[at].check();
            let taken = versions[at].sequence.taken_over.load(Ordering::Relaxed);
            assert!(!taken || versions[at].sequence.share().is_none());
            versions[at] = Version {
                sequence,
                model: new_model,
            };
        }
        Step::Abandon(acts) => {
            let mut edit = sequence.edit();
            act(&acts, &mut edit, &mut new_model, owners);
        }
        Step::Handle => {
            let sequence = sequence.share().expect("nobody has taken it over");
            versions.push(Version {
                sequence,
                model: new_model,
            });
        }
        Step::Drop => drop(versions.swap_remove(at)),
    }
}

proptest! {
    #[test]
    fn versions_agree_with_maps(steps in prop::collection::vec(step(), 1..40)) {
        let owners = Owners::new();
        let mut versions = Vec::new();
        for (at, step) in steps {
            if versions.is_empty() {
                versions.push(Version { sequence: Sequence::new(), model: Model::new() });
            }
            let at = at.index(versions.len());
            run(step, at, &mut versions, owners);
            versions.iter().for_each(Version::check);
            counts_are_right(&versions);
        }
        collect_until(|| counts_are_right(&versions));
        versions.clear();
        owners.await_count(0);
    }
}

fn fill(count: u64, owners: Owners) -> Sequence<Counted> {
    let empty = Sequence::new();
    let mut edit = empty.edit();
    for number in 0..count {
        assert_eq!(owners.push(&mut edit, &[number]).0, number);
    }
    edit.finish()
}

/// Replaces a version that has no other user.
fn change(sequence: &mut Sequence<Counted>, act: impl FnOnce(&mut Edit<'_, Counted>)) {
    let guard = pin();
    let mut edit = sequence.edit();
    act(&mut edit);
    // SAFETY: the new version replaces the old one at once, and no other thread uses it.
    let (new, leftovers) = unsafe { edit.finish_taking_over() };
    drop(std::mem::replace(sequence, new));
    // SAFETY: the old version was dropped, so no thread finds it.
    unsafe { leftovers.retire(&guard) };
}

#[test]
fn one_after_the_other_comes_and_goes() {
    let owners = Owners::new();
    let mut sequence = Sequence::new();
    for number in 0..3_000 {
        change(&mut sequence, |edit| drop(owners.push(edit, &[number])));
    }
    assert_eq!((sequence.len(), sequence.height), (3_000, 3));
    // An order that leaves holes everywhere.
    for number in 0..3_000 {
        let position = number * 1_759 % 3_000;
        change(&mut sequence, |edit| assert!(edit.remove(position)));
        assert_eq!(sequence.get(position), None);
    }
    assert_eq!((sequence.len(), sequence.bytes()), (0, 0));
    assert_eq!(sequence.next_position(), 3_000);
    owners.await_count(0);
}

#[test]
fn a_queue_stays_small() {
    let owners = Owners::new();
    let mut sequence = fill(10, owners);
    let most = sequence.bytes() + 3 * slab_node(FANOUT);
    for number in 10..50_000 {
        change(&mut sequence, |edit| {
            assert!(edit.remove(number - 10));
            owners.push(edit, &[number]);
        });
        assert!(sequence.bytes() <= most, "{} bytes", sequence.bytes());
        assert_eq!(
            sequence.iter_from(0).next().map(|(at, _)| at),
            Some(number - 9)
        );
    }
    owners.await_count(10);
}

fn slab_node(children: u32) -> usize {
    crate::slab::block_size(8 + 8 * children as usize)
}

/// A shared version keeps its contents while new versions follow the one it was shared from.
#[test]
fn shared_versions_keep_their_contents() {
    let owners = Owners::new();
    let mut sequence = fill(2_000, owners);
    let kept = sequence.share().expect("it is not taken over");
    for position in 0..2_000 {
        change(&mut sequence, |edit| assert!(edit.remove(position)));
    }
    drop(sequence);
    assert!(kept.iter_from(0).map(|(at, _)| at).eq(0..2_000));
    owners.await_count(2_000);
    drop(kept);
    owners.await_count(0);
}

#[test]
fn large_sequences_go_in_slices() {
    let owners = Owners::new();
    let count = 100_000;
    let mut remains = fill(count, owners).into_remains();
    let mut slices = 0;
    while !remains.free_some(1_000) {
        slices += 1;
        let alive = owners.0.load(Ordering::Relaxed);
        assert!(alive <= count as i64 - slices * 900);
        assert!(remains.len() <= (FANOUT * 4) as usize);
    }
    assert!((100..=110).contains(&slices), "{slices} slices");
    assert_eq!(owners.0.load(Ordering::Relaxed), 0);
    let rest = fill(count, owners).into_remains();
    drop(rest);
    assert_eq!(owners.0.load(Ordering::Relaxed), 0);
}

/// Positions as large as after very long use.
#[test]
fn positions_can_be_large() {
    for next in [31, 32, 33, 1 << 30, (1 << 60) - 2, u64::MAX - 3] {
        let owners = Owners::new();
        let mut sequence = Sequence::new();
        sequence.next = next;
        for round in 0..3 {
            change(&mut sequence, |edit| {
                assert_eq!(owners.push(edit, &[round]).0, next + round);
            });
        }
        assert!(sequence.height <= MAX_HEIGHT);
        let up: Vec<u64> = sequence.iter_from(next + 1).map(|(at, _)| at).collect();
        assert_eq!(up, [next + 1, next + 2]);
        let down: Vec<u64> = sequence
            .iter_back_from(next + 1)
            .map(|(at, _)| at)
            .collect();
        assert_eq!(down, [next + 1, next]);
        assert_eq!(sequence.iter_from(0).count(), 3);
        assert_eq!(sequence.iter_back_from(u64::MAX).count(), 3);
        change(&mut sequence, |edit| {
            (next..next + 3).for_each(|position| assert!(edit.remove(position)));
        });
        assert_eq!(sequence.bytes(), 0);
        owners.await_count(0);
    }
}

#[test]
fn values_of_every_length_come_back() {
    let empty = Sequence::<crate::Plain>::new();
    let mut edit = empty.edit();
    let words: Vec<u64> = (0..5_000).collect();
    let lengths: Vec<usize> = (0..40).chain([255, 256, 257, 5_000]).collect();
    for len in &lengths {
        edit.push(&words[..*len], false);
    }
    let sequence = edit.finish();
    for (position, len) in lengths.iter().enumerate() {
        assert_eq!(sequence.get(position as u64), Some(&words[..*len]));
    }
}
