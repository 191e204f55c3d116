//! The merge that a table has.

use super::failure::Failure;
use crate::atoms::KnownAtom;
use ats::program_merge::ProgramMerge;
use ats::{Description, ObjectMerge};
use ats_store::MergeOperator;
use std::sync::Arc;

/// The merge of values that are written to the same key.
#[derive(Clone)]
pub(super) enum TableMerge {
    /// They are not: the last one stays.
    LastWins,
    /// The elements behind the key.
    Objects(Arc<ObjectMerge>),
    /// By a program.
    Program(Arc<ProgramMerge>),
}

impl TableMerge {
    /// The merge that a description tells of.
    pub(super) fn of(description: &Description) -> Result<Self, Failure> {
        if description.merge.is_empty() {
            return Ok(TableMerge::LastWins);
        }
        if description.table_type.is_bag() {
            let text = "objects of a bag are not merged";
            return Err(Failure::new(KnownAtom::Merge, text));
        }
        if let Some(merge) = ProgramMerge::of(description) {
            return Ok(TableMerge::Program(Arc::new(merge)));
        }
        let merge = ObjectMerge::of(description);
        let unknown = || Failure::new(KnownAtom::Merge, "there is no such merge");
        let merge = merge.ok_or_else(unknown)?;
        Ok(TableMerge::Objects(Arc::new(merge)))
    }

    /// The same as a merge operator of stores.
    pub(super) fn operator(&self) -> Option<Arc<dyn MergeOperator>> {
        match self {
            TableMerge::LastWins => None,
            TableMerge::Objects(merge) => Some(Arc::clone(merge) as Arc<dyn MergeOperator>),
            TableMerge::Program(merge) => Some(Arc::clone(merge) as Arc<dyn MergeOperator>),
        }
    }
}
