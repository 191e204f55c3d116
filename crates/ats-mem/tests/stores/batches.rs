//! Batches end cleanly after any event in the middle of them.

use ats_mem::{Change, Plain, Provided, Record, RecordBox, Records, Release};
use ats_sync::{Guard, pin};
use std::cell::RefCell;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

pub(crate) fn value<R: Release>(store: &impl Records<R>, key: &[u8]) -> Option<u64> {
    store.get(key, &pin()).map(|record| record.value()[0])
}

pub(crate) fn put<R: Release>(store: &impl Records<R>, key: &[u8], value: u64, owns: bool) {
    let put = store.update(key, &pin(), &mut |_| {
        Change::Put(RecordBox::new(key, &[value], owns))
    });
    assert_eq!(put, Ok(()));
}

/// Puts `new` under each key, except that the key with index `stop` gets `last`.
pub(crate) fn batch<'g, R: Release>(
    store: &'g impl Records<R>,
    keys: &[&[u8]],
    new: u64,
    owns: bool,
    guard: &'g Guard,
    stop: usize,
    mut last: impl FnMut() -> Change<R>,
) -> Result<bool, ats_mem::Busy> {
    store.update_many(keys, guard, &mut |index, _: Option<&Record<R>>| {
        if index == stop {
            last()
        } else {
            Change::Put(RecordBox::new(keys[index], &[new], owns))
        }
    })
}

/// Values that count owned units: each record owns as many units as its value.
pub(crate) struct Units;

pub(crate) static UNITS: AtomicI64 = AtomicI64::new(0);

impl Release for Units {
    unsafe fn release(value: &[u64]) {
        UNITS.fetch_add(value[0] as i64, Ordering::Relaxed);
    }
}

pub(crate) const KEYS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];

pub(crate) fn a_panic_undoes_the_batch(store: impl Records<Plain>) {
    put(&store, b"b", 1, false);
    put(&store, b"d", 1, false);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        batch(&store, &KEYS, 2, false, &pin(), 2, || {
            panic!("in the middle")
        })
    }));
    assert!(panicked.is_err());
    let found: Vec<Option<u64>> = KEYS.iter().map(|key| value(&store, key)).collect();
    assert_eq!(found, [None, Some(1), None, Some(1)]);
    assert_eq!(store.len(), 2);
    // Keys must not be held any more, and batches work as before.
    for key in KEYS {
        put(&store, key, 3, false);
    }
    let done = batch(&store, &KEYS, 4, false, &pin(), 2, || Change::Keep);
    assert_eq!(done, Ok(true));
    assert_eq!(KEYS.map(|key| value(&store, key)), [4, 4, 3, 4].map(Some));
}

pub(crate) fn every_way_out_releases_once(store: impl Records<Units>) -> i64 {
    let mut expected = 0;
    for key in KEYS {
        put(&store, key, 1, true);
        expected += 1;
    }
    let aborted = batch(&store, &KEYS, 10, true, &pin(), 3, || Change::Abort);
    assert_eq!(aborted, Ok(false));
    expected += 3 * 10;
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        batch(&store, &KEYS, 100, true, &pin(), 1, || {
            panic!("in the middle")
        })
    }));
    assert!(panicked.is_err());
    expected += 100;
    let done = batch(&store, &KEYS, 1000, true, &pin(), 9, || Change::Keep);
    assert_eq!(done, Ok(true));
    expected += 4 * 1000;
    drop(store);
    expected
}

/// The set of epochs in which a thread was pinned.
#[derive(Default)]
pub(crate) struct Epochs(HashSet<u64>);

impl Epochs {
    /// Records the current epoch. If it is new, waits until the next one has begun; the one after
    /// that does not begin until the thread repins.
    pub(crate) fn look(&mut self) {
        let guard = pin();
        let epoch = guard.epoch();
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.0.insert(epoch) || guard.is_still(epoch) {
            let _ = guard.grace().is_over();
            assert!(Instant::now() < deadline, "another thread stays pinned");
            std::thread::yield_now();
        }
    }
}

thread_local! {
    /// The epochs seen when values are released, after a thread has unpinned. `None` in threads of
    /// other tests, which may free garbage of this one and must not wait.
    static RELEASING: RefCell<Option<Epochs>> = const { RefCell::new(None) };
}

/// Returns the number of epochs seen since the last call in this thread.
pub(crate) fn epochs_released_in() -> usize {
    RELEASING
        .replace(Some(Epochs::default()))
        .map_or(0, |epochs| epochs.0.len())
}

