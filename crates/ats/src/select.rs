//! Running match specifications on tables.
//!
//! A [`Query`] is a compiled specification together with the plan of what a table has to read for it. It
//! is run in slices: each does about as much as fits in its [time](Slice), and leaves a [`Cursor`] from which
//! the next one goes on. A cursor is plain data and holds nothing of the table, so the caller that runs a
//! query may stop at any time without any effect on other threads.
//!
//! That a table without order need not be fixed between slices follows from how it is
//! [scanned](ats_mem::Backend::resume_scan): in an order that does not depend on its layout, from behind any key.

mod change;
mod cursor;
mod query;
mod walk;

pub use change::Changed;
pub(crate) use change::{Replace, Replacement};
pub use cursor::{At, Cursor};
pub use query::Query;
pub use walk::Slice;

use crate::bag::Buffers;
use crate::table::Table;
use crate::value::{Found, UnpackBuffer};
use ats_match::{Environment, Machine, Outcome, RunTerm};
use ats_sync::Guard;
use ats_term::Zeros;
use ats_term::image::{Host, ImageBuilder, Object, Packer};
use std::ops::ControlFlow;
use walk::{Next, walk};

/// Whether a query is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything has been read.
    Done,
    /// Another slice shall go on at the cursor.
    More,
}

/// What it takes to run queries. Keep one per thread.
pub struct Runner<H: Host> {
    machine: Machine<H>,
    room: UnpackBuffer,
    /// What it takes to change objects.
    image: ImageBuilder<RunTerm<'static, H>>,
    packer: Packer,
    bag: Buffers<H>,
}

impl<H: Host> Runner<H> {
    /// For tables with this rule for zeros. Does not allocate.
    #[must_use]
    pub const fn new(zeros: Zeros) -> Self {
        Runner {
            machine: Machine::new(),
            room: UnpackBuffer::new(),
            image: ImageBuilder::new(zeros),
            packer: Packer::new(),
            bag: Buffers::new(),
        }
    }

    /// Gives back what was made and not stored, and buffers that something huge blew up. For after each use.
    pub fn tidy(&mut self) {
        self.machine.tidy();
        self.room.tidy();
        self.image.tidy();
        self.packer.tidy();
        self.bag.tidy();
    }
}

/// A query on its way through a table: what all slices of it take.
pub struct Selection<'a, H: Host, E> {
    /// What is looked for.
    pub query: &'a Query<H>,
    /// How far it has come. A slice goes on from there, and leaves it where the next one begins.
    pub cursor: &'a mut Cursor,
    /// What it is run with.
    pub runner: &'a mut Runner<H>,
    /// What its specification may ask about the process and the node that run it.
    pub environment: &'a E,
    /// The time that this slice may take.
    pub slice: &'a Slice,
    /// What keeps objects that others remove meanwhile.
    pub guard: &'a Guard,
}

impl<H: Host> Table<H> {
    /// Runs a query on the objects from the cursor on, until the slice is over or `each`, which gets the
    /// results, breaks. Of a key that has few objects all are read, even so.
    ///
    /// Not a snapshot: each key is as of the moment it is visited. An object that is in the table throughout
    /// all slices is met exactly once; the objects of a key come oldest first. [`Slice::key`] tells, while `each`
    /// runs, the objects of one key from those of the next. A slice whose cursor is among the objects of a key
    /// ends with the last of them.
    ///
    /// # Panics
    /// If the query was made for another kind of table.
    pub fn select<E: Environment>(
        &self,
        selection: &mut Selection<'_, H, E>,
        each: &mut dyn FnMut(&Outcome<'_, H>) -> ControlFlow<()>,
    ) -> Progress {
        let Selection {
            query,
            cursor,
            runner,
            environment,
            slice,
            guard,
        } = selection;
        query.check_fits(self);
        let Runner { machine, room, .. } = &mut **runner;
        let program = query.program();
        walk(self.store(guard), query, cursor, slice, guard, |spot| {
            let mut stop = false;
            if spot.from == 0 {
                slice.count_key();
            }
            let one = |object: Object<'_, H>| {
                slice.count_object(object.len_words());
                if let Some(outcome) = &machine.run(program, object, *environment) {
                    stop |= each(outcome).is_break();
                }
                stop
            };
            visit_objects(&spot.found, spot.from, slice, room, one)
        })
    }
}

/// Visits the objects of a key. `one` says whether to stop: if the objects have positions, at once, else when all
/// were visited.
#[inline]
fn visit_objects<H: Host>(
    found: &Found<'_, H>,
    from: u64,
    slice: &Slice,
    room: &mut UnpackBuffer,
    mut one: impl FnMut(Object<'_, H>) -> bool,
) -> Next {
    let mut next = Next::Go;
    if found.is_large() {
        let _part = found.each_from(from, room, |position, object| {
            if one(object) | slice.tick() {
                next = Next::StopAt(position + 1);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        return next;
    }
    let _all = found.each(room, |object| {
        if one(object) {
            next = Next::Stop;
        }
        ControlFlow::Continue(())
    });
    next
}
