//! A thread that writes, and threads that read.

use super::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

/// The state that writers and readers of a store share besides the memtable.
struct Shared {
    memtable: Arc<Memtable>,
    visible: AtomicU64,
    /// The snapshots that are open, ascending. Locked by the writer for each group, from the first
    /// record to its publication.
    snapshots: Mutex<Vec<u64>>,
    is_over: AtomicBool,
}

impl Shared {
    fn new() -> Self {
        Shared {
            memtable: Arc::new(Memtable::new()),
            visible: AtomicU64::new(0),
            snapshots: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Applies a group and publishes it.
    fn write(&self, group: &[(Kind, Vec<u8>, Vec<u8>)], operator: &dyn MergeOperator) {
        let snapshots = self.snapshots.lock().unwrap();
        let visible = self.visible.load(Ordering::Relaxed);
        let retention = Retention {
            visible: Seq::new(visible),
            snapshots: &seqs(&snapshots),
            alone: group.len() == 1,
        };
        let mut seq = visible;
        for (kind, key, value) in group {
            seq += 1;
            let write = write(*kind, key, value, seq);
            assert_eq!(self.memtable.apply(write, &retention, Some(operator)), 0);
        }
        self.visible.store(seq, Ordering::Release);
    }

    /// Returns the values of some keys as of one time, which is behind all that were published
    /// before. Through a snapshot, or tried until the writer is not faster.
    fn read(
        &self,
        keys: &[Vec<u8>],
        through_snapshot: bool,
        operator: &dyn MergeOperator,
    ) -> Vec<Option<Vec<u8>>> {
        let mut chain = Chain::new();
        let mut read = |key: &Vec<u8>, at| {
            chain.clear();
            if self
                .memtable
                .get(key, Seq::new(at), through_snapshot, &mut chain)
                == Lookup::TooOld
            {
                return None;
            }
            let value = chain.value(key, Some(operator)).unwrap();
            Some(value.map(|value| value.into_owned()))
        };
        if through_snapshot {
            let mut snapshots = self.snapshots.lock().unwrap();
            let at = self.visible.load(Ordering::Acquire);
            snapshots.push(at);
            drop(snapshots);
            let values = keys.iter().map(|key| read(key, at).unwrap()).collect();
            let mut snapshots = self.snapshots.lock().unwrap();
            let index = snapshots.iter().position(|snapshot| *snapshot == at);
            snapshots.remove(index.unwrap());
            return values;
        }
        loop {
            let at = self.visible.load(Ordering::Acquire);
            if let Some(values) = keys.iter().map(|key| read(key, at)).collect() {
                return values;
            }
        }
    }

    fn run(&self, write: impl FnOnce() + Send, read: impl Fn(bool) + Sync) {
        thread::scope(|scope| {
            for through_snapshot in [false, true] {
                let read = &read;
                scope.spawn(move || {
                    while !self.is_over.load(Ordering::Relaxed) {
                        read(through_snapshot);
                    }
                });
            }
            write();
            self.is_over.store(true, Ordering::Relaxed);
        });
    }
}

fn groups() -> u64 {
    if cfg!(debug_assertions) {
        3_000
    } else {
        30_000
    }
}

#[test]
fn a_group_is_seen_as_a_whole() {
    let shared = Shared::new();
    let keys: Vec<Vec<u8>> = (0..8_u8).map(|key| vec![key]).collect();
    let one = 1_u64.to_le_bytes().to_vec();
    let group = |kind, value: &[u8]| -> Vec<_> {
        let writes = keys.iter().map(|key| (kind, key.clone(), value.to_vec()));
        writes.collect()
    };
    let write = || {
        let mut total = 0_u64;
        shared.write(&group(Kind::Put, &total.to_le_bytes()), &Sum);
        for round in 0..groups() {
            total += 1;
            match round % 16 {
                // One record for each key would be seen one by one: so all keys have two.
                0 => shared.write(&group(Kind::Put, &total.to_le_bytes()), &Sum),
                1 => {
                    let mut twice = group(Kind::Delete, &[]);
                    twice.extend(group(Kind::Operand, &total.to_le_bytes()));
                    shared.write(&twice, &Sum);
                }
                _ => shared.write(&group(Kind::Operand, &one), &Sum),
            }
        }
    };
    let seen = [AtomicU64::new(0), AtomicU64::new(0)];
    shared.run(write, |through_snapshot| {
        let values = shared.read(&keys, through_snapshot, &Sum);
        assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        let value = values[0].as_deref().map_or(0, Sum::number);
        let before = seen[usize::from(through_snapshot)].swap(value, Ordering::Relaxed);
        assert!(before <= value);
    });
    assert!(seen.iter().all(|seen| seen.load(Ordering::Relaxed) > 0));
    // A reader finds the last write.
    assert_eq!(
        shared.read(&keys[..1], false, &Sum),
        [Some(groups().to_le_bytes().to_vec())]
    );
}

#[test]
fn a_counter_that_is_written_alone_does_not_go_back() {
    let shared = Shared::new();
    let key = vec![vec![0]];
    let one = 1_u64.to_le_bytes().to_vec();
    let increments = 10 * groups();
    let write = || {
        for _ in 0..increments {
            shared.write(&[(Kind::Operand, key[0].clone(), one.clone())], &Sum);
        }
    };
    let seen = [AtomicU64::new(0), AtomicU64::new(0)];
    shared.run(write, |through_snapshot| {
        let published = shared.visible.load(Ordering::Acquire);
        let value = shared.read(&key, through_snapshot, &Sum);
        let value = value[0].as_deref().map_or(0, Sum::number);
        let before = seen[usize::from(through_snapshot)].swap(value, Ordering::Relaxed);
        assert!(before <= value && published <= value);
        assert!(through_snapshot || value <= increments);
    });
    let value = increments.to_le_bytes().to_vec();
    assert_eq!(shared.read(&key, false, &Sum), [Some(value)]);
}

#[test]
fn a_text_grows_under_readers() {
    let shared = Shared::new();
    let key = vec![vec![0]];
    let append = Append::default();
    let write = || {
        for round in 0..groups() {
            let text = [b'a' + (round % 26) as u8];
            let other = (Kind::Put, vec![1], text.to_vec());
            let mut group = vec![(Kind::Operand, key[0].clone(), text.to_vec())];
            if round % 3 == 0 {
                group.push(other);
            }
            shared.write(&group, &append);
        }
    };
    let is_right = |text: &[u8]| {
        let mut letters = (b'a'..=b'z').cycle();
        text.iter().all(|byte| letters.next() == Some(*byte))
    };
    let seen = [AtomicU64::new(0), AtomicU64::new(0)];
    shared.run(write, |through_snapshot| {
        let value = shared.read(&key, through_snapshot, &append);
        let text = value[0].as_deref().unwrap_or_default();
        assert!(is_right(text), "{text:?}");
        let len = text.len() as u64;
        let before = seen[usize::from(through_snapshot)].swap(len, Ordering::Relaxed);
        assert!(before <= len);
    });
    let value = shared.read(&key, true, &append);
    assert_eq!(value[0].as_deref().unwrap().len() as u64, groups());
}
