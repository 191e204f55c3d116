//! Three nodes in one process, each with a directory and a runtime of its own. A node is killed by
//! the end of its runtime: its tasks stop where they wait, and nothing is closed.

use crate::directory::Directory;
use ats_disk::{Error, Options};
use ats_openraft::{Data, Request, TypeConfig};
use openraft::error::{
    InstallSnapshotError, NetworkError, RPCError, RaftError, RemoteError, Unreachable,
};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use openraft::{BasicNode, Config, Raft, SnapshotPolicy};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

type Failure<E> = RPCError<u64, BasicNode, E>;

/// The nodes that can be reached.
type Reachable = Arc<Mutex<BTreeMap<u64, Raft<TypeConfig>>>>;

#[derive(Clone)]
struct Network(Reachable);

struct Connection {
    reachable: Reachable,
    target: u64,
}

#[allow(clippy::result_large_err, reason = "openraft asks for this error")]
impl Connection {
    fn raft<E: std::error::Error>(&self) -> Result<Raft<TypeConfig>, Failure<E>> {
        let reachable = self.reachable.lock().expect("no panic");
        let raft = reachable.get(&self.target).cloned();
        raft.ok_or_else(|| {
            let error = std::io::Error::other("the node was killed");
            RPCError::Unreachable(Unreachable::new(&error))
        })
    }

    /// Returns the answer of a node; one that was killed meanwhile answers nothing.
    fn answer<T, E>(
        &self,
        answer: Result<T, RaftError<u64, E>>,
    ) -> Result<T, Failure<RaftError<u64, E>>>
    where
        E: Display + std::error::Error + 'static,
    {
        answer.map_err(|error| match error {
            RaftError::Fatal(fatal) => RPCError::Network(NetworkError::new(&fatal)),
            error => RPCError::RemoteError(RemoteError::new(self.target, error)),
        })
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Connection;

    async fn new_client(&mut self, target: u64, _node: &BasicNode) -> Connection {
        let reachable = Arc::clone(&self.0);
        Connection { reachable, target }
    }
}

impl RaftNetwork<TypeConfig> for Connection {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, Failure<RaftError<u64>>> {
        self.answer(self.raft()?.append_entries(request).await)
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<TypeConfig>,
        _option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, Failure<RaftError<u64, InstallSnapshotError>>> {
        self.answer(self.raft()?.install_snapshot(request).await)
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _option: RPCOption,
    ) -> Result<VoteResponse<u64>, Failure<RaftError<u64>>> {
        self.answer(self.raft()?.vote(request).await)
    }
}

struct Node {
    raft: Raft<TypeConfig>,
    data: Data,
    runtime: Runtime,
}

struct Cluster {
    directories: [Directory; 3],
    reachable: Reachable,
    nodes: BTreeMap<u64, Node>,
    /// The keys whose writes were acknowledged.
    acknowledged: Vec<String>,
}

const MOST: Duration = Duration::from_secs(60);

impl Cluster {
    async fn start() -> Self {
        let mut cluster = Cluster {
            directories: [Directory::new(), Directory::new(), Directory::new()],
            reachable: Reachable::default(),
            nodes: BTreeMap::new(),
            acknowledged: Vec::new(),
        };
        for id in 0..3 {
            cluster.start_node(id).await;
        }
        let members: BTreeMap<_, _> = (0..3).map(|id| (id, BasicNode::default())).collect();
        cluster.nodes[&0]
            .raft
            .initialize(members)
            .await
            .expect("a new cluster");
        cluster
    }

