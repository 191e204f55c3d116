//! Terms on the heap of the VM, read in place.
//!
//! ```text
//! tuple      header (number of elements), elements
//! cell       head, tail
//! float      header, bits
//! binary     header (number of words), size, bytes padded to whole words; of at most 64 bytes
//! map        header, number of keys, tuple of the keys, values; of at most 32 keys
//! counted    header, size, link, address of the binary, address of the bytes, flags
//! larger map header (type 2 or 3), number of keys, children
//! node       header (type 1), children: nodes, and cells of a key and its value
//! ```
//!
//! In the header of a larger map or a node, bits 6 and 7 are the type, and bits 16 to 31 have a one
//! for each child. A header of type 2 stands before 16 children.
//!
//! The functions of the VM give the same, at the price of a call for each term. So [`load`]
//! compares some terms with the layout that is expected here. What a VM has in another layout is
//! not read here, and the VM is asked.

use crate::env::{Env, VmWord};
use crate::sys::{self, Word};
use crate::tags::{BOXED_TAG, CONS_TAG};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Low six bits of the header of a tuple.
const TUPLE: Word = 0;
/// Number of low bits of a header, below the number of words.
const HEADER_BITS: u32 = 6;
/// Low bits of a header: the kind of the term.
const KIND: Word = (1 << HEADER_BITS) - 1;
/// Largest number of bytes of a binary that is on the heap.
const BINARY_MOST: usize = 64;
/// Number of words of a term that refers to a counted binary.
pub const COUNTED_WORDS: usize = 6;
/// Largest number of keys of a map in one piece.
pub const MAP_MOST: usize = 32;

/// `true` if this VM has tuples and cells as expected, which [`load`] finds out.
static ARE_TUPLES_KNOWN: AtomicBool = AtomicBool::new(false);

/// The layouts of other terms of this VM; an unknown one is `None`.
#[derive(Debug)]
struct Layouts {
    /// Header of a float.
    float: Option<Word>,
    binary: Option<BinaryLayout>,
    /// Header of a term that refers to a counted binary.
    counted: Option<Word>,
    /// Header of a map.
    map: Option<Word>,
    /// The same, if larger maps have the expected layout.
    tree: Option<Word>,
}

/// The layout of binaries on the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BinaryLayout {
    /// Low six bits of the header.
    kind: Word,
    /// Units of the size in a byte: 1 in bytes, 8 in bits.
    units: usize,
}

static LAYOUTS: OnceLock<Layouts> = OnceLock::new();

/// Compares terms of this VM with the expected layouts. Runs when the library is loaded, after the
/// tags were checked.
pub fn load(env: Env<'_>) {
    let are_tuples_known = are_tuples_known(env);
    ARE_TUPLES_KNOWN.store(are_tuples_known, Ordering::Relaxed);
    let map = map_header(env).filter(|_| are_tuples_known);
    // A library that is loaded again finds the same VM.
    let _ = LAYOUTS.set(Layouts {
        float: float_header(env),
        binary: binary_layout(env),
        counted: counted_header(env),
        map,
        tree: map.filter(|&map| are_trees_known(env, map)),
    });
}

/// Returns `true` if the layout of all kinds of terms is as expected.
#[cfg(feature = "test-nifs")]
pub fn are_layouts_known() -> bool {
    let others = LAYOUTS.get().is_some_and(|layouts| {
        layouts.float.is_some() && layouts.binary.is_some() && layouts.tree.is_some()
    });
    ARE_TUPLES_KNOWN.load(Ordering::Relaxed) && others
}