/// Values that record the epoch when released.
pub(crate) struct Looking;

impl Release for Looking {
    unsafe fn release(_value: &[u64]) {
        RELEASING.with_borrow_mut(|releasing| releasing.as_mut().map(Epochs::look));
    }
}

/// Number of pieces of keys in the long batches.
pub(crate) const PIECES: usize = 24;

/// Writes many keys, and gives up at the end or does not. Returns in how many epochs it was pinned
/// while it decided, and while it ended.
pub(crate) fn epochs_of<S: Records<Looking>>(
    store: &S,
    is_long: bool,
    gives_up: bool,
) -> (usize, usize) {
    let count = PIECES * ats_mem::batch::PIECE;
    let keys: Vec<_> = (0..count as u64).map(u64::to_be_bytes).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let mut deciding = Epochs::default();
    let mut plan = |index: usize, _: Option<&Record<Looking>>| {
        deciding.look();
        if index + 1 == count {
            epochs_released_in();
            if gives_up {
                return Change::Abort;
            }
        }
        // Some are kept, and some are replaced.
        match index % 4 {
            3 => Change::Keep,
            _ => Change::Put(RecordBox::new(keys[index], &[1], true)),
        }
    };
    let guard = (!is_long).then(pin);
    let done = match &guard {
        None => store.update_long_batch(&keys, &mut plan),
        Some(guard) => store.update_batch(&keys, guard, &mut plan),
    };
    let ending = epochs_released_in();
    assert_eq!(done, Ok(!gives_up));
    RELEASING.take();
    (deciding.0.len(), ending)
}

pub(crate) fn a_long_batch_pins_anew<S: Records<Looking> + Default>() {
    let store = S::default();
    let round = |gives_up| {
        let (deciding, ending) = epochs_of(&store, true, gives_up);
        assert!(deciding >= PIECES, "{deciding} epochs");
        ending
    };
    // The first batch replaces no records; later ones free records replaced before.
    round(false);
    round(false);
    // Other tests that stay pinned can delay the freeing of retired records until the end, so one
    // success in several rounds is enough.
    let pins_anew = |_| round(true) >= PIECES / 2;
    assert!((0..50).any(pins_anew), "too few epochs at the end");
    round(false);
    let (deciding, ending) = epochs_of(&store, false, false);
    assert!(deciding <= 1 && ending == 0, "pinned by its caller");
}

/// A plan that keeps all keys but the last, which it defers: so it can read the store while it
/// holds them.
pub(crate) struct Keeping<'a, S> {
    store: &'a S,
    keys: [&'static [u8]; 6],
    gives_up: bool,
}

impl<S: Records<Plain>> ats_store::BatchPlan<Record<Plain>, RecordBox<Plain>> for Keeping<'_, S> {
    fn decide(&mut self, index: usize, _: Option<&Record<Plain>>) -> Change<Plain> {
        match index {
            4 => Change::Later,
            5 if self.gives_up => Change::Abort,
            _ => Change::Keep,
        }
    }

    fn build(&mut self, _: usize, _: Option<&Record<Plain>>) -> Change<Plain> {
        // The keys are held, including missing ones, and readers see their old records.
        for (index, key) in self.keys[..5].iter().enumerate() {
            let busy = self.store.update(key, &pin(), &mut |_| Change::Remove);
            assert_eq!(busy, Err(ats_mem::Busy));
            assert_eq!(value(self.store, key), (index < 3).then_some(1));
        }
        Change::Keep
    }
}

/// A batch leaves the records that it keeps where they are, whether it commits or gives up. All
/// threads see them meanwhile, and can write them as soon as the batch has ended.
pub(crate) fn records_kept_by_a_batch_stay<S: Records<Plain> + Default>() {
    let keys: [&[u8]; 6] = [b"a", b"b", b"c", b"d", b"e", b"f"];
    let store = S::default();
    let address = |key| store.get(key, &pin()).map(std::ptr::from_ref);
    for key in &keys[..3] {
        put(&store, key, 1, false);
    }
    for gives_up in [false, true, false] {
        let (before, len) = (keys.map(address), store.len());
        let mut plan = Keeping {
            store: &store,
            keys,
            gives_up,
        };
        assert_eq!(store.update_batch(&keys, &pin(), &mut plan), Ok(!gives_up));
        assert_eq!((keys.map(address), store.len()), (before, len));
        for key in keys {
            assert_eq!(store.update(key, &pin(), &mut |_| Change::Keep), Ok(()));
        }
    }
}

