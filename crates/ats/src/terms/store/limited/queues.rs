//! The queues of the keys of a store with a bound: which object goes when there are too many.
//!
//! This is S3-FIFO (Yang and others, "FIFO queues are all you need for cache eviction", 2023). A
//! new key waits in a *small* queue, a tenth of all. Its object goes at the end of that queue
//! unless it was read twice meanwhile; then it moves to the *main* queue, whose objects go if they
//! were not read since they came to its front last. So a scan of keys that nobody asks for again
//! does not drive out those that are asked for. The hashes of keys that went from the small queue
//! are kept for a while, as *ghosts*: such a key goes to the main queue if it comes again.
//!
//! The two bits that count the reads of an object are in its [note](crate::terms::note): a read of
//! an object that was read three times already writes nothing, so readers of hot objects share no
//! written memory. Rejected: LRU, which writes the list at each read; SIEVE, in which a scan drives
//! out what was not read since the hand passed; TinyLFU, which counts each read in a sketch.

use super::pieces::Pieces;
use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::xxh3_64;

/// Divisor of the number of all entries that gives the length of the small queue.
const SMALL_PART: usize = 10;

/// An entry of a queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) key: Box<[u8]>,
    pub(super) token: u16,
    pub(super) is_of_main: bool,
}

/// Keys and their tokens.
type Queue = Pieces<2>;

/// The hasher of numbers that are hashes.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// Hashes of keys that went from the small queue, in the order in which they went.
#[derive(Default)]
struct Ghosts {
    set: HashSet<u64, BuildHasherDefault<Same>>,
    order: VecDeque<u64>,
}

impl Ghosts {
    /// Adds a key, and forgets the oldest ones beyond this number.
    fn push(&mut self, key: &[u8], most: usize) {
        let hash = xxh3_64(key);
        if self.set.insert(hash) {
            self.order.push_back(hash);
        }
        while self.order.len() > most
            && let Some(oldest) = self.order.pop_front()
        {
            self.set.remove(&oldest);
        }
    }

    /// Removes a key. Returns `true` if it was there. Its place in the order is left, which only
    /// makes another key with that hash go a little early.
    fn take(&mut self, key: &[u8]) -> bool {
        !self.set.is_empty() && self.set.remove(&xxh3_64(key))
    }

    fn bytes(&self) -> usize {
        self.set.capacity() * 9 + self.order.capacity() * 8
    }
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Queues {
    small: Queue,
    main: Queue,
    ghosts: Ghosts,
}

impl Queues {
    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.small.len() + self.main.len()
    }

    /// Returns the approximate bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.small.bytes() + self.main.bytes() + self.ghosts.bytes()
    }

    fn queue(&mut self, is_of_main: bool) -> &mut Queue {
        if is_of_main {
            &mut self.main
        } else {
            &mut self.small
        }
    }

    fn take(&mut self, is_of_main: bool) -> Option<Candidate> {
        let (token, key) = self.queue(is_of_main).pop()?;
        Some(Candidate {
            key,
            token: u16::from_le_bytes(token),
            is_of_main,
        })
    }

    /// Adds the key of a new object.
    pub(super) fn push(&mut self, key: &[u8], token: u16) {
        let is_of_main = self.ghosts.take(key);
        self.queue(is_of_main).push(token.to_le_bytes(), key);
    }

    /// Takes the entry whose object goes next, unless it was read.
    pub(super) fn pop(&mut self) -> Option<Candidate> {
        self.take(self.small.len() * SMALL_PART < self.len())
    }

    /// Puts an entry to the end of the main queue.
    pub(super) fn keep(&mut self, candidate: &Candidate) {
        let token = candidate.token.to_le_bytes();
        self.main.push(token, &candidate.key);
    }

    /// Puts an entry to the end of its own queue.
    pub(super) fn put_back(&mut self, candidate: &Candidate) {
        let token = candidate.token.to_le_bytes();
        self.queue(candidate.is_of_main).push(token, &candidate.key);
    }

    /// Notes that the object of an entry has gone.
    pub(super) fn on_evicted(&mut self, candidate: &Candidate) {
        if !candidate.is_of_main {
            let most = self.main.len().max(self.small.len());
            self.ghosts.push(&candidate.key, most);
        }
    }

    /// Takes the oldest entry of the longer queue, for a look whether it is stale;
    /// [`put_back`](Queues::put_back) follows if it is not.
    pub(super) fn rotate(&mut self) -> Option<Candidate> {
        self.take(self.main.len() > self.small.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_comes_again_goes_to_the_main_queue() {
        let mut queues = Queues::default();
        for number in 0..100_u8 {
            queues.push(&[number], u16::from(number));
        }
        let first = queues.pop().expect("there are entries");
        assert_eq!((&*first.key, first.is_of_main), (&[0][..], false));
        queues.on_evicted(&first);
        queues.push(&[0], 200);
        assert_eq!((queues.main.len(), queues.small.len()), (1, 99));
        // The small queue goes first until it is a tenth.
        for _ in 0..90 {
            let next = queues.pop().expect("there are entries");
            assert!(!next.is_of_main);
            queues.keep(&next);
        }
        assert_eq!(queues.small.len(), 9);
        assert!(queues.pop().expect("there are entries").is_of_main);
    }

    #[test]
    fn ghosts_are_forgotten() {
        let mut ghosts = Ghosts::default();
        for number in 0..1000_u16 {
            ghosts.push(&number.to_le_bytes(), 10);
        }
        assert_eq!(ghosts.set.len(), 10);
        assert!(ghosts.take(&999_u16.to_le_bytes()));
        assert!(!ghosts.take(&999_u16.to_le_bytes()));
        assert!(!ghosts.take(&989_u16.to_le_bytes()));
    }
}