fn are_tuples_known(env: Env<'_>) -> bool {
    let parts = integers(env, 70);
    let tuples = [0, 1, 2, 3, 63, 64, 70].map(|arity| &parts[..arity]);
    let are_tuples = tuples.iter().all(|&elements| {
        let tuple = env.tuple(elements);
        // The empty tuple may be a literal, which is not read.
        elements.is_empty() || read_tuple(tuple).is_some_and(|found| are_same(found, elements))
    });
    let cell = env.cons(parts[0], parts[1]);
    let is_cell = read_cell(cell).is_some_and(|(head, tail)| are_same(&[head, tail], &parts[..2]));
    let others = [
        Some(env.int(i64::MAX)),
        Some(env.float(1.5)),
        Some(env.binary(b"x")),
        Some(env.binary(&[0; 100])),
        env.map(&[], &[]),
        env.map(&parts[..2], &parts[..2]),
        env.map(&parts, &parts),
        Some(env.make_ref()),
        Some(cell),
        Some(parts[0]),
    ];
    let are_none = others
        .into_iter()
        .flatten()
        .all(|other| read_tuple(other).is_none());
    are_tuples && is_cell && are_none && read_cell(env.tuple(&parts)).is_none()
}

fn integers(env: Env<'_>, count: i64) -> Vec<VmWord<'_>> {
    (1..=count).map(|value| env.int(value)).collect()
}

fn are_same(found: &[VmWord<'_>], expected: &[VmWord<'_>]) -> bool {
    let words = found.iter().map(|word| word.raw());
    words.eq(expected.iter().map(|word| word.raw()))
}

/// Returns the header that all floats have.
fn float_header(env: Env<'_>) -> Option<Word> {
    let read = |value: f64| {
        let [header, bits] = read_words(env.float(value))?;
        (header >> HEADER_BITS == 1 && bits == value.to_bits()).then_some(header)
    };
    let headers = [0.0, 1.5, -1.5, f64::MAX, f64::MIN_POSITIVE].map(read);
    same(headers.into_iter())
}

/// Returns the layout that all small binaries have.
fn binary_layout(env: Env<'_>) -> Option<BinaryLayout> {
    let bytes: [u8; BINARY_MOST] = std::array::from_fn(|at| at as u8 + 1);
    let read = |len: usize| {
        let binary = env.binary(&bytes[..len]);
        let [header, size] = read_words(binary)?;
        let units = size as usize / len;
        let found = BinaryLayout {
            kind: header & KIND,
            units,
        };
        let is_so = matches!(units, 1 | 8)
            && found.kind != TUPLE
            && read_binary(binary, found) == Some(&bytes[..len]);
        is_so.then_some(found)
    };
    let found = same([1, 7, 8, 9, 16, 63, BINARY_MOST].into_iter().map(read))?;
    // Longer ones are elsewhere.
    let longer = read_words::<1>(env.binary(&[1; BINARY_MOST + 1]))?;
    (longer[0] & KIND != found.kind).then_some(found)
}

/// Returns the header of terms that refer to the whole of a counted binary.
fn counted_header(env: Env<'_>) -> Option<Word> {
    let header = |len: usize| {
        let binary = env.binary(&vec![7; len]);
        let mut view = sys::ErlNifBinary::empty();
        // SAFETY: the term is valid (ENV-2), and the VM fills the view.
        unsafe { sys::enif_inspect_binary(env.raw(), binary.raw(), &raw mut view) };
        let bytes = view.data.addr() as Word;
        let [header] = read_words(binary)?;
        if header >> HEADER_BITS != COUNTED_WORDS as Word - 1 {
            return None;
        }
        let words = address(binary, BOXED_TAG)?.cast::<[Word; COUNTED_WORDS]>();
        // SAFETY: the header says how many words follow it, and the term is valid (ENV-2).
        let [_, size, _, whole, data, flags] = unsafe { words.read() };
        // The bytes follow the head of the binary.
        let is_so = (size, data, flags) == (len as Word, bytes, 0)
            && (1..=64).contains(&data.wrapping_sub(whole));
        is_so.then_some(header)
    };
    let found = same(
        [BINARY_MOST + 1, 100, 1000, 100_000]
            .into_iter()
            .map(header),
    )?;
    // A part of a binary is another kind of term.
    // SAFETY: the binary has 300 bytes.
    let part = unsafe { env.part_of_binary(env.binary(&[7; 300]), 1, 200) };
    (read_words::<1>(part)? != [found]).then_some(found)
}

/// Returns the header that all small maps have.
fn map_header(env: Env<'_>) -> Option<Word> {
    let parts = integers(env, MAP_MOST as i64 + 1);
    let values: Vec<_> = parts.iter().rev().copied().collect();
    let read = |len: usize| {
        let map = env.map(&parts[..len], &values[..len])?;
        let [header] = read_words(map)?;
        let (keys, found) = read_map(map, header)?;
        // Keys are in the order of integers.
        (are_same(keys, &parts[..len]) && are_same(found, &values[..len])).then_some(header)
    };
    let found = same([1, 2, 3, 10, MAP_MOST].into_iter().map(read))?;
    let larger = read_words::<1>(env.map(&parts, &values)?)?;
    (larger[0] != found && found & KIND != TUPLE).then_some(found)
}

/// Returns `true` if larger maps are trees as expected; `map` is the header of small ones.
fn are_trees_known(env: Env<'_>, map: Word) -> bool {
    [MAP_MOST as i64 + 1, 48, 300, 5000].into_iter().all(|len| {
        let parts = integers(env, len);
        let values: Vec<_> = parts.iter().rev().copied().collect();
        let mut found = Vec::new();
        let read = env.map(&parts, &values).is_some_and(|tree| {
            read_tree(tree, map, |key, value| found.push((key.raw(), value.raw()))).is_some()
        });
        let mut expected: Vec<_> = (parts.iter().zip(&values))
            .map(|(key, value)| (key.raw(), value.raw()))
            .collect();
        expected.sort_unstable();
        found.sort_unstable();
        read && found == expected
    })
}

/// Returns the value that all have.
fn same<T: PartialEq>(mut found: impl Iterator<Item = Option<T>>) -> Option<T> {
    let first = found.next()??;
    found
        .all(|other| other.as_ref() == Some(&first))
        .then_some(first)
}

/// Returns the elements of a tuple. `None` for another term, for a literal, and on a VM with
/// another layout.
#[inline]
pub fn tuple(word: VmWord<'_>) -> Option<&[VmWord<'_>]> {
    if !ARE_TUPLES_KNOWN.load(Ordering::Relaxed) {
        return None;
    }
    read_tuple(word)
}

/// Returns head and tail of a list cell. `None` for another term, for a literal, and on a VM with
/// another layout.
#[inline]
pub fn cell(word: VmWord<'_>) -> Option<(VmWord<'_>, VmWord<'_>)> {
    if !ARE_TUPLES_KNOWN.load(Ordering::Relaxed) {
        return None;
    }
    read_cell(word)
}

/// Returns the value of a float. `None` for another term, and on a VM with another layout.
#[inline]
pub fn float(word: VmWord<'_>) -> Option<f64> {
    let [header, bits] = read_words(word)?;
    (LAYOUTS.get()?.float == Some(header)).then(|| f64::from_bits(bits))
}

/// Returns the bytes of a binary on the heap. `None` for another term, and on a VM with another
/// layout.
#[inline]
pub fn binary(word: VmWord<'_>) -> Option<&[u8]> {
    read_binary(word, LAYOUTS.get()?.binary?)
}

/// Returns `true` if terms of counted binaries have the expected layout.
#[inline]
pub fn counts_binaries() -> bool {
    LAYOUTS
        .get()
        .is_some_and(|layouts| layouts.counted.is_some())
}

/// Returns `true` if the term refers to the whole of a counted binary. `false` for another term,
/// and on a VM with another layout.
#[inline]
pub fn is_counted_binary(word: VmWord<'_>) -> bool {
    let header = LAYOUTS.get().and_then(|layouts| layouts.counted);
    header.is_some() && read_words(word).map(|[first]| first) == header
}

/// Returns the words of a term that refers to these bytes of a counted binary. Panics on a VM with
/// another layout.
#[inline]
pub fn counted_binary(binary: *mut c_void, bytes: *const u8, len: usize) -> [Word; COUNTED_WORDS] {
    let header = LAYOUTS.get().and_then(|layouts| layouts.counted);
    let header = header.expect("the layout of counted binaries is known");
    let address = |pointer: *const u8| pointer.expose_provenance() as Word;
    [
        header,
        len as Word,
        0,
        address(binary.cast()),
        address(bytes),
        0,
    ]
}

/// Returns the keys and the values of a map of at most 32 keys, in the order of the VM.
/// `None` for another term, and on a VM with another layout.
#[inline]
pub fn map(word: VmWord<'_>) -> Option<(&[VmWord<'_>], &[VmWord<'_>])> {
    read_map(word, LAYOUTS.get()?.map?)
}

/// Visits the keys and the values of a map of more keys than [`map`] reads, in the order of the VM.
/// Returns `None` for another term, and on a VM with another layout; then some may have been
/// visited. O(number of keys).
pub fn map_tree<'e>(word: VmWord<'e>, pair: impl FnMut(VmWord<'e>, VmWord<'e>)) -> Option<()> {
    read_tree(word, LAYOUTS.get()?.tree?, pair)
}

