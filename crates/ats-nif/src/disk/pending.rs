//! Values that are merged by a program of the VM, as the table sees them: merged, or not at all.
//!
//! A read of a key that is [pending](ats::program_merge) ends with [`Error::Merge`]. What then is done is up to the
//! program. In a table that changes, it [replaces](replace) what it has merged. What a table was at a moment does
//! not change, so there the program [says](Pending::resolve) what the key has, and reads again.

use super::opened::Opened;
use super::polite::{Holder, politely};
use ats::program_merge::{ProgramMerge, Written, merged, written};
use ats_store::store::{DecideEnd, Visit};
use ats_store::{BatchPlan, Change, Direction, End, Error, KeyRange, Store};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A key and its value.
type Record = (Vec<u8>, Vec<u8>);

/// A store whose values may be pending.
pub struct Pending<H> {
    store: H,
    merge: Arc<ProgramMerge>,
    resolved: Mutex<Resolved>,
}

/// What the program has said of pending keys. In a table that changes, nothing.
#[derive(Default)]
struct Resolved {
    /// What keys have; `None` if they count as missing.
    values: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    /// The key that a read has met last of which nothing is known, and in which direction the read went.
    met: Vec<u8>,
    direction: Option<Direction>,
}

/// So many bytes of values are told of at once, at least.
const MANY_BYTES: usize = 1 << 20;

impl<H: Holder> Pending<H> {
    /// The store that `store` holds, whose values `merge` puts one behind the other.
    pub fn new(store: H, merge: Arc<ProgramMerge>) -> Self {
        Pending {
            store,
            merge,
            resolved: Mutex::default(),
        }
    }

    fn resolved(&self) -> MutexGuard<'_, Resolved> {
        // Complete at every moment, so a panic elsewhere does not spoil it.
        self.resolved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the value of a key, unless it is pending.
    fn see(
        &self,
        (key, value): (&[u8], &[u8]),
        direction: Direction,
        read: &mut dyn FnMut(&[u8]),
    ) -> Result<bool, Error> {
        if let Some(value) = merged(value) {
            read(value);
            return Ok(true);
        }
        // `read` may come back here, so it is not called under the lock.
        let known = {
            let mut resolved = self.resolved();
            let known = resolved.values.get(key).cloned();
            if known.is_none() {
                resolved.met.clear();
                resolved.met.extend_from_slice(key);
                resolved.direction = Some(direction);
            }
            known
        };
        match known {
            Some(Some(value)) => {
                read(&value);
                Ok(true)
            }
            Some(None) => Ok(false),
            None => {
                self.merge.note(key);
                Err(Error::Merge)
            }
        }
    }

