//! The reference store: the standard library's B-tree behind one lock.
//!
//! Good for: comparison with other stores. Tests run the same operations on this store and on
//! another one. Benchmarks show how much faster the other one is. A table on this store shows
//! whether a fault lies in the store or in the layers above. Bad at: concurrency. A writer excludes
//! all other threads, and a scan excludes writers until it ends. The `ordered_set` of `ets` worked
//! this way before the CA tree, with another kind of tree.
//!
//! # Invariant
//! - BTREE-1. The map changes only after everything that can fail or panic has been called.

use crate::change::{BatchPlan, Change};
use crate::error::Error;
use crate::may_block::MayBlock;
use crate::merge::{MergeOperator, Merged};
use crate::range::{Direction, End, KeyRange};
use crate::store::{DecideEnd, Merges, Store, Visit};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

type Bytes = Box<[u8]>;

/// A B-tree behind one lock: see the [module](self).
#[derive(Default)]
pub struct BTreeStore {
    records: RwLock<Records>,
    operator: Option<Arc<dyn MergeOperator>>,
}

#[derive(Default)]
struct Records {
    map: BTreeMap<Bytes, Bytes>,
    /// Total length of all keys and values, in bytes.
    bytes: usize,
}

/// Estimated memory per entry of the map, beside its key and its value. The nodes of the map are
/// between half full and full.
const ENTRY_BYTES: usize = 48;

impl Records {
    fn put(&mut self, key: &[u8], value: Vec<u8>) {
        self.bytes += value.len();
        match self.map.get_mut(key) {
            Some(old) => self.bytes -= std::mem::replace(old, value.into()).len(),
            None => {
                self.bytes += key.len();
                self.map.insert(key.into(), value.into());
            }
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(value) = self.map.remove(key) {
            self.bytes -= key.len() + value.len();
        }
    }

    fn apply(&mut self, key: &[u8], change: Change<Vec<u8>>) {
        match change {
            Change::Put(value) => self.put(key, value),
            Change::Remove => self.remove(key),
            Change::Keep | Change::Abort | Change::Later => {}
        }
    }
}

impl BTreeStore {
    /// Makes an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty store that merges. It merges each operand at once, so a key has one value.
    #[must_use]
    pub fn merging(operator: Arc<dyn MergeOperator>) -> Self {
        BTreeStore {
            operator: Some(operator),
            ..Self::default()
        }
    }

