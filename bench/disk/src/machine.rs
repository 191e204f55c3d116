//! The machine and the day of the figures.

use crate::engine::{CACHE_BYTES, ENGINES};
use crate::options::Options;
use crate::system;
use ats_bench_common::{Facts, common_facts, locked_version};
use std::fs;
use std::path::Path;

/// Facts about this run, with names.
pub fn facts(options: &Options) -> Facts {
    let mut facts = common_facts();
    facts.extend([
        ("file system", file_system(&options.data)),
        ("cold", system::forgetting_method().to_string()),
        ("cache", format!("{} MiB", CACHE_BYTES >> 20)),
        ("records", options.sizes.records.to_string()),
        ("rounds", options.rounds.to_string()),
    ]);
    facts.extend(
        ENGINES
            .iter()
            .map(|engine| (engine.name, locked_version(engine.package))),
    );
    facts
}

/// Returns the type, the device and the options of the file system that holds a folder.
fn file_system(folder: &Path) -> String {
    let folder = folder.canonicalize().unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let fields = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let holding = fields.filter(|fields| fields.len() > 3 && folder.starts_with(fields[1]));
    let nearest = holding.max_by_key(|fields| fields[1].len());
    nearest.map_or("unknown".to_string(), |fields| {
        format!("{} on {} ({})", fields[2], fields[0], fields[3])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_in_the_lock_file() {
        for engine in ENGINES {
            assert_ne!(locked_version(engine.package), "unknown", "{}", engine.name);
        }
    }
}
