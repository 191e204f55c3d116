//! Values that are made when they are missing: one thread at a time makes the value of a key, and
//! the others wait for it.
//!
//! A thread that makes a value has an entry here, under the address of its map and the key. The map
//! is borrowed meanwhile, so it has that address throughout. A thread that finds the entry waits
//! for the value, on a lock of the entry. A call for another key, or a call that finds its value in
//! the map, comes to no lock but that of a shard of entries, or to none.
//!
//! # Invariants
//! - MAKING-1. There is an entry from [`enter`] until its [`Making`] is ended or dropped, and it is
//!   removed before the threads that wait for it go on. So one thread at a time makes the value of
//!   a key.
//! - MAKING-2. A thread gets the value that it waits for only if it waits since before the value
//!   was inserted. So it does not get a value that was removed before its call.
//! - MAKING-3. A thread is in `WAITS` while it waits, and checks under the lock of `WAITS` that the
//!   thread that it waits for does not wait for it, before it begins. So no circle of threads waits
//!   for itself.

use super::key::shown;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The number of shards.
const SHARDS: usize = 64;

/// The address of a map, and a key.
type Name = (usize, Box<[u8]>);

/// The progress of a thread that makes a value.
enum State {
    Running,
    /// The value is being inserted.
    Inserting,
    /// The value with these words was inserted.
    Made(Box<[u64]>),
    /// The thread has made none.
    Left,
}

impl State {
    fn has_ended(&self) -> bool {
        matches!(self, State::Made(_) | State::Left)
    }
}

/// An entry.
struct Entry {
    maker: ThreadId,
    state: Mutex<State>,
    ended: Condvar,
}

static ENTRIES: [Mutex<BTreeMap<Name, Arc<Entry>>>; SHARDS] =
    [const { Mutex::new(BTreeMap::new()) }; SHARDS];
/// The threads that wait.
static WAITS: LazyLock<Mutex<HashMap<ThreadId, Arc<Entry>>>> = LazyLock::new(Mutex::default);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data under these locks are valid at every moment, and no code of others runs there.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shard((map, key): &Name) -> MutexGuard<'static, BTreeMap<Name, Arc<Entry>>> {
    let hash = xxh3_64_with_seed(key, *map as u64);
    lock(&ENTRIES[hash as usize % SHARDS])
}

/// The part of a thread in the making of a value.
pub(super) enum Part {
    /// The thread makes it.
    Maker(Making),
    /// Another thread does.
    Waiter(Waiter),
}

/// The right to wait for the value of a key.
pub(super) struct Waiter {
    entry: Arc<Entry>,
    /// `true` if the value was not being inserted yet.
    is_early: bool,
}

/// Returns the part of the calling thread, for a map at an address that it has meanwhile.
pub(super) fn enter(map: usize, key: &[u8]) -> Part {
    let name = (map, key.into());
    let mut entries = shard(&name);
    if let Some(entry) = entries.get(&name) {
        let is_early = matches!(*lock(&entry.state), State::Running);
        return Part::Waiter(Waiter {
            entry: entry.clone(),
            is_early,
        });
    }
    let entry = Arc::new(Entry {
        maker: thread::current().id(),
        state: Mutex::new(State::Running),
        ended: Condvar::new(),
    });
    entries.insert(name.clone(), entry.clone());
    Part::Maker(Making {
        name,
        entry,
        is_over: false,
    })
}

impl Entry {
    fn has_ended(&self) -> bool {
        lock(&self.state).has_ended()
    }
}

impl Waiter {
    /// Waits until the value is inserted, and returns its words; `None` if it is not made, or was
    /// being inserted already.
    ///
    /// # Panics
    /// If the thread that makes it waits for the calling thread.
    pub(super) fn wait(self, key: &[u8]) -> Option<Box<[u64]>> {
        let thread = thread::current().id();
        let mut waits = lock(&WAITS);
        let mut entry = &self.entry;
        while !entry.has_ended() {
            if entry.maker == thread {
                drop(waits);
                panic!(
                    "the function that makes the value of the key {} asks for that value",
                    shown(key)
                );
            }
            match waits.get(&entry.maker) {
                Some(next) => entry = next,
                None => break,
            }
        }
        waits.insert(thread, self.entry.clone());
        drop(waits);
        let state = lock(&self.entry.state);
        let state = self
            .entry
            .ended
            .wait_while(state, |state| !state.has_ended())
            .unwrap_or_else(PoisonError::into_inner);
        let made = match &*state {
            State::Made(words) if self.is_early => Some(words.clone()),
            _ => None,
        };
        drop(state);
        lock(&WAITS).remove(&thread);
        made
    }
}

/// The right to make the value of a key. Dropping this lets another thread make it.
pub(super) struct Making {
    name: Name,
    entry: Arc<Entry>,
    is_over: bool,
}

impl Making {
    /// Notes that the value will be inserted now.
    pub(super) fn begin_insert(&self) {
        *lock(&self.entry.state) = State::Inserting;
    }

    /// Gives the value with these words, which was inserted, to the threads that wait.
    pub(super) fn end(mut self, words: &[u64]) {
        self.is_over = true;
        self.leave(|| State::Made(words.into()));
    }

    fn leave(&self, state: impl FnOnce() -> State) {
        shard(&self.name).remove(&self.name);
        // Nobody finds the entry any more.
        if Arc::strong_count(&self.entry) > 1 {
            *lock(&self.entry.state) = state();
            self.entry.ended.notify_all();
        }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if !self.is_over {
            self.leave(|| State::Left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(key: &[u8]) -> Part {
        static MAP: u8 = 0;
        super::enter(&raw const MAP as usize, key)
    }

    fn maker(key: &[u8]) -> Making {
        match enter(key) {
            Part::Maker(making) => making,
            Part::Waiter(_) => panic!("another thread makes it"),
        }
    }

    fn waiter(key: &[u8]) -> Waiter {
        match enter(key) {
            Part::Maker(_) => panic!("no other thread makes it"),
            Part::Waiter(waiter) => waiter,
        }
    }

    #[test]
    fn a_thread_that_comes_after_the_insert_gets_no_value() {
        let making = maker(b"one");
        let early = waiter(b"one");
        making.begin_insert();
        let late = waiter(b"one");
        making.end(&[7]);
        assert_eq!(early.wait(b"one").as_deref(), Some(&[7][..]));
        assert_eq!(late.wait(b"one"), None);
        drop(maker(b"one"));
    }

    #[test]
    fn nothing_is_left_of_a_maker_that_has_left() {
        let making = maker(b"two");
        let waiting = waiter(b"two");
        drop(making);
        assert_eq!(waiting.wait(b"two"), None);
        let other = maker(b"two");
        drop(maker(b"three"));
        drop(other);
        drop(maker(b"two"));
    }
}
