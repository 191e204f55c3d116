//! A look at a store that is open, beside writers.

use crate::directory::Directory;
use crate::open;
use ats_disk::fs::RealFs;
use ats_disk::offline::{Salvage, Survey, verify};
use ats_disk::{Batch, Options};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Each batch gives all keys the same value: so have all that are read at a moment. The work of the
/// store causes no fault, and all earlier writes are there.
#[test]
fn a_live_survey_sees_a_moment() {
    let directory = Directory::new();
    let store = open(
        directory.path(),
        &Options::new().memtable_bytes(16 << 10).file_bytes(8 << 10),
    );
    let write = |value: u64| {
        let mut batch = Batch::new();
        for key in 0..50_u8 {
            batch.put(&[key], &value.to_le_bytes()).expect("short");
        }
        store.write(&batch).expect("written");
    };
    write(1);
    store.put(b"first", b"").expect("written");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut value = 1;
            while !stop.load(Ordering::Relaxed) {
                value += 1;
                write(value);
                if value % 100 == 0 {
                    store.compact().expect("compacted");
                }
            }
        });
        let mut last = Vec::new();
        for _ in 0..100 {
            let survey = Survey::live(Arc::new(RealFs), directory.path()).expect("a store");
            assert!(survey.is_live());
            let report = verify(&survey, &mut |_| ControlFlow::Continue(())).expect("read");
            assert_eq!(report.faults, []);
            let mut salvage = Salvage::new(&survey).expect("read");
            let mut values = Vec::new();
            while let Some(record) = salvage.next().expect("read") {
                values.push((record.key, record.value.expect("a value")));
            }
            assert_eq!(values.len(), 51);
            assert_eq!(values.pop(), Some((b"first".to_vec(), Vec::new())));
            assert!(values.iter().all(|(_, value)| *value == values[0].1));
            last.push(u64::from_le_bytes(
                values[0].1[..].try_into().expect("a number"),
            ));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(last.is_sorted(), "{last:?}");
        assert!(last.first() < last.last());
    });
}
