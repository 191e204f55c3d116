//! Runs of queries, and the state that they need.

use super::cursor::{Cursor, Progress};
use super::query::Query;
use super::walk::{Next, Slice, Spot, walk};
use crate::terms::bag::Buffers;
use crate::terms::error::Error;
use crate::terms::lookup_result::LookupResult;
use crate::terms::read_point::TableReadPoint;
use crate::terms::store::Store;
use crate::terms::table::Table;
use crate::terms::unpack::UnpackBuffer;
use ats_match::{Environment, Machine, Outcome, RunTerm};
use ats_mem::When;
use ats_store::Direction;
use ats_sync::Guard;
use ats_term::Zeros;
use ats_term::image::{Host, ImageBuilder, Object, Packer};
use std::ops::ControlFlow;

/// Scratch buffers for running queries. Each thread should keep one.
pub struct Runner<H: Host> {
    pub(super) machine: Machine<H>,
    pub(super) unpacked: UnpackBuffer,
    /// The buffer for changing objects.
    pub(super) image: ImageBuilder<RunTerm<'static, H>>,
    pub(super) packer: Packer,
    pub(super) bag: Buffers<H>,
}

impl<H: Host> Runner<H> {
    /// Returns buffers for tables with this rule for zeros. Does not allocate.
    #[must_use]
    pub const fn new(zeros: Zeros) -> Self {
        Runner {
            machine: Machine::new(),
            unpacked: UnpackBuffer::new(),
            image: ImageBuilder::new(zeros),
            packer: Packer::new(),
            bag: Buffers::new(),
        }
    }

    /// Releases objects that were built and not stored, and buffers that a huge object has
    /// enlarged. Called after each use.
    pub fn tidy(&mut self) {
        self.machine.tidy();
        self.unpacked.tidy();
        self.image.tidy();
        self.packer.tidy();
        self.bag.tidy();
    }
}

impl<H: Host> Runner<H> {
    /// Returns `true` if a query accepts one of the objects of a key. O(objects).
    ///
    /// # Errors
    /// [`Error::TooLarge`] if an object takes more than `most_steps`, in the units of
    /// [`Machine::limit`].
    pub fn accepts<E: Environment>(
        &mut self,
        query: &Query<H>,
        found: &LookupResult<'_, H>,
        environment: &E,
        most_steps: usize,
    ) -> Result<bool, Error> {
        let (machine, program) = (&mut self.machine, query.program());
        machine.limit(most_steps);
        let flow = found.each(&mut self.unpacked, |object| {
            match machine.run(program, object, environment) {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        });
        if machine.gave_up() {
            return Err(Error::TooLarge);
        }
        Ok(flow.is_break())
    }
}

/// A run of a query on a table: the arguments of its slices.
pub struct Selection<'a, H: Host, E> {
    /// The query.
    pub query: &'a Query<H>,
    /// The position of the query. A slice begins there, and moves it to the begin of the next
    /// slice.
    pub cursor: &'a mut Cursor,
    /// The buffers for running the program.
    pub runner: &'a mut Runner<H>,
    /// The source of facts about the process and the node that run the query.
    pub environment: &'a E,
    /// The time limit of this slice.
    pub slice: &'a Slice,
    /// The guard that keeps objects alive that other threads remove meanwhile.
    pub guard: &'a Guard,
    /// The moment that the query reads, if any. All slices must have the same.
    pub read_point: Option<&'a TableReadPoint<H>>,
}

impl<'a, H: Host, E> Selection<'a, H, E> {
    /// Returns the store that is read, and the moment.
    pub(super) fn source<'g>(&self, table: &'g Table<H>) -> (&'g Store<H>, When)
    where
        'a: 'g,
    {
        match self.read_point {
            Some(read_point) => (read_point.store(), read_point.when()),
            None => (table.store(self.guard), When::NOW),
        }
    }
}

