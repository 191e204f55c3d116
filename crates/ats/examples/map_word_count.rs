//! Words counted by merges: each word is a write that reads nothing, and the counts outlive the
//! program.
//!
//! Run it with `cargo run --example map_word_count`.

use ats::DiskMap;
use ats::disk::{Error, Options};
use std::thread;

const TEXT: &str = "the cat and the hat and the cat that had the hat";

fn main() -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("ats-word-count-{}", std::process::id()));
    let open =
        || DiskMap::<String, u64>::open_merging(&folder, Options::new(), "sum", 1, |a, b| a + b);
    let words = open()?;
    thread::scope(|scope| {
        let threads = [0; 4]
            .map(|_| scope.spawn(|| TEXT.split(' ').try_for_each(|word| words.merge(word, 1))));
        threads
            .map(|thread| thread.join().expect("no thread panics"))
            .into_iter()
            .collect::<Result<(), _>>()
    })?;
    words.close()?;
    drop(words);

    let words = open()?;
    for pair in &words {
        let (word, count) = pair?;
        println!("{count:>3} {word}");
    }
    assert_eq!(words.get("the")?, Some(16));
    drop(words);
    std::fs::remove_dir_all(&folder).ok();
    Ok(())
}
