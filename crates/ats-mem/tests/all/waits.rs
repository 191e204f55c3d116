//! A thread that must not wait gives up on a lock that is never released.

use ats_mem::{Busy, CaTree, Change, HashTable, Plain, Provided, RecordBox, Records};
use ats_sync::{lock, pin};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

thread_local! {
    static MUST_NOT_WAIT: Cell<bool> = const { Cell::new(false) };
}

fn gives_up(store: &impl Records<Plain>) {
    lock::set_may_wait(|| !MUST_NOT_WAIT.get());
    let (is_held, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let put = |value| {
        let record = RecordBox::new(b"key", &[value], false);
        store.put(b"key", record, &pin()).map(drop)
    };
    assert_eq!(put(1), Ok(()));
    thread::scope(|scope| {
        scope.spawn(|| {
            let kept = store.update(b"key", &pin(), &mut |_| {
                is_held.store(true, Ordering::Release);
                while !is_over.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                Change::Keep
            });
            assert_eq!(kept, Ok(()));
        });
        while !is_held.load(Ordering::Acquire) {
            thread::yield_now();
        }
        MUST_NOT_WAIT.set(true);
        let written = put(2);
        let removed = store.remove(b"key", &pin()).map(drop);
        let totals = store.totals().map(|totals| totals.objects);
        let begun = store
            .begin(&mut || Ok(false))
            .map(|read_point| read_point.is_some());
        let read = store.get(b"key", &pin()).map(|record| record.value()[0]);
        MUST_NOT_WAIT.set(false);
        is_over.store(true, Ordering::Release);
        assert_eq!((written, removed), (Err(Busy), Err(Busy)));
        assert_eq!((totals, begun), (Err(Busy), Err(Busy)));
        assert_eq!(read, Some(1), "readers wait for nobody");
    });
    assert_eq!(put(3), Ok(()));
    assert_eq!(store.totals().map(|totals| totals.objects), Ok(1));
}

#[test]
fn a_lock_of_the_tree_is_not_waited_for_too_long() {
    gives_up(&CaTree::new());
}

#[test]
fn a_lock_of_the_hash_table_is_not_waited_for_too_long() {
    gives_up(&HashTable::new());
}