impl<H: Host, E> Selection<'_, H, E> {
    /// Returns `true` if `store`, the current store of the table, is the store of the moment, or if
    /// the selection has no moment. It is another store if the table was cleared since.
    pub(super) fn is_of(&self, store: &Store<H>) -> bool {
        let is_of = |read_point: &TableReadPoint<H>| std::ptr::eq(read_point.store(), store);
        self.read_point.is_none_or(is_of)
    }
}

impl<H: Host> Table<H> {
    /// Runs a query on the objects from the cursor on, until the slice is over or `each`, which
    /// gets the results, breaks. If a key has few objects, all of them are read, even then.
    ///
    /// Shows the table as of one moment, if one is given; else each key as of the moment at which
    /// it is visited. An object that is in the table throughout all slices is read exactly once.
    /// The objects of a key come oldest first, or newest first if an ordered table is read
    /// downwards. While `each` runs, [`Slice::key`] tells the objects of one key from those of the
    /// next. A slice whose cursor is among the objects of a key ends with the last of these
    /// objects.
    ///
    /// # Errors
    /// [`Error::Storage`] if the store of the table fails. The cursor stays at its position, but
    /// `each` may have got results. [`Error::TooLarge`] if an object would take more than the
    /// [limit](Slice::with_limit) of the slice; then the cursor and the results are meaningless.
    ///
    /// # Panics
    /// If the query was made for another kind of table.
    pub fn select<E: Environment>(
        &self,
        selection: &mut Selection<'_, H, E>,
        each: &mut dyn FnMut(&Outcome<'_, H>) -> ControlFlow<()>,
    ) -> Result<Progress, Error> {
        let source = selection.source(self);
        let Selection {
            query,
            cursor,
            runner,
            environment,
            slice,
            guard,
            ..
        } = selection;
        query.check_fits(self);
        let Runner {
            machine, unpacked, ..
        } = &mut **runner;
        let program = query.program();
        machine.limit(slice.most_steps());
        let progress = walk(source, query, cursor, slice, guard, |spot| {
            let mut stop = false;
            if spot.from.is_none() {
                slice.count_key();
            }
            let one = |object: Object<'_, H>| {
                slice.count_object(object.len_words());
                if let Some(outcome) = &machine.run(program, object, *environment) {
                    stop |= each(outcome).is_break();
                }
                stop
            };
            visit_objects(&spot, slice, unpacked, one)
        })?;
        if machine.gave_up() {
            Err(Error::TooLarge)
        } else {
            Ok(progress)
        }
    }
}

/// Visits the objects of a key. `one` returns `true` to stop: at once if the objects have
/// positions, otherwise after all of them.
#[inline]
pub(super) fn visit_objects<H: Host>(
    spot: &Spot<'_, H>,
    slice: &Slice,
    unpacked: &mut UnpackBuffer,
    mut one: impl FnMut(Object<'_, H>) -> bool,
) -> Next {
    if spot.found.is_large() {
        return visit_positions(spot, unpacked, |_, object| one(object) | slice.tick());
    }
    let mut next = Next::Go;
    let each = |object: Object<'_, H>| {
        if one(object) {
            next = Next::Stop;
        }
        ControlFlow::Continue(())
    };
    let _all = match spot.direction {
        Direction::Up => spot.found.each(unpacked, each),
        Direction::Down => spot.found.each_back(unpacked, each),
    };
    next
}

/// Visits the objects of a key that have positions, until `one` returns `true`.
pub(super) fn visit_positions<H: Host>(
    spot: &Spot<'_, H>,
    unpacked: &mut UnpackBuffer,
    mut one: impl FnMut(u64, Object<'_, H>) -> bool,
) -> Next {
    let Spot { found, from, .. } = spot;
    let mut next = Next::Go;
    let each = |position: u64, object: Object<'_, H>| {
        if !one(position, object) {
            return ControlFlow::Continue(());
        }
        next = Next::StopAt(match spot.direction {
            Direction::Up => position + 1,
            Direction::Down => position,
        });
        ControlFlow::Break(())
    };
    let _part = match spot.direction {
        Direction::Up => found.each_from(from.unwrap_or(0), unpacked, each),
        Direction::Down => found.each_before(from.unwrap_or(u64::MAX), unpacked, each),
    };
    next
}
