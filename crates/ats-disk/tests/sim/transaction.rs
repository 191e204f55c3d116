//! Writes of several keys as a transaction: all keys are read before one is changed.

use super::model::{Change, State, apply};
use ats_store::{BatchPlan, Change as Becomes};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A plan that defers the changes of all keys until it has seen all values, if there are several.
pub(crate) struct Transaction<'a> {
    keys: &'a [Vec<u8>],
    changes: &'a [Change],
    /// Returns the value of the model for one of the store.
    read: fn(&[u8]) -> Vec<u8>,
    /// Returns what becomes of a key with this value of the model.
    becomes: fn(Option<&[u8]>) -> Becomes<Vec<u8>>,
    before: BTreeMap<Vec<u8>, Vec<u8>>,
    decided: usize,
    after: Option<State>,
}

impl<'a> Transaction<'a> {
    /// Returns the plan of changes, which are about these keys.
    pub(crate) fn new(
        keys: &'a [Vec<u8>],
        changes: &'a [Change],
        read: fn(&[u8]) -> Vec<u8>,
        becomes: fn(Option<&[u8]>) -> Becomes<Vec<u8>>,
    ) -> Self {
        Transaction {
            keys,
            changes,
            read,
            becomes,
            before: BTreeMap::new(),
            decided: 0,
            after: None,
        }
    }
}

impl BatchPlan<[u8], Vec<u8>> for Transaction<'_> {
    fn decide(&mut self, index: usize, current: Option<&[u8]>) -> Becomes<Vec<u8>> {
        let value = current.map(|value| (self.keys[index].clone(), (self.read)(value)));
        self.before.extend(value);
        self.decided += 1;
        if self.keys.len() == 1 {
            return self.build(index, current);
        }
        Becomes::Later
    }

    fn build(&mut self, index: usize, current: Option<&[u8]>) -> Becomes<Vec<u8>> {
        let key = &self.keys[index];
        assert_eq!(self.decided, self.keys.len(), "all keys are decided");
        assert_eq!(current.map(self.read).as_ref(), self.before.get(key));
        let after = self.after.get_or_insert_with(|| {
            let before = Arc::new(self.before.clone());
            apply(&before, self.changes).expect("the history can be applied")
        });
        (self.becomes)(after.get(key).map(Vec::as_slice))
    }
}
