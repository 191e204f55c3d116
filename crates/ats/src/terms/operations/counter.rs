//! Counters: integers in objects, changed atomically.

use crate::terms::cells;
use crate::terms::error::Error;
use crate::terms::integer::Parts;
use crate::terms::operations::change::{Becomes, element};
use crate::terms::table::Table;
use crate::terms::workspace::Workspace;
use ats_term::Integer;
use ats_term::image::{Host, HostTerm, ImageBuilder, NewValue, Object, Span};
use smallvec::SmallVec;

/// A list that needs no block of memory while it is short.
type Few<T> = SmallVec<[T; 4]>;

/// One change of one counter.
///
/// ```
/// # use ats::terms::{CounterOp, Table, TableType, TermHost, Workspace};
/// # use ats::terms::Term;
/// # let table = Table::<TermHost>::new(TableType::Set, 1);
/// # let mut work = Workspace::new();
/// // Goes round: 0, 1, 2, 0 ...
/// let next = CounterOp {
///     position: 2,
///     increment: 1.into(),
///     wrap: Some((2.into(), 0.into())),
/// };
/// let (key, default) = (Term::from("worker"), Term::from(("worker", 0)));
/// for worker in [1, 2, 0, 1] {
///     let value = table.update_one_counter(&key, &next, Some(&default), &mut work)?;
///     assert_eq!(value, worker.into());
/// }
/// # Ok::<(), ats::terms::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterOp {
    /// Position of the counter in the object, from 1.
    pub position: usize,
    /// The number that is added.
    pub increment: Integer,
    /// A limit, and the value that the counter takes when it would pass the limit: when the sum is
    /// above the limit, or below it for a negative increment.
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

    /// Applies the change like [`apply`](CounterOp::apply), if all numbers involved have at most 64
    /// bits.
    #[inline]
    fn apply_small(&self, value: i64) -> Option<i64> {
        let Integer::Small(increment) = self.increment else {
            return None;
        };
        let sum = value.checked_add(increment)?;
        match &self.wrap {
            None => Some(sum),
            Some((Integer::Small(limit), Integer::Small(reset))) => {
                let passes = if increment < 0 {
                    sum < *limit
                } else {
                    sum > *limit
                };
                Some(if passes { *reset } else { sum })
            }
            Some(_) => None,
        }
    }

    /// Returns the number of words of the integers, a measure of the time that the change takes.
    fn parts(&self) -> usize {
        let wrap = self.wrap.as_ref();
        let wrap = wrap.map_or(0, |(limit, reset)| limit.words() + reset.words());
        self.increment.words() + wrap
    }

    fn passes(&self, sum: &Integer, limit: &Integer) -> bool {
        if self.increment.is_negative() {
            sum < limit
        } else {
            sum > limit
        }
    }
}

