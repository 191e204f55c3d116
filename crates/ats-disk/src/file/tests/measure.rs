//! How long things take: run with `cargo test --release -p ats-disk -- --ignored --nocapture measure`.

use super::*;
use crate::fs::{FileSystem, RealFs};
use std::hint::black_box;
use std::time::{Duration, Instant};

const KEYS: u64 = 370_000;

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 33)).wrapping_mul(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)).wrapping_mul(0xc4ceb9fe1a85ec53);
    x ^ (x >> 33)
}

fn key_of(number: u64) -> [u8; 24] {
    let mut key = [0; 24];
    key[..8].copy_from_slice(&mix(number).to_be_bytes());
    key[8..16].copy_from_slice(&mix(number + 1_000_000_007).to_be_bytes());
    key[16..].copy_from_slice(&number.to_be_bytes());
    key
}

fn text_key(number: u64) -> [u8; 24] {
    let mut key = [0; 24];
    key.copy_from_slice(format!("user/profile/{:011}", number * 17).as_bytes());
    key
}

/// Time of the processor that this thread has had, so that other programs matter less.
fn cpu() -> Duration {
    let read = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(read.split(' ').next().unwrap().parse().unwrap())
}

fn wanted(what: &str) -> bool {
    std::env::var("MEASURE").map_or(true, |wanted| what.contains(&wanted))
}

fn time<T>(what: &str, count: u64, mut f: impl FnMut() -> T) {
    if !wanted(what) {
        return;
    }
    let mut best = Duration::MAX;
    for _ in 0..7 {
        let start = cpu();
        black_box(f());
        best = best.min(cpu() - start);
    }
    println!("{what:50} {:8.1} ns", best.as_nanos() as f64 / count as f64);
}

fn measure(name: &str, make: impl Fn(u64) -> [u8; 24], options: &Options, value_bytes: usize) {
    let mut keys: Vec<_> = (0..KEYS).map(&make).collect();
    keys.sort();
    let settings = Settings::new(options);
    let value = vec![b'v'; value_bytes];
    let path = std::env::temp_dir().join("ats-measure-run");
    let mut made = None;
    println!("--- {name}");
    for _ in 0..(if wanted("write") { 3 } else { 1 }) {
        let _ = RealFs.remove(&path);
        let file = RealFs.create(&path).unwrap();
        let start = Instant::now();
        let mut writer = FileWriter::new(file, IDENTITY, &settings);
        for key in &keys {
            writer.add(key, Kind::Put, &value).unwrap();
        }
        let added = start.elapsed();
        let meta = writer.finish(1, 1).unwrap();
        let all = start.elapsed();
        let raw = KEYS as f64 * (24.0 + value_bytes as f64);
        println!(
            "write with syncs {:.0} MB/s, finish {:?}, bytes {}, raw {}",
            raw / all.as_secs_f64() / 1e6,
            all - added,
            meta.bytes,
            raw
        );
        made = Some(meta);
    }
    let meta = made.unwrap();
    if wanted("write") {
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let file = Memory::default();
            file.0.lock().bytes.reserve(100 << 20);
            let start = cpu();
            let mut writer = FileWriter::new(Box::new(file), IDENTITY, &settings);
            for key in &keys {
                writer.add(key, Kind::Put, &value).unwrap();
            }
            writer.finish(1, 1).unwrap();
            best = best.min(cpu() - start);
        }
        let raw = KEYS as f64 * (24.0 + value_bytes as f64);
        println!(
            "write to memory {:.0} MB/s, {:.1} ns",
            raw / best.as_secs_f64() / 1e6,
            best.as_nanos() as f64 / KEYS as f64
        );
    }
    let cache = Arc::new(Cache::new(256 << 20));
    let file = RealFs.open(&path).unwrap();
    let file = RunFile::open(file, meta.clone(), IDENTITY, None, Arc::clone(&cache)).unwrap();
    let file = Arc::new(file);
    let run = Arc::new(Run::new(vec![Arc::clone(&file)]).unwrap());
    println!(
        "parts {:?} memory {}",
        file.top().map(|top| top.len()),
        file.memory()
    );
    let order: Vec<usize> = (0..KEYS).map(|i| (mix(i + 77) % KEYS) as usize).collect();
    let look = |which: &dyn Fn(usize) -> [u8; 24]| {
        let mut found = 0u64;
        for &i in &order {
            let key = which(i);
            run.get(&key, key_hash(&key), &mut |_, value| {
                found += value.len() as u64;
                ControlFlow::Break(())
            })
            .unwrap();
        }
        found
    };
    look(&|i| keys[i]);
    println!("cache {:?}", cache.statistics());
    time("get, random, cached", KEYS, || look(&|i| keys[i]));
    time("get of one key", KEYS, || look(&|_| keys[1000]));
    time("get of 1000 keys", KEYS, || look(&|i| keys[i % 1000 * 300]));
    time("get of missing", KEYS, || {
        look(&|i| {
            let mut key = keys[i];
            key[23] ^= 0x80;
            key[22] ^= 0x55;
            key
        })
    });
    for (what, use_cache, ahead) in [("cached", true, 1 << 18), ("not cached", false, 1 << 18)] {
        for direction in [Direction::Up, Direction::Down] {
            let mut cursor = run.cursor(use_cache, ahead);
            time(&format!("cursor {what} {direction:?}"), KEYS, || {
                let mut bytes = 0;
                cursor.seek(direction, None).unwrap();
                while let Some(key) = cursor.key() {
                    bytes += key.len() + cursor.entry(0).1.len();
                    cursor.advance().unwrap();
                }
                bytes
            });
        }
    }
    let small = Arc::new(Cache::new(0));
    let real = RealFs.open(&path).unwrap();
    let uncached = RunFile::open(real, meta.clone(), IDENTITY, None, small).unwrap();
    time("get, random, not cached", KEYS / 10, || {
        for &i in &order[..order.len() / 10] {
            let key = keys[i];
            uncached
                .get(&key, key_hash(&key), &mut |_, _| ControlFlow::Break(()))
                .unwrap();
        }
    });
    time("seek, random, cached", KEYS, || {
        let mut cursor = run.cursor(true, 1 << 18);
        let mut bytes = 0;
        for &i in &order {
            cursor.seek(Direction::Up, Some(&keys[i])).unwrap();
            bytes += cursor.key().unwrap().len();
        }
        bytes
    });
    time("verify", KEYS, || file.verify().unwrap());
    let _ = RealFs.remove(&path);
}

#[test]
#[ignore]
fn measure_all() {
    if std::env::var("SHORT").is_ok() {
        return measure("random keys, 150", key_of, &options(4096), 150);
    }
    measure("random keys, 150", key_of, &options(4096), 150);
    measure("text keys, 150", text_key, &options(4096), 150);
    measure("text keys, 8", text_key, &options(4096), 8);
    let lz4 = Options {
        compression: Compression::Lz4,
        ..options(4096)
    };
    measure("text keys, 150, lz4", text_key, &lz4, 150);
}
