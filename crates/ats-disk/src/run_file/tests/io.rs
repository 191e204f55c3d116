//! The reads and writes, their moments, and the effects of errors of the system.

use super::*;
use crate::blocking::BLOCK;
use crate::run_file::index::Index;
use crate::run_file::part::Part;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

#[test]
fn opening_reads_only_the_end_and_a_lookup_one_part_and_one_block() {
    let (memory, meta) = write(
        IDENTITY,
        &numbered_records(60_000, 100),
        &[],
        &settings(4096),
    );
    let file = open(&memory, &meta);
    let reads = memory.take_reads();
    assert_eq!(reads.len(), 1);
    assert!(reads[0].1 <= 8 << 10);
    let key = b"key-00012345";
    assert_eq!(get(&file, key).map(|entries| entries.len()), Ok(1));
    let reads = memory.take_reads();
    assert_eq!(reads.len(), 2);
    assert!(reads[0].1 < 5 << 10 && reads[1].1 < 5 << 10, "{reads:?}");
    for near in [key, b"key-00012346"] {
        assert_eq!(get(&file, near).map(|entries| entries.len()), Ok(1));
        assert_eq!(memory.take_reads(), []);
    }
    let missing = (0..1000).map(|number| format!("key-0001234{}-{number}", number % 10));
    let found = missing.map(|key| get(&file, key.as_bytes()).map(|entries| entries.len()));
    assert!(found.into_iter().all(|found| found == Ok(0)));
    assert!(memory.take_reads().len() <= 2);
}

#[test]
fn long_keys_make_a_longer_footer_that_is_read_separately() {
    let records = Records::from([(vec![1; 10_000], put(b"a")), (vec![2; 10_000], put(b"b"))]);
    // Bounds are as long where they must not reach neighbouring keys.
    let near = ([1; 9_999], [2; 10_001]);
    let between = (Some(&near.0[..]), Some(&near.1[..]));
    let (memory, meta) = write_between(IDENTITY, &records, &[], &settings(4096), between);
    let file = open(&memory, &meta);
    assert_eq!(memory.take_reads().len(), 3);
    assert_eq!(file.verify(), Ok(()));
    assert_eq!(get(&file, &[2; 10_000]), Ok(put(b"b")));
}

#[test]
fn cursors_read_ahead_and_short_walks_do_not() {
    let (memory, meta) = write(
        IDENTITY,
        &numbered_records(60_000, 100),
        &[],
        &settings(4096),
    );
    let file = open(&memory, &meta);
    memory.take_reads();
    let blocks_end = file.blocks_extent().1;
    for direction in [Direction::Up, Direction::Down] {
        let mut cursor = FileCursor::new(Arc::clone(&file), false, 1 << 18);
        let keys = walk(&mut cursor, direction, None, usize::MAX).map(|shown| shown.len());
        assert_eq!(keys, Ok(60_000));
        let reads = memory.take_reads();
        let (blocks, parts): (Vec<_>, Vec<_>) =
            reads.iter().partition(|(offset, _)| *offset < blocks_end);
        assert!(parts.len() < 5 && parts.iter().all(|(_, length)| *length <= 64 << 10));
        assert!(
            blocks.len() as u64 <= blocks_end / (1 << 18) * 11 / 10 + 2,
            "{}",
            blocks.len()
        );
        assert!(blocks.iter().all(|(_, length)| *length <= 1 << 18));
    }
    let mut cursor = FileCursor::new(Arc::clone(&file), true, 1 << 18);
    let shown = walk(&mut cursor, Direction::Up, Some(b"key-00030000"), 10);
    assert_eq!(shown.map(|shown| shown.len()), Ok(10));
    let read: usize = memory.take_reads().iter().map(|(_, length)| length).sum();
    assert!(read < 13 << 10, "{read}");
    let all = walk(&mut cursor, Direction::Up, None, usize::MAX).map(|shown| shown.len());
    assert_eq!(all, Ok(60_000));
    assert!(memory.take_reads().len() < 120);
}

#[test]
fn a_walk_of_a_whole_file_uses_cached_blocks() {
    let (memory, meta) = write(IDENTITY, &numbered_records(2000, 100), &[], &settings(4096));
    let file = open(&memory, &meta);
    for expected in [true, false, false] {
        memory.take_reads();
        let shown = walk(
            &mut FileCursor::new(Arc::clone(&file), true, 0),
            Direction::Up,
            None,
            usize::MAX,
        );
        assert_eq!(shown.map(|shown| shown.len()), Ok(2000));
        assert_eq!(!memory.take_reads().is_empty(), expected);
    }
}

