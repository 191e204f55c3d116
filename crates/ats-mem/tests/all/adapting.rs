//! Guarantees of the tree under contention: no writer blocks a reader, base nodes are split when
//! writers contend for them, and joined when they do not.

use ats_mem::When;
use ats_mem::{Adaptation, CaTree, Change, Plain, Provided, RecordBox, Records};
use ats_sync::pin;
use fastrand::Rng;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

type Tree = CaTree<Plain>;

/// Time limit of the tests, far longer than needed on a busy machine.
const LONG: Duration = Duration::from_secs(30);

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn put(tree: &Tree, number: u64, value: u64) {
    let key = key(number);
    let done = tree.update(&key, &pin(), &mut |_| {
        Change::Put(RecordBox::new(&key, &[value], false))
    });
    assert_eq!(done, Ok(()));
}

fn fill(numbers: impl Iterator<Item = u64>) -> Tree {
    let tree = Tree::new();
    numbers.for_each(|number| put(&tree, number, number));
    tree
}

fn adaptation(tree: &Tree) -> Adaptation {
    tree.adaptation()
}

const KEYS: u64 = 5000;

/// Creates a tree of all numbers below `KEYS`, in `parts` base nodes of about equal size.
fn split_in(parts: u64) -> Tree {
    let tree = fill(0..KEYS);
    tree.force_adaptation(1, 0);
    for part in 1..parts {
        let number = KEYS * part / parts;
        put(&tree, number, number);
    }
    tree.force_adaptation(0, 0);
    assert_eq!(adaptation(&tree).base_nodes as u64, parts);
    tree
}

/// Reads everywhere with each read operation. The tree has all numbers below `KEYS`, as keys and
/// values.
fn read_everything(tree: &Tree) {
    let guard = pin();
    let value = |record: Option<&ats_mem::Record<Plain>>| record.map(|it| it.value()[0]);
    assert_eq!(value(tree.first(&guard)), Some(0));
    assert_eq!(value(tree.last(&guard)), Some(KEYS - 1));
    for number in 0..KEYS {
        assert_eq!(value(tree.get(&key(number), &guard)), Some(number));
        let next = tree.next(&key(number), &guard).expect("any key will do");
        assert_eq!(value(next), Some(number + 1).filter(|next| *next < KEYS));
        let prev = tree.prev(&key(number), &guard).expect("any key will do");
        assert_eq!(value(prev), number.checked_sub(1));
    }
    let mut met = 0;
    let scanned = tree.scan(None, When::NOW, &guard, &mut |record| {
        assert_eq!(record.value()[0], met);
        met += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((scanned, met), (Ok(()), KEYS));
    assert_eq!(tree.len() as u64, KEYS);
}

/// Runs a test while a writer is parked in the middle of `park`, which calls its argument there.
fn while_parked(
    tree: &Tree,
    park: impl FnOnce(&Tree, &dyn Fn()) + Send,
    meanwhile: impl FnOnce(&Tree) + Send,
) {
    let (parked, is_parked) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (done, is_done) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            park(tree, &|| {
                parked.send(()).expect("somebody waits");
                // An error means that the test has failed already.
                let _ = may_go_on.recv();
            });
        });
        scope.spawn(move || {
            is_parked.recv().expect("the writer comes there");
            meanwhile(tree);
            done.send(()).expect("somebody waits");
        });
        let result = is_done.recv_timeout(LONG);
        drop(go_on);
        result.expect("what others do does not wait for the writer");
    });
}

/// A writer is parked while it holds the lock of the only base node, or of one of several.
#[test]
fn a_parked_writer_stops_no_reader() {
    for parts in [1, 8] {
        let tree = split_in(parts);
        let park = |tree: &Tree, parked: &dyn Fn()| {
            let key = key(KEYS / 2);
            let done = tree.update(&key, &pin(), &mut |_| {
                parked();
                Change::Put(RecordBox::new(&key, &[7], false))
            });
            assert_eq!(done, Ok(()));
        };
        while_parked(&tree, park, |tree| {
            read_everything(tree);
            // The writer does not block a thread that tries to join base nodes, either.
            (0..5).for_each(|_| assert_eq!(tree.join_idle(&pin()), parts == 1));
        });
        let guard = pin();
        let record = tree.get(&key(KEYS / 2), &guard).expect("it is there");
        assert_eq!(record.value()[0], 7);
    }
}

