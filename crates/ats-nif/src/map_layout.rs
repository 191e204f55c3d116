//! The layouts of maps, by their keys.
//!
//! The VM keeps the keys of a map in an order of its own, and those of a large map in a tree by
//! their hashes. When it makes a map of keys in another order, it compares terms to sort them, and
//! it hashes each key of a large one. An image has the keys in the order of their words, so they
//! are sorted both when a map is written to an image and when it is made from it. The maps of a
//! table mostly have the same keys, so a thread remembers both orders for the sets of keys that it
//! met last, if all keys are immediates. It learns the layouts from maps that the VM has made. A
//! tree is filled in memory of the thread, and the VM copies it.
//!
//! # Invariant
//! - MAP_LAYOUT-1. The words of a `Tree`, with addresses at its links and terms at its values, are
//!   a map of this VM with the keys of the layout. `Layout::is_right` has asked the VM.

use crate::env::{Env, VmWord};
use crate::heap::{self, MAP_MOST};
use crate::sys::Word;
use crate::tags::{BOXED_TAG, CONS_TAG, IMMEDIATE_TAG};
use std::cell::RefCell;

/// Number of layouts that a thread remembers.
const LAYOUTS: usize = 32;
/// Least number of keys with a layout: fewer are sorted as quickly.
const LEAST: usize = 4;
/// Largest number of keys with a layout.
const MOST: usize = 256;

/// The layout of maps with some keys.
#[derive(Debug)]
enum Layout {
    /// The keys in the order of the VM, each with its index in the order of the image.
    Flat(Vec<(VmWord<'static>, u8)>),
    Tree(Tree),
}

/// The words of a map whose keys are in a tree. The first word is the header of the map.
#[derive(Debug, Default)]
struct Tree {
    words: Vec<Word>,
    links: Vec<Link>,
    /// The index of the value of each key, in the order of the keys of the image.
    values: Vec<u32>,
}

/// A word of a tree that is the address of another one.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Index of the word.
    from: u32,
    /// Index of the word at the address.
    target: u32,
    /// Tag of the address.
    tag: Word,
}

/// The sets of keys that were met last, at places given by their hashes.
#[derive(Debug)]
struct Remembered<T>([Entry<T>; LAYOUTS]);

/// The keys that were met last of those with the same place.
#[derive(Debug)]
struct Entry<T> {
    hash: u64,
    /// The keys, and what is known of them, once they were met twice in a row.
    known: Option<Box<(Vec<Word>, T)>>,
}

/// The memory of a thread about maps that it makes.
#[derive(Debug)]
struct Made {
    /// The layouts, by the keys in the order of the image.
    layouts: Remembered<Layout>,
    /// The words of the tree that is being made.
    words: Vec<Word>,
}

/// The memory of a thread about maps that it reads.
#[derive(Debug)]
struct Read {
    /// The index of each key of the image among the keys of the VM, by the keys in the order of
    /// the VM.
    orders: Remembered<Vec<u8>>,
    /// The keys and the values of the tree that is being read, in the order of the VM.
    keys: Vec<Word>,
    values: Vec<Word>,
}

thread_local! {
    static MADE: RefCell<Made> = const {
        RefCell::new(Made { layouts: Remembered::NONE, words: Vec::new() })
    };
    static READ: RefCell<Read> = const {
        RefCell::new(Read { orders: Remembered::NONE, keys: Vec::new(), values: Vec::new() })
    };
}

impl<T> Remembered<T> {
    const NONE: Self = Remembered(
        [const {
            Entry {
                hash: 0,
                known: None,
            }
        }; LAYOUTS],
    );

    /// Returns what is known of these keys, else their hash if they were met twice in a row, and so
    /// are worth learning.
    #[inline]
    fn get(&mut self, keys: &[Word]) -> Result<&T, Option<u64>> {
        let hash = hash(keys).ok_or(None)?;
        let entry = &mut self.0[place(hash)];
        if entry.hash != hash {
            *entry = Entry { hash, known: None };
            return Err(None);
        }
        match &entry.known {
            Some(known) if known.0 == keys => Ok(&known.1),
            _ => Err(Some(hash)),
        }
    }

