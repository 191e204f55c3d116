//! Values merged by a program in the VM: a reader sees them merged, or not at all.
//!
//! A read of a key that is [pending](ats::terms::program_merge) ends with [`Error::Pending`]. The
//! caller then runs the program. In a live table, the program [replaces](super::replace) the values
//! that it has merged. A snapshot does not change, so it has a *window*: the program gets the
//! pending keys that a walk meets next, [resolves](Pending::resolve) their values, and the walk
//! continues from the key at which it stopped. The next window replaces this one, so a walk needs
//! no more memory than a window, and time in proportion to the records it reads.

use ats::terms::program_merge::{ProgramMerge, merged_value};
use ats_store::store::{DecideEnd, Visit};
use ats_store::{
    BatchPlan, Change, Direction, End, Error, KeyRange, MayBlock, Store, StoreHandle, successor,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A key and its value.
pub type Record = (Vec<u8>, Vec<u8>);

/// A store whose values may be pending.
pub struct Pending<S> {
    store: S,
    merge: Arc<ProgramMerge>,
    window: Mutex<Window>,
}

/// Values that the program has resolved for pending keys. Unused in a live table.
struct Window {
    /// Values of keys; `None` if the key counts as missing.
    values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// The unresolved key that a read met last, and the direction of the read.
    met: Vec<u8>,
    direction: Direction,
    /// Number of keys of the next window: one for a read of a key, increasing for a walk.
    keys: usize,
    /// Found by the walk that met the key: no record is between the bound at which the next walk
    /// starts, and this key. So keys that count as missing are skipped once.
    found_empty: Option<Empty>,
    /// The same for later walks. Unused in a live table.
    empty: Option<Empty>,
}

/// A part of the table without records.
struct Empty {
    /// The first bound, in the direction of the walk.
    from: Option<Vec<u8>>,
    to: Vec<u8>,
}

/// Limits of a window: bytes of values, and number of keys. A window has at least one key.
const MOST_BYTES: usize = 1 << 20;
const MOST_KEYS: usize = 1024;

impl<S: StoreHandle> Pending<S> {
    /// Creates a store of pending values, which are concatenated by `merge`.
    pub fn new(store: S, merge: Arc<ProgramMerge>) -> Self {
        Pending {
            store,
            merge,
            window: Mutex::new(Window {
                values: BTreeMap::new(),
                met: Vec::new(),
                direction: Direction::Up,
                keys: 1,
                found_empty: None,
                empty: None,
            }),
        }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        // The window is consistent at every moment, so a poisoned lock is harmless.
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the value of a key, unless it is pending.
    fn see(
        &self,
        (key, value): (&[u8], &[u8]),
        direction: Direction,
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        if let Some(value) = merged_value(value) {
            read(value);
            return Ok(true);
        }
        // `read` may call this again, so it runs without the lock.
        let known = {
            let mut window = self.window();
            let known = window.values.get(key).cloned();
            if known.is_none() {
                window.met.clear();
                window.met.extend_from_slice(key);
                window.direction = direction;
            }
            known
        };
        match known {
            Some(Some(value)) => {
                let object = merged_value(&value).ok_or(Error::Corrupt)?;
                read(object);
                Ok(true)
            }
            Some(None) => Ok(false),
            None => {
                self.merge.note(key);
                Err(Error::Pending)
            }
        }
    }

    /// Returns the pending keys of the next window: the one that a read met last, and its
    /// successors.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn next_window(&self, may_block: Option<MayBlock>) -> Result<Vec<Record>, Error> {
        let (met, direction, most) = {
            let mut window = self.window();
            let most = window.keys;
            window.keys = (2 * most).min(MOST_KEYS);
            (window.met.clone(), window.direction, most)
        };
        let (mut found, mut bytes) = (Vec::new(), 0);
        let behind = successor(&met);
        let range = match direction {
            Direction::Up => KeyRange {
                low: Some(&met),
                high: None,
            },
            Direction::Down => KeyRange {
                low: None,
                high: Some(&behind),
            },
        };
        self.store
            .store()
            .scan(may_block, range, direction, &mut |key, value| {
                let is_pending = merged_value(value).is_none();
                // Merged values are skipped quickly, but they count, so that the search ends.
                bytes += if is_pending {
                    value.len()
                } else {
                    value.len().min(1 << 10)
                };
                if is_pending && (found.is_empty() || bytes <= MOST_BYTES) {
                    found.push((key.to_vec(), value.to_vec()));
                }
                if found.len() < most && bytes < MOST_BYTES {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
        Ok(found)
    }

    /// Shows the first record of a range, with all its operands if it is pending.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn first(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        read: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), Error> {
        let store = self.store.store();
        store.scan(may_block, key_range, Direction::Up, &mut |key, value| {
            read(key, value);
            ControlFlow::Break(())
        })
    }

    /// Sets the values of the pending keys of a window, and discards those of the last window.
    /// `None` means that the key is missing.
    pub fn resolve(&self, values: BTreeMap<Vec<u8>, Option<Vec<u8>>>) {
        let mut window = self.window();
        window.values = values;
        window.empty = window.found_empty.take();
    }

    /// Returns the end of the known empty part that starts at this bound.
    fn behind_empty(&self, bound: Option<&[u8]>, direction: Direction) -> Option<Vec<u8>> {
        let window = self.window();
        let empty = window.empty.as_ref()?;
        let is_here = window.direction == direction && empty.from.as_deref() == bound;
        is_here.then(|| empty.to.clone())
    }

    /// Records that a walk from this bound met a pending key, and read `last` before it.
    fn note_empty(&self, bound: Option<&[u8]>, last: Option<&[u8]>, direction: Direction) {
        let mut window = self.window();
        let from = match (last, direction) {
            (None, _) => bound.map(<[u8]>::to_vec),
            (Some(last), Direction::Up) => Some(successor(last)),
            (Some(last), Direction::Down) => Some(last.to_vec()),
        };
        let to = match direction {
            Direction::Up => window.met.clone(),
            Direction::Down => successor(&window.met),
        };
        window.found_empty = Some(Empty { from, to });
    }
}

/// Runs a plan on merged values.
struct Merged<'p> {
    plan: &'p mut dyn BatchPlan<[u8], Vec<u8>>,
    met_pending: bool,
}

impl Merged<'_> {
    fn change(
        &mut self,
        current: Option<&[u8]>,
        change: impl FnOnce(&mut dyn BatchPlan<[u8], Vec<u8>>, Option<&[u8]>) -> Change<Vec<u8>>,
    ) -> Change<Vec<u8>> {
        match current.map(merged_value) {
            Some(None) => {
                self.met_pending = true;
                Change::Abort
            }
            current => change(self.plan, current.flatten()),
        }
    }
}

impl BatchPlan<[u8], Vec<u8>> for Merged<'_> {
    fn decide(&mut self, index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        self.change(current, |plan, current| plan.decide(index, current))
    }

    fn build(&mut self, index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        self.change(current, |plan, current| plan.build(index, current))
    }
}

