//! The newest writes, in memory: a plain map behind a lock, until a store without one takes its place.
use crate::cursor::Cursor;
use crate::entry::Kind;
use crate::error::Error;
use crate::fold::Chain;
use crate::range_deletes::RangeSet;
use ats_store::{Direction, KeyRange, MergeOperator};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
pub(crate) struct Keep<'a> {
    pub visible: u64,
    pub snapshots: &'a [u64],
    pub alone: bool,
}
pub(crate) struct Write<'a> {
    pub kind: Kind,
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub seq: u64,
}
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Lookup {
    Complete,
    GoesOn,
    TooOld,
}
#[derive(Default)]
pub(crate) struct Memtable(Mutex<Inner>);
#[derive(Default)]
struct Inner {
    map: BTreeMap<(Vec<u8>, Reverse<u64>), (Kind, Vec<u8>, bool)>,
    ranges: Vec<(Option<Vec<u8>>, Option<Vec<u8>>, u64)>,
    bytes: usize,
}
impl Inner {
    fn covering(&self, key: &[u8], seq: u64) -> u64 {
        self.ranges
            .iter()
            .filter(|r| {
                r.2 <= seq
                    && KeyRange {
                        low: r.0.as_deref(),
                        high: r.1.as_deref(),
                    }
                    .has(key)
            })
            .map(|r| r.2)
            .max()
            .unwrap_or(0)
    }
    fn get(&self, key: &[u8], seq: u64, snap: bool, chain: &mut Chain) -> Lookup {
        let cover = self.covering(key, seq);
        for ((_, Reverse(s)), (k, v, alone)) in self
            .map
            .range((key.to_vec(), Reverse(u64::MAX))..=(key.to_vec(), Reverse(0)))
        {
            if *s > seq && (snap || !alone) {
                continue;
            }
            if *s < cover {
                break;
            }
            chain.push(*k, v);
            if k.is_base() {
                return Lookup::Complete;
            }
        }
        if cover > 0 {
            chain.push(Kind::Delete, &[]);
            return Lookup::Complete;
        }
        Lookup::GoesOn
    }
}
impl Memtable {
    pub(crate) fn apply(&self, w: &Write<'_>, keep: &Keep<'_>, _o: Option<&dyn MergeOperator>) {
        let mut i = self.0.lock();
        i.bytes += w.key.len() + w.value.len() + 64;
        let _ = (keep.visible, keep.snapshots);
        i.map.insert(
            (w.key.to_vec(), Reverse(w.seq)),
            (w.kind, w.value.to_vec(), keep.alone),
        );
    }
    pub(crate) fn delete_range(&self, r: KeyRange<'_>, seq: u64) {
        let mut i = self.0.lock();
        i.bytes += 64;
        i.ranges
            .push((r.low.map(<[u8]>::to_vec), r.high.map(<[u8]>::to_vec), seq));
    }
    pub(crate) fn get(&self, key: &[u8], seq: u64, snap: bool, chain: &mut Chain) -> Lookup {
        self.0.lock().get(key, seq, snap, chain)
    }
    pub(crate) fn bytes(&self) -> usize {
        self.0.lock().bytes
    }
    pub(crate) fn range_deletes(&self, seq: u64) -> RangeSet {
        let mut s = RangeSet::new();
        for r in &self.0.lock().ranges {
            if r.2 <= seq {
                s.insert(KeyRange {
                    low: r.0.as_deref(),
                    high: r.1.as_deref(),
                });
            }
        }
        s
    }
    pub(crate) fn cursor(self: &Arc<Self>, seq: u64, snap: bool) -> Cur {
        let i = self.0.lock();
        let mut keys: Vec<_> = i.map.keys().map(|k| k.0.clone()).collect();
        keys.dedup();
        let mut all = Vec::new();
        for k in keys {
            let mut c = Chain::new();
            i.get(&k, seq, snap, &mut c);
            if !c.is_empty() {
                all.push((k, c));
            }
        }
        Cur {
            all,
            at: None,
            up: true,
        }
    }
}
pub(crate) struct Cur {
    all: Vec<(Vec<u8>, Chain)>,
    at: Option<usize>,
    up: bool,
}
impl Cursor for Cur {
    fn seek(&mut self, d: Direction, b: Option<&[u8]>) -> Result<(), Error> {
        self.up = d == Direction::Up;
        self.at = match d {
            Direction::Up => {
                let i = self
                    .all
                    .partition_point(|e| b.is_some_and(|b| &e.0[..] < b));
                (i < self.all.len()).then_some(i)
            }
            Direction::Down => {
                let i = self.all.partition_point(|e| b.is_none_or(|b| &e.0[..] < b));
                i.checked_sub(1)
            }
        };
        Ok(())
    }
    fn advance(&mut self) -> Result<(), Error> {
        self.at = self.at.and_then(|i| {
            if self.up {
                (i + 1 < self.all.len()).then_some(i + 1)
            } else {
                i.checked_sub(1)
            }
        });
        Ok(())
    }
    fn key(&self) -> Option<&[u8]> {
        self.at.map(|i| &self.all[i].0[..])
    }
    fn entries(&self) -> usize {
        self.all[self.at.unwrap()].1.len()
    }
    fn entry(&self, i: usize) -> (Kind, &[u8]) {
        self.all[self.at.unwrap()].1.entry(i)
    }
}