/// Returns the number of keys of such a map. `None` for another term, and on a VM with another
/// layout.
pub fn map_tree_len(word: VmWord<'_>) -> Option<usize> {
    let (head, _) = map_node(word)?;
    head.get(1).map(|&len| len as usize)
}

/// Returns the words before the children of a node of such a map, and the children: nodes, and
/// cells of a key and its value. `None` for another term, and on a VM with another layout.
pub fn map_node(word: VmWord<'_>) -> Option<(&[Word], &[VmWord<'_>])> {
    read_node(word, LAYOUTS.get()?.tree?)
}

/// Returns the address of a term that has this tag. A third bit tells literals from other terms
/// where the VM cannot tell by their address: these are not read here.
#[inline]
fn address(word: VmWord<'_>, tag: Word) -> Option<*const Word> {
    let has_tag = word.raw() % align_of::<Word>() as Word == tag;
    has_tag.then(|| std::ptr::with_exposed_provenance((word.raw() - tag) as usize))
}

/// Returns the header of a term on the heap that is no list cell. `None` for another term, and for
/// a literal.
#[inline]
pub fn header(word: VmWord<'_>) -> Option<Word> {
    read_words::<1>(word).map(|[header]| header)
}

/// Returns the first words of a term on the heap that is no list cell, which has more than one if
/// its header says so.
#[inline]
fn read_words<const N: usize>(word: VmWord<'_>) -> Option<[Word; N]> {
    const { assert!(N == 1 || N == 2) };
    let header = address(word, BOXED_TAG)?;
    // SAFETY: without its tag, the word of a term on the heap is the address of the term's header,
    // and the term is valid (ENV-2).
    let first = unsafe { header.read() };
    if ((first >> HEADER_BITS) as usize) < N - 1 {
        return None;
    }
    // SAFETY: the header says that at least one more word follows it, if two are asked for.
    Some(unsafe { header.cast::<[Word; N]>().read() })
}