    /// Remembers what has been learned of keys with this hash.
    fn set(&mut self, hash: u64, keys: &[Word], learned: Option<T>) {
        self.0[place(hash)].known = learned.map(|known| Box::new((keys.to_vec(), known)));
    }
}

/// Returns the place of keys with this hash.
#[inline]
fn place(hash: u64) -> usize {
    (hash >> (u64::BITS - LAYOUTS.ilog2())) as usize
}

/// Builds a map of distinct keys. O(n) if the thread knows the layout of maps with these keys, else
/// O(n log n).
#[inline]
pub fn make<'e>(env: Env<'e>, keys: &[VmWord<'e>], values: &[VmWord<'e>]) -> VmWord<'e> {
    let by_vm = || env.map(keys, values).expect("distinct keys");
    let words = VmWord::raw_words(keys);
    MADE.with_borrow_mut(
        |Made {
             layouts,
             words: room,
         }| match layouts.get(words) {
            Ok(layout) => layout.make(env, values, room),
            Err(None) => by_vm(),
            Err(Some(hash)) => {
                let map = by_vm();
                layouts.set(hash, words, Layout::learn(env, words, map));
                map
            }
        },
    )
}

/// Calls `pair` with the words of all keys and values of a map, in the order of the image if the
/// thread knows it, else in that of the VM. Returns `false` if the layout of the map is not known;
/// then it may have been called for some of them. O(n).
#[inline]
pub fn read(map: VmWord<'_>, pair: impl FnMut(Word, Word)) -> bool {
    READ.with_borrow_mut(|read| match heap::map(map) {
        Some((keys, values)) => {
            let (keys, values) = (VmWord::raw_words(keys), VmWord::raw_words(values));
            read.orders.visit(keys, values, pair);
            true
        }
        None => read.tree(map, pair).is_some(),
    })
}

impl Read {
    /// Visits a map whose keys are in a tree.
    fn tree(&mut self, map: VmWord<'_>, mut pair: impl FnMut(Word, Word)) -> Option<()> {
        if heap::map_tree_len(map)? > MOST {
            return heap::map_tree(map, |key, value| pair(key.raw(), value.raw()));
        }
        self.keys.clear();
        self.values.clear();
        heap::map_tree(map, |key, value| {
            self.keys.push(key.raw());
            self.values.push(value.raw());
        })?;
        self.orders.visit(&self.keys, &self.values, pair);
        Some(())
    }
}

impl Remembered<Vec<u8>> {
    /// Visits keys in the order of the VM, and their values, in the order of the image if that is
    /// known.
    #[inline]
    fn visit(&mut self, keys: &[Word], values: &[Word], mut pair: impl FnMut(Word, Word)) {
        match self.get(keys) {
            Ok(order) => {
                for &index in order {
                    pair(keys[usize::from(index)], values[usize::from(index)]);
                }
                return;
            }
            Err(Some(hash)) => {
                let mut order: Vec<u8> = (0..keys.len()).map(|index| index as u8).collect();
                order.sort_unstable_by_key(|&index| keys[usize::from(index)]);
                self.set(hash, keys, Some(order));
            }
            Err(None) => {}
        }
        for (&key, &value) in keys.iter().zip(values) {
            pair(key, value);
        }
    }
}

