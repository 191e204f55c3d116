//! Lookups: the search for the record of a key.

use super::line::Word;
use super::table::HashTable;
use crate::record::{Record, Release};
use ats_sync::Guard;

impl<R: Release> HashTable<R> {
    /// Returns the first slot content with `key` that satisfies `wanted`, at some moment since the
    /// call.
    #[inline]
    pub(super) fn search<'g, T>(
        &'g self,
        key: &[u8],
        hash: u64,
        guard: &'g Guard,
        wanted: impl Fn(Word, &'g Record<R>) -> Option<T>,
    ) -> Option<T> {
        loop {
            let view = self.directory.view();
            let number = view.bucket(hash);
            if let Some(bucket) = self.directory.bucket(number, guard) {
                bucket.prefetch_line();
                let found = bucket.find(hash, |_, word| {
                    if word.record().has_key(key) {
                        wanted(*word, word.record())
                    } else {
                        None
                    }
                });
                if found.is_some() {
                    return found;
                }
            }
            if self.directory.confirms(view, hash, number) {
                return None;
            }
        }
    }
}