    /// The pending keys of which nothing is known, from the one on that a read has met last, in its direction.
    ///
    /// # Errors
    /// Those of the store.
    pub fn unresolved(&self, most: usize) -> Result<Vec<Record>, Error> {
        let (mut met, direction) = {
            let resolved = self.resolved();
            (resolved.met.clone(), resolved.direction)
        };
        let (mut found, mut bytes) = (Vec::new(), 0);
        let range = match direction {
            None => KeyRange::default(),
            Some(Direction::Up) => KeyRange {
                low: Some(&met),
                high: None,
            },
            Some(Direction::Down) => {
                // The first key behind it.
                met.push(0);
                KeyRange {
                    low: None,
                    high: Some(&met),
                }
            }
        };
        let direction = direction.unwrap_or(Direction::Up);
        let scan = || {
            self.store.held().scan(range, direction, &mut |key, value| {
                if merged(value).is_none() && !self.resolved().values.contains_key(key) {
                    bytes += value.len();
                    found.push((key.to_vec(), value.to_vec()));
                }
                match found.len() < most && bytes < MANY_BYTES {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            })
        };
        politely(scan)?;
        Ok(found)
    }

    /// Says what a pending key has: an object, or nothing. False if the object is too large.
    #[must_use]
    pub fn resolve(&self, key: &[u8], object: Option<&[u8]>) -> bool {
        let value = match object.map(|object| written(object, Written::Object)) {
            Some(None) => return false,
            value => value.flatten(),
        };
        self.resolved().values.insert(key.to_vec(), value);
        true
    }
}

/// Has a plan decide about what is merged.
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
        match current.map(merged) {
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

impl<H: Holder> Store for Pending<H> {
    fn get(&self, key: &[u8], read: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let mut seen = Ok(false);
        let store = self.store.held();
        store.get(key, &mut |value| {
            seen = self.see((key, value), Direction::Up, read);
        })?;
        seen
    }

    fn update(
        &self,
        keys: &[&[u8]],
        plan: &mut dyn BatchPlan<[u8], Vec<u8>>,
    ) -> Result<bool, Error> {
        let mut plan = Merged {
            plan,
            met_pending: false,
        };
        let done = self.store.held().update(keys, &mut plan)?;
        match plan.met_pending {
            true => Err(Error::Merge),
            false => Ok(done),
        }
    }

    fn update_end(&self, end: End, decide: &mut DecideEnd<'_>) -> Result<(), Error> {
        let mut met_pending = false;
        self.store.held().update_end(end, &mut |found| {
            let found = match found {
                None => None,
                Some((key, value)) => match merged(value) {
                    Some(value) => Some((key, value)),
                    None => {
                        met_pending = true;
                        return Change::Keep;
                    }
                },
            };
            decide(found)
        })?;
        match met_pending {
            true => Err(Error::Merge),
            false => Ok(()),
        }
    }

    fn scan(
        &self,
        key_range: KeyRange<'_>,
        direction: Direction,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let mut failed = Ok(());
        let store = self.store.held();
        store.scan(key_range, direction, &mut |key, value| {
            let mut flow = ControlFlow::Continue(());
            let mut see = |value: &[u8]| flow = visit(key, value);
            match self.see((key, value), direction, &mut see) {
                Ok(_) => flow,
                Err(error) => {
                    failed = Err(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed
    }

    /// Pending keys count, also those that will count as missing.
    fn len(&self) -> Result<usize, Error> {
        self.store.held().len()
    }

    fn sum(&self, weigh: &dyn Fn(&[u8]) -> usize) -> Result<usize, Error> {
        self.store.held().sum(weigh)
    }

    fn take_all(&self) -> Result<Box<dyn Store>, Error> {
        let taken = self.store.held().take_all()?;
        Ok(Box::new(Pending::new(taken, Arc::clone(&self.merge))))
    }

    fn bytes(&self) -> usize {
        self.store.held().bytes()
    }

    fn most_bytes(&self) -> usize {
        self.store.held().most_bytes()
    }
}

impl<H: Holder> Holder for Arc<Pending<H>> {
    fn held(&self) -> &dyn Store {
        &**self
    }
}

/// How much of a value must be what the program has merged, for it to be replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Its beginning: what was written since is merged with what replaces it.
    Beginning,
    /// All of it.
    All,
}

/// Replaces what a program has merged.
struct Replace<'r> {
    expected: &'r [u8],
    how_much: Expected,
    object: Option<Vec<u8>>,
}

impl BatchPlan<[u8], Vec<u8>> for Replace<'_> {
    fn decide(&mut self, _index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        let rest = current.and_then(|current| current.strip_prefix(self.expected));
        match rest {
            None => Change::Abort,
            Some(rest) if self.how_much == Expected::All && !rest.is_empty() => Change::Abort,
            Some([]) if self.object.is_none() => Change::Remove,
            Some(rest) => {
                let mut value = self.object.take().unwrap_or_default();
                value.extend_from_slice(rest);
                Change::Put(value)
            }
        }
    }

    fn build(&mut self, index: usize, current: Option<&[u8]>) -> Change<Vec<u8>> {
        self.decide(index, current)
    }
}

/// Replaces the value of a key by an object, or by nothing. False if the value is another one meanwhile, or the object
/// is too large.
///
/// # Errors
/// Those of the store.
pub fn replace(
    opened: &Opened,
    key: &[u8],
    expected: &[u8],
    how_much: Expected,
    object: Option<&[u8]>,
) -> Result<bool, Error> {
    let object = match object.map(|object| written(object, Written::Object)) {
        Some(None) => return Ok(false),
        object => object.flatten(),
    };
    let mut plan = Replace {
        expected,
        how_much,
        object,
    };
    politely(|| opened.store().update(&[key], &mut plan))
}
