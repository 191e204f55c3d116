//! The merge of a table.

use super::failure::Failure;
use crate::atoms::KnownAtom;
use ats::terms::program_merge::ProgramMerge;
use ats::terms::{Description, ObjectMerge};
use ats_store::MergeOperator;
use std::sync::Arc;

/// The merge of values that are written to the same key.
#[derive(Clone)]
pub(super) enum TableMerge {
    /// The default: the last value wins.
    LastWins,
    /// A merge of the elements after the key.
    Objects(Arc<ObjectMerge>),
    /// A merge by a program.
    Program(Arc<ProgramMerge>),
}

impl TableMerge {
    /// Returns the merge named in a description.
    pub(super) fn of(description: &Description) -> Result<Self, Failure> {
        if description.merge.is_empty() {
            return Ok(TableMerge::LastWins);
        }
        if description.table_type.is_bag() {
            let text = "objects of a bag are not merged";
            return Err(Failure::new(KnownAtom::Merge, text));
        }
        if let Some(merge) = ProgramMerge::of(description) {
            // Values wait for the program, which cannot know which of them had expired before.
            if description.lifetime.is_some() {
                let text = "objects that a module merges do not expire";
                return Err(Failure::new(KnownAtom::Ttl, text));
            }
            return Ok(TableMerge::Program(Arc::new(merge)));
        }
        let merge = ObjectMerge::of(description);
        let unknown = || Failure::new(KnownAtom::Merge, "there is no such merge");
        let merge = merge.ok_or_else(unknown)?;
        Ok(TableMerge::Objects(Arc::new(merge)))
    }

    /// Returns the merge operator for stores.
    pub(super) fn operator(&self) -> Option<Arc<dyn MergeOperator>> {
        match self {
            TableMerge::LastWins => None,
            TableMerge::Objects(merge) => Some(Arc::clone(merge) as Arc<dyn MergeOperator>),
            TableMerge::Program(merge) => Some(Arc::clone(merge) as Arc<dyn MergeOperator>),
        }
    }
}
