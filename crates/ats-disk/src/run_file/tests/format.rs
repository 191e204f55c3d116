//! The format does not change unnoticed: files of it are kept.

use super::*;

const GOLDEN: &[u8] = include_bytes!("../../../tests/golden/run-1");
const GOLDEN_LZ4: &[u8] = include_bytes!("../../../tests/golden/run-1-lz4");

/// Returns the content of both files, whose operator is called `append`.
fn golden(compression: Compression) -> (Records, Vec<Range>, Settings) {
    let mut records = Records::new();
    for number in 0..60u32 {
        let key = format!("user/{:05}", number * 37);
        let kind = match number % 7 {
            3 => (Kind::Delete, Vec::new()),
            5 => (Kind::Operand, format!("+{number}").into_bytes()),
            _ => (Kind::Put, format!("value of {number}").into_bytes()),
        };
        records.insert(key.into_bytes(), vec![kind]);
    }
    records.insert(Vec::new(), put(b"the empty key"));
    records.insert(vec![0xff; 40], put(&[b'z'; 700]));
    let operands = (0..20u8).map(|number| (Kind::Operand, vec![number; 3]));
    let chain = operands.chain([(Kind::Put, b"base".to_vec())]);
    records.insert(b"user/00100/chain".to_vec(), chain.collect());
    let bound = |key: &str| Some(key.as_bytes().to_vec());
    let ranges = vec![
        (None, bound("a")),
        (bound("user/00500"), bound("user/00600")),
        (bound("x"), None),
    ];
    let options = Options {
        compression,
        operator: Some(Arc::new(Append)),
        ..options(400)
    };
    (records, ranges, with_parts(100, &options))
}

struct Append;

impl ats_store::MergeOperator for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn version(&self) -> u32 {
        3
    }

    fn merge(
        &self,
        _key: &[u8],
        earlier: &[u8],
        later: &[u8],
    ) -> Result<ats_store::Merged, ats_store::Error> {
        Ok(ats_store::Merged::New([earlier, later].concat()))
    }
}

#[test]
fn a_writer_makes_the_same_bytes_as_ever() {
    // The output of LZ4 may change with its version; any can be read.
    let (records, ranges, settings) = golden(Compression::None);
    let (memory, _) = write(IDENTITY, &records, &ranges, &settings);
    let bytes = memory.bytes();
    if bytes != GOLDEN {
        // The file shows the difference.
        let path = std::env::temp_dir().join("run-1");
        let written = std::fs::write(&path, &bytes);
        panic!(
            "the format is another one; see {} ({written:?})",
            path.display()
        );
    }
}

#[test]
fn files_of_format_1_are_read() {
    let operator = (String::from("append"), 3);
    let (records, ranges, settings) = golden(Compression::Lz4);
    let (_, written) = write(IDENTITY, &records, &ranges, &settings);
    for bytes in [GOLDEN, GOLDEN_LZ4] {
        let meta = FileMeta {
            bytes: bytes.len() as u64,
            ..written.clone()
        };
        let file = Box::new(Memory::holding(bytes));
        let cache = Arc::new(BlockCache::new(1 << 20));
        let file = RunFile::open(file, meta, IDENTITY, Some(&operator), cache);
        let file = Arc::new(file.expect("it is not damaged"));
        assert_eq!(file.verify(), Ok(()));
        let shown = walk(
            &mut FileCursor::new(Arc::clone(&file), false, 0),
            Direction::Up,
            None,
            usize::MAX,
        );
        let expected = walk_model(&records, Direction::Up, None, usize::MAX);
        assert_eq!(shown, Ok(expected));
        for (key, entries) in &records {
            assert_eq!(get(&file, key).as_ref(), Ok(entries));
        }
        assert_eq!(file.range_deletes().len(), 3);
        let deleted = file.range_deletes();
        assert!(deleted.covers(b"user/00555") && !deleted.covers(b"user/00600"));
    }
    assert!(GOLDEN_LZ4.len() < GOLDEN.len() * 3 / 4);
}

#[test]
fn a_later_format_is_told_from_a_damaged_file() {
    let mut bytes = GOLDEN.to_vec();
    let version = bytes.len() - 8 - 8 - 4;
    bytes[version] = 2;
    let (records, ranges, settings) = golden(Compression::None);
    let (_, meta) = write(IDENTITY, &records, &ranges, &settings);
    let newer = Error::NewerFormat {
        file: String::from("run file 42"),
        found: 2,
        known: 1,
    };
    let opened = open_with(&Memory::holding(&bytes), &meta, 0);
    assert_eq!(opened.err(), Some(newer));
}