#[test]
fn a_file_holds_parts_as_long_as_it_is_open() {
    let records = numbered_records(2000, 20);
    let settings = with_parts(300, &options(200));
    let (memory, meta) = write(IDENTITY, &records, &[], &settings);
    let read_all = |file: &Arc<RunFile>| {
        for (key, entries) in &records {
            assert_eq!(get(file, key).as_ref(), Ok(entries));
        }
    };
    let parts = |file: &RunFile| file.top().map_or(0, Index::len);

    // The cache has room for all parts: each is read once.
    let file = open(&memory, &meta);
    assert!(parts(&file) > 20);
    // The index of the parts takes memory.
    let opened = file.cache.statistics().bytes;
    assert!(opened > 20 * parts(&file) as u64);
    read_all(&file);
    let held = file.held_bytes.load(Ordering::Relaxed);
    assert!(held > 100 * parts(&file));
    assert!(file.parts.iter().all(|part| part.get().is_some()));
    let cache = Arc::clone(&file.cache);
    let with_file = cache.statistics().bytes;
    drop(file);
    assert_eq!(with_file - cache.statistics().bytes, held as u64 + opened);

    // The cache has room for some parts.
    let file = open_with(&memory, &meta, 20_000).expect("opened");
    read_all(&file);
    let holds = |part: &&OnceLock<Arc<Part>>| part.get().is_some();
    let some = file.parts.iter().filter(holds).count();
    assert!(some > 0 && some < parts(&file));
    assert!(file.held_bytes.load(Ordering::Relaxed) <= 20_000 / 4);
}

#[test]
fn syncs_are_spread_over_the_file() {
    let (memory, meta) = write(
        IDENTITY,
        &numbered_records(200_000, 100),
        &[],
        &settings(4096),
    );
    let syncs = memory.0.lock().syncs.clone();
    assert_eq!(
        *syncs.last().expect("there is one at least"),
        meta.bytes as usize
    );
    assert!(syncs.len() >= meta.bytes as usize / (10 << 20));
    assert!(syncs.windows(2).all(|pair| pair[1] - pair[0] < 10 << 20));
}

#[test]
fn a_writer_knows_about_how_long_the_file_will_be() {
    let memory = Memory::default();
    let mut writer = FileWriter::new(Box::new(memory.clone()), IDENTITY, &settings(4096));
    for (key, entries) in numbered_records(20_000, 50) {
        assert_eq!(writer.add(&key, entries[0].0, &entries[0].1), Ok(()));
    }
    let estimate = writer.bytes();
    let finished = writer.finish(Seq::new(1), Seq::new(1), &RangeSet::new(), (None, None));
    let meta = finished.expect("memory does not fail");
    assert!(
        estimate.abs_diff(meta.bytes) < meta.bytes / 20,
        "{estimate} {}",
        meta.bytes
    );
}

#[test]
fn entries_in_a_wrong_order_are_refused() {
    let memory = Memory::default();
    let mut writer = FileWriter::new(Box::new(memory.clone()), IDENTITY, &settings(4096));
    let mut add = |key: &[u8], kind, value: &[u8]| writer.add(key, kind, value);
    let ok = Ok(());
    assert_eq!(add(b"b", Kind::Operand, b"2"), ok);
    assert_eq!(add(b"b", Kind::Put, b"1"), ok);
    for (key, kind, value) in [
        (&b"b"[..], Kind::Put, &b"0"[..]),
        (b"b", Kind::Operand, b"0"),
        (b"a", Kind::Put, b""),
        (b"", Kind::Put, b""),
        (b"c", Kind::Delete, b"value"),
    ] {
        assert!(matches!(add(key, kind, value), Err(Error::Corrupt(_))));
    }
    assert_eq!(add(b"bb", Kind::Delete, b""), ok);
    let finished = writer.finish(Seq::new(1), Seq::new(1), &RangeSet::new(), (None, None));
    let meta = finished.expect("memory does not fail");
    let empty = FileWriter::new(Box::<Memory>::default(), IDENTITY, &settings(4096));
    let finished = empty.finish(Seq::new(2), Seq::new(1), &RangeSet::new(), (None, None));
    assert!(matches!(finished, Err(Error::Corrupt(_))));
    assert_eq!((meta.entries, meta.operands, meta.deletes), (3, 1, 1));
    assert_eq!(open(&memory, &meta).verify(), ok);
}