/// Only the key of a record is held while the record is built: other keys can be written, and the
/// old record can be read.
pub(crate) fn only_the_key_is_held<S: Records<Plain> + Default>() {
    /// Counts how often it builds.
    struct Late<'a, S>(&'a S, usize, Option<Change<Plain>>);

    impl<S: Records<Plain>> ats_store::BatchPlan<Record<Plain>, RecordBox<Plain>> for Late<'_, S> {
        fn decide(&mut self, index: usize, _: Option<&Record<Plain>>) -> Change<Plain> {
            match index {
                1 => Change::Later,
                _ => Change::Keep,
            }
        }

        fn build(&mut self, index: usize, current: Option<&Record<Plain>>) -> Change<Plain> {
            let old = current.map(|record| record.value()[0]);
            assert_eq!((index, old), (1, value(self.0, b"b")));
            let busy = self.0.update(b"b", &pin(), &mut |_| Change::Remove);
            assert_eq!(busy, Err(ats_mem::Busy));
            // A key that was decided, and kept, before.
            let busy = self.0.update(b"a", &pin(), &mut |_| Change::Remove);
            assert_eq!(busy, Err(ats_mem::Busy));
            for key in [b"c", b"d"] {
                put(self.0, key, 7, false);
            }
            self.1 += 1;
            self.2.take().expect("built once")
        }
    }

    let is_there = |store: &S, key| value(store, key);
    for old in [None, Some(1)] {
        for new in [None, Some(2)] {
            let store = S::default();
            if let Some(old) = old {
                put(&store, b"a", old, false);
                put(&store, b"b", old, false);
            }
            let change = new.map_or(Change::Keep, |new| {
                Change::Put(RecordBox::new(b"b", &[new], false))
            });
            let mut plan = Late(&store, 0, Some(change));
            let keys: [&[u8]; 2] = [b"a", b"b"];
            assert_eq!(store.update_long_batch(&keys, &mut plan), Ok(true));
            assert_eq!(plan.1, 1);
            assert_eq!(is_there(&store, b"a"), old);
            assert_eq!(is_there(&store, b"b"), new.or(old));
            let there = 2 + usize::from(old.is_some()) + usize::from(new.or(old).is_some());
            assert_eq!(store.len(), there);
            // The batch holds no key any more.
            for key in &KEYS {
                put(&store, key, 9, false);
            }
            assert_eq!(KEYS.map(|key| value(&store, key)), [Some(9); 4]);
        }
    }
}

/// A plan that removes each key after a long decision.
struct Removing;

impl ats_store::BatchPlan<Record<Plain>, RecordBox<Plain>> for Removing {
    fn decide(&mut self, _: usize, _: Option<&Record<Plain>>) -> Change<Plain> {
        Change::Later
    }

    fn build(&mut self, _: usize, _: Option<&Record<Plain>>) -> Change<Plain> {
        Change::Remove
    }
}

pub(crate) fn a_held_key_is_removed<S: Records<Plain> + Default>(is_fixed: bool) {
    let store = S::default();
    for key in &KEYS {
        put(&store, key, 1, false);
    }
    let bytes = store.bytes();
    if is_fixed {
        store.fix();
    }
    let second = store
        .next(b"b", &pin())
        .map(|next| next.map(|next| next.key().to_vec()));
    for _ in 0..2 {
        assert_eq!(store.update_long_batch(&[b"b"], &mut Removing), Ok(true));
        assert_eq!((value(&store, b"b"), store.len()), (None, 3));
    }
    if is_fixed {
        let now = store
            .next(b"b", &pin())
            .map(|next| next.map(|next| next.key().to_vec()));
        assert_eq!(now, second);
        store.unfix();
        assert!(store.tidy(100, &pin()));
    }
    put(&store, b"b", 2, false);
    assert_eq!((value(&store, b"b"), store.len()), (Some(2), 4));
    assert_eq!(store.bytes(), bytes);
}

pub(crate) fn wait_until_released(expected: i64) {
    // Other tests of this program may hold back the epoch for a moment.
    for _ in 0..1000 {
        ats_sync::collect();
        if UNITS.load(Ordering::Relaxed) >= expected {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(UNITS.load(Ordering::Relaxed), expected);
}
