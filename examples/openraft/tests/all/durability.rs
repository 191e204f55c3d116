//! Writes are on disk when openraft is told so: no call that promises it returns while the system
//! has not synced, and those that do not promise it do not wait.

use crate::directory::Directory;
use crate::hooked::{Call, HookedFs};
use ats_disk::Options;
use ats_openraft::{Log, Machine, Request, TypeConfig};
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use openraft::testing::log_id;
use openraft::{Entry, EntryPayload, RaftLogReader, RaftSnapshotBuilder, Vote};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A gate before syncs.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    is_shut: bool,
    waiting: usize,
}

impl Gate {
    fn set_shut(&self, is_shut: bool) {
        self.state.lock().expect("no panic").is_shut = is_shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock().expect("no panic");
        state.waiting += 1;
        let mut state = self
            .changed
            .wait_while(state, |state| state.is_shut)
            .expect("no panic");
        state.waiting -= 1;
    }

    /// Waits until somebody waits at the gate.
    async fn is_waited_at(&self) {
        while self.state.lock().expect("no panic").waiting == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }
}

async fn open(directory: &Directory) -> (Arc<Gate>, Log, Machine) {
    let gate = Arc::new(Gate::default());
    let before = Arc::clone(&gate);
    let options = Options::new().file_system(HookedFs::new(move |call, _| {
        if call == Call::Sync {
            before.pass();
        }
        Ok(())
    }));
    let (log, machine) = ats_openraft::open(directory.path(), options)
        .await
        .expect("opened");
    (gate, log, machine)
}

fn entry(index: u64, request: Request) -> Entry<TypeConfig> {
    Entry {
        log_id: log_id(1, 0, index),
        payload: EntryPayload::Normal(request),
    }
}

/// Does something with the gate shut: it has to wait there until the gate is open.
async fn waits<T: Send + 'static>(
    gate: &Gate,
    doing: impl Future<Output = T> + Send + 'static,
) -> T {
    gate.set_shut(true);
    let doing = tokio::spawn(doing);
    gate.is_waited_at().await;
    // Time for a wrong answer.
    sleep(Duration::from_millis(50)).await;
    assert!(!doing.is_finished());
    gate.set_shut(false);
    doing.await.expect("no panic")
}

#[tokio::test]
async fn entries_are_readable_at_once_and_on_disk_before_the_callback() {
    let directory = Directory::new();
    let (gate, mut log, _machine) = open(&directory).await;
    let mut reader = log.get_log_reader().await;
    let seen = tokio::spawn(async move {
        while reader.try_get_log_entries(..).await.expect("read").len() < 2 {
            sleep(Duration::from_millis(1)).await;
        }
    });
    let entries = [1, 2].map(|index| entry(index, Request::put("pear", "40")));
    waits(&gate, async move {
        let appended = log.blocking_append(entries).await;
        appended.expect("appended");
    })
    .await;
    seen.await.expect("no panic");
}

#[tokio::test]
async fn entries_are_seen_while_they_are_not_on_disk() {
    let directory = Directory::new();
    let (gate, mut log, _machine) = open(&directory).await;
    let mut reader = log.get_log_reader().await;
    waits(&gate, async move {
        let append = log.blocking_append([entry(1, Request::put("pear", "40"))]);
        let seen = async {
            while reader
                .try_get_log_entries(..)
                .await
                .expect("read")
                .is_empty()
            {
                sleep(Duration::from_millis(1)).await;
            }
        };
        let (appended, ()) = tokio::join!(append, seen);
        appended.expect("appended");
    })
    .await;
}

#[tokio::test]
async fn vote_is_on_disk_before_the_call_returns() {
    let directory = Directory::new();
    let (gate, mut log, _machine) = open(&directory).await;
    let saved = waits(&gate, async move { log.save_vote(&Vote::new(3, 1)).await }).await;
    saved.expect("saved");
}

#[tokio::test]
async fn installed_snapshot_is_on_disk_before_the_call_returns() {
    let directories = [Directory::new(), Directory::new()];
    let (_gate, _log, mut leader) = open(&directories[0]).await;
    let (gate, _log, mut follower) = open(&directories[1]).await;
    leader
        .apply([entry(1, Request::put("pear", "40"))])
        .await
        .expect("applied");
    let mut builder = leader.get_snapshot_builder().await;
    let snapshot = builder.build_snapshot().await.expect("built");

    let data = follower.data();
    let installed = waits(&gate, async move {
        follower
            .install_snapshot(&snapshot.meta, snapshot.snapshot)
            .await
    })
    .await;
    installed.expect("installed");
    assert_eq!(data.get(b"pear").await, Ok(Some(b"40".to_vec())));
}

#[tokio::test]
async fn what_follows_from_the_log_waits_for_no_sync() {
    let directory = Directory::new();
    let (gate, mut log, mut machine) = open(&directory).await;
    let entries = [1, 2, 3].map(|index| entry(index, Request::put("pear", "40")));
    log.blocking_append(entries.clone())
        .await
        .expect("appended");
    gate.set_shut(true);
    let doing = async {
        machine.apply(entries).await?;
        log.save_committed(Some(log_id(1, 0, 2))).await?;
        log.truncate(log_id(1, 0, 3)).await?;
        log.purge(log_id(1, 0, 1)).await
    };
    // The timeout is far longer than the call takes.
    let done = timeout(Duration::from_secs(60), doing).await;
    gate.set_shut(false);
    done.expect("it waits for no sync").expect("done");
}
