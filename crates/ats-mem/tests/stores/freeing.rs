//! Records are freed while no lock, and no key, is held: freeing can take long.

use ats_mem::{Busy, Change, End, Provided, RecordBox, Records, Release};
use ats_sync::pin;
use fastrand::Rng;
use std::cell::RefCell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Number of keys of the store: enough that leaves and buckets are split and merged all the time.
pub(crate) const KEYS: u64 = 400;
pub(crate) const STEPS: u64 = 6_000;
/// Smallest number of checks when records are freed in this thread.
pub(crate) const ENOUGH: usize = 1_000;

thread_local! {
    /// The connection to the checking thread, in the thread that frees; `None` in other threads.
    static ASKING: RefCell<Option<Asking>> = const { RefCell::new(None) };
}

/// The connection to a thread that checks the store.
pub(crate) struct Asking {
    keys: Vec<u64>,
    ask: Sender<u64>,
    answer: Receiver<Result<(), Busy>>,
    asked: usize,
    /// The first fault found.
    wrong: Option<String>,
}

impl Asking {
    /// Asks whether others can write the keys that the thread has written.
    pub(crate) fn ask(&mut self) {
        for key in &self.keys {
            self.asked += 1;
            self.ask.send(*key).expect("the other thread lives");
            let wrong = match self.answer.recv_timeout(Duration::from_secs(20)) {
                Ok(Ok(())) => continue,
                Ok(Err(Busy)) => "a key is held",
                Err(_) => "a lock is held",
            };
            // The answer will arrive too late to be of use.
            let keys = &self.keys;
            (self.wrong).get_or_insert_with(|| format!("{wrong}: {key} of {keys:?}"));
        }
    }
}

/// Values that ask when they are released.
pub(crate) struct Probing;

impl Release for Probing {
    unsafe fn release(_value: &[u64]) {
        ASKING.with_borrow_mut(|asking| {
            if let Some(asking) = asking.as_mut().filter(|asking| asking.wrong.is_none()) {
                asking.ask();
            }
        });
    }
}

pub(crate) fn owning(key: &[u8], value: u64) -> RecordBox<Probing> {
    RecordBox::new(key, &[value], true)
}

/// Records the keys that the thread is about to write.
pub(crate) fn about_to_write(keys: impl IntoIterator<Item = u64>) {
    ASKING.with_borrow_mut(|asking| {
        let asking = asking.as_mut().expect("set at the beginning");
        asking.keys = keys.into_iter().collect();
    });
}

pub(crate) fn step<S: Records<Probing>>(store: &S, random: &mut Rng) {
    let start = random.u64(..KEYS);
    match random.u64(..6) {
        0 | 1 => {
            about_to_write([start]);
            let key = start.to_be_bytes();
            let insert = |_: Option<&_>| Change::Put(owning(&key, 1));
            assert_eq!(store.update(&key, &pin(), &mut { insert }), Ok(()));
        }
        2 => {
            about_to_write([start]);
            let key = start.to_be_bytes();
            let remove = |_: Option<&_>| Change::Remove;
            assert_eq!(store.update(&key, &pin(), &mut { remove }), Ok(()));
        }
        3 => {
            about_to_write([start]);
            let key = start.to_be_bytes();
            let change = random.u64(..2);
            let decide = |_: Option<&_>| match change {
                0 => Change::Put(owning(&key, 2)),
                _ => Change::Remove,
            };
            assert_eq!(store.update_alone(&key, &pin(), &mut { decide }), Ok(()));
        }
        4 => {
            let end = [End::First, End::Last][random.usize(..2)];
            about_to_write([0, KEYS - 1]);
            let remove = |_: Option<&_>| Change::Remove;
            assert_eq!(store.update_end(end, &pin(), &mut { remove }), Ok(()));
        }
        _ => {
            let end = start + 1 + random.u64(..40);
            about_to_write([start, end - 1]);
            let keys: Vec<_> = (start..end).map(u64::to_be_bytes).collect();
            let keys: Vec<&[u8]> = keys.iter().map(<[u8; 8]>::as_slice).collect();
            let stop = random.usize(..80);
            let done = store.update_many(&keys, &pin(), &mut |index, _| match index % 4 {
                _ if index == stop => Change::Abort,
                0 => Change::Keep,
                _ => Change::Put(owning(keys[index], 3)),
            });
            assert_eq!(done, Ok(stop >= keys.len()));
        }
    }
}

pub(crate) fn is_freed_without_locks<S: Records<Probing> + Default>() {
    let store = &S::default();
    let (ask, asked) = channel();
    let (reply, answer) = channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for key in asked {
                let key = u64::to_be_bytes(key);
                let keep = |_: Option<&_>| Change::Keep;
                if reply
                    .send(store.update(&key, &pin(), &mut { keep }))
                    .is_err()
                {
                    return;
                }
            }
        });
        ASKING.set(Some(Asking {
            keys: Vec::new(),
            ask,
            answer,
            asked: 0,
            wrong: None,
        }));
        store.force_adaptation(50, 50);
        let mut random = Rng::with_seed(5);
        // Threads of other tests hold back the epoch now and then, and free records that this one
        // has retired.
        let goes_on = |steps| {
            ASKING.with_borrow(|asking| {
                let asking = asking.as_ref().expect("set above");
                asking.wrong.is_none() && (steps < STEPS || asking.asked <= ENOUGH)
            })
        };
        let mut steps = 0;
        while steps < 100 * STEPS && goes_on(steps) {
            step(store, &mut random);
            steps += 1;
        }
        let Asking { asked, wrong, .. } = ASKING.take().expect("set above");
        assert_eq!(wrong, None);
        assert!(asked > ENOUGH, "asked {asked} times only");
    });
}
