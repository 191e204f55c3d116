//! The limits of plans, and the state that all code that makes one plan shares.

use crate::spec::{Constant, Spec};
use ats_term::exact;
use ats_term::image::Host;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// A plan has no more ranges or keys than this.
pub const LIMIT: usize = 1000;

/// The most steps, of some 50 ns each, that may be spent on a plan. A usual one takes a hundred;
/// this is for those that would take longer to plan than to run.
const MOST_STEPS: usize = 1_000_000;

/// Of these, so many are kept for heads: without them, what guards say would be found out for nothing.
const STEPS_FOR_HEADS: usize = MOST_STEPS / 2;

/// The number of bytes that are copied in one step.
const BYTES_PER_STEP: usize = 16;

/// A specification for which a plan is being made.
pub(super) struct PlanContext<'s, H: Host> {
    spec: &'s Spec<H>,
    /// Constants by their exact keys.
    names: RefCell<HashMap<Vec<u8>, Constant>>,
    steps_left: Cell<usize>,
}

impl<'s, H: Host> PlanContext<'s, H> {
    pub(super) fn new(spec: &'s Spec<H>) -> Self {
        PlanContext {
            spec,
            names: RefCell::default(),
            steps_left: Cell::new(MOST_STEPS),
        }
    }

    pub(super) fn spec(&self) -> &'s Spec<H> {
        self.spec
    }

    /// The first of all constants that are the same term (`=:=`) as this one. With only one name for each,
    /// outlines of the same parts are equal, wherever in the specification the parts stand.
    pub(super) fn name_of(&self, constant: Constant) -> Constant {
        let options = exact::Options {
            zeros: self.spec.zeros(),
            ..exact::Options::default()
        };
        let mut key = Vec::new();
        exact::exact_key(self.spec.constant(constant), &mut key, options);
        *self.names.borrow_mut().entry(key).or_insert(constant)
    }

    /// Takes some of the steps that may be spent on guards. If they are not left, nothing more is to be found
    /// out about guards.
    pub(super) fn spend_on_guards(&self, steps: usize) -> bool {
        self.spend(steps, STEPS_FOR_HEADS)
    }

    /// Takes some of the steps that may be spent on heads, and those for copying so many bytes. If they are not
    /// left, nothing more is to be found out.
    pub(super) fn spend_on_head(&self, steps: usize, bytes: usize) -> bool {
        self.spend(steps + bytes / BYTES_PER_STEP, 0)
    }

    fn spend(&self, steps: usize, reserve: usize) -> bool {
        let left = self.steps_left.get();
        let enough = left >= reserve && left - reserve >= steps;
        // Once it was refused, it stays so.
        self.steps_left.set(if enough {
            left - steps
        } else {
            left.min(reserve)
        });
        enough
    }
}
