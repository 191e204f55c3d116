//! A map with all that was ever written to each key.

use ats_store::{KeyRange, MergeOperator, Merged};
use std::collections::BTreeMap;

/// The operands that were written to a key since it was put or removed last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Written {
    pub(crate) values: Vec<Vec<u8>>,
}

/// The reference: of each key the values that were written, from the oldest to the newest.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Model {
    keys: BTreeMap<Vec<u8>, Written>,
}

impl Model {
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) {
        self.keys.insert(
            key.to_vec(),
            Written {
                values: vec![value.to_vec()],
            },
        );
    }

    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.keys.remove(key);
    }

    pub(crate) fn merge(&mut self, key: &[u8], operand: &[u8]) {
        let written = self.keys.entry(key.to_vec()).or_default();
        written.values.push(operand.to_vec());
    }

    pub(crate) fn delete_range(&mut self, range: KeyRange<'_>) {
        self.keys.retain(|key, _| !range.has(key));
    }

    /// Returns the value of a key: all that was written, merged one after the other from the oldest
    /// on.
    pub(crate) fn get(&self, key: &[u8], operator: &dyn MergeOperator) -> Option<Vec<u8>> {
        value(key, self.keys.get(key)?, operator)
    }

    /// Returns all records, ascending.
    pub(crate) fn all(&self, operator: &dyn MergeOperator) -> Vec<(Vec<u8>, Vec<u8>)> {
        let records = self
            .keys
            .iter()
            .filter_map(|(key, written)| Some((key.clone(), value(key, written, operator)?)));
        records.collect()
    }
}

fn value(key: &[u8], written: &Written, operator: &dyn MergeOperator) -> Option<Vec<u8>> {
    let (first, later) = written.values.split_first()?;
    let merged = later.iter().fold(first.clone(), |earlier, later| {
        match operator
            .merge(key, &earlier, later)
            .expect("the values of tests can be merged")
        {
            Merged::Earlier => earlier,
            Merged::Later => later.clone(),
            Merged::New(value) => value,
        }
    });
    (!operator.is_absent(key, &merged)).then_some(merged)
}
