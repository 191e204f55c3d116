//! Match specifications, compiled and planned.

use super::cursor::Cursor;
use crate::terms::table::Table;
use ats_match::plan::{Access, FixedKey, Interval, KeyOrder, Keys, Plan};
use ats_match::{Program, Shape};
use ats_store::Direction;
use ats_term::exact;
use ats_term::image::{Host, HostTerm};
use ats_term::order::push_prefix_end;
use std::sync::Arc;

/// A compiled match specification, and the parts that it reads of a table of a certain kind.
///
/// A query is immutable. Threads can share it, and use it for every table of the same order and key
/// position.
pub struct Query<H: Host> {
    program: Arc<Program<H>>,
    kind: Kind,
    /// The plan derived from the specification, unless the caller has set the range.
    plan: Option<Plan>,
    /// The part of the key that is fixed, if it alone determines the only step of the plan.
    fixed: Option<FixedKey>,
    /// The part of a table that is read.
    access: Access,
    /// The steps of the plan, in the order of the table.
    steps: Vec<Step>,
}

/// The properties of a table on which a plan depends.
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
    /// The keys from `from` on, up to but not including `to`. In a table without order always all
    /// keys.
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

    /// Plans a program whose literals can be exchanged by
    /// [`exchange_literals`](Query::exchange_literals). Unlike in [`new`](Query::new), guards that
    /// do not concern the key do not limit the part that is read.
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

    /// Replaces the literals of the program by those of a clause with the same shape, and plans
    /// again. Returns `false` and changes nothing if the query or the program is in use elsewhere.
    #[must_use]
    pub fn exchange_literals(query: &mut Arc<Self>, shape: &Shape<H>) -> bool {
        Self::exchange(query, |program| {
            program.exchange_literals(shape);
            true
        })
    }

    /// Replaces the literals like [`exchange_literals`](Query::exchange_literals), by those of a
    /// clause that has not been analysed. Also returns `false` if the clause has another shape, or
    /// if its shape cannot be determined without its image.
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

    /// Computes the steps again, after literals were exchanged.
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

    /// Returns a query that reads exactly the keys of an ordered table from `from` on, up to but
    /// not including `to`, if given. The range replaces the plan of the specification.
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
            steps: if is_empty {
                Vec::new()
            } else {
                vec![Step::Range { from, to }]
            },
        }
    }

    /// Returns the part of a table that is read.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns `true` if the query reads at most one key. Then each slice reads it as of one
    /// moment.
    #[must_use]
    pub fn reads_one_key(&self) -> bool {
        matches!(&self.steps[..], [] | [Step::Point(_)])
    }

    /// Returns the plan as text, one line for each step, in Erlang's syntax.
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

    /// Returns the compiled specification.
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

    /// Returns the step that a cursor has reached, unless it is at the end.
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

    /// Returns the direction in which keys, and the objects of a key, are read.
    pub(super) fn direction(&self, cursor: &Cursor) -> Direction {
        if self.kind.ordered {
            cursor.direction
        } else {
            Direction::Up
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
        if interval.is_point() {
            Step::Point(from)
        } else {
            Step::Range {
                from,
                to: interval.to().map(|to| to.bytes().to_vec()),
            }
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
        if self.ordered {
            KeyOrder::Ordered
        } else {
            KeyOrder::Hashed(self.exact)
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
