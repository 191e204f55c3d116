//! Heads: fixed-size parts of keys, by which a node is searched.
//!
//! A *head* is eight bytes of a key as one number, so that a whole node is searched by comparing
//! adjacent numbers: the cache lines of a node are fetched together instead of one after the other,
//! and no key outside the node is read. Heads start after the common bytes of all keys of a node:
//!
//! - `skip` bytes are common to the fences of the node, hence to every key that leads to it; they
//!   need no comparison.
//! - `prefix` bytes are common to all keys in the node, and compared, because a key that leads to
//!   the node may differ there. The first of them are stored in the node. If there are more, they
//!   are read from the first key, so a block of such keys keeps its first record.
//!
//! Heads are the "poor man's normalized keys" of Graefe and Larson (2001); prefix truncation is
//! that of Bayer and Unterauer's prefix B-tree (1977).

use super::bisect::bisect;
use super::header::Header;
use super::simd_search::Search;
use crate::short_key::bits_at;
use ats_sync::shim::atomic::{AtomicU8, Ordering::Acquire, Ordering::Release};
use std::cmp::Ordering;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::compiler_fence;
// Atomics that bypass the shim: heads count only below a length that was read with `Acquire`.
use ats_sync::count::atomic::{AtomicI64, AtomicU8 as PlainU8, Ordering::Relaxed};

/// Eight bytes of a key, as a number whose signed order is the order of the bytes.
pub(super) type Head = i64;

/// The head of unused slots: greater than or equal to every other.
pub(super) const HEAD_MAX: Head = i64::MAX;

/// Largest number of bytes of the common prefix that a node stores.
const STORED_MAX: usize = 23;
/// Largest number of bytes of the common prefix.
pub(super) const PREFIX_MAX: usize = u8::MAX as usize;

/// Returns eight bytes of `key` from `at` on; missing bytes are zero.
#[inline(always)]
pub(super) fn head_at(key: &[u8], at: usize) -> Head {
    (bits_at(key, at) ^ 1 << 63) as i64
}

/// Returns the bytes of a head, as a number whose unsigned order is that of the bytes.
#[inline(always)]
pub(super) fn bits_of(head: Head) -> u64 {
    (head ^ 1 << 63) as u64
}

/// Compares two keys whose heads, which begin at `start`, and all bytes before are equal.
#[inline(always)]
pub(super) fn compare_behind_heads(a: &[u8], b: &[u8], start: usize) -> Ordering {
    let from = start + size_of::<Head>();
    match (a.get(from..), b.get(from..)) {
        (Some(a), Some(b)) if !a.is_empty() && !b.is_empty() => a.cmp(b),
        // The head completes one of them, and the further bytes of the other in it are zeros.
        _ => a.len().cmp(&b.len()),
    }
}

/// Compares a key behind its first bytes with a prefix. Equal if it begins with it.
#[inline(never)]
fn compare_long_prefix(key: &[u8], skip: usize, prefix: &[u8]) -> Ordering {
    let rest = &key[skip..];
    match rest.get(..prefix.len()) {
        Some(part) => part.cmp(prefix),
        None if rest.is_empty() => Ordering::Less,
        // A key that ends within the prefix is smaller unless it differs before.
        None => rest.cmp(&prefix[..rest.len()]).then(Ordering::Less),
    }
}

/// Returns the number of leading bytes that two keys share.
pub(super) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Makes the heads of `len` slots, and fills the others.
#[inline(always)]
fn fill_heads<const N: usize>(len: usize, head: impl Fn(usize) -> Head) -> [AtomicI64; N] {
    std::array::from_fn(|slot| AtomicI64::new(if slot < len { head(slot) } else { HEAD_MAX }))
}

/// The indices that the heads of a node leave for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// Keys before this index are smaller.
    pub start: usize,
    /// Keys from this index on are greater; between `start` and `end` heads are equal, and the
    /// whole keys must be compared.
    pub end: usize,
}

/// The common prefix and the heads of a node.
///
/// The only change is a push at the end, by one writer at a time: first the head, then the length.
/// So heads below a length that was read never change. The first heads of a leaf ascend; a few
/// later ones, its *tail*, follow in order of arrival. The heads of an inner node all ascend.
#[repr(C)]
pub(super) struct Heads<const N: usize> {
    /// The header of the node, here because it fills the space left on the line.
    pub header: Header,
    /// Number of keys.
    len: AtomicU8,
    /// Number of bytes after `skip` that all keys here share; the first are stored in `prefix`.
    prefix_len: u8,
    /// Number of bytes that every key leading here shares; not compared.
    skip: u32,
    prefix: [u8; STORED_MAX],
    /// Number of heads before the tail. Stored before the length.
    sorted: PlainU8,
    heads: [AtomicI64; N],
}