#[inline]
fn read_tuple(word: VmWord<'_>) -> Option<&[VmWord<'_>]> {
    let header = address(word, BOXED_TAG)?;
    // SAFETY: without its tag, the word of a term on the heap is the address of the term's header,
    // and the term is valid (ENV-2).
    let first = unsafe { header.read() };
    if first & KIND != TUPLE {
        return None;
    }
    let arity = (first >> HEADER_BITS) as usize;
    // SAFETY: the header of a tuple says how many elements follow it, each a valid term that lives
    // as long as the tuple (ENV-2); `VmWord` is transparent.
    Some(unsafe { std::slice::from_raw_parts(header.add(1).cast(), arity) })
}

#[inline]
fn read_cell(word: VmWord<'_>) -> Option<(VmWord<'_>, VmWord<'_>)> {
    let head = address(word, CONS_TAG)?;
    // SAFETY: without its tag, the word of a list cell is the address of its head, which the tail
    // follows; both are valid terms as long as the cell (ENV-2).
    unsafe { Some((VmWord::new(head.read()), VmWord::new(head.add(1).read()))) }
}

#[inline]
fn read_binary(word: VmWord<'_>, layout: BinaryLayout) -> Option<&[u8]> {
    let [header, size] = read_words(word)?;
    if header & KIND != layout.kind {
        return None;
    }
    let size = size as usize;
    let words = (header >> HEADER_BITS) as usize;
    let (len, is_whole) = (size / layout.units, size.is_multiple_of(layout.units));
    if !is_whole || len > (words - 1) * size_of::<Word>() {
        return None;
    }
    let data = address(word, BOXED_TAG)?.wrapping_add(2).cast();
    // SAFETY: the header says how many words follow it, and the bytes fit those behind the size;
    // they never change, and live as long as the term (ENV-2).
    Some(unsafe { std::slice::from_raw_parts(data, len) })
}

