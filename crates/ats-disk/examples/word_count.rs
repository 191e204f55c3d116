//! Words are counted by merges: each word is an operand 1, and no count is read to change it.
//!
//! The operands of a word become one number when the word is read, and when runs are compacted.

use ats_disk::{DiskStore, Error, Options};
use ats_store::{MergeOperator, Merged};
use std::cmp::Reverse;
use std::sync::Arc;

const TEXT: &str = "the quick brown fox jumps over the lazy dog and the dog sleeps";

/// Adds numbers of eight bytes.
struct Count;

impl MergeOperator for Count {
    fn name(&self) -> &'static str {
        "count"
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, _: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, ats_store::Error> {
        let sum = number(earlier)
            .zip(number(later))
            .and_then(|(earlier, later)| earlier.checked_add(later))
            .ok_or(ats_store::Error::Merge)?;
        Ok(Merged::New(sum.to_le_bytes().to_vec()))
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().map(u64::from_le_bytes).ok()
}

fn main() -> Result<(), Error> {
    let directory = std::env::temp_dir().join(format!("ats-words-{}", std::process::id()));
    let options = Options::new().operator(Arc::new(Count));
    let store = DiskStore::open(&directory, options.clone())?;
    for word in TEXT.split_whitespace() {
        store.merge(word.as_bytes(), &1_u64.to_le_bytes())?;
    }
    store.close()?;

    // Counting goes on in the same files. A store can only be opened with its own operator.
    let store = DiskStore::open(&directory, options)?;
    store.merge(b"dog", &1_u64.to_le_bytes())?;
    assert_eq!(store.get(b"cat")?, None);

    let mut counts = Vec::new();
    for record in store.scan(..) {
        let (word, count) = record?;
        counts.push((
            String::from_utf8_lossy(&word).into_owned(),
            number(&count).ok_or(Error::Merge)?,
        ));
    }
    assert_eq!(counts.len(), 10);
    assert!(counts.is_sorted());
    counts.sort_by_key(|(_, count)| Reverse(*count));
    for (word, count) in &counts[..2] {
        println!("{count} {word}");
    }
    let most: Vec<_> = counts[..2]
        .iter()
        .map(|(word, count)| (&word[..], *count))
        .collect();
    assert_eq!(most, [("dog", 3), ("the", 3)]);
    store.close()?;
    std::fs::remove_dir_all(&directory).ok();
    Ok(())
}
