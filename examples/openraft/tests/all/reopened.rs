//! A storage that is opened again has all that it had.

use crate::directory::Directory;
use ats_disk::{Error, Options};
use ats_openraft::{Request, TypeConfig};
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::testing::log_id;
use openraft::{Entry, EntryPayload, RaftLogReader, RaftSnapshotBuilder, Vote};
use std::fs;

fn entry(index: u64, request: Request) -> Entry<TypeConfig> {
    Entry {
        log_id: log_id(2, 1, index),
        payload: EntryPayload::Normal(request),
    }
}

fn numbered(index: u64) -> Entry<TypeConfig> {
    entry(index, Request::put(index.to_be_bytes(), "value"))
}

#[tokio::test]
async fn all_is_there_again() {
    let directory = Directory::new();
    let (mut log, mut machine) = ats_openraft::open(directory.path(), Options::new())
        .await
        .expect("made");
    log.save_vote(&Vote::new_committed(2, 1))
        .await
        .expect("saved");
    log.blocking_append((0..10).map(numbered))
        .await
        .expect("appended");
    log.truncate(log_id(2, 1, 8)).await.expect("truncated");
    log.purge(log_id(2, 1, 2)).await.expect("purged");
    log.save_committed(Some(log_id(2, 1, 6)))
        .await
        .expect("saved");
    machine.apply((0..6).map(numbered)).await.expect("applied");
    let removed = Request::DeleteRange {
        low: Some(1_u64.to_be_bytes().to_vec()),
        high: Some(3_u64.to_be_bytes().to_vec()),
    };
    let key = 4_u64.to_be_bytes().to_vec();
    let entries = [entry(6, removed), entry(7, Request::Delete { key })];
    machine.apply(entries).await.expect("applied");
    let mut builder = machine.get_snapshot_builder().await;
    let built = builder.build_snapshot().await.expect("built").meta;
    drop((log, machine, builder));

    let (mut log, mut machine) = ats_openraft::open(directory.path(), Options::new())
        .await
        .expect("opened again");
    assert_eq!(log.read_vote().await, Ok(Some(Vote::new_committed(2, 1))));
    assert_eq!(log.read_committed().await, Ok(Some(log_id(2, 1, 6))));
    let state = log.get_log_state().await.expect("read");
    assert_eq!(state.last_purged_log_id, Some(log_id(2, 1, 2)));
    assert_eq!(state.last_log_id, Some(log_id(2, 1, 7)));
    let entries = log.try_get_log_entries(..).await.expect("read");
    assert_eq!(entries, (3..8).map(numbered).collect::<Vec<_>>());
    let applied = machine.applied_state().await.expect("read");
    assert_eq!(applied.0, Some(log_id(2, 1, 7)));
    let data = machine.data();
    for index in 0..6_u64 {
        let value = data.get(&index.to_be_bytes()).await.expect("read");
        assert_eq!(value.is_some(), [0, 3, 5].contains(&index), "{index}");
    }
    let snapshot = machine
        .get_current_snapshot()
        .await
        .expect("read")
        .expect("one");
    assert_eq!(snapshot.meta, built);
}

/// Checks that a snapshot replaces all data of a node, and removes the snapshot before it.
#[tokio::test]
async fn snapshot_replaces_all_data() {
    let directories = [Directory::new(), Directory::new()];
    let [leader, follower] = &directories;
    let open = |directory: &Directory| {
        let path = directory.path().to_owned();
        async move {
            ats_openraft::open(&path, Options::new())
                .await
                .expect("opened")
        }
    };
    let (_log, mut leader) = open(leader).await;
    leader
        .apply((0..2000).map(numbered))
        .await
        .expect("applied");
    let mut builder = leader.get_snapshot_builder().await;
    // Entries after the moment are not in the snapshot.
    leader
        .apply([entry(2000, Request::put("later", "value"))])
        .await
        .expect("applied");
    let snapshot = builder.build_snapshot().await.expect("built");

    let (log, mut machine) = open(follower).await;
    machine
        .apply([entry(0, Request::put("other", "value"))])
        .await
        .expect("applied");
    machine
        .get_snapshot_builder()
        .await
        .build_snapshot()
        .await
        .expect("built");
    machine
        .install_snapshot(&snapshot.meta, snapshot.snapshot)
        .await
        .expect("installed");
    drop((log, machine));
    let (_log, mut machine) = open(follower).await;
    let data = machine.data();
    assert_eq!(data.get(b"other").await, Ok(None));
    assert_eq!(data.get(b"later").await, Ok(None));
    assert_eq!(
        data.get(&1999_u64.to_be_bytes()).await,
        Ok(Some(b"value".to_vec()))
    );
    assert_eq!(
        machine.applied_state().await.expect("read").0,
        Some(log_id(2, 1, 1999))
    );
    let current = machine
        .get_current_snapshot()
        .await
        .expect("read")
        .expect("one");
    assert_eq!(current.meta, snapshot.meta);
    let files = fs::read_dir(directories[1].path().join("snapshots")).expect("there");
    assert_eq!(files.count(), 1);
}

/// A snapshot that did not arrive as a whole changes nothing.
#[tokio::test]
async fn part_of_a_snapshot_is_refused() {
    let directories = [Directory::new(), Directory::new()];
    let mut machines = Vec::new();
    for directory in &directories {
        let opened = ats_openraft::open(directory.path(), Options::new()).await;
        machines.push(opened.expect("opened"));
    }
    let [(_, leader), (_, follower)] = &mut machines[..] else {
        panic!("there are two");
    };
    leader.apply((0..10).map(numbered)).await.expect("applied");
    let snapshot = leader
        .get_snapshot_builder()
        .await
        .build_snapshot()
        .await
        .expect("built");
    follower
        .apply([entry(0, Request::put("other", "value"))])
        .await
        .expect("applied");
    let whole = snapshot.snapshot.metadata().await.expect("read").len();
    for bytes in [0, 3, 20, whole - 4, whole - 1] {
        let part = follower.begin_receiving_snapshot().await.expect("made");
        let mut part = part.into_std().await;
        let path = directories[0].path().join("snapshots/9.snapshot");
        let content = fs::read(path).expect("read");
        std::io::Write::write_all(&mut part, &content[..bytes as usize]).expect("written");
        let part = Box::new(tokio::fs::File::from_std(part));
        assert!(
            follower
                .install_snapshot(&snapshot.meta, part)
                .await
                .is_err(),
            "{bytes}"
        );
    }
    assert_eq!(
        follower.data().get(b"other").await,
        Ok(Some(b"value".to_vec()))
    );
    assert!(
        follower
            .get_current_snapshot()
            .await
            .expect("read")
            .is_none()
    );
}

#[tokio::test]
async fn directory_has_one_storage() {
    let directory = Directory::new();
    let _open = ats_openraft::open(directory.path(), Options::new())
        .await
        .expect("made");
    let again = ats_openraft::open(directory.path(), Options::new()).await;
    assert_eq!(again.err(), Some(Error::Locked));
}