#[test]
fn every_error_of_the_system_is_told() {
    let records = numbered_records(5000, 1000);
    let write = |fails_after| {
        let memory = Memory::default();
        memory.0.lock().fails_after = fails_after;
        let mut writer = FileWriter::new(Box::new(memory.clone()), IDENTITY, &settings(4096));
        for (key, entries) in &records {
            writer.add(key, entries[0].0, &entries[0].1)?;
        }
        writer
            .finish(Seq::new(1), Seq::new(1), &RangeSet::new(), (None, None))
            .map(|meta| (memory, meta))
    };
    let is_io = |error: Error| matches!(error, Error::Io { .. });
    let calls = (0..1000).find(|&calls| match write(Some(calls)) {
        Ok(_) => true,
        Err(error) => {
            assert!(is_io(error));
            false
        }
    });
    assert!(calls.is_some_and(|calls| calls > 5));

    let (memory, meta) = write(None).expect("memory does not fail");
    let read = |fails_after| {
        memory.0.lock().fails_after = fails_after;
        let file = open_with(&memory, &meta, 0)?;
        let key = b"key-00000001";
        assert_eq!(get(&file, key)?, records[&key[..]]);
        let mut cursor = FileCursor::new(Arc::clone(&file), false, 1 << 20);
        let shown = walk(&mut cursor, Direction::Up, None, usize::MAX);
        assert!(shown.is_ok() || cursor.key().is_none());
        let run = Arc::new(Run::new(vec![Arc::clone(&file)])?);
        let mut cursor = run.cursor(true, 1 << 20);
        let walked = shown.and_then(|_| walk(&mut cursor, Direction::Down, None, usize::MAX));
        assert!(walked.is_ok() || cursor.key().is_none());
        walked?;
        file.verify()
    };
    let calls = (0..1000).find(|&calls| match read(Some(calls)) {
        Ok(()) => true,
        Err(error) => {
            assert!(is_io(error));
            false
        }
    });
    assert!(calls.is_some_and(|calls| calls > 20));
}

#[test]
fn a_file_of_which_a_write_has_failed_is_not_finished() {
    let memory = Memory::default();
    let mut writer = FileWriter::new(Box::new(memory.clone()), IDENTITY, &settings(4096));
    memory.0.lock().fails_after = Some(0);
    let value = vec![7; 2 << 20];
    let failed = (0..3u8).find_map(|key| writer.add(&[key], Kind::Put, &value).err());
    assert!(failed.is_some());
    memory.0.lock().fails_after = None;
    assert_eq!(
        writer
            .finish(Seq::new(1), Seq::new(1), &RangeSet::new(), (None, None))
            .err(),
        failed
    );
}

#[test]
fn a_cursor_goes_on_after_an_error_if_it_is_sought_again() {
    let records = numbered_records(1000, 100);
    let (memory, meta) = write(IDENTITY, &records, &[], &settings(4096));
    let file = open(&memory, &meta);
    let mut cursor = FileCursor::new(Arc::clone(&file), false, 0);
    assert_eq!(cursor.seek(BLOCK, Direction::Up, None), Ok(()));
    memory.0.lock().fails_after = Some(0);
    let failed = (0..1000).find_map(|_| cursor.advance(BLOCK).err());
    assert!(failed.is_some_and(|error| error.to_string().contains("run file 42 at offset")));
    assert_eq!(cursor.key(), None);
    memory.0.lock().fails_after = None;
    let shown = walk(&mut cursor, Direction::Down, None, usize::MAX);
    assert_eq!(
        shown,
        Ok(walk_model(&records, Direction::Down, None, usize::MAX))
    );
}

#[test]
fn a_file_of_range_deletes_only_has_no_keys() {
    let ranges = [(None, Some(b"b".to_vec())), (Some(b"x".to_vec()), None)];
    let (memory, meta) = write(IDENTITY, &Records::new(), &ranges, &settings(4096));
    assert_eq!((meta.first_key.as_deref(), meta.range_deletes), (None, 2));
    let file = open(&memory, &meta);
    assert_eq!(file.verify(), Ok(()));
    assert_eq!(get(&file, b"a"), Ok(Entries::new()));
    let covers = |key: &[u8]| file.range_deletes().covers(key);
    let covered = [&b""[..], b"b", b"c", b"x", b"y"].map(covers);
    assert_eq!(covered, [true, false, false, true, true]);
    let shown = walk(
        &mut FileCursor::new(Arc::clone(&file), true, 0),
        Direction::Down,
        None,
        1,
    );
    assert_eq!(shown, Ok(Vec::new()));
    let run = Arc::new(Run::new(vec![file]).expect("it does not overlap itself"));
    assert!(run.covers(b"a") && run.bounds().is_none());
    let shown = walk(&mut run.cursor(true, 0), Direction::Up, Some(b"a"), 1);
    assert_eq!(shown, Ok(Vec::new()));
}
