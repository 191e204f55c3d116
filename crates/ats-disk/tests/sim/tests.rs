//! Tests of the simulator itself.

use crate::sim::action::Fate;
use crate::sim::content::PAGE;
use crate::sim::disk::Disk;
use crate::sim::fault::{Break, Calls, EIO, ENOSPC, EROFS, Fault};
use crate::sim::fs::SimFs;
use crate::sim::random::Random;
use crate::sim::survival::Survival;
use ats_disk::fs::{File, FileSystem, Sharing};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

const DIRECTORY: &str = "/d";

fn path(name: &str) -> std::path::PathBuf {
    Path::new(DIRECTORY).join(name)
}

/// Returns a machine with an empty directory.
fn machine() -> SimFs {
    let fs = SimFs::new(Disk::default());
    fs.create_dir(Path::new(DIRECTORY))
        .expect("there is no fault");
    fs
}

/// Returns a machine with a durable file.
fn machine_with(content: &[u8]) -> (SimFs, Box<dyn File>) {
    let fs = machine();
    let file = fs.create(&path("a")).expect("it is not there");
    file.write_at(content, 0).expect("there is room");
    file.sync().expect("there is no fault");
    fs.sync_dir(Path::new(DIRECTORY))
        .expect("there is no fault");
    (fs, file)
}

/// Returns all files of a disk.
fn files(disk: &Disk) -> BTreeMap<String, Vec<u8>> {
    let names = disk
        .names(Path::new(DIRECTORY))
        .expect("the directory is durable");
    let file =
        |(name, file): (&std::sync::Arc<str>, &_)| (name.to_string(), disk.content(*file).bytes());
    names.iter().map(file).collect()
}

fn survives(fs: &SimFs, survival: Survival) -> BTreeMap<String, Vec<u8>> {
    files(&survival.image(&fs.disk()))
}

fn content(file: &dyn File) -> Vec<u8> {
    let mut bytes = vec![0; file.len().expect("there is no fault") as usize];
    let read = file.read_at(&mut bytes, 0).expect("there is no fault");
    assert_eq!(read, bytes.len());
    bytes
}

fn of<const N: usize>(files: [(&str, &[u8]); N]) -> BTreeMap<String, Vec<u8>> {
    files
        .map(|(name, content)| (name.to_string(), content.to_vec()))
        .into()
}

