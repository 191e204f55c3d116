//! Tests of records of all shapes.

use super::*;
use crate::slab;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

fn check(record: &RecordBox<Plain>, key: &[u8], value: &[u64], header: usize) {
    assert_eq!(record.key(), key);
    assert_eq!(record.value(), value);
    assert!(!record.owns());
    let needed = header + key.len().div_ceil(8) * 8 + value.len() * 8;
    assert_eq!(record.bytes(), slab::block_size(needed));
    assert!(ptr::eq(
        record.resolve(&ats_sync::pin()).unwrap(),
        &raw const **record
    ));
}

#[test]
fn key_and_value_of_every_length_come_back() {
    for key_len in (0..40).chain(120..140) {
        for value_len in (0..6).chain(250..260) {
            let key: Vec<u8> = (0..key_len).map(|i| i as u8 ^ 0xa5).collect();
            let value: Vec<u64> = (0..value_len).map(|i| u64::MAX - i).collect();
            let fits = key_len < 128 && value_len < 256;
            let record = RecordBox::<Plain>::new(&key, &value, false);
            check(&record, &key, &value, if fits { 8 } else { 24 });
            // Every second entry has no room in tests.
            for entry in [1 << 20, (1 << 20) + 8, 1 << 60, (1 << 20) + 1] {
                let entry = ptr::without_provenance_mut(entry);
                let record = RecordBox::<Plain>::new(&key, &value, false).with_room_for(entry);
                let wide = !fits || entry.addr() != (1 << 20) + 8;
                check(&record, &key, &value, if wide { 24 } else { 8 });
                record.set_stamp(entry);
                assert_eq!(record.header.stamp(), entry);
                assert_eq!((record.key(), record.value()), (&key[..], &value[..]));
                record.set_stamp(ptr::null_mut());
                check(&record, &key, &value, if wide { 24 } else { 8 });
            }
        }
    }
}

#[test]
fn a_long_key_and_a_long_value_come_back() {
    for (key_len, value_len) in [(100_000, 3), (3, 100_000), (100_000, 100_000)] {
        let (key, value) = (vec![7; key_len], vec![u64::MAX; value_len]);
        check(&RecordBox::new(&key, &value, false), &key, &value, 24);
    }
}

static RELEASED: AtomicUsize = AtomicUsize::new(0);

struct Count;

impl Release for Count {
    unsafe fn release(value: &[u64]) {
        RELEASED.fetch_add(value[0] as usize, Ordering::Relaxed);
    }
}

#[test]
fn the_shape_that_means_wide_is_wide_itself() {
    let (key, value) = ([1; 127], [2; 255]);
    let record = RecordBox::<Plain>::new(&key, &value, true);
    assert!(record.header.shape().wide && record.owns());
    assert_eq!((record.key(), record.value()), (&key[..], &value[..]));
    let record = RecordBox::<Plain>::new(&key, &value, false);
    assert!(!record.header.shape().wide && !record.owns());
}

#[test]
fn an_owning_record_releases_once() {
    drop(RecordBox::<Count>::new(b"k", &[7], true));
    drop(RecordBox::<Count>::new(b"k", &[1000], false));
    let raw = RecordBox::<Count>::new(b"k", &[5], true).into_raw();
    // SAFETY: `raw` was just given away here.
    drop(unsafe { RecordBox::from_raw(raw) });
    // A copy with room for any stamp takes over the resources of the value.
    let far = ptr::without_provenance(usize::MAX);
    let wide = RecordBox::<Count>::new(b"k", &[30], true).with_room_for(far);
    assert!(wide.owns() && wide.header.shape().wide);
    assert_eq!(RELEASED.load(Ordering::Relaxed), 12);
    drop(wide);
    assert_eq!(RELEASED.load(Ordering::Relaxed), 42);
}
