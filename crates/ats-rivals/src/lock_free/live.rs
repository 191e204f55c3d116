//! A count of live nodes, for tests. It is kept by the type of the records; each test that reads it
//! has a type of its own.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

static LIVE: Mutex<Option<HashMap<TypeId, i64>>> = Mutex::new(None);

pub(super) fn count<R: 'static>(more: i64) {
    let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    *live
        .get_or_insert_default()
        .entry(TypeId::of::<R>())
        .or_default() += more;
}

#[cfg(not(any(loom, shuttle)))]
pub(super) fn nodes<R: 'static>() -> i64 {
    let live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
    live.as_ref()
        .and_then(|live| live.get(&TypeId::of::<R>()).copied())
        .unwrap_or(0)
}