impl<const N: usize> Heads<N> {
    /// Makes the heads of `len` ascending keys that all begin with the same `skip` bytes. The
    /// prefix is shared by `like`, too.
    pub(super) fn new<'k>(
        header: Header,
        skip: usize,
        len: usize,
        key: impl Fn(usize) -> &'k [u8],
        like: Option<&[u8]>,
    ) -> Self {
        assert!(len <= N, "a node holds at most {N} keys");
        let common = match len {
            0 => 0,
            _ => {
                let shared = common_prefix(&key(0)[skip..], &key(len - 1)[skip..]);
                let liked = like.map_or(usize::MAX, |like| {
                    common_prefix(key(0), like).saturating_sub(skip)
                });
                shared.min(liked).min(PREFIX_MAX)
            }
        };
        let first = if len == 0 { &[] } else { key(0) };
        let start = skip + common;
        Self::fill(header, skip, common, len, first, |slot| {
            head_at(key(slot), start)
        })
    }

    /// Wraps these ascending heads, of keys that begin like `key` up to `start`, where the heads
    /// begin.
    pub(super) fn of_heads(
        header: Header,
        skip: usize,
        start: usize,
        key: &[u8],
        heads: &[Head],
    ) -> Self {
        Self::fill(header, skip, start - skip, heads.len(), key, |slot| {
            heads[slot]
        })
    }

    fn fill(
        header: Header,
        skip: usize,
        prefix_len: usize,
        len: usize,
        key: &[u8],
        head: impl Fn(usize) -> Head,
    ) -> Self {
        let mut prefix = [0; STORED_MAX];
        if prefix_len > 0 {
            let stored = prefix_len.min(STORED_MAX);
            prefix[..stored].copy_from_slice(&key[skip..skip + stored]);
        }
        Heads {
            header,
            len: AtomicU8::new(len as u8),
            prefix_len: prefix_len as u8,
            skip: u32::try_from(skip).expect("keys are shorter than 4 GiB"),
            prefix,
            sorted: PlainU8::new(len as u8),
            heads: fill_heads(len, head),
        }
    }

    /// Makes heads for keys that begin like those here, with the same number of tombstones. `head`
    /// returns the head of each of `len` slots, which ascend. The caller holds the lock.
    pub(super) fn like(&self, len: usize, head: impl Fn(usize) -> Head) -> Self {
        assert!(len <= N, "a node holds at most {N} keys");
        Heads {
            header: Header::like(&self.header),
            len: AtomicU8::new(len as u8),
            prefix_len: self.prefix_len,
            skip: self.skip,
            prefix: self.prefix,
            sorted: PlainU8::new(len as u8),
            heads: fill_heads(len, head),
        }
    }

    /// Appends the head of a new key: one above all others, if the tail is empty, or else one for
    /// the tail. There must be room, and no other writer.
    pub(super) fn push(&self, head: Head, is_above: bool) {
        let len = self.len();
        self.heads[len].store(head, Relaxed);
        if is_above {
            self.sorted.store(len as u8 + 1, Relaxed);
        }
        self.len.store(len as u8 + 1, Release);
    }

    /// Returns the number of heads before the tail, among the first `len`.
    #[inline(always)]
    pub(super) fn sorted_len(&self, len: usize) -> usize {
        // The stored number exceeds `len` only if there is no tail, and heads have been pushed
        // since the length was read.
        usize::from(self.sorted.load(Relaxed)).min(len)
    }

    /// Returns the head of a slot below `len`.
    pub(super) fn head(&self, slot: usize) -> Head {
        self.heads[slot].load(Relaxed)
    }

    /// Returns the number of heads below a given one, in any order. Heads pushed meanwhile may
    /// count, too: see [`has_grown`](Self::has_grown).
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn rank_of_head(&self, head: Head) -> usize {
        super::simd_search::Avx2::below(&self.heads, head)
    }

    /// Returns `true` if heads have been pushed, or one is being pushed, beyond the first `len`.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn has_grown(&self, len: usize) -> bool {
        // The heads were read before: processors with these vectors do not reorder loads.
        compiler_fence(Acquire);
        let next = self.heads.get(len).map(|next| next.load(Relaxed));
        self.len() != len || next.is_some_and(|next| next != HEAD_MAX)
    }

    /// Returns the number of keys.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len.load(Acquire) as usize
    }

    /// Returns the number of bytes that every key leading here shares, and that are not compared.
    pub(super) fn skip(&self) -> usize {
        self.skip as usize
    }

    /// Returns the bytes that follow the skipped ones in every key here, as far as they are stored.
    pub(super) fn stored_prefix(&self) -> &[u8] {
        &self.prefix[..STORED_MAX.min(self.prefix_len as usize)]
    }

    /// Returns `true` if the common prefix is longer than the bytes that are stored of it.
    pub(super) fn reads_first_key(&self) -> bool {
        self.prefix_len as usize > STORED_MAX
    }

    /// Returns the start of the heads in a key.
    #[inline(always)]
    pub(super) fn head_start(&self) -> usize {
        self.skip as usize + self.prefix_len as usize
    }

    /// Compares `key` with the common prefix of the keys here, of which `first` returns the first
    /// one. The prefix is equal for nearly every lookup, and mostly short: then `memcmp` is not
    /// called. A walk from the first key compares the empty key, for which `memcmp` would read no
    /// bytes of no address, 40 ns with masked loads.
    #[inline(always)]
    pub(super) fn compare_prefix<'k>(
        &self,
        key: &[u8],
        first: impl FnOnce() -> &'k [u8],
    ) -> Ordering {
        let (skip, len) = (self.skip as usize, self.prefix_len as usize);
        if len == 0 {
            return Ordering::Equal;
        }
        if len > 8 {
            let prefix = if self.reads_first_key() {
                &first()[skip..skip + len]
            } else {
                self.stored_prefix()
            };
            return compare_long_prefix(key, skip, prefix);
        }
        let unused = 64 - 8 * len as u32;
        let (bits, prefix) = (bits_at(key, skip), bits_at(&self.prefix, 0));
        let order = (bits >> unused).cmp(&(prefix >> unused));
        if key.len() < skip + len {
            // A key that ends within the prefix is smaller unless it differs before.
            return order.then(Ordering::Less);
        }
        order
    }

    /// Returns the slots with the head of a key, as bits; none if the key does not begin like the
    /// keys here. `first` is that of [`compare_prefix`](Self::compare_prefix).
    #[inline(always)]
    pub(super) fn candidates<'k, C: Search>(
        &self,
        key: &[u8],
        first: impl FnOnce() -> &'k [u8],
    ) -> u64 {
        const { assert!(N < u64::BITS as usize) };
        let len = self.len();
        if self.compare_prefix(key, first).is_ne() {
            return 0;
        }
        // Unused slots have a head that a key can have, too, and another may be being pushed since
        // the length was read.
        C::equal(&self.heads, head_at(key, self.head_start())) & ((1 << len) - 1)
    }

    /// Compares `key` with the key of a slot, if their prefixes or heads differ.
    #[inline]
    pub(super) fn compare_head<'k>(
        &self,
        slot: usize,
        key: &[u8],
        first: impl FnOnce() -> &'k [u8],
    ) -> Ordering {
        let prefix = self.compare_prefix(key, first).reverse();
        prefix.then_with(|| self.head(slot).cmp(&head_at(key, self.head_start())))
    }

    /// Narrows the indices of `key` in an inner node.
    #[inline(always)]
    pub(super) fn locate<'k, C: Search>(
        &self,
        key: &[u8],
        first: impl FnOnce() -> &'k [u8],
    ) -> Range {
        let len = self.len();
        match self.compare_prefix(key, first) {
            Ordering::Less => return Range { start: 0, end: 0 },
            Ordering::Greater => {
                return Range {
                    start: len,
                    end: len,
                };
            }
            Ordering::Equal => {}
        }
        let head = head_at(key, self.head_start());
        // Unused slots have the greatest head, but another may be being pushed since the length was
        // read.
        let start = C::below(&self.heads, head).min(len);
        let mut end = start;
        while end < len && self.heads[end].load(Relaxed) == head {
            end += 1;
        }
        Range { start, end }
    }

    /// Returns the index of `key` in an inner node, or the index where it would be. `compare`
    /// compares the key at an index with it if their heads are equal. `first` is that of
    /// [`compare_prefix`](Self::compare_prefix).
    #[inline(always)]
    pub(super) fn search<'k, C: Search>(
        &self,
        key: &[u8],
        first: impl FnOnce() -> &'k [u8],
        compare: impl Fn(usize) -> Ordering,
    ) -> Result<usize, usize> {
        let Range { start, end } = self.locate::<C>(key, first);
        bisect(start..end, compare)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::catree::simd_search::Avx2;
    use crate::catree::simd_search::Baseline;
    use proptest::prelude::*;

    #[test]
    fn heads_order_as_their_bytes() {
        let keys: Vec<Vec<u8>> = (0..12)
            .flat_map(|len| [0u8, 1, 0x7f, 0x80, 0xff].map(|byte| vec![byte; len]))
            .collect();
        for a in &keys {
            for b in &keys {
                let pad = |key: &[u8]| {
                    let mut padded = key.to_vec();
                    padded.resize(8.max(key.len()), 0);
                    padded[..8].to_vec()
                };
                assert_eq!(head_at(a, 0).cmp(&head_at(b, 0)), pad(a).cmp(&pad(b)));
            }
        }
    }

    /// The head is stored before the length: a reader in between must not read the slot of the key,
    /// which may still be empty.
    #[test]
    fn a_head_that_is_being_pushed_is_not_looked_at() {
        let keys = [2u64, 4, 6].map(u64::to_be_bytes);
        let heads = Heads::<8>::new(Header::new(0), 0, keys.len(), |at| &keys[at], None);
        let head = head_at(&8u64.to_be_bytes(), heads.head_start());
        heads.heads[3].store(head, Relaxed);
        for probe in 0..12u64 {
            let probe = probe.to_be_bytes();
            let expected = keys.binary_search(&probe);
            let compare = |at: usize| keys[at].cmp(&probe);
            assert_eq!(
                heads.search::<Baseline>(&probe, || &keys[0], compare),
                expected
            );
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                assert_eq!(heads.search::<Avx2>(&probe, || &keys[0], compare), expected);
            }
        }
    }

    /// Heads and the bytes after them order keys like their bytes, trailing zeros included.
    #[test]
    fn bytes_behind_equal_heads_decide() {
        let tails: Vec<Vec<u8>> = (0..12)
            .flat_map(|len| [0u8, 1, 0xff].map(|last| [vec![0; len], vec![last]].concat()))
            .chain([vec![]])
            .collect();
        for start in [0, 1, 3, 9] {
            let keys: Vec<Vec<u8>> = tails
                .iter()
                .map(|t| [&vec![7; start], &t[..]].concat())
                .collect();
            for (a, b) in keys.iter().flat_map(|a| keys.iter().map(move |b| (a, b))) {
                let by_heads = head_at(a, start)
                    .cmp(&head_at(b, start))
                    .then_with(|| compare_behind_heads(a, b, start));
                assert_eq!(by_heads, a.cmp(b), "{a:?} {b:?}");
            }
        }
    }

    /// Keys that end within the common prefix, the empty one first of all, are before all others
    /// unless they differ.
    #[test]
    fn ends_within_the_prefix_are_in_order() {
        for (skip, len) in (0..4).flat_map(|skip| (1..=PREFIX_MAX).map(move |len| (skip, len))) {
            let keys = [0u8, 1].map(|last| [vec![5; skip + len], vec![last]].concat());
            let heads = Heads::<8>::new(Header::new(0), skip, 2, |at| &keys[at], None);
            assert_eq!(heads.head_start(), skip + len);
            for rest in 0..=len {
                for last in [None, Some(0), Some(5), Some(9)] {
                    let key: Vec<u8> = (vec![5; skip + rest].into_iter().chain(last)).collect();
                    let expected = keys.binary_search(&key);
                    let compare = |at: usize| keys[at].cmp(&key);
                    assert_eq!(
                        heads.search::<Baseline>(&key, || &keys[0], compare),
                        expected,
                        "{key:?}"
                    );
                }
            }
        }
    }

    proptest! {
        #[test]
        fn search_agrees_with_binary_search(
            common in proptest::collection::vec(any::<u8>(), 0..60),
            tails in proptest::collection::btree_set(
                proptest::collection::vec(0u8..3, 0..12), 0..=34),
            probe in proptest::collection::vec(0u8..3, 0..12),
            cut in 0usize..60,
            skip in 0usize..60,
        ) {
            let keys: Vec<Vec<u8>> = tails.iter().map(|t| [&common[..], t].concat()).collect();
            let skip = skip.min(common.len());
            let heads = Heads::<34>::new(Header::new(0), skip, keys.len(), |i| &keys[i], None);
            let keep = cut.clamp(skip, common.len().max(skip)).min(common.len());
            for probe in [[&common[..], &probe].concat(), [&common[..keep], &probe].concat()] {
                let compare = |i: usize| keys[i].as_slice().cmp(&probe);
                let expected = keys.binary_search(&probe);
                prop_assert_eq!(heads.search::<Baseline>(&probe, || &keys[0], compare), expected);
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") {
                    prop_assert_eq!(heads.search::<Avx2>(&probe, || &keys[0], compare), expected);
                }
            }
        }
    }
}