impl<S: StoreHandle> Store for Pending<S> {
    fn get(
        &self,
        may_block: Option<MayBlock>,
        key: &[u8],
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        let mut seen = Ok(false);
        let store = self.store.store();
        store.get(may_block, key, &mut |value| {
            seen = self.see((key, value), Direction::Up, read);
        })?;
        seen
    }

    fn update(
        &self,
        may_block: Option<MayBlock>,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error> {
        let mut plan = Merged {
            plan,
            met_pending: false,
        };
        let done = self.store.store().update(may_block, keys, &mut plan)?;
        if plan.met_pending {
            Err(Error::Pending)
        } else {
            Ok(done)
        }
    }

    fn update_end(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        decide: &mut DecideEnd<'_>,
    ) -> Result<(), Error> {
        let mut met_pending = false;
        self.store
            .store()
            .update_end(may_block, end, &mut |found| {
                let found = match found {
                    None => None,
                    Some((key, value)) => match merged_value(value) {
                        Some(value) => Some((key, value)),
                        None => {
                            met_pending = true;
                            return Change::Keep;
                        }
                    },
                };
                decide(found)
            })?;
        if met_pending {
            Err(Error::Pending)
        } else {
            Ok(())
        }
    }

    fn scan(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let bound = match direction {
            Direction::Up => key_range.low,
            Direction::Down => key_range.high,
        };
        let behind_empty = self.behind_empty(bound, direction);
        let key_range = match (&behind_empty, direction) {
            (None, _) => key_range,
            (low, Direction::Up) => KeyRange {
                low: low.as_deref(),
                ..key_range
            },
            (high, Direction::Down) => KeyRange {
                high: high.as_deref(),
                ..key_range
            },
        };
        let mut failed = Ok(());
        let (mut last, mut has_read) = (Vec::new(), false);
        let store = self.store.store();
        store.scan(may_block, key_range, direction, &mut |key, value| {
            let mut flow = ControlFlow::Continue(());
            let mut see = |value: &[u8]| flow = visit(key, value);
            match self.see((key, value), direction, &mut see) {
                Ok(true) => {
                    last.clear();
                    last.extend_from_slice(key);
                    has_read = true;
                    flow
                }
                Ok(false) => flow,
                Err(error) => {
                    failed = Err(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        if failed == Err(Error::Pending) {
            self.note_empty(bound, has_read.then_some(&last), direction);
        }
        failed
    }

    fn median(
        &self,
        may_block: Option<MayBlock>,
        key_range: KeyRange<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        self.store.store().median(may_block, key_range)
    }

    /// Counts pending keys, also those that will turn out to be missing.
    fn len(&self, may_block: Option<MayBlock>) -> Result<usize, Error> {
        self.store.store().len(may_block)
    }

    fn sum(
        &self,
        may_block: Option<MayBlock>,
        weigh: &dyn Fn(&[u8]) -> usize,
    ) -> Result<usize, Error> {
        self.store.store().sum(may_block, weigh)
    }

    fn take_all(&self, may_block: Option<MayBlock>) -> Result<Box<dyn Store>, Error> {
        let taken = self.store.store().take_all(may_block)?;
        Ok(Box::new(Pending::new(taken, Arc::clone(&self.merge))))
    }

    fn bytes(&self) -> usize {
        self.store.store().bytes()
    }

    fn most_bytes(&self) -> usize {
        self.store.store().most_bytes()
    }
}