fn number(result: io::Result<()>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

#[test]
fn names_and_contents_are_durable_apart_from_each_other() {
    let fs = machine();
    let file = fs.create(&path("a")).expect("it is not there");
    file.write_at(b"12345", 0).expect("there is room");
    assert_eq!(survives(&fs, Survival::Nothing), of([]));
    assert_eq!(survives(&fs, Survival::Everything), of([("a", b"12345")]));
    assert_eq!(survives(&fs, Survival::Names), of([("a", b"")]));
    assert_eq!(
        survives(&fs, Survival::NamesAndLengths),
        of([("a", b"\0\0\0\0\0")])
    );
    assert_eq!(survives(&fs, Survival::Contents), of([]));
    file.sync().expect("there is no fault");
    assert_eq!(survives(&fs, Survival::Nothing), of([]));
    assert_eq!(survives(&fs, Survival::Names), of([("a", b"12345")]));
    fs.sync_dir(Path::new(DIRECTORY))
        .expect("there is no fault");
    assert_eq!(survives(&fs, Survival::Nothing), of([("a", b"12345")]));
}

#[test]
fn writes_survive_in_any_part() {
    let (fs, file) = machine_with(b"12345");
    file.set_len(2).expect("there is no fault");
    file.write_at(b"abc", 2).expect("there is room");
    file.write_at(b"d", 7).expect("there is room");
    assert_eq!(content(&*file), b"12abc\0\0d");
    let a = |survival| {
        survives(&fs, survival)
            .remove("a")
            .expect("its name is durable")
    };
    assert_eq!(a(Survival::Nothing), b"12345");
    assert_eq!(a(Survival::Without(0)), b"12abc\0\0d");
    assert_eq!(a(Survival::Without(1)), b"12\0\0\0\0\0d");
    assert_eq!(a(Survival::Only(1)), b"12abc");
    assert_eq!(a(Survival::Only(2)), b"12345\0\0d");
    assert_eq!(a(Survival::First(2)), b"12abc");
    let torn = |grown| Survival::Torn {
        write: 1,
        bytes: 1,
        grown,
    };
    assert_eq!(a(torn(false)), b"12a\0\0\0\0d");
    let image = |fates: [Fate; 3]| files(&fs.disk().image(&fates)).remove("a");
    let lost = Fate::Lost;
    let torn = |grown| Fate::Torn { bytes: 1, grown };
    let is = |image: Option<Vec<u8>>, expected: &[u8]| assert_eq!(image.as_deref(), Some(expected));
    is(image([Fate::Kept, torn(false), lost]), b"12a");
    is(image([Fate::Kept, torn(true), lost]), b"12a\0\0");
    is(image([lost, torn(true), lost]), b"12a45");
}

#[test]
fn sectors_survive_alone() {
    let (fs, file) = machine_with(b"");
    let bytes: Vec<u8> = (0..1500).map(|at| 1 + (at / 500) as u8).collect();
    file.write_at(&bytes, 100).expect("there is room");
    let image = files(&fs.disk().image(&[Fate::Sectors(0b101)])).remove("a");
    let image = image.expect("its name is durable");
    assert_eq!(image.len(), 1600);
    for (at, byte) in image.into_iter().enumerate() {
        let is_kept = (100..512).contains(&at) || (1024..1536).contains(&at);
        assert_eq!(byte, if is_kept { bytes[at - 100] } else { 0 }, "{at}");
    }
}

#[test]
fn reserved_bytes_read_as_zeros() {
    let (fs, file) = machine_with(b"12");
    file.reserve(5).expect("there is room");
    file.write_at(b"34", 2).expect("there is room");
    assert_eq!(content(&*file), b"1234\0");
    let a = |survival| survives(&fs, survival).remove("a");
    assert_eq!(a(Survival::Nothing).as_deref(), Some(&b"12"[..]));
    assert_eq!(a(Survival::Only(0)).as_deref(), Some(&b"12\0\0\0"[..]));
    assert_eq!(a(Survival::Only(1)).as_deref(), Some(&b"1234"[..]));
    file.sync().expect("there is no fault");
    assert_eq!(a(Survival::Nothing).as_deref(), Some(&b"1234\0"[..]));
}

#[test]
fn a_rename_leads_to_the_old_file_or_the_new_one() {
    let (fs, _file) = machine_with(b"old");
    let new = fs.create(&path("b")).expect("it is not there");
    new.write_at(b"new", 0).expect("there is room");
    new.sync().expect("there is no fault");
    fs.rename(&path("b"), &path("a")).expect("it is there");
    assert_eq!(fs.list(Path::new(DIRECTORY)).expect("it is there"), ["a"]);
    let image = |fates: [Fate; 2]| files(&fs.disk().image(&fates));
    let (lost, kept) = (Fate::Lost, Fate::Kept);
    assert_eq!(image([lost, lost]), of([("a", b"old")]));
    assert_eq!(image([kept, lost]), of([("a", b"old"), ("b", b"new")]));
    assert_eq!(image([lost, kept]), of([("a", b"new")]));
    assert_eq!(image([kept, kept]), of([("a", b"new")]));
    let both = Fate::Torn {
        bytes: 0,
        grown: false,
    };
    assert_eq!(image([kept, both]), of([("a", b"new"), ("b", b"new")]));
    fs.remove(&path("a")).expect("it is there");
    assert_eq!(survives(&fs, Survival::Only(2)), of([("a", b"old")]));
    assert_eq!(survives(&fs, Survival::Everything), of([]));
}

#[test]
fn a_failed_sync_loses_visible_writes() {
    for (how, left) in [
        (Break::Nothing(EIO), &b"12345"[..]),
        (Break::Half(EIO), b"ab345"),
        (Break::All(EIO), b"abcde"),
    ] {
        let (fs, file) = machine_with(b"12345");
        file.write_at(b"ab", 0).expect("there is room");
        file.write_at(b"cde", 2).expect("there is room");
        fs.set_fault(Some(Fault {
            at: 0,
            of: Calls::SYNC,
            how,
            forever: false,
        }));
        assert_eq!(number(file.sync()), Some(EIO));
        assert!(fs.is_hit());
        file.sync().expect("the next sync says that all is well");
        assert_eq!(content(&*file), b"abcde");
        assert_eq!(survives(&fs, Survival::Everything), of([("a", left)]));
        file.write_at(b"z", 4).expect("there is room");
        file.sync().expect("there is no fault");
        let left = [&left[..4], b"z"].concat();
        assert_eq!(survives(&fs, Survival::Nothing), of([("a", &left)]));
    }
    let fs = machine();
    fs.create(&path("a")).expect("it is not there");
    fs.set_fault(Some(Fault {
        at: 0,
        of: Calls::SYNC_DIR,
        how: Break::Nothing(EIO),
        forever: false,
    }));
    assert_eq!(number(fs.sync_dir(Path::new(DIRECTORY))), Some(EIO));
    assert_eq!(number(fs.sync_dir(Path::new(DIRECTORY))), None);
    assert_eq!(fs.list(Path::new(DIRECTORY)).expect("it is there"), ["a"]);
    assert_eq!(survives(&fs, Survival::Everything), of([]));
}

#[test]
fn calls_fail_once_or_from_then_on() {
    let (fs, file) = machine_with(b"");
    let fault = |how, forever| Fault {
        at: 1,
        of: Calls::WRITE,
        how,
        forever,
    };
    let writes = |times: usize| -> Vec<Option<i32>> {
        (0..times)
            .map(|_| number(file.write_at(b"ab", 0)))
            .collect()
    };
    fs.set_fault(Some(fault(Break::Nothing(ENOSPC), false)));
    assert_eq!(writes(3), [None, Some(ENOSPC), None]);
    fs.set_fault(Some(fault(Break::Half(EIO), true)));
    assert_eq!(writes(3), [None, Some(EIO), Some(EIO)]);
    assert_eq!(number(file.sync()), None);
    fs.set_fault(None);
    file.set_len(0).expect("there is no fault");
    for (how, left) in [
        (Break::Nothing(EIO), &b"AB"[..]),
        (Break::Half(EIO), b"aB"),
        (Break::All(EIO), b"ab"),
    ] {
        file.write_at(b"AB", 0).expect("there is room");
        fs.set_fault(Some(Fault {
            at: 0,
            ..fault(how, false)
        }));
        assert_eq!(number(file.write_at(b"ab", 0)), Some(EIO));
        assert_eq!(content(&*file), left);
    }
    let before = fs.calls();
    fs.set_fault(Some(fault(Break::Stop, false)));
    assert!(file.write_at(b"cd", 0).is_ok());
    assert!(file.write_at(b"ef", 0).is_err());
    assert!(file.read_at(&mut [0; 2], 0).is_err());
    assert!(fs.list(Path::new(DIRECTORY)).is_err());
    assert_eq!(fs.calls(), before + 2);
    assert_eq!(survives(&fs, Survival::Everything), of([("a", b"cd")]));
}

#[test]
fn a_full_disk_has_room_again_when_files_are_gone() {
    let fs = machine();
    fs.set_capacity(Some(6 * PAGE as u64));
    let a = fs.create(&path("a")).expect("there is room");
    a.reserve(2 * PAGE as u64).expect("there is room");
    let b = fs.create(&path("b")).expect("there is room");
    assert_eq!(fs.used_bytes(), 4 * PAGE as u64);
    assert_eq!(number(b.reserve(3 * PAGE as u64)), Some(ENOSPC));
    assert_eq!(number(b.write_at(&[1; 3 * PAGE], 10)), Some(ENOSPC));
    assert_eq!(content(&*b), [&[0; 10][..], &[1; 2 * PAGE - 10]].concat());
    let error = fs
        .create(&path("c"))
        .err()
        .and_then(|error| error.raw_os_error());
    assert_eq!(error, Some(ENOSPC));
    a.write_at(&[2; 2 * PAGE], 0).expect("it was reserved");
    fs.remove(&path("a")).expect("it is there");
    assert_eq!(number(b.write_at(b"x", 2 * PAGE as u64)), Some(ENOSPC));
    assert_eq!(content(&*a), [2; 2 * PAGE]);
    drop(a);
    b.write_at(b"x", 2 * PAGE as u64)
        .expect("there is room again");
    b.set_len(0).expect("there is no fault");
    assert_eq!(fs.used_bytes(), PAGE as u64);
}

#[test]
fn an_end_of_the_process_leaves_all_that_was_written() {
    let (fs, file) = machine_with(b"1");
    let lock = |fs: &SimFs, sharing| fs.lock(Path::new(DIRECTORY), sharing);
    let held = lock(&fs, Sharing::Exclusive).expect("it is free");
    assert!(lock(&fs, Sharing::Exclusive).is_err() && lock(&fs, Sharing::Shared).is_err());
    file.write_at(b"2", 1).expect("there is room");
    let next = fs.kill();
    assert!(file.write_at(b"3", 2).is_err());
    assert!(fs.open(&path("a")).is_err());
    let reads = lock(&next, Sharing::Shared).expect("it is free again");
    drop(held);
    let others = lock(&next, Sharing::Shared).expect("it is shared");
    drop(reads);
    assert!(lock(&next, Sharing::Exclusive).is_err());
    drop(others);
    assert!(lock(&next, Sharing::Exclusive).is_ok());
    let file = next.open(&path("a")).expect("it is there");
    assert_eq!(content(&*file), b"12");
    assert_eq!(survives(&next, Survival::Nothing), of([("a", b"1")]));
    // A machine that begins with an image of the disk has its pending writes.
    let other = SimFs::new(Survival::Process.image(&next.disk()));
    let file = other.open(&path("a")).expect("it is there");
    assert_eq!(survives(&other, Survival::Nothing), of([("a", b"1")]));
    file.sync().expect("there is no fault");
    assert_eq!(survives(&other, Survival::Nothing), of([("a", b"12")]));
    assert_eq!(survives(&next, Survival::Nothing), of([("a", b"1")]));
}

#[test]
fn an_open_directory_stays_where_it_is() {
    let (fs, _file) = machine_with(b"1");
    let (here, there) = (Path::new(DIRECTORY), Path::new("/e"));
    let held = fs.open_dir(here).expect("it is there");
    fs.turn(here, Some(there));
    let turned = fs.open_dir(here).expect("it is there");
    assert_eq!(turned.list().expect("there is no fault"), [""; 0]);
    assert_eq!(held.list().expect("there is no fault"), ["a"]);
    held.create("b").expect("it is not there");
    assert_eq!(turned.list().expect("there is no fault"), [""; 0]);
    fs.turn(here, None);
    assert!(fs.open_dir(here).is_err());
    fs.turn_back();
    let back = fs.open_dir(here).expect("it is there");
    assert_eq!(back.list().expect("there is no fault"), ["a", "b"]);
}

#[test]
fn a_medium_for_reading_is_only_read() {
    let (fs, file) = machine_with(b"1");
    fs.set_read_only(true);
    assert_eq!(number(file.write_at(b"2", 0)), Some(EROFS));
    assert_eq!(number(fs.create(&path("b")).map(drop)), Some(EROFS));
    assert_eq!(number(fs.remove(&path("a"))), Some(EROFS));
    assert_eq!(number(fs.sync_dir(Path::new(DIRECTORY))), Some(EROFS));
    assert_eq!(content(&*fs.open(&path("a")).expect("it is there")), b"1");
}

/// Some calls. Actions that fail are left out.
fn anything(fs: &SimFs, mut random: Random) {
    let mut open: Vec<Box<dyn File>> = Vec::new();
    for _ in 0..30 {
        let name = |random: &mut Random| path(random.pick(&["a", "b", "c"]));
        let at = random.below(open.len().max(1));
        let offset = random.below(2000) as u64;
        let done = match (random.below(10), open.get(at)) {
            (0, _) => fs.create(&name(&mut random)).map(|file| open.push(file)),
            (1, _) => fs.open(&name(&mut random)).map(|file| open.push(file)),
            (2, _) => fs.rename(&name(&mut random), &name(&mut random)),
            (3, _) => fs.remove(&name(&mut random)),
            (4, _) => fs.sync_dir(Path::new(DIRECTORY)),
            (5, Some(file)) => file.sync(),
            (6, Some(file)) => file.set_len(offset),
            (7, Some(file)) => file.reserve(offset),
            (_, Some(file)) => file.write_at(&[at as u8 + 1; 600], offset),
            _ => Ok(()),
        };
        drop(done);
    }
}

#[test]
fn a_recorded_point_is_a_stop() {
    let mut visited = 0;
    for seed in 0..20 {
        let recorded = machine();
        recorded.record();
        anything(&recorded, Random::new(seed));
        let points = recorded.points();
        visited += points.len();
        for point in points {
            let stopped = machine();
            let calls = point.call - stopped.calls();
            stopped.set_fault(Some(Fault {
                at: calls,
                of: Calls::ALL,
                how: Break::Stop,
                forever: false,
            }));
            anything(&stopped, Random::new(seed));
            let survivals = Survival::all(&point.disk, 8, &mut Random::new(seed));
            assert_eq!(
                survivals,
                Survival::all(&stopped.disk(), 8, &mut Random::new(seed))
            );
            for survival in survivals {
                let image = files(&survival.image(&point.disk));
                assert_eq!(image, survives(&stopped, survival), "{seed} {survival:?}");
            }
        }
    }
    assert!(visited > 100, "{visited}");
}

#[test]
fn small_writes_are_torn_at_each_byte() {
    let (fs, file) = machine_with(b"");
    file.write_at(b"123456", 0).expect("there is room");
    let all = Survival::all(&fs.disk(), 8, &mut Random::new(1));
    let images: Vec<_> = all
        .into_iter()
        .map(|survival| survives(&fs, survival))
        .collect();
    for len in 0..=6 {
        let (prefix, mut grown) = (&b"123456"[..len], [0; 6]);
        grown[..len].copy_from_slice(prefix);
        assert!(images.contains(&of([("a", prefix)])), "{len}");
        assert!(images.contains(&of([("a", &grown)])), "{len}");
    }
}

#[test]
fn flipped_bits_stay_flipped() {
    let (fs, _file) = machine_with(b"ab");
    let mut disk = Disk::clone(&fs.disk());
    let a = disk.find(&path("a")).expect("it is there");
    disk.flip(a, 8);
    assert_eq!(files(&disk), of([("a", b"ac")]));
    assert_eq!(files(&Survival::Nothing.image(&disk)), of([("a", b"ac")]));
    assert_eq!(survives(&fs, Survival::Nothing), of([("a", b"ab")]));
}
