//! The answers that a store should give: states of a map, one after each write.

use super::fault::Window;
use ats_store::{Error, MergeOperator, Merged};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The content of a store.
pub(crate) type State = Arc<BTreeMap<Vec<u8>, Vec<u8>>>;

/// Merges by the first byte of the key.
///
/// - `f`: the value is a map `x -> ax + b` modulo 251, as two bytes; a later map is applied to the
///   result of the earlier one. The constant ones are bases. The identity counts as missing.
/// - Others: the later value is appended. A value that begins with `=` is a base.
pub(crate) struct Mixed;

/// The order of the field of the maps.
pub(crate) const PRIME: u32 = 251;

impl MergeOperator for Mixed {
    fn name(&self) -> &'static str {
        "mixed"
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        match key.first() {
            Some(b'f') => {
                let (&[a, b], &[c, d]) = (earlier, later) else {
                    return Err(Error::Merge);
                };
                let [a, b, c, d] = [a, b, c, d].map(u32::from);
                let composed = [(a * c) % PRIME, (b * c + d) % PRIME];
                Ok(Merged::New(composed.map(|number| number as u8).to_vec()))
            }
            _ if later.starts_with(b"=") => Ok(Merged::Later),
            _ if later.is_empty() => Ok(Merged::Earlier),
            _ if earlier.is_empty() => Ok(Merged::Later),
            _ => Ok(Merged::New([earlier, later].concat())),
        }
    }

    fn is_base(&self, key: &[u8], value: &[u8]) -> bool {
        match key.first() {
            Some(b'f') => value.first() == Some(&0),
            _ => value.starts_with(b"="),
        }
    }

    fn is_absent(&self, key: &[u8], value: &[u8]) -> bool {
        key.first() == Some(&b'f') && value == [1, 0]
    }
}

/// A part of a write.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Change {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    /// Delete of the keys from the first on, below the second.
    DeleteRange(Option<Vec<u8>>, Option<Vec<u8>>),
}

/// Bytes, shortened if they are many.
struct Shown<'b>(&'b [u8]);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0[..self.0.len().min(12)].escape_ascii())?;
        match self.0.len() {
            0..=12 => Ok(()),
            len => write!(f, "..{len}"),
        }
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Put(key, value) => write!(f, "put {:?} {:?}", Shown(key), Shown(value)),
            Change::Delete(key) => write!(f, "delete {:?}", Shown(key)),
            Change::Merge(key, value) => write!(f, "merge {:?} {:?}", Shown(key), Shown(value)),
            Change::DeleteRange(low, high) => {
                let [low, high] = [low, high].map(|end| end.as_deref().map(Shown));
                write!(f, "delete {low:?} to {high:?}")
            }
        }
    }
}

/// Returns `true` if these changes are none: a range that ends before it begins has no keys.
pub(crate) fn is_nothing(changes: &[Change]) -> bool {
    let is_nothing = |change: &Change| match change {
        Change::DeleteRange(Some(low), Some(high)) => low >= high,
        _ => false,
    };
    changes.iter().all(is_nothing)
}

/// Returns the state after some changes of another one. `None` if the operator refuses.
pub(crate) fn apply(state: &State, changes: &[Change]) -> Option<State> {
    let mut map = BTreeMap::clone(state);
    for change in changes {
        match change {
            Change::Put(key, value) => {
                map.insert(key.clone(), value.clone());
            }
            Change::Delete(key) => {
                map.remove(key);
            }
            Change::Merge(key, operand) => {
                let value = match map.get(key) {
                    None => operand.clone(),
                    Some(earlier) => match Mixed.merge(key, earlier, operand).ok()? {
                        Merged::Earlier => earlier.clone(),
                        Merged::Later => operand.clone(),
                        Merged::New(value) => value,
                    },
                };
                if Mixed.is_absent(key, &value) {
                    map.remove(key)
                } else {
                    map.insert(key.clone(), value)
                };
            }
            Change::DeleteRange(low, high) => map.retain(|key, _| {
                low.as_ref().is_some_and(|low| key < low)
                    || high.as_ref().is_some_and(|high| key >= high)
            }),
        }
    }
    Some(Arc::new(map))
}

/// The content of a store after each write that has returned, and the contents that it may have
/// besides.
#[derive(Clone)]
pub(crate) struct Timeline {
    /// The contents after each write. The first is that at the beginning; the last is that of the
    /// write that is going on, if one is.
    states: Vec<State>,
    window: Window,
    /// Failed writes, which may be done nevertheless: the number of writes before, and the contents
    /// then. A failure of the machine ends before a later write is synced, one of the process
    /// before one returns.
    failed: Vec<(usize, State)>,
    /// The number of those that were synced when the last one was begun.
    evident: usize,
}

impl Timeline {
    /// Makes the timeline of a store that was opened again with its contents after so many writes,
    /// of which so many survive a stop of the machine.
    pub(crate) fn again(states: &[State], contained: usize, synced: usize) -> Self {
        Timeline {
            states: states[..=contained].to_vec(),
            window: Window {
                synced,
                returned: contained,
                begun: contained,
            },
            failed: Vec::new(),
            evident: synced,
        }
    }

    pub(crate) fn states(&self) -> &[State] {
        &self.states
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// Returns the number of writes that were synced when the last one was begun, which the last
    /// one may say.
    pub(crate) fn evident(&self) -> usize {
        self.evident
    }

    /// Returns the content of the store now, when no write is going on.
    pub(crate) fn now(&self) -> &State {
        &self.states[self.window.returned]
    }

    /// Returns the contents that it may have if it is opened again, when the first so many writes
    /// are not lost.
    pub(crate) fn survivors(&self, low: usize) -> Vec<State> {
        let failed = self.failed.iter().filter(|(after, _)| *after >= low);
        let failed = failed.map(|(_, state)| state);
        self.states[low..].iter().chain(failed).cloned().collect()
    }

    /// A write begins. `None` if the operator refuses it.
    pub(crate) fn begin(&mut self, changes: &[Change]) -> Option<()> {
        let state = apply(self.now(), changes)?;
        self.states.push(state);
        self.window.begun += 1;
        self.evident = self.window.synced;
        Some(())
    }

    /// Notes that the write has failed.
    pub(crate) fn fail(&mut self) {
        if let Some(state) = self.refuse() {
            self.failed.push((self.window.returned, state));
        }
    }

    /// Notes that the write was not even begun.
    pub(crate) fn refuse(&mut self) -> Option<State> {
        self.window.begun = self.window.returned;
        self.states.pop()
    }

    /// Notes that the write has returned.
    pub(crate) fn end(&mut self, synced: bool) {
        self.window.returned = self.window.begun;
        if synced {
            self.sync();
        }
    }

    /// All writes that have returned survive from now on.
    pub(crate) fn sync(&mut self) {
        self.window.synced = self.window.returned;
        let synced = self.window.synced;
        self.failed.retain(|(after, _)| *after >= synced);
    }

    /// Notes that no write is lost, and the store has these contents: a write that has failed may
    /// be done.
    pub(crate) fn resume(&mut self, state: &State) {
        if state != self.now() {
            self.states.push(state.clone());
            self.window.returned += 1;
            self.window.begun += 1;
        }
    }
}

/// Returns the latest of the states that is this content.
pub(crate) fn latest(states: &[State], content: &[(Vec<u8>, Vec<u8>)]) -> Option<usize> {
    let is_equal = |state: &State| {
        let content = content.iter().map(|(key, value)| (key, value));
        state.len() == content.len() && state.iter().eq(content)
    };
    states.iter().rposition(is_equal)
}