impl<H: Host> Table<H> {
    /// Changes one counter of the object of a key and returns its new value. If the key is missing,
    /// inserts `default`, with its key replaced by `key`, and changes its counter. A failed call
    /// changes nothing.
    ///
    /// The second and later changes of the same counter happen in place, without a lock and without
    /// allocation, as long as the object is not replaced and the value fits 60 bits.
    ///
    /// Concurrent changes are atomic: none is lost, and each returns the value at its moment.
    ///
    /// ```
    /// # use ats::terms::{CounterOp, Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// let one_more = CounterOp { position: 2, increment: 1.into(), wrap: None };
    /// let (key, default) = (Term::from("hits"), Term::from(("hits", 0)));
    /// let count = table.update_one_counter(&key, &one_more, Some(&default), &mut work)?;
    /// assert_eq!(count, 1.into());
    /// let count = table.update_one_counter(&key, &one_more, None, &mut work)?;
    /// assert_eq!(count, 2.into());
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`update_element`](Table::update_element); [`Error::BadKey`] if the key is
    /// missing and there is no default; [`Error::NotAnInteger`] if the element is not an integer;
    /// [`Error::SystemLimit`] if the value would have more bits than an integer can have.
    pub fn update_one_counter<'t>(
        &self,
        key: H::Term<'t>,
        op: &CounterOp,
        default: Option<H::Term<'t>>,
        work: &mut Workspace<H>,
    ) -> Result<Integer, Error> {
        let work = work.lend();
        if self.table_type().is_bag() {
            return Err(Error::TableType);
        }
        let index = self.index_to_change(op.position)?;
        if let Some(default) = default {
            self.check_object(default)?;
        }
        let guard = ats_sync::pin();
        self.make_key(key, work)?;
        let cells = self.cells_at(&work.key, &guard);
        let changed = cells.and_then(|cells| cells.update(index, |value| op.apply_small(value)));
        if let Some(value) = changed {
            return Ok(Integer::Small(value));
        }
        drop(guard);
        let (mut result, parts) = (Err(Error::BadKey), op.parts());
        self.update_object(key, default, parts, work, |object, image, most| {
            let term = element(object, index)?;
            let current = Integer::from_term(term).ok_or(Error::NotAnInteger)?;
            let value = op.apply(&current)?;
            let parts = Parts::of(&value);
            image.replace_elements_within(object, &[(index, parts.as_value())], most)?;
            let is_small = value.as_small().is_some_and(cells::fits);
            result = Ok(value);
            Ok(Becomes::New {
                cells: is_small.then_some(Span::one(index)),
            })
        })?;
        result
    }

    /// Applies changes to the counters of the object of a key, in order and atomically, and returns
    /// the new values. If the key is missing, inserts `default`, with its key replaced by `key`,
    /// and changes its counters. A failed call changes nothing.
    ///
    /// The second and later changes of the same counters happen in place, without a lock and
    /// without allocation, if the counters are within 16 neighbouring elements of a small object,
    /// the values fit 60 bits, and the object is not replaced meanwhile. O(size of the object +
    /// operations * log operations) for integers of 64 bits.
    ///
    /// All counters change at one moment.
    ///
    /// ```
    /// # use ats::terms::{CounterOp, Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pears", 0, 100)), &mut work)?; // sold, in stock
    ///
    /// let add = |position, number: i64| CounterOp {
    ///     position,
    ///     increment: number.into(),
    ///     wrap: None,
    /// };
    /// let key = Term::from("pears");
    /// let counts = table.update_counter(&key, &[add(2, 5), add(3, -5)], None, &mut work)?;
    /// assert_eq!(counts, [5.into(), 95.into()]); // no reader sees one without the other
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`update_one_counter`](Table::update_one_counter).
    pub fn update_counter<'t>(
        &self,
        key: H::Term<'t>,
        ops: &[CounterOp],
        default: Option<H::Term<'t>>,
        work: &mut Workspace<H>,
    ) -> Result<Vec<Integer>, Error> {
        let mut values = Vec::new();
        self.update_counter_into(key, ops, default, work, &mut values)?;
        Ok(values)
    }

    /// Changes counters like [`update_counter`](Table::update_counter), and adds the new values to
    /// `into`.
    ///
    /// # Errors
    /// The errors of [`update_one_counter`](Table::update_one_counter).
    #[inline]
    pub fn update_counter_into<'t>(
        &self,
        key: H::Term<'t>,
        ops: &[CounterOp],
        default: Option<H::Term<'t>>,
        work: &mut Workspace<H>,
        into: &mut impl Extend<Integer>,
    ) -> Result<(), Error> {
        if let [op] = ops {
            let value = self.update_one_counter(key, op, default, work)?;
            into.extend([value]);
            return Ok(());
        }
        if self.table_type().is_bag() {
            return Err(Error::TableType);
        }
        for op in ops {
            self.index_to_change(op.position)?;
        }
        if let Some(default) = default {
            self.check_object(default)?;
        }
        let work = work.lend();
        if self.cells_gate.is_there() && !ops.is_empty() {
            let guard = ats_sync::pin();
            self.make_key(key, work)?;
            let values = self.cells_at(&work.key, &guard).and_then(|cells| {
                cells.update_several(ops, CounterOp::apply_small, |op| op.position - 1)
            });
            if let Some(values) = values {
                into.extend(values.into_iter().map(Integer::Small));
                return Ok(());
            }
        }
        let earlier = earlier_ones(ops);
        let parts = (ops.iter().map(CounterOp::parts)).fold(0, usize::saturating_add);
        let mut results = None;
        self.update_object(key, default, parts, work, |object, image, most| {
            let values = new_values(object, ops, &earlier)?;
            let changed = if values.is_empty() {
                Becomes::Same
            } else {
                replace_counters(object, ops, &values, image, most)?;
                let fit = |value: &Integer| value.as_small().is_some_and(cells::fits);
                let cells = values.iter().all(fit).then(|| span(ops));
                Becomes::New { cells }
            };
            results = Some(values);
            Ok(changed)
        })?;
        into.extend(results.ok_or(Error::BadKey)?);
        Ok(())
    }
}

/// Builds the object with new values of its counters.
fn replace_counters<H: Host, T: HostTerm<Host = H>>(
    object: Object<'_, H>,
    ops: &[CounterOp],
    values: &[Integer],
    image: &mut ImageBuilder<T>,
    most: usize,
) -> Result<(), Error> {
    let parts: Few<Parts> = values.iter().map(Parts::of).collect();
    let changes: Few<(usize, NewValue<'_, T>)> = (ops.iter().zip(&parts))
        .map(|(op, value)| (op.position - 1, value.as_value()))
        .collect();
    image.replace_elements_within(object, &changes, most)?;
    Ok(())
}

/// Returns the elements from the first to the last counter of operations, of which there are some.
fn span(ops: &[CounterOp]) -> Span {
    let elements = ops.iter().map(|op| Span::one(op.position - 1));
    elements.reduce(Span::and).expect("there are operations")
}

/// Returns for each operation the index of the last earlier operation on the same counter.
/// O(operations * log operations).
fn earlier_ones(ops: &[CounterOp]) -> Few<Option<usize>> {
    // A linear search through few operations is quicker than a sort.
    if ops.len() <= 8 {
        let one_before =
            |at: usize| (ops[..at].iter()).rposition(|op| op.position == ops[at].position);
        return (0..ops.len()).map(one_before).collect();
    }
    let mut by_position: Vec<usize> = (0..ops.len()).collect();
    // The sort is stable, so the operations on one counter stay in order.
    by_position.sort_by_key(|at| ops[*at].position);
    let mut earlier = Few::from_elem(None, ops.len());
    for pair in by_position.windows(2) {
        if ops[pair[0]].position == ops[pair[1]].position {
            earlier[pair[1]] = Some(pair[0]);
        }
    }
    earlier
}

/// Returns the value after each operation. An operation on a counter that an earlier operation has
/// changed starts with the changed value. O(elements of the object + operations).
fn new_values<H: Host>(
    object: Object<'_, H>,
    ops: &[CounterOp],
    earlier: &[Option<usize>],
) -> Result<Vec<Integer>, Error> {
    let elements = object.elements();
    let mut values: Vec<Integer> = Vec::with_capacity(ops.len());
    for (op, earlier) in ops.iter().zip(earlier) {
        let current = match earlier {
            Some(before) => values[*before].clone(),
            None => {
                let term = elements.get(op.position - 1).ok_or(Error::Position)?;
                Integer::from_term(term).ok_or(Error::NotAnInteger)?
            }
        };
        values.push(op.apply(&current)?);
    }
    Ok(values)
}
