//! Counters: integers in objects, changed atomically.

use crate::Error;
use crate::integer::{Integer, Parts};
use crate::table::Table;
use crate::workspace::Workspace;
use crate::write::element;
use ats_term::image::{Host, HostTerm, NewValue, Object};

/// One change of one counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterOp {
    /// Position of the counter in the object, from 1.
    pub position: usize,
    /// What is added.
    pub increment: Integer,
    /// A limit, and the value the counter takes when it would pass the limit: when the sum is above
    /// it, or below it for a negative increment.
    pub wrap: Option<(Integer, Integer)>,
}

impl CounterOp {
    fn apply(&self, value: &Integer) -> Result<Integer, Error> {
        let sum = value
            .checked_add(&self.increment)
            .ok_or(Error::SystemLimit)?;
        Ok(match &self.wrap {
            Some((limit, reset)) if self.passes(&sum, limit) => reset.clone(),
            _ => sum,
        })
    }

    fn passes(&self, sum: &Integer, limit: &Integer) -> bool {
        match self.increment.is_negative() {
            true => sum < limit,
            false => sum > limit,
        }
    }
}

impl<H: Host> Table<H> {
    /// Applies changes to the counters of the object of a key, in order and as one, and returns the
    /// new values. If the key is missing, `default` is inserted with the key in the place of its
    /// own, and its counters are changed. Changes nothing if it fails.
    pub fn update_counter<T: HostTerm<Host = H>>(
        &self,
        key: T,
        ops: &[CounterOp],
        default: Option<T>,
        work: &mut Workspace<T>,
    ) -> Result<Vec<Integer>, Error> {
        if self.table_type().is_bag() {
            return Err(Error::TableType);
        }
        for op in ops {
            self.index_to_change(op.position)?;
        }
        let guard = ats_sync::pin();
        let mut results = None;
        self.update_object(key, default, work, &guard, |object, image| {
            let values = new_values(object, ops)?;
            let parts: Vec<Parts> = values.iter().map(Parts::of).collect();
            let changes: Vec<(usize, NewValue<'_, T>)> = ops
                .iter()
                .zip(&parts)
                .map(|(op, value)| (op.position - 1, value.as_value()))
                .collect();
            results = Some(values);
            if changes.is_empty() {
                return Ok(false);
            }
            image.replace_elements(object, &changes);
            Ok(true)
        })?;
        results.ok_or(Error::BadKey)
    }
}

/// The values after each operation. An operation on a counter that an earlier one has changed goes
/// on from there.
fn new_values<H: Host>(object: Object<'_, H>, ops: &[CounterOp]) -> Result<Vec<Integer>, Error> {
    let mut values: Vec<Integer> = Vec::with_capacity(ops.len());
    for (done, op) in ops.iter().enumerate() {
        let earlier = ops[..done]
            .iter()
            .rposition(|before| before.position == op.position);
        let current = match earlier {
            Some(before) => values[before].clone(),
            None => {
                let term = element(object, op.position - 1)?;
                Integer::from_term(term).ok_or(Error::NotAnInteger)?
            }
        };
        values.push(op.apply(&current)?);
    }
    Ok(values)
}
