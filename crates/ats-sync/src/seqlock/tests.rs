use super::*;
use std::sync::atomic::AtomicBool;
use std::thread;

#[test]
fn reads_return_the_number_published_last() {
    let records = SeqlockNumber::new(-3);
    assert_eq!(records.read(), Some(-3));
    let mut published = 0;
    for number in [-3, 4, 4, i64::MIN, 0] {
        records.publish(number, || published += 1);
        assert_eq!(records.read(), Some(number));
    }
    assert_eq!(published, 5);
}

#[test]
fn readers_beside_a_publisher_see_both_or_neither() {
    let (records, visible, end) = (
        SeqlockNumber::new(0),
        AtomicU64::new(0),
        AtomicBool::new(false),
    );
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    let before = visible.load(Ordering::Acquire) as i64;
                    let number = records.read().expect("this thread may wait");
                    let after = visible.load(Ordering::Acquire) as i64;
                    assert!(before <= number && number <= after);
                }
            });
        }
        for number in 1..=200_000 {
            records.publish(number, || {
                visible.store(number as u64, Ordering::Release);
            });
        }
        end.store(true, Ordering::Relaxed);
    });
}
