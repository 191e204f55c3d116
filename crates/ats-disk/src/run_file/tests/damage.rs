//! Files that are not as they were written: reads give an error or the right answer.

use super::*;
use crate::run_file::block::Block;
use crate::run_file::block_cursor::BlockCursor;
use crate::run_file::frame::{Content as FrameContent, seal};
use crate::run_file::part::Part;
use proptest::prelude::*;

/// Returns a file with everything: blocks, compressed and not, several parts, chains, range
/// deletes.
fn small() -> (Records, Vec<Range>, Settings) {
    let mut records = numbered_records(12, 1);
    records.insert(b"".to_vec(), put(b"of the empty key"));
    records.insert(b"key-00000003x".to_vec(), vec![(Kind::Delete, Vec::new())]);
    let operand = |value: &str| (Kind::Operand, value.as_bytes().to_vec());
    let chain = vec![
        operand("newest"),
        operand("older"),
        (Kind::Put, b"base".to_vec()),
    ];
    records.insert(b"key-00000005x".to_vec(), chain);
    records.insert(b"key-00000006x".to_vec(), put(&[b'x'; 80]));
    let ranges = vec![
        (None, Some(b"b".to_vec())),
        (Some(b"key-00000009".to_vec()), None),
    ];
    let options = Options {
        compression: Compression::Lz4,
        ..options(64)
    };
    (records, ranges, with_parts(60, &options))
}

/// All that can be read of a file. Each part gives an error or the right answer. Returns `true` if
/// there was an error.
fn read_all(memory: &Memory, meta: &FileMeta, records: &Records, ranges: &[Range]) -> bool {
    let Ok(file) = open_with(memory, meta, 1 << 20) else {
        return true;
    };
    let mut failed = file.verify().is_err();
    let mut check = |read: Result<bool, Error>| match read {
        Ok(right) => assert!(right),
        Err(_) => failed = true,
    };
    for (key, entries) in records {
        check(get(&file, key).map(|shown| shown == *entries));
        check(get(&file, &[key, &b"?"[..]].concat()).map(|shown| shown.is_empty()));
    }
    for use_cache in [false, true] {
        for direction in [Direction::Up, Direction::Down] {
            let shown = walk(
                &mut FileCursor::new(Arc::clone(&file), use_cache, 100),
                direction,
                None,
                usize::MAX,
            );
            let expected = walk_model(records, direction, None, usize::MAX);
            check(shown.map(|shown| shown == expected));
        }
    }
    let read = file.range_deletes().iter().map(|range| {
        (
            range.low.map(<[u8]>::to_vec),
            range.high.map(<[u8]>::to_vec),
        )
    });
    check(Ok(read.eq(ranges.iter().cloned())));
    failed
}

#[test]
fn no_bit_can_flip_without_an_error() {
    let (records, ranges, settings) = small();
    let (memory, meta) = write(IDENTITY, &records, &ranges, &settings);
    assert!(!read_all(&memory, &meta, &records, &ranges));
    let file = open(&memory, &meta);
    assert!(file.top().is_some_and(|top| top.len() > 1));
    let bytes = memory.bytes();
    for bit in 0..8 * bytes.len() {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let damaged = Memory::holding(&bytes);
        assert!(read_all(&damaged, &meta, &records, &ranges), "bit {bit}");
    }
}

#[test]
fn files_that_are_cut_or_longer_are_refused() {
    let (records, ranges, settings) = small();
    let (memory, meta) = write(IDENTITY, &records, &ranges, &settings);
    let bytes = memory.bytes();
    for len in 0..bytes.len() {
        let truncated = Memory::holding(&bytes[..len]);
        assert!(matches!(
            open_with(&truncated, &meta, 0),
            Err(Error::Corrupt(_))
        ));
        // The manifest might be wrong, too.
        let shorter = FileMeta {
            bytes: len as u64,
            ..meta.clone()
        };
        assert!(open_with(&truncated, &shorter, 0).is_err());
    }
    let longer = Memory::holding(&[&bytes[..], b"x"].concat());
    assert!(open_with(&longer, &meta, 0).is_err());
}

#[test]
fn other_files_are_refused() {
    let (records, ranges, settings) = small();
    let (memory, meta) = write(IDENTITY, &records, &ranges, &settings);
    let open_as = |identity: Identity, meta: &FileMeta, operator: Option<&OperatorId>| {
        let cache = Arc::new(BlockCache::new(0));
        RunFile::open(
            Box::new(memory.clone()),
            meta.clone(),
            identity,
            operator,
            cache,
        )
        .err()
    };
    assert_eq!(open_as(IDENTITY, &meta, None), None);
    let store = Identity {
        store: 1,
        ..IDENTITY
    };
    let number = Identity {
        number: FileNumber::new(43),
        ..IDENTITY
    };
    for other in [store, number] {
        let error = open_as(other, &meta, None);
        let told = error.map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains("is not the file that is expected"), "{told}");
    }
    let other = FileMeta {
        deletes: meta.deletes + 1,
        ..meta.clone()
    };
    assert!(matches!(
        open_as(IDENTITY, &other, None),
        Some(Error::Corrupt(_))
    ));
    let given = (String::from("sum"), 1);
    let operator = Error::OtherOperator {
        stored: None,
        given: Some(given.clone()),
    };
    assert_eq!(open_as(IDENTITY, &meta, Some(&given)), Some(operator));
}