#[inline]
fn read_map(word: VmWord<'_>, map: Word) -> Option<(&[VmWord<'_>], &[VmWord<'_>])> {
    let [header] = read_words(word)?;
    if header != map {
        return None;
    }
    let words = address(word, BOXED_TAG)?;
    // SAFETY: behind the header of a map stand the number of its keys and a tuple of the keys
    // (ENV-2).
    let (len, keys) = unsafe {
        (
            words.add(1).read() as usize,
            VmWord::new(words.add(2).read()),
        )
    };
    let keys = read_tuple(keys)?;
    if len != keys.len() || len > MAP_MOST {
        return None;
    }
    // SAFETY: behind the keys there are as many values, each a valid term that lives as long as the
    // map (ENV-2); `VmWord` is transparent.
    Some((keys, unsafe {
        std::slice::from_raw_parts(words.add(3).cast(), len)
    }))
}

fn read_tree<'e>(
    root: VmWord<'e>,
    map: Word,
    mut pair: impl FnMut(VmWord<'e>, VmWord<'e>),
) -> Option<()> {
    let (head, _) = read_node(root, map)?;
    let expected = *head.get(1)?;
    let (mut nodes, mut found) = (vec![root], 0);
    while let Some(node) = nodes.pop() {
        let (_, children) = read_node(node, map)?;
        for &child in children {
            match read_cell(child) {
                Some((key, value)) => {
                    pair(key, value);
                    found += 1;
                }
                None => nodes.push(child),
            }
        }
    }
    (found == expected).then_some(())
}

/// Reads a node of a map that is a tree; `map` is the header of small maps.
#[inline]
fn read_node(word: VmWord<'_>, map: Word) -> Option<(&[Word], &[VmWord<'_>])> {
    let [header] = read_words(word)?;
    if header & KIND != map & KIND {
        return None;
    }
    let counted = (header >> 16 & 0xFFFF).count_ones() as usize;
    let (head, children) = match header >> HEADER_BITS & 0b11 {
        1 => (1, counted),
        2 => (2, 16),
        3 => (2, counted),
        _ => return None,
    };
    let words = address(word, BOXED_TAG)?;
    // SAFETY: the header of a node says how many children follow it, behind the number of keys in
    // that of the root. Each child is a term that is valid as long as the map (ENV-2), and `VmWord`
    // is transparent.
    Some(unsafe {
        (
            std::slice::from_raw_parts(words, head),
            std::slice::from_raw_parts(words.add(head).cast(), children),
        )
    })
}