    /// Turns a put of a value that counts as absent into a removal.
    fn settle(&self, key: &[u8], change: Change<Vec<u8>>) -> Change<Vec<u8>> {
        match (change, &self.operator) {
            (Change::Put(value), Some(operator)) if operator.is_absent(key, &value) => {
                Change::Remove
            }
            (change, _) => change,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Records> {
        // A panic in a plan leaves the map unchanged (BTREE-1), so a poisoned lock can be used.
        self.records.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Records> {
        self.records.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for BTreeStore {
    fn get(
        &self,
        _: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        let records = self.read();
        let value = records.map.get(key);
        if let Some(value) = value {
            read(value);
        }
        Ok(value.is_some())
    }

    fn update(
        &self,
        _: Option<MayBlock>,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error> {
        debug_assert!(keys.is_sorted_by(|a, b| a < b));
        let mut records = self.write();
        let current = |key: &[u8]| records.map.get(key).map(|value| &value[..]);
        let mut changes = Vec::with_capacity(keys.len());
        for (index, key) in keys.iter().enumerate() {
            changes.push(plan.decide(index, current(key)));
            if let Some(Change::Abort) = changes.last() {
                return Ok(false);
            }
        }
        for (index, change) in changes.iter_mut().enumerate() {
            if let Change::Later = change {
                *change = plan.build(index, current(keys[index]));
            }
            if let Change::Abort = change {
                return Ok(false);
            }
        }
        for (key, change) in keys.iter().zip(changes) {
            let change = self.settle(key, change);
            records.apply(key, change);
        }
        Ok(true)
    }

    fn update_end(
        &self,
        _: Option<MayBlock>,
        end: End,
        decide: &mut DecideEnd<'_>,
    ) -> Result<(), Error> {
        let mut records = self.write();
        let found = match end {
            End::First => records.map.first_key_value(),
            End::Last => records.map.last_key_value(),
        };
        let change = decide(found.map(|(key, value)| (&key[..], &value[..])));
        if let Some(key) = found.map(|(key, _)| key.clone()) {
            let change = self.settle(&key, change);
            records.apply(&key, change);
        }
        Ok(())
    }

    fn scan(
        &self,
        _: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        if key_range.is_empty() {
            // `BTreeMap::range` panics if the bounds are reversed.
            return Ok(());
        }
        let low = key_range.low.map_or(Bound::Unbounded, Bound::Included);
        let high = key_range.high.map_or(Bound::Unbounded, Bound::Excluded);
        let records = self.read();
        let mut records = records.map.range::<[u8], _>((low, high));
        let mut visit = |(key, value): (&Bytes, &Bytes)| visit(key, value);
        let _ended: ControlFlow<()> = match direction {
            Direction::Up => records.try_for_each(&mut visit),
            Direction::Down => records.rev().try_for_each(&mut visit),
        };
        Ok(())
    }

    fn len(&self, _: Option<MayBlock>) -> Result<usize, Error> {
        Ok(self.read().map.len())
    }

    fn bytes(&self) -> usize {
        let records = self.read();
        size_of::<Self>() + records.bytes + records.map.len() * ENTRY_BYTES
    }

    fn take_all(&self, _: Option<MayBlock>) -> Result<Box<dyn Store>, Error> {
        let records = std::mem::take(&mut *self.write());
        Ok(Box::new(BTreeStore {
            records: RwLock::new(records),
            operator: self.operator.clone(),
        }))
    }

    fn merges(&self) -> Option<&dyn Merges> {
        self.operator.is_some().then_some(self as &dyn Merges)
    }
}

impl Merges for BTreeStore {
    fn operator(&self) -> &dyn MergeOperator {
        let operator = self.operator.as_deref();
        operator.expect("a store without an operator does not offer this ability")
    }

    fn merge(&self, _: Option<MayBlock>, key: &[u8], operand: &[u8]) -> Result<(), Error> {
        let operator = self.operator();
        let mut records = self.write();
        let value = match records.map.get(key) {
            Some(earlier) if !operator.is_base(key, operand) => {
                match operator.merge(key, earlier, operand)? {
                    Merged::Earlier => return Ok(()),
                    Merged::Later => operand.to_vec(),
                    Merged::New(value) => value,
                }
            }
            _ => operand.to_vec(),
        };
        if operator.is_absent(key, &value) {
            records.remove(key);
        } else {
            records.put(key, value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Option<MayBlock> = Some(MayBlock::here());

    /// Returns the keys of a range, in a direction.
    fn all(store: &BTreeStore, key_range: KeyRange<'_>, direction: Direction) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        let scanned = store.scan(BLOCK, key_range, direction, &mut |key, _| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        });
        assert_eq!(scanned, Ok(()));
        keys
    }

    fn put(store: &BTreeStore, key: &[u8], value: &[u8]) {
        let mut plan = |_: usize, _: Option<&[u8]>| Change::Put(value.to_vec());
        assert_eq!(store.update(BLOCK, &[key], &mut plan), Ok(true));
    }

    fn value(store: &BTreeStore, key: &[u8]) -> Option<Vec<u8>> {
        let mut found = None;
        let there = store.get(BLOCK, key, &mut |value| found = Some(value.to_vec()));
        assert_eq!(there, Ok(found.is_some()));
        found
    }

    #[test]
    fn ranges_have_their_bounds_and_directions() {
        let store = BTreeStore::new();
        for key in &[b"a", b"b", b"c"] {
            put(&store, *key, b"x");
        }
        let range = |low, high| KeyRange { low, high };
        let (a, b, c) = (&b"a"[..], &b"b"[..], &b"c"[..]);
        assert_eq!(all(&store, range(None, None), Direction::Up), [a, b, c]);
        assert_eq!(all(&store, range(None, None), Direction::Down), [c, b, a]);
        assert_eq!(all(&store, range(Some(b), None), Direction::Up), [b, c]);
        assert_eq!(
            all(&store, range(Some(a), Some(c)), Direction::Down),
            [b, a]
        );
        assert!(all(&store, range(Some(b), Some(b)), Direction::Up).is_empty());
        assert!(all(&store, range(Some(c), Some(a)), Direction::Up).is_empty());
    }

    #[test]
    fn a_batch_is_done_as_a_whole_or_not_at_all() {
        let store = BTreeStore::new();
        put(&store, b"b", b"1");
        let keys: [&[u8]; 3] = [b"a", b"b", b"c"];
        let done = store.update(BLOCK, &keys, &mut |index: usize, current: Option<&[u8]>| {
            assert_eq!(current.is_some(), index == 1);
            match index {
                2 => Change::Abort,
                _ => Change::Put(b"2".to_vec()),
            }
        });
        assert_eq!(done, Ok(false));
        assert_eq!(
            (value(&store, b"a"), value(&store, b"b")),
            (None, Some(b"1".to_vec()))
        );
        let done = store.update(
            BLOCK,
            &keys,
            &mut |index: usize, _: Option<&[u8]>| match index {
                0 => Change::Put(b"new".to_vec()),
                1 => Change::Remove,
                _ => Change::Keep,
            },
        );
        assert_eq!(done, Ok(true));
        assert_eq!(all(&store, KeyRange::default(), Direction::Up), [b"a"]);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            store.update(
                BLOCK,
                &keys,
                &mut |index: usize, _: Option<&[u8]>| match index {
                    0 => Change::Remove,
                    _ => panic!("a plan that fails"),
                },
            )
        }));
        assert!(panicked.is_err());
        assert_eq!(value(&store, b"a"), Some(b"new".to_vec()));
    }

    #[test]
    fn bytes_are_those_of_present_records() {
        let store = BTreeStore::new();
        let empty = store.bytes();
        put(&store, b"key", &[0; 1000]);
        assert_eq!(store.bytes(), empty + 1003 + ENTRY_BYTES);
        put(&store, b"key", b"");
        assert_eq!(store.bytes(), empty + 3 + ENTRY_BYTES);
        let removed = store.update_end(BLOCK, End::Last, &mut |found| {
            assert_eq!(found, Some((&b"key"[..], &b""[..])));
            Change::Remove
        });
        assert_eq!(
            (removed, store.bytes(), store.len(BLOCK)),
            (Ok(()), empty, Ok(0))
        );
    }

    #[test]
    fn taken_records_do_not_change() {
        let store = BTreeStore::new();
        let empty = store.bytes();
        put(&store, b"a", b"1");
        put(&store, b"b", b"23");
        let sum = |store: &dyn Store| store.sum(BLOCK, &|value| value.len());
        assert_eq!(sum(&store), Ok(3));
        let taken = store.take_all(BLOCK).expect("memory does not fail");
        assert_eq!((store.len(BLOCK), store.bytes()), (Ok(0), empty));
        put(&store, b"a", b"4");
        assert_eq!(
            (taken.len(BLOCK), sum(&*taken), sum(&store)),
            (Ok(2), Ok(3), Ok(1))
        );
    }

    /// Appends, which is not commutative. A value that begins with `=` is a base. A value that ends
    /// with `-` counts as absent. The operand `!` cannot be merged.
    struct Append;

    impl MergeOperator for Append {
        fn name(&self) -> &'static str {
            "append"
        }

        fn version(&self) -> u32 {
            1
        }

        fn merge(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
            match (earlier, later) {
                (_, b"!") => Err(Error::Merge),
                (_, []) => Ok(Merged::Earlier),
                ([], _) => Ok(Merged::Later),
                _ => Ok(Merged::New([earlier, later].concat())),
            }
        }

        fn is_base(&self, _key: &[u8], value: &[u8]) -> bool {
            value.starts_with(b"=")
        }

        fn is_absent(&self, _key: &[u8], value: &[u8]) -> bool {
            value.ends_with(b"-")
        }
    }

    #[test]
    fn operands_are_merged_in_their_order() {
        let store = BTreeStore::merging(Arc::new(Append));
        let merges = store.merges().expect("it has an operator");
        assert_eq!(merges.operator().name(), "append");
        for (operand, becomes) in [
            (&b"ab"[..], Some(&b"ab"[..])),
            (b"c", Some(b"abc")),
            (b"", Some(b"abc")),
            (b"=1", Some(b"=1")),
            (b"2", Some(b"=12")),
            (b"-", None),
            (b"", Some(b"")),
            (b"x", Some(b"x")),
        ] {
            assert_eq!(merges.merge(BLOCK, b"k", operand), Ok(()));
            assert_eq!(value(&store, b"k").as_deref(), becomes);
        }
        // A value that counts as absent is removed, however it was written.
        put(&store, b"put", b"x");
        put(&store, b"put", b"y-");
        assert_eq!(value(&store, b"put"), None);
        assert_eq!(store.len(BLOCK), Ok(1));
        assert_eq!(merges.merge(BLOCK, b"k", b"!"), Err(Error::Merge));
        assert_eq!(value(&store, b"k").as_deref(), Some(&b"x"[..]));
        assert!(BTreeStore::new().merges().is_none());
    }
}