#[test]
fn a_block_at_a_wrong_offset_is_refused() {
    let (memory, meta) = write(IDENTITY, &numbered_records(100, 20), &[], &settings(64));
    let file = open(&memory, &meta);
    let part = file
        .part(BLOCK, file.top().expect("it has keys"), 0)
        .expect("it is not damaged");
    let (first, second) = (part.blocks.piece(1), part.blocks.piece(2));
    assert_eq!(first.1, second.1);
    let mut bytes = memory.bytes();
    let from = second.0 as usize..(second.0 + second.1) as usize;
    bytes.copy_within(from, first.0 as usize);
    let file = open(&Memory::holding(&bytes), &meta);
    let error = get(&file, b"key-00000001")
        .err()
        .map(|error| error.to_string());
    let told = error.unwrap_or_default();
    assert!(
        told.contains("run file 42 at offset") && told.contains("checksum"),
        "{told}"
    );
    assert!(file.verify().is_err());
}

/// Returns the bytes of a block that are changed, truncated, or anything, but pass the checksum.
fn strange_block() -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4);
    let changed = (changes, 0..4u8).prop_map(|(changes, restarts)| {
        let mut builder = block_builder::BlockBuilder::default();
        let mut out = Vec::new();
        builder.begin(&out);
        for number in 0..20u8 {
            let key = [b'k', number];
            builder.add(
                &mut out,
                usize::from(number > 0),
                &key,
                Kind::Operand,
                &[number; 3],
            );
            if number % 5 == 0 {
                builder.add_older(&mut out, Kind::Put, b"older");
            }
        }
        builder.finish(&mut out);
        for (index, byte) in changes {
            let at = index.index(out.len());
            out[at] = byte;
        }
        if restarts > 0 {
            let at = out.len() - 4;
            out[at] = restarts;
        }
        out
    });
    prop_oneof![3 => changed, 1 => prop::collection::vec(any::<u8>(), 0..200)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn strange_blocks_do_no_harm(
        bytes in strange_block(),
        key in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let len = bytes.len();
        let Ok(block) = Block::new(&bytes) else {
            return Ok(());
        };
        let mut shown = 0;
        let _ = block.get(&key, &mut |_, value| {
            shown += 1 + value.len();
            ControlFlow::Continue(())
        });
        prop_assert!(shown <= len);
        let mut walk = BlockCursor::new(block);
        for bound in [None, Some(&key[..])] {
            let mut steps = 0;
            let mut stands = walk.seek_up(bound);
            while let Ok(true) = stands {
                prop_assert!(walk.key().len() <= len);
                (0..walk.entries()).for_each(|index| shown += walk.entry(index).1.len());
                steps += 1;
                stands = walk.step_up();
            }
            prop_assert!(steps <= len);
            // Restart points need not ascend, so that all of them may show all records.
            let mut stands = walk.seek_down(bound);
            while let Ok(true) = stands {
                prop_assert!(walk.key().len() <= len);
                steps += 1;
                stands = walk.step_down();
            }
            prop_assert!(steps <= len * len);
        }
    }

    #[test]
    fn strange_parts_do_no_harm(
        bytes in prop::collection::vec(prop_oneof![0..6u8, any::<u8>()], 0..80),
        key in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        if let Ok(part) = Part::new(&bytes) {
            let _ = part.filter.may_contain(key_hash(&key));
            let (start, length) = part.blocks.piece(part.blocks.find(&key));
            prop_assert!(start.checked_add(length).is_some());
            prop_assert!(part.memory() < 1000 + 60 * bytes.len());
        }
        let _ = RangeSet::decode(&bytes);
        let _ = FileMeta::decode(&mut Decoder::new(&bytes));
    }
}

/// A top that passes its checksum, but leads anywhere.
#[test]
fn offsets_that_lead_anywhere_do_no_harm() {
    let (memory, meta) = write(IDENTITY, &numbered_records(50, 1), &[], &settings(64));
    let file = open(&memory, &meta);
    let (offset, length) = file.read_end().expect("it is not damaged").top_extent;
    let bytes = memory.bytes();
    let content = &bytes[offset as usize..(offset + length) as usize - frame::TRAILER_BYTES];
    // One part: its number, its offset, its length.
    for (index, value) in (0..4).flat_map(|index| [0u8, 1, 0x3f, 0x7f].map(|value| (index, value)))
    {
        let mut content = content.to_vec();
        let Some(byte) = content.get_mut(index) else {
            continue;
        };
        *byte = *byte & 0x80 | value;
        let seed = IDENTITY.seed(offset);
        let mut scratch = Vec::new();
        seal(
            &mut content,
            0,
            FrameContent::Top,
            Compression::None,
            seed,
            &mut scratch,
        );
        let mut bytes = bytes.clone();
        bytes[offset as usize..(offset + length) as usize].copy_from_slice(&content);
        let damaged = Memory::holding(&bytes);
        if bytes == memory.bytes() {
            continue;
        }
        if let Ok(file) = open_with(&damaged, &meta, 1000) {
            assert!(file.verify().is_err());
            let _ = get(&file, b"key-00000007");
            let _ = walk(
                &mut FileCursor::new(Arc::clone(&file), false, 1000),
                Direction::Down,
                None,
                1000,
            );
        }
    }
}
