//! Files and runs of random records, compared with a plain map.

use super::*;
use crate::blocking::BLOCK;
use crate::run_file::bounds::{is_lower, is_upper};
use crate::run_file::index::Index;
use proptest::prelude::*;
use std::iter;

fn key() -> impl Strategy<Value = Vec<u8>> {
    const PREFIX: &[u8] = b"a prefix that all of these keys share/";
    let short = || prop::collection::vec(0..3u8, 0..6);
    prop_oneof![
        4 => short(),
        2 => short().prop_map(|end| [PREFIX, &end].concat()),
        2 => prop::collection::vec(any::<u8>(), 24),
        1 => (any::<u8>(), 100..600usize).prop_map(|(byte, len)| vec![byte % 3; len]),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..40),
        1 => (any::<u8>(), 100..9000usize).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn entries() -> impl Strategy<Value = Entries> {
    let last = prop_oneof![
        5 => value().prop_map(|value| (Kind::Put, value)),
        1 => Just((Kind::Delete, Vec::new())),
        2 => value().prop_map(|value| (Kind::Operand, value)),
    ];
    let operands = prop_oneof![
        8 => Just(Vec::new()),
        2 => prop::collection::vec(value(), 1..4),
        1 => prop::collection::vec(Just(b"x".to_vec()), 15..40),
    ];
    (operands, last).prop_map(|(operands, last)| {
        let operands = operands.into_iter().map(|value| (Kind::Operand, value));
        operands.chain(iter::once(last)).collect()
    })
}

fn records(count: usize) -> impl Strategy<Value = Records> {
    prop::collection::btree_map(key(), entries(), 0..count)
}

fn any_settings() -> impl Strategy<Value = Settings> {
    let block_bytes = prop::sample::select(vec![1, 64, 200, 1000, 4096, 100_000]);
    let part_bytes = prop::sample::select(vec![1, 100, 1000, 16 << 10]);
    let false_positives = prop::sample::select(vec![1.0, 0.3, 0.01]);
    let sizes = (block_bytes, part_bytes, false_positives, any::<bool>());
    sizes.prop_map(|(block_bytes, part_bytes, false_positives, compressed)| {
        let compression = if compressed {
            Compression::Lz4
        } else {
            Compression::None
        };
        let options = Options {
            compression,
            false_positives,
            ..options(block_bytes)
        };
        with_parts(part_bytes, &options)
    })
}

/// Returns the bounds at which keys are sought: a key, beside it, or the end.
fn bounds(records: &Records, keys: &[Vec<u8>]) -> Vec<Option<Vec<u8>>> {
    let above = |key: &Vec<u8>| [&key[..], &[0]].concat();
    let below = |key: &Vec<u8>| key[..key.len().saturating_sub(1)].to_vec();
    let there = records.keys().step_by(1 + records.len() / 20);
    let around = there
        .chain(keys)
        .flat_map(|key| [key.clone(), above(key), below(key)]);
    iter::once(None).chain(around.map(Some)).collect()
}

fn check_cursor(
    cursor: &mut dyn Cursor,
    records: &Records,
    bounds: &[Option<Vec<u8>>],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(cursor.key(), None);
    for (number, bound) in bounds.iter().enumerate() {
        for direction in [Direction::Up, Direction::Down] {
            let keys = if number == 0 { usize::MAX } else { number % 7 };
            let shown = walk(cursor, direction, bound.as_deref(), keys);
            let expected = walk_model(records, direction, bound.as_deref(), keys);
            prop_assert_eq!(shown, Ok(expected), "{:?} from {:?}", direction, bound);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn files_have_the_written_records(
        records in records(80),
        missing in prop::collection::vec(key(), 0..20),
        settings in any_settings(),
        cache_bytes in prop::sample::select(vec![0, 20_000, 1 << 20]),
        read_ahead in prop::sample::select(vec![0, 300, 1 << 18]),
    ) {
        let (memory, meta) = write(IDENTITY, &records, &[], &settings);
        let file = open_with(&memory, &meta, cache_bytes).expect("it was written like that");
        prop_assert_eq!(file.verify(), Ok(()));
        let mut bytes = Vec::new();
        meta.encode(&mut bytes);
        let decoded = FileMeta::decode(&mut Decoder::new(&bytes));
        prop_assert_eq!(decoded.as_ref(), Ok(&meta));

        let all = records.iter().flat_map(|(key, entries)| iter::repeat(key).zip(entries));
        prop_assert_eq!(meta.entries, all.clone().count() as u64);
        let count = |kind| all.clone().filter(|(_, entry)| entry.0 == kind).count() as u64;
        prop_assert_eq!(meta.operands, count(Kind::Operand));
        prop_assert_eq!(meta.deletes, count(Kind::Delete));
        prop_assert_eq!(meta.key_bytes, all.clone().map(|(key, _)| key.len() as u64).sum::<u64>());
        prop_assert_eq!(meta.value_bytes, all.map(|(_, entry)| entry.1.len() as u64).sum::<u64>());
        prop_assert_eq!(meta.bounds().is_some(), !records.is_empty());
        if let (Some((lower, upper)), Some(first), Some(last)) =
            (meta.bounds(), records.keys().next(), records.keys().next_back())
        {
            prop_assert!(is_lower(lower, first) && is_upper(upper, last));
        }

        for key in records.keys().chain(&missing) {
            let expected = records.get(key).cloned().unwrap_or_default();
            prop_assert_eq!(get(&file, key), Ok(expected));
        }
        let bounds = bounds(&records, &missing);
        let mut cursor = FileCursor::new(Arc::clone(&file), false, read_ahead);
        check_cursor(&mut cursor, &records, &bounds)?;
        check_cursor(&mut FileCursor::new(Arc::clone(&file), true, read_ahead), &records, &bounds)?;
    }

    #[test]
    fn a_run_has_the_records_of_its_files(
        records in records(60),
        missing in prop::collection::vec(key(), 0..20),
        splits in prop::collection::vec(0..60usize, 0..6),
        settings in any_settings(),
        use_cache in any::<bool>(),
    ) {
        let mut splits: Vec<_> = splits.iter().map(|split| split % (records.len() + 1)).collect();
        splits.extend([0, records.len()]);
        splits.sort_unstable();
        // A file between two equal splits has no keys, so it has a range delete.
        let mut after: Option<Arc<[u8]>> = None;
        let files = splits.windows(2).zip(0..).map(|(split, number)| {
            let part = records.iter().skip(split[0]).take(split[1] - split[0]);
            let part: Records = part.map(|(key, entries)| (key.clone(), entries.clone())).collect();
            let bound = |number: u8| Some(vec![number]);
            let range = part.is_empty().then(|| (bound(2 * number), bound(2 * number + 1)));
            let identity = Identity { number: FileNumber::new(u64::from(number)), ..IDENTITY };
            let before = records.keys().nth(split[1]).map(|key| &key[..]);
            let between = (after.as_deref(), before);
            let (memory, meta) =
                write_between(identity, &part, range.as_slice(), &settings, between);
            after = meta.last_key.clone().or(after.take());
            open(&memory, &meta)
        });
        let files: Vec<_> = files.collect();
        let ranges: RangeSet = files.iter().flat_map(|file| file.range_deletes().iter()).collect();
        let run = Run::new(files.into_iter().rev().collect());
        let run = Arc::new(run.expect("the files do not overlap"));
        let deleted = run.range_deletes().map(|deleted| &**deleted);
        prop_assert_eq!(deleted, Some(&ranges).filter(|ranges| !ranges.is_empty()));
        for key in records.keys().chain(&missing) {
            let mut shown = Entries::new();
            let done = run.get(BLOCK, key, key_hash(key), &mut |kind, value| {
                shown.push((kind, value.to_vec()));
                ControlFlow::Continue(())
            });
            prop_assert_eq!(done, Ok(()));
            let expected = records.get(key).cloned().unwrap_or_default();
            prop_assert_eq!(shown, expected);
            prop_assert_eq!(run.covers(key), ranges.covers(key));
        }
        let bounds = bounds(&records, &missing);
        check_cursor(&mut run.cursor(use_cache, 1000), &records, &bounds)?;
    }
}

#[test]
fn a_lookup_ends_where_it_is_told_to() {
    let chain: Entries = (0..5).map(|number| (Kind::Operand, vec![number])).collect();
    let records = Records::from([(b"k".to_vec(), chain)]);
    let (memory, meta) = write(IDENTITY, &records, &[], &settings(4096));
    let mut shown = 0;
    let done = open(&memory, &meta).get(BLOCK, b"k", key_hash(b"k"), &mut |_, value| {
        shown += 1;
        match value {
            [2] => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!((done, shown), (Ok(()), 3));
}

#[test]
fn large_files_have_several_parts_and_are_written_in_chunks() {
    let records = numbered_records(60_000, 100);
    let (memory, meta) = write(IDENTITY, &records, &[], &settings(4096));
    let file = open(&memory, &meta);
    assert!(file.top().is_some_and(|top| top.len() > 3));
    let top = file.top().map(Index::memory);
    assert!(top.is_some_and(|bytes| bytes < 4096), "{top:?}");
    assert_eq!(file.verify(), Ok(()));
    for number in (0..60_000).step_by(97) {
        let key = format!("key-{number:08}").into_bytes();
        assert_eq!(get(&file, &key).as_ref(), Ok(&records[&key]));
        let missing = [&key[..], b"?"].concat();
        assert_eq!(get(&file, &missing), Ok(Entries::new()));
    }
    let mut cursor = FileCursor::new(Arc::clone(&file), false, 1 << 18);
    let up = walk(&mut cursor, Direction::Up, None, usize::MAX).expect("it is not damaged");
    assert!(up.iter().map(|(key, entries)| (key, entries)).eq(&records));
    let down = walk(&mut cursor, Direction::Down, None, usize::MAX).expect("it is not damaged");
    assert!(
        down.iter()
            .map(|(key, entries)| (key, entries))
            .eq(records.iter().rev())
    );
}

#[test]
fn files_of_a_run_do_not_overlap() {
    let file = |number, keys: [&str; 2]| {
        let identity = Identity {
            number: FileNumber::new(number),
            ..IDENTITY
        };
        let records = keys.map(|key| (key.as_bytes().to_vec(), put(b"")));
        let records = Records::from(records);
        let (memory, meta) = write(identity, &records, &[], &settings(4096));
        open(&memory, &meta)
    };
    let is_run =
        |a: &Arc<RunFile>, b: &Arc<RunFile>| Run::new(vec![Arc::clone(a), Arc::clone(b)]).is_ok();
    let a = file(1, ["b", "d"]);
    assert!(is_run(&a, &file(2, ["e", "f"])));
    assert!(is_run(&a, &file(2, ["a", "az"])));
    assert!(!is_run(&a, &file(2, ["d", "f"])));
    assert!(!is_run(&a, &file(2, ["c", "c"])));
    assert!(!is_run(&a, &file(2, ["a", "z"])));
}