/// A writer is parked in the middle of a batch, with some records installed.
#[test]
fn a_parked_batch_stops_no_reader() {
    let tree = split_in(8);
    let park = |tree: &Tree, parked: &dyn Fn()| {
        let keys = [0, 9, 1000, 3000, KEYS - 1].map(key);
        let keys = keys.each_ref().map(|key| &key[..]);
        let done = tree.update_many(&keys, &pin(), &mut |index, _| {
            if index == 3 {
                parked();
            }
            Change::Put(RecordBox::new(keys[index], &[7], false))
        });
        assert_eq!(done, Ok(true));
    };
    while_parked(&tree, park, |tree| {
        read_everything(tree);
        // Keys of the batch are held, those beside them are not.
        let taken = tree.update(&key(9), &pin(), &mut |_| Change::Remove);
        assert_eq!(taken, Err(ats_mem::Busy));
        put(tree, 10, 10);
    });
    let guard = pin();
    for number in [0, 9, 1000, 3000, KEYS - 1] {
        let record = tree.get(&key(number), &guard).expect("it is there");
        assert_eq!(record.value()[0], 7);
    }
}

/// Disjoint lists of keys are put concurrently; none waits for another, or gives up.
#[test]
fn disjoint_batches_do_not_disturb_each_other() {
    const THREADS: u64 = 4;
    const BATCHES: u64 = 1500;
    for forcing in [0, 3] {
        let tree = Tree::new();
        tree.force_adaptation(forcing, 2 * forcing);
        thread::scope(|scope| {
            for id in 0..THREADS {
                let tree = &tree;
                scope.spawn(move || {
                    let mut random = Rng::with_seed(id + 1);
                    for _ in 0..BATCHES {
                        // The keys are interleaved with those of the others, so that they meet in
                        // all leaves.
                        let first = random.u64(..2000);
                        let keys: Vec<[u8; 8]> = (first..first + 8)
                            .map(|number| key(number * THREADS + id))
                            .collect();
                        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
                        let done = tree.update_many(&keys, &pin(), &mut |index, current| {
                            let before = current.map_or(0, |record| record.value()[0]);
                            Change::Put(RecordBox::new(keys[index], &[before + 1], false))
                        });
                        assert_eq!(done, Ok(true));
                    }
                });
            }
        });
        let mut total = 0;
        let scanned = tree.scan(None, When::NOW, &pin(), &mut |record| {
            total += record.value()[0];
            ControlFlow::Continue(())
        });
        assert_eq!((scanned, total), (Ok(()), THREADS * BATCHES * 8));
    }
}

/// Writes to keys that `next` returns for each thread, until `until` returns `true`. Each write
/// takes a moment, and sleeps now and then, so that writers contend even on few processors that
/// others use, too. Returns the number of writes.
fn write_until(
    tree: &Tree,
    threads: u64,
    next: impl Fn(u64, &mut Rng) -> u64 + Sync,
    until: impl Fn(u64) -> bool,
) -> u64 {
    let (stop, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for id in 0..threads {
            let (stop, writes, next) = (&stop, &writes, &next);
            scope.spawn(move || {
                let mut random = Rng::with_seed(id + 77);
                while !stop.load(Relaxed) {
                    let key = key(next(id, &mut random));
                    let done = tree.update(&key, &pin(), &mut |_| {
                        (0..200).for_each(|_| std::hint::spin_loop());
                        if random.u8(..) < 16 {
                            thread::sleep(Duration::from_micros(20));
                        }
                        Change::Put(RecordBox::new(&key, &[1], false))
                    });
                    assert_eq!(done, Ok(()));
                    writes.fetch_add(1, Relaxed);
                }
            });
        }
        let start = Instant::now();
        while !until(writes.load(Relaxed)) && start.elapsed() < LONG {
            thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Relaxed);
    });
    writes.into_inner()
}

