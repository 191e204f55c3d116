//! The contents of the manifest, and the effect of edits on them.

use super::edit::Edit;
use super::meta::{CompactionMeta, RunMeta};
use crate::error::Error;
use crate::ids::{FileNumber, JournalNumber, Seq};
use crate::operator_id::OperatorId;

/// The contents of the manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Contents {
    /// The number that tells the store from others. It is in the header of each of its files.
    pub(crate) store: u128,
    pub(crate) operator: Option<OperatorId>,
    /// The runs, from the newest to the oldest. Their sequence numbers descend, and do not overlap.
    pub(crate) runs: Vec<RunMeta>,
    pub(crate) compactions: Vec<CompactionMeta>,
    /// All changes up to this sequence number are in the runs.
    pub(crate) flushed: Seq,
    /// Journals with lower numbers are not needed.
    pub(crate) first_journal: JournalNumber,
    /// The next number for a file or a run.
    pub(crate) next_number: u64,
    /// The latest time that was noted, in milliseconds since 1970; 0 if records do not expire.
    pub(crate) clock: u64,
}

impl Contents {
    /// Returns the contents of a store without records.
    pub(crate) fn empty(store: u128, operator: Option<OperatorId>) -> Self {
        Contents {
            store,
            operator,
            runs: Vec::new(),
            compactions: Vec::new(),
            flushed: Seq::ZERO,
            first_journal: JournalNumber::new(1),
            next_number: 1,
            clock: 0,
        }
    }

    /// Makes the contents that the first edit of a manifest describes.
    pub(crate) fn new(edit: Edit) -> Result<Self, Error> {
        let (store, operator) = edit
            .store
            .clone()
            .ok_or_else(|| Error::corrupt("manifest: the first edit does not name the store"))?;
        let mut contents = Contents::empty(store, operator);
        contents.apply(Edit {
            store: None,
            ..edit
        })?;
        Ok(contents)
    }

    /// Returns an edit that says all of it.
    pub(crate) fn to_edit(&self) -> Edit {
        Edit {
            store: Some((self.store, self.operator.clone())),
            removed: Vec::new(),
            added: self.runs.clone(),
            compactions: self.compactions.clone(),
            flushed: Some((self.flushed, self.first_journal)),
            next_number: Some(self.next_number),
            clock: (self.clock > 0).then_some(self.clock),
        }
    }

    /// Makes the changes of an edit.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it does not fit. Some of the changes may have been made then.
    pub(crate) fn apply(&mut self, edit: Edit) -> Result<(), Error> {
        let wrong = |what: &str| Err(Error::corrupt(format_args!("manifest: {what}")));
        if edit.store.is_some() {
            return wrong("a later edit names the store");
        }
        for id in edit.removed {
            let Some(index) = self.runs.iter().position(|run| run.id == id) else {
                return wrong("an edit removes a run that is not there");
            };
            self.runs.remove(index);
            self.compactions
                .retain(|compaction| !compaction.inputs.contains(&id));
        }
        for run in edit.added {
            let older = |other: &RunMeta| other.last_seq < run.first_seq;
            let index = self.runs.iter().position(older).unwrap_or(self.runs.len());
            let overlaps = index > 0 && self.runs[index - 1].first_seq <= run.last_seq;
            if overlaps || run.first_seq > run.last_seq {
                return wrong("the sequence numbers of runs overlap");
            }
            self.runs.insert(index, run);
        }
        for compaction in edit.compactions {
            self.compactions.retain(|other| other.id != compaction.id);
            self.compactions.push(compaction);
        }
        if let Some((flushed, first_journal)) = edit.flushed {
            if flushed < self.flushed || first_journal < self.first_journal {
                return wrong("an edit goes back in time");
            }
            self.flushed = flushed;
            self.first_journal = first_journal;
        }
        if let Some(next) = edit.next_number {
            self.next_number = self.next_number.max(next);
        }
        self.clock = self.clock.max(edit.clock.unwrap_or_default());
        Ok(())
    }

    /// Returns the numbers of all files that belong to the store.
    pub(crate) fn files(&self) -> impl Iterator<Item = FileNumber> {
        let runs = self.runs.iter().flat_map(|run| &run.files);
        let compactions = self
            .compactions
            .iter()
            .flat_map(|compaction| &compaction.files);
        runs.chain(compactions).map(|file| file.number)
    }
}
