//! The machine and the day of the figures, and the versions of the peers.

use ats_bench_common::{Facts, common_facts, locked_version};

/// The maps that are measured beside ours.
const PEERS: [&str; 9] = [
    "masstree",
    "scc",
    "crossbeam-skiplist",
    "bf-tree",
    "parking_lot",
    "dashmap",
    "papaya",
    "moka",
    "quick_cache",
];

/// Facts about this run, with names.
pub fn facts() -> Facts {
    let allocator = if cfg!(feature = "mimalloc") {
        "mimalloc"
    } else {
        "of the system"
    };
    let mut facts = common_facts();
    facts.push(("allocator", allocator.to_string()));
    facts.extend(PEERS.map(|peer| (peer, locked_version(peer))));
    facts
}
