//! A specification, compiled and planned.

use super::cursor::Cursor;
use crate::table::Table;
use ats_match::Program;
use ats_match::plan::{Access, Interval, Keys, Plan};
use ats_store::Direction;
use ats_term::exact;
use ats_term::image::Host;
use std::sync::Arc;

/// A compiled match specification, and what a table of a certain kind has to read for it.
///
/// Immutable; it can be shared by threads, and used for every table of the same order and key
/// position.
pub struct Query<H: Host> {
    program: Arc<Program<H>>,
    kind: Kind,
    /// The plan that follows from the specification, unless the caller has said what to read.
    plan: Option<Plan>,
    /// The steps of the plan, in the order of the table.
    steps: Vec<Step>,
}

/// The facts on which a plan depends besides the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    ordered: bool,
    key_index: usize,
    /// The options of exact keys.
    exact: exact::Options,
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
        let kind = Kind::of(table);
        let plan = match kind.ordered {
            true => Plan::for_ordered(program.spec(), kind.key_index),
            false => Plan::for_hash(program.spec(), kind.key_index, kind.exact),
        };
        Query {
            program,
            kind,
            steps: steps(&plan),
            plan: Some(plan),
        }
    }

    /// The query that reads just the keys of an ordered table from these bytes on, up to and
    /// without those, if given, whatever the specification says.
    #[must_use]
    pub fn within(
        program: Arc<Program<H>>,
        table: &Table<H>,
        from: Vec<u8>,
        to: Option<Vec<u8>>,
    ) -> Self {
        let is_empty = to.as_ref().is_some_and(|to| *to <= from);
        Query {
            program,
            kind: Kind::of(table),
            plan: None,
            steps: match is_empty {
                true => Vec::new(),
                false => vec![Step::Range { from, to }],
            },
        }
    }

    /// The part of a table that is read.
    #[must_use]
    pub fn access(&self) -> Access {
        self.plan.as_ref().map_or(Access::Ranges, Plan::access)
    }

    /// Returns `true` if at most one key is read: one slice does that at one moment in any case.
    #[must_use]
    pub fn reads_one_key(&self) -> bool {
        matches!(&self.steps[..], [] | [Step::Point(_)])
    }

    /// The plan as text, one line for each step, in Erlang's syntax.
    #[must_use]
    pub fn show_plan(&self) -> String {
        match &self.plan {
            Some(Plan::Ordered(ranges)) => ranges.show(self.program.spec()),
            Some(Plan::Hashed(Keys::All)) => "any Key\n".to_owned(),
            Some(Plan::Hashed(Keys::These(keys))) => format!("{} exact keys\n", keys.len()),
            None => String::new(),
        }
    }

    /// The compiled specification.
    #[must_use]
    pub fn program(&self) -> &Arc<Program<H>> {
        &self.program
    }

    /// Returns `true` if the query can be run on this table. O(1).
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
        match self.direction(cursor) {
            Direction::Up => self.steps.get(cursor.step),
            Direction::Down => self.steps.get(last.checked_sub(cursor.step)?),
        }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.kind.ordered
    }

    /// The direction in which keys, and the objects of a key, are read.
    pub(super) fn direction(&self, cursor: &Cursor) -> Direction {
        match self.kind.ordered {
            true => cursor.direction,
            false => Direction::Up,
        }
    }
}

fn steps(plan: &Plan) -> Vec<Step> {
    match plan {
        Plan::Ordered(ranges) => ranges.iter().map(Step::of).collect(),
        Plan::Hashed(Keys::These(keys)) => keys.iter().cloned().map(Step::Point).collect(),
        Plan::Hashed(Keys::All) => vec![Step::Range {
            from: Vec::new(),
            to: None,
        }],
    }
}

impl Step {
    fn of(interval: &Interval) -> Self {
        let from = interval.from().bytes().to_vec();
        match interval.is_point() {
            true => Step::Point(from),
            false => Step::Range {
                from,
                to: interval.to().map(|to| to.bytes().to_vec()),
            },
        }
    }
}

impl Kind {
    fn of<H: Host>(table: &Table<H>) -> Self {
        Kind {
            ordered: table.table_type.is_ordered(),
            key_index: table.key_index,
            exact: table.keys.exact_options(),
        }
    }
}
