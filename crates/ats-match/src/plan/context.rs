//! Limits of plans, and the state shared by all code that makes one plan.

use crate::spec::{Constant, Spec};
use ats_term::exact;
use ats_term::image::Host;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Largest number of ranges or keys of a plan.
pub const LIMIT: usize = 1000;

/// Largest number of steps, of some 50 ns each, for a plan. A usual plan takes a hundred; the limit
/// stops specifications that would take longer to plan than to run.
const MOST_STEPS: usize = 1_000_000;

/// Steps reserved for heads: without them, the results of the guards would be useless.
const STEPS_FOR_HEADS: usize = MOST_STEPS / 2;

/// Number of bytes that are copied in one step.
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

    /// Returns the first constant that is the same term (`=:=`) as this one. With one name for each
    /// term, outlines of the same parts are equal wherever the parts occur in the specification.
    pub(super) fn name_of(&self, constant: Constant) -> Constant {
        let options = exact::Options {
            zeros: self.spec.zeros(),
            ..exact::Options::default()
        };
        let mut key = Vec::new();
        exact::exact_key(self.spec.constant(constant), &mut key, options);
        *self.names.borrow_mut().entry(key).or_insert(constant)
    }

    /// Takes steps from the budget for guards. Returns `false` once it is exhausted: the analysis
    /// of guards then stops.
    pub(super) fn spend_on_guards(&self, steps: usize) -> bool {
        self.spend(steps, STEPS_FOR_HEADS)
    }

    /// Takes steps, and those for copying `bytes` bytes, from the budget for heads. Returns `false`
    /// once it is exhausted: the analysis then stops.
    pub(super) fn spend_on_head(&self, steps: usize, bytes: usize) -> bool {
        self.spend(steps + bytes / BYTES_PER_STEP, 0)
    }

    fn spend(&self, steps: usize, reserve: usize) -> bool {
        let left = self.steps_left.get();
        let enough = left >= reserve && left - reserve >= steps;
        // A refusal is final.
        self.steps_left.set(if enough {
            left - steps
        } else {
            left.min(reserve)
        });
        enough
    }
}
