//! A specification, compiled and planned.

use super::cursor::Cursor;
use crate::table::{Table, TableType};
use ats_match::Program;
use ats_term::image::Host;
use std::sync::Arc;

/// A compiled match specification, and what a table of a certain kind has to read for it.
///
/// Immutable; it can be shared by threads, and used for every table of the same order and key position.
pub struct Query<H: Host> {
    program: Arc<Program<H>>,
    kind: Kind,
    /// In the order of the table.
    steps: Vec<Step>,
}

/// What a plan depends on besides the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    ordered: bool,
    key_index: usize,
}

/// A part of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The key with these bytes.
    Point(Vec<u8>),
    /// The keys from these bytes on, up to and without those. Of a table without order always all.
    Range { from: Vec<u8>, to: Option<Vec<u8>> },
}

impl<H: Host> Query<H> {
    /// Plans a compiled specification for tables like this one.
    #[must_use]
    pub fn new(program: Arc<Program<H>>, table: &Table<H>) -> Self {
        let steps = vec![Step::Range {
            from: Vec::new(),
            to: None,
        }];
        Query {
            program,
            kind: Kind::of(table),
            steps,
        }
    }

    /// The compiled specification.
    #[must_use]
    pub fn program(&self) -> &Arc<Program<H>> {
        &self.program
    }

    /// Whether the query can be run on this table. O(1).
    #[must_use]
    pub fn fits(&self, table: &Table<H>) -> bool {
        self.kind == Kind::of(table)
    }

    pub(super) fn check_fits(&self, table: &Table<H>) {
        assert!(self.fits(table), "the query is for another kind of table");
    }

    /// The step that a cursor has come to, if it is not at the end.
    pub(super) fn step(&self, cursor: &Cursor) -> Option<&Step> {
        let last = self.steps.len().checked_sub(1)?;
        match cursor.down && self.kind.ordered {
            false => self.steps.get(cursor.step),
            true => self.steps.get(last.checked_sub(cursor.step)?),
        }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.kind.ordered
    }
}

impl Kind {
    fn of<H: Host>(table: &Table<H>) -> Self {
        Kind {
            ordered: table.table_type == TableType::OrderedSet,
            key_index: table.key_index,
        }
    }
}
