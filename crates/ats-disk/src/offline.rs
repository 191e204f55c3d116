//! Closed stores: looking at their files, checking them, and saving the rest of damaged ones.
//!
//! [`Survey`] lists the contents of a store's directory. [`verify()`] reads all of it and names
//! each
//! fault. [`Salvage`] reads the records of a store of which parts are damaged or missing, and
//! [`salvage()`] writes them to a new one. None of them writes into the directory, and none needs
//! the merge operator of the store: operands that only it can merge are shown, and written, as they
//! are.
//!
//! All of them lock the directory, as a store does that is open. [`Survey::live`] does not: it
//! looks at a store that another program has open for writing.
//!
//! | module | subject |
//! |---|---|
//! | `survey` | the contents of names, the manifest and the ends of run files |
//! | `run` | the frames of a run file, past damage, and with a damaged index |
//! | `journal` | the changes in the journals, past damage |
//! | `layer` | the data of one time: entries, deleted ranges, and keys of which something is lost |
//! | `live` | the files of a store that another program has open for writing |
//! | `verify` | checking |
//! | `salvage` | reading all layers as one, and writing a new store |
//! | `temporary` | temporary directories, of stores that are not complete yet |
//! | `whole` | all files of a store: removing, copying, and exchanging directories |

mod journal;
mod layer;
mod live;
mod run;
mod salvage;
mod survey;
mod temporary;
mod verify;
mod whole;

pub use crate::paths::enclosing_store;
pub use salvage::{KeepOperands, Salvage, Salvaged, SalvagedRecord, salvage};
pub use survey::{FileSurvey, JournalSurvey, RunSurvey, Survey};
pub use temporary::{TEMPORARY_PREFIX, Temporary, sweep_beside};
pub use verify::{Report, verify};
pub use whole::{exchange, is_of_store, is_within, remove_dir, rename, sync_name};

use std::fmt;
use std::ops::Bound;

/// Something that is wrong with a file of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The name of the file.
    pub file: String,
    /// The offset in the file; `None` if it is about the file as a whole.
    pub offset: Option<u64>,
    /// The text of the fault.
    pub what: String,
    /// The keys of which something is lost by that, if any may be.
    pub keys: Option<LostKeys>,
}

impl Fault {
    /// Makes a fault of which no keys are lost.
    pub fn new(file: &str, offset: Option<u64>, what: impl fmt::Display) -> Self {
        Fault {
            file: file.to_owned(),
            offset,
            what: what.to_string(),
            keys: None,
        }
    }

    pub(crate) fn with_keys(self, keys: LostKeys) -> Self {
        Fault {
            keys: Some(keys),
            ..self
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(f, "{} at offset {offset}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// Keys of which something is lost: an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostKeys {
    /// The beginning of the range.
    pub low: Bound<Vec<u8>>,
    /// The end of the range.
    pub high: Bound<Vec<u8>>,
}

impl LostKeys {
    /// Any key may be lost.
    pub(crate) const ALL: LostKeys = LostKeys {
        low: Bound::Unbounded,
        high: Bound::Unbounded,
    };

    /// Returns `true` if a key is one of them.
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        let above = match &self.low {
            Bound::Unbounded => true,
            Bound::Included(low) => &low[..] <= key,
            Bound::Excluded(low) => &low[..] < key,
        };
        let below = match &self.high {
            Bound::Unbounded => true,
            Bound::Included(high) => key <= &high[..],
            Bound::Excluded(high) => key < &high[..],
        };
        above && below
    }
}