#[test]
fn contended_base_nodes_split_and_join_again() {
    let tree = fill(0..KEYS);
    let anywhere = |_, random: &mut Rng| random.u64(..KEYS);
    write_until(&tree, 3, anywhere, |_| adaptation(&tree).base_nodes > 3);
    let fought = adaptation(&tree);
    assert!(fought.base_nodes > 3 && fought.contended > 0, "{fought:?}");
    let alone = |_| adaptation(&tree).base_nodes == 1;
    let writes = write_until(&tree, 1, anywhere, alone);
    let after = adaptation(&tree);
    assert_eq!(
        (after.base_nodes, after.route_nodes),
        (1, 0),
        "{writes} writes"
    );
    assert_eq!(tree.len() as u64, KEYS);
}

/// Splits do not help writers that contend for one key.
#[test]
fn one_hot_key_does_not_split_again_and_again() {
    let tree = fill(0..KEYS);
    let hot = |_, _: &mut Rng| KEYS / 2;
    let contended = || adaptation(&tree).contended;
    write_until(&tree, 3, hot, |writes| writes > 20_000 && contended() > 100);
    let after = adaptation(&tree);
    assert!(after.contended > 100 && after.base_nodes <= 3, "{after:?}");
}

/// Rows that ascend at one end: writers contend at the end, so splits before it are in vain.
#[test]
fn one_row_does_not_make_many_base_nodes() {
    let (tree, last) = (fill(0..KEYS), AtomicU64::new(KEYS));
    let row = |_, _: &mut Rng| last.fetch_add(1, Relaxed);
    let contended = || adaptation(&tree).contended;
    let enough = |writes| writes > 100_000 && contended() > 1000;
    let writes = write_until(&tree, 3, row, enough);
    let after = adaptation(&tree);
    assert!(after.contended > 1000, "{writes} writes: {after:?}");
    assert!(after.splits < 200, "{writes} writes: {after:?}");
    assert_eq!(tree.len() as u64, last.load(Relaxed));
}

/// Concurrent ascending rows are separated.
#[test]
fn each_row_gets_a_base_node() {
    let (tree, steps) = (Tree::new(), AtomicU64::new(0));
    let rows = |id, _: &mut Rng| (id << 40) + steps.fetch_add(1, Relaxed);
    let parted = |_| adaptation(&tree).base_nodes >= 3;
    let writes = write_until(&tree, 3, rows, parted);
    assert!(parted(0), "{writes} writes: {:?}", adaptation(&tree));
    assert_eq!(tree.len() as u64, steps.load(Relaxed));
}

/// Writes to the lower half of a tree in two parts, after another thread, or the same one, has
/// written to the upper half. Returns the number of writes until the parts are joined.
fn count_writes_until_join(other_thread: bool) -> u64 {
    let tree = split_in(2);
    let write_above = || put(&tree, KEYS - 1, KEYS - 1);
    put(&tree, 0, 0);
    if other_thread {
        thread::scope(|scope| drop(scope.spawn(write_above).join()));
    } else {
        write_above();
    }
    let is_joined = |_: &u64| {
        put(&tree, 1, 1);
        adaptation(&tree).base_nodes == 1
    };
    (1..100_000)
        .find(is_joined)
        .expect("it is joined in the end")
}

/// Two threads that write concurrently, each to its own part, are not brought together again and
/// again.
#[test]
fn parts_of_different_writers_are_joined_late() {
    let alone = count_writes_until_join(false);
    assert!((900..1100).contains(&alone), "{alone} writes");
    let beside_another = count_writes_until_join(true);
    assert!(
        (20_000..40_000).contains(&beside_another),
        "{beside_another} writes"
    );
}

/// A part whose writer has stopped is joined nevertheless.
#[test]
fn idle_parts_of_different_writers_are_joined() {
    let tree = split_in(2);
    put(&tree, 0, 0);
    thread::scope(|scope| drop(scope.spawn(|| put(&tree, KEYS - 1, 7)).join()));
    assert!((0..10).any(|_| tree.join_idle(&pin())));
    assert_eq!(adaptation(&tree).base_nodes, 1);
}
