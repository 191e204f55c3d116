//! A map on disk: accounts, transfers as batches, a report of one moment, and a copy.
//!
//! Run it with `cargo run --example map_on_disk`.

use ats::disk::{Durability, Error, Options};
use ats::{DiskBatch, DiskMap};

type Accounts = DiskMap<(String, u32), i64>;

fn main() -> Result<(), Error> {
    let folder = std::env::temp_dir().join(format!("ats-disk-map-example-{}", std::process::id()));
    let (here, copy) = (folder.join("accounts"), folder.join("copy"));
    let options = Options::new().durability(Durability::Always);
    let accounts = Accounts::open_with(&here, options)?;
    for number in 0..100 {
        accounts.put((["north", "south"][number as usize % 2], number), 1_000)?;
    }

    // Both changes are there after a crash, or none is.
    let mut transfer = DiskBatch::new();
    transfer.put(("north", 0), 900)?;
    transfer.put(("south", 1), 1_100)?;
    accounts.write(&transfer)?;

    // The new balance depends on the old one.
    let paid = accounts.update(("north", 0), |balance| balance - 50)?;
    assert_eq!(paid, Some(850));

    // The report shows one moment, and no later writes.
    let report = accounts.snapshot();
    accounts.remove_range(("north", 50)..("north", 1_000))?;
    let north: Result<Vec<i64>, Error> = report
        .prefix(("north",))
        .map(|pair| pair.map(|(_, balance)| balance))
        .collect();
    assert_eq!(north?.iter().sum::<i64>(), 50 * 1_000 - 150);

    accounts.checkpoint(&copy)?;
    let copied = Accounts::open(&copy)?;
    println!(
        "{} accounts, and {} in the copy",
        accounts.len()?,
        copied.len()?
    );
    drop((accounts, copied, report));
    std::fs::remove_dir_all(&folder).ok();
    Ok(())
}
