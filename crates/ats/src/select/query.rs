//! A specification, compiled and planned.

use super::cursor::Cursor;
use crate::table::Table;
use ats_match::plan::{Access, FixedKey, Interval, KeyOrder, Keys, Plan};
use ats_match::{Program, Shape};
use ats_store::Direction;
use ats_term::exact;
use ats_term::image::{Host, HostTerm};
use ats_term::order::push_prefix_end;
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
    /// The part of the key that is fixed, if the only step of the plan follows from that alone.
    fixed: Option<FixedKey>,
    /// The part of a table that is read.
    access: Access,
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
        let plan = kind.plan(&program);
        Query {
            program,
            kind,
            access: plan.access(),
            steps: steps(&plan),
            plan: Some(plan),
            fixed: None,
        }
    }

    /// Does what [`new`](Query::new) does, for a program whose literals can be exchanged by
    /// [`exchange_literals`](Query::exchange_literals). Guards that are not about the key do not
    /// limit what is read.
    #[must_use]
    pub fn of_shape(program: Arc<Program<H>>, table: &Table<H>) -> Self {
        let kind = Kind::of(table);
        let Some(fixed) = FixedKey::new(program.spec(), kind.key_index, kind.key_order()) else {
            return Query::new(program, table);
        };
        let mut query = Query {
            kind,
            plan: None,
            access: fixed.access(),
            steps: vec![match fixed.access() {
                Access::Points => Step::Point(Vec::new()),
                _ => Step::Range {
                    from: Vec::new(),
                    to: None,
                },
            }],
            fixed: Some(fixed),
            program,
        };
        query.locate();
        query
    }

    /// Puts the literals of a clause, which has the shape of the program, in the place of those
    /// that the program has, and finds out what has to be read. Returns `false` if that cannot be
    /// done, since the query or the program is in use elsewhere.
    #[must_use]
    pub fn exchange_literals(query: &mut Arc<Self>, shape: &Shape<H>) -> bool {
        Self::exchange(query, |program| {
            program.exchange_literals(shape);
            true
        })
    }

    /// Does what [`exchange_literals`](Query::exchange_literals) does, for a clause that was not
    /// taken apart. Returns `false` also if the clause has another shape, or if that cannot be told
    /// without its image.
    #[must_use]
    #[inline]
    pub fn read_literals<T: HostTerm<Host = H>>(query: &mut Arc<Self>, clause: T) -> bool {
        Self::exchange(query, |program| program.read_literals(clause))
    }

    #[inline]
    fn exchange(query: &mut Arc<Self>, exchange: impl FnOnce(&mut Program<H>) -> bool) -> bool {
        let Some(query) = Arc::get_mut(query) else {
            return false;
        };
        let Some(program) = Arc::get_mut(&mut query.program) else {
            return false;
        };
        let is_done = exchange(program);
        if is_done {
            query.locate();
        }
        is_done
    }

    /// Makes the steps anew, after literals were exchanged.
    fn locate(&mut self) {
        let Some(fixed) = &self.fixed else {
            let plan = self.kind.plan(&self.program);
            self.access = plan.access();
            self.steps = steps(&plan);
            self.plan = Some(plan);
            return;
        };
        match &mut self.steps[..] {
            [Step::Point(key)] => {
                key.clear();
                fixed.write(self.program.spec(), key);
            }
            [Step::Range { from, to }] if self.access == Access::Ranges => {
                from.clear();
                fixed.write(self.program.spec(), from);
                let to = to.get_or_insert_default();
                to.clear();
                to.extend_from_slice(from);
                push_prefix_end(to);
            }
            _ => {}
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
            fixed: None,
            access: Access::Ranges,
            steps: match is_empty {
                true => Vec::new(),
                false => vec![Step::Range { from, to }],
            },
        }
    }

    /// The part of a table that is read.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns `true` if at most one key is read: one slice does that at one moment in any case.
    #[must_use]
    pub fn reads_one_key(&self) -> bool {
        matches!(&self.steps[..], [] | [Step::Point(_)])
    }

    /// The plan as text, one line for each step, in Erlang's syntax.
    #[must_use]
    pub fn show_plan(&self) -> String {
        let made = self.fixed.as_ref().map(|_| self.kind.plan(&self.program));
        match self.plan.as_ref().or(made.as_ref()) {
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
    fn plan<H: Host>(&self, program: &Program<H>) -> Plan {
        match self.key_order() {
            KeyOrder::Ordered => Plan::for_ordered(program.spec(), self.key_index),
            KeyOrder::Hashed(exact) => Plan::for_hash(program.spec(), self.key_index, exact),
        }
    }

    fn key_order(&self) -> KeyOrder {
        match self.ordered {
            true => KeyOrder::Ordered,
            false => KeyOrder::Hashed(self.exact),
        }
    }

    fn of<H: Host>(table: &Table<H>) -> Self {
        Kind {
            ordered: table.table_type.is_ordered(),
            key_index: table.key_index,
            exact: table.keys.exact_options(),
        }
    }
}