/// Returns the hash of keys; `None` if these are few or many, or not all of them are immediates.
#[inline]
fn hash(keys: &[Word]) -> Option<u64> {
    if !(LEAST..=MOST).contains(&keys.len()) {
        return None;
    }
    let (mut hash, mut tags) = (keys.len() as u64, IMMEDIATE_TAG);
    for &key in keys {
        tags &= key;
        hash = (hash.rotate_left(5) ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (tags == IMMEDIATE_TAG).then_some(hash)
}

/// Returns the term of a key, which is an immediate.
fn immediate(key: Word) -> VmWord<'static> {
    debug_assert_eq!(key & IMMEDIATE_TAG, IMMEDIATE_TAG);
    // SAFETY: an immediate is a term in every environment, and the keys came from the VM.
    unsafe { VmWord::new(key) }
}

impl Layout {
    /// Learns the layout of maps with these immediate keys from one of them. Returns `None` if this
    /// VM has another layout than [`heap`] knows.
    #[cold]
    fn learn(env: Env<'_>, keys: &[Word], map: VmWord<'_>) -> Option<Layout> {
        let index_of = |key: &VmWord<'_>| keys.iter().position(|word| *word == key.raw());
        let layout = match heap::map(map) {
            Some((found, _)) => {
                let indices = found
                    .iter()
                    .map(|key| Some((immediate(key.raw()), index_of(key)? as u8)));
                Layout::Flat(indices.collect::<Option<_>>()?)
            }
            None => Layout::Tree(Tree::learn(keys.len(), index_of, map)?),
        };
        layout.is_right(env, keys).then_some(layout)
    }

    /// Returns `true` if the VM makes the same map of these keys.
    fn is_right(&self, env: Env<'_>, keys: &[Word]) -> bool {
        let keys: Vec<_> = keys.iter().map(|&key| immediate(key)).collect();
        let expected = env.map(&keys, &keys);
        expected.is_some_and(|map| map.is_identical(self.make(env, &keys, &mut Vec::new())))
    }

    /// Builds a map with these values, which are in the order of the keys of the image.
    #[inline]
    fn make<'e>(&self, env: Env<'e>, values: &[VmWord<'e>], words: &mut Vec<Word>) -> VmWord<'e> {
        match self {
            Layout::Flat(order) => {
                let (mut keys, mut sorted) = ([VmWord::NIL; MAP_MOST], [VmWord::NIL; MAP_MOST]);
                for (place, &(key, index)) in order.iter().enumerate() {
                    keys[place] = key;
                    sorted[place] = values[usize::from(index)];
                }
                let map = env.map(&keys[..order.len()], &sorted[..order.len()]);
                map.expect("distinct keys")
            }
            Layout::Tree(tree) => {
                let map = tree.fill(values, words);
                // SAFETY: the words are a map whose values are terms in the environment
                // (MAP_LAYOUT-1), and do not move while the VM copies them.
                env.copy(unsafe { VmWord::new(map) })
            }
        }
    }
}

impl Tree {
    /// Reads the tree of a map with this number of keys, whose indices `index_of` tells.
    fn learn(
        len: usize,
        index_of: impl Fn(&VmWord<'_>) -> Option<usize>,
        map: VmWord<'_>,
    ) -> Option<Tree> {
        let mut tree = Tree {
            values: vec![0; len],
            ..Tree::default()
        };
        let (mut nodes, mut found) = (vec![(map, None)], 0);
        while let Some((node, from)) = nodes.pop() {
            if let Some(from) = from {
                tree.link(from, BOXED_TAG);
            }
            let (head, children) = heap::map_node(node)?;
            tree.words.extend_from_slice(head);
            let first = tree.words.len();
            tree.words.resize(first + children.len(), 0);
            for (place, &child) in children.iter().enumerate() {
                let from = first + place;
                let Some((key, _)) = heap::cell(child) else {
                    nodes.push((child, Some(from)));
                    continue;
                };
                tree.link(from, CONS_TAG);
                let value = tree.words.len() + 1;
                tree.words.extend([key.raw(), 0]);
                tree.values[index_of(&key)?] = u32::try_from(value).ok()?;
                found += 1;
            }
        }
        (found == len).then_some(tree)
    }

    /// Notes that a word is the address of the word that is written next.
    fn link(&mut self, from: usize, tag: Word) {
        self.links.push(Link {
            from: from as u32,
            target: self.words.len() as u32,
            tag,
        });
    }

    /// Writes the map with these values to `words`, which it empties first. Returns its word.
    #[inline]
    fn fill(&self, values: &[VmWord<'_>], words: &mut Vec<Word>) -> Word {
        words.clear();
        words.extend_from_slice(&self.words);
        let base = words.as_ptr();
        let address = |index: u32| base.wrapping_add(index as usize).expose_provenance() as Word;
        for link in &self.links {
            words[link.from as usize] = address(link.target) + link.tag;
        }
        for (value, &index) in values.iter().zip(&self.values) {
            words[index as usize] = value.raw();
        }
        address(0) + BOXED_TAG
    }
}