    async fn start_node(&mut self, id: u64) {
        let path = self.directories[id as usize].path().to_owned();
        let network = Network(Arc::clone(&self.reachable));
        let config = Config {
            heartbeat_interval: 50,
            election_timeout_min: 300,
            election_timeout_max: 600,
            // A node that was away for a while gets a snapshot.
            snapshot_policy: SnapshotPolicy::LogsSinceLast(40),
            max_in_snapshot_log_to_keep: 5,
            snapshot_max_chunk_size: 1000,
            ..Config::default()
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime");
        let started = runtime.spawn(async move {
            // Calls that the killed node had begun still go on, and have its store open.
            let (log, machine) = loop {
                match ats_openraft::open(&path, Options::new()).await {
                    Err(Error::Locked) => sleep(Duration::from_millis(10)).await,
                    opened => break opened.expect("opened"),
                }
            };
            let data = machine.data();
            let config = Arc::new(config.validate().expect("valid"));
            let raft = Raft::new(id, config, network, log, machine).await;
            (raft.expect("started"), data)
        });
        let (raft, data) = started.await.expect("no panic");
        self.reachable
            .lock()
            .expect("no panic")
            .insert(id, raft.clone());
        self.nodes.insert(
            id,
            Node {
                raft,
                data,
                runtime,
            },
        );
    }

    fn kill(&mut self, id: u64) {
        self.reachable.lock().expect("no panic").remove(&id);
        let node = self.nodes.remove(&id).expect("it runs");
        node.runtime.shutdown_background();
    }

    /// Writes keys of a name through any node that takes them.
    async fn write(&mut self, name: &str, count: usize) {
        for number in 0..count {
            let key = format!("{name} {number}");
            let begin = Instant::now();
            while !self.try_write(&key).await {
                assert!(begin.elapsed() < MOST, "nobody takes {key}");
                sleep(Duration::from_millis(10)).await;
            }
            self.acknowledged.push(key);
        }
    }

    async fn try_write(&self, key: &str) -> bool {
        for node in self.nodes.values() {
            let write = node.raft.client_write(Request::put(key, "value"));
            if matches!(timeout(Duration::from_secs(2), write).await, Ok(Ok(_))) {
                return true;
            }
        }
        false
    }

    async fn leader(&self) -> u64 {
        let begin = Instant::now();
        loop {
            for (id, node) in &self.nodes {
                if node.raft.ensure_linearizable().await.is_ok() {
                    return *id;
                }
            }
            assert!(begin.elapsed() < MOST, "there is no leader");
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Checks that each node gets all that was acknowledged.
    async fn check(&self) {
        let leader = self.leader().await;
        let applied = self.nodes[&leader].raft.metrics().borrow().last_applied;
        let index = applied.map(|applied| applied.index);
        for (id, node) in &self.nodes {
            let wait = node.raft.wait(Some(MOST));
            let caught_up = wait.applied_index_at_least(index, "caught up");
            caught_up.await.expect("it catches up");
            for key in &self.acknowledged {
                let value = node.data.get(key.as_bytes()).await;
                assert_eq!(value, Ok(Some(b"value".to_vec())), "{key} of node {id}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_nodes_lose_nothing_that_was_acknowledged() {
    let mut cluster = Cluster::start().await;
    cluster.write("all", 100).await;
    cluster.check().await;

    // A follower, which misses more than the log still has.
    let follower = (cluster.leader().await + 1) % 3;
    cluster.kill(follower);
    cluster.write("two", 100).await;
    cluster.start_node(follower).await;
    cluster.write("three", 10).await;
    cluster.check().await;
    let snapshot = cluster.nodes[&follower].raft.metrics().borrow().snapshot;
    assert!(
        snapshot.is_some_and(|last| last.index > 100),
        "{snapshot:?}"
    );

    // The leader, at once after an acknowledgement.
    let leader = cluster.leader().await;
    cluster.write("before", 1).await;
    cluster.kill(leader);
    cluster.write("other", 50).await;
    cluster.start_node(leader).await;
    cluster.check().await;

    // All of them.
    for round in 0..3 {
        cluster.write(&format!("round {round}"), 20).await;
        (0..3).for_each(|id| cluster.kill(id));
        for id in 0..3 {
            cluster.start_node(id).await;
        }
        cluster.check().await;
    }
    (0..3).for_each(|id| cluster.kill(id));
}
