//! The tests that openraft has for storages.

use crate::directory::Directory;
use ats_disk::Options;
use ats_openraft::{Log, Machine, TypeConfig};
use openraft::StorageError;
use openraft::testing::{StoreBuilder, Suite};

struct Builder;

impl StoreBuilder<TypeConfig, Log, Machine, Directory> for Builder {
    async fn build(&self) -> Result<(Directory, Log, Machine), StorageError<u64>> {
        let directory = Directory::new();
        let (log, machine) = ats_openraft::open(directory.path(), Options::new())
            .await
            .expect("a new storage");
        Ok((directory, log, machine))
    }
}

#[test]
fn storage_passes_the_tests_of_openraft() {
    Suite::test_all(Builder).expect("all of it");
}
