//! Times of writes and reads.

use super::*;
use std::fs;
use std::hint::black_box;
use std::sync::LazyLock;

/// Returns the time for which this thread has had a processor, where the system tells; else the
/// time.
fn processor_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let times = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = times.split(' ').next().and_then(|time| time.parse().ok());
    nanoseconds.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// Nanoseconds that each of so many calls takes.
fn time(count: u64, mut call: impl FnMut(u64)) -> f64 {
    let start = processor_time();
    for index in 0..count {
        call(index);
    }
    (processor_time() - start).as_secs_f64() * 1e9 / count as f64
}

/// Returns a group of several records, or of one.
fn retention(visible: u64, alone: bool) -> Retention<'static> {
    Retention {
        visible: Seq::new(visible),
        snapshots: &[],
        alone,
    }
}

#[test]
fn many_appends_to_one_key_take_no_more_than_their_bytes() {
    let (appends, text) = (
        if cfg!(debug_assertions) {
            5_000
        } else {
            50_000
        },
        [b'x'; 72],
    );
    for alone in [true, false] {
        let append = Append::default();
        let memtable = Memtable::new();
        let start = processor_time();
        for seq in 1..=appends {
            let write = write(Kind::Operand, b"k", &text, seq);
            memtable.apply(write, &retention(seq - 1, alone), Some(&append));
        }
        let applied = processor_time() - start;
        let versions = memtable.versions(b"k").len();
        assert!(versions <= appends.ilog2() as usize + 2, "{versions}");

        let start = processor_time();
        let mut chain = Chain::new();
        let lookup = memtable.get(b"k", appends, false, &mut chain);
        assert_eq!(lookup, Lookup::GoesOn);
        let value = chain.value(b"k", Some(&append)).unwrap().unwrap();
        let read = processor_time() - start;
        assert_eq!(value.len() as u64, 72 * appends);
        println!("{appends} appends: {applied:?}, one read {read:?}, {versions} versions");
        let most = 72 * appends as usize * 2 * appends.ilog2() as usize;
        assert!(append.copied.load(Ordering::Relaxed) < most);
        if !cfg!(debug_assertions) {
            assert!(applied < Duration::from_secs(1) && read < Duration::from_millis(50));
        }
    }
}

#[test]
fn a_hot_counter_costs_the_same_however_often_it_is_written() {
    let memtable = Memtable::new();
    let one = 1_u64.to_le_bytes();
    let increments = if cfg!(debug_assertions) {
        50_000
    } else {
        1_000_000
    };
    for alone in [true, false] {
        let bytes = memtable.bytes();
        let before = if alone { 0 } else { increments };
        let each = time(increments, |index| {
            let seq = before + index + 1;
            let write = write(Kind::Operand, b"k", &one, seq);
            memtable.apply(write, &retention(seq - 1, alone), Some(&Sum));
        });
        println!("hot counter, alone {alone}: {each:.0} ns");
        assert_eq!(memtable.versions(b"k").len(), if alone { 1 } else { 2 });
        assert!(memtable.bytes() < bytes + 200);
    }
    let mut chain = Chain::new();
    let each = time(increments, |_| {
        chain.clear();
        memtable.get(b"k", u64::MAX, false, &mut chain);
        black_box(chain.value(b"k", Some(&Sum)).unwrap());
    });
    println!("read of it: {each:.0} ns");
    let value = chain.value(b"k", Some(&Sum)).unwrap().unwrap();
    assert_eq!(Sum::number(&value), 2 * increments);
}
