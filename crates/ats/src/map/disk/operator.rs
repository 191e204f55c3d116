//! A merge function of a program, as an operator of the store.

use crate::map::value::{Value, bytes_of};
use ats_store::{Error, MergeOperator, Merged};
use std::marker::PhantomData;

/// An operator that merges values of a type.
pub(super) struct Operator<V, F> {
    name: String,
    version: u32,
    merge: F,
    value: PhantomData<fn(V, V) -> V>,
}

impl<V: Value, F: Fn(V, V) -> V> Operator<V, F> {
    pub(super) fn new(name: &str, version: u32, merge: F) -> Self {
        Operator {
            name: name.into(),
            version,
            merge,
            value: PhantomData,
        }
    }
}

fn decode<V: Value>(bytes: &[u8]) -> Result<V, Error> {
    V::decode(bytes).ok_or(Error::Merge)
}

fn encode<V: Value>(value: &V) -> Result<Vec<u8>, Error> {
    let bytes = bytes_of::<V>(value).map_err(|_| Error::Merge)?;
    Ok(bytes.as_slice().to_vec())
}

impl<V: Value, F: Fn(V, V) -> V + Send + Sync> MergeOperator for Operator<V, F> {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn merge(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        let merged = (self.merge)(decode(earlier)?, decode(later)?);
        Ok(Merged::New(encode(&merged)?))
    }

    fn merge_all(&self, _key: &[u8], values: &[&[u8]]) -> Result<Option<Vec<u8>>, Error> {
        let Some((first, rest)) = values.split_first() else {
            return Ok(None);
        };
        let mut merged = decode(first)?;
        for value in rest {
            merged = (self.merge)(merged, decode(value)?);
        }
        encode(&merged).map(Some)
    }
}
