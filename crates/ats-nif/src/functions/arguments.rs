//! Arguments of functions: lists, positions and directions.

use crate::atoms::KnownAtom;
use crate::env::VmWord;
use crate::process;
use crate::vm_term::VmTerm;
use ats::terms::Direction;
use std::time::Duration;

/// Number of objects or elements above which a change runs on a dirty scheduler: this many take
/// well under a millisecond.
pub(super) const LONG_LIST: usize = 500;

/// Returns `true` if a list is too long for this scheduler.
pub(super) fn is_long_list(list: VmTerm<'_>) -> bool {
    !process::on_dirty_scheduler() && proper_length(list, LONG_LIST + 1) > Some(LONG_LIST)
}

/// Iterator over the terms of a proper list.
pub(super) struct ListTerms<'e>(pub VmTerm<'e>);

impl<'e> Iterator for ListTerms<'e> {
    type Item = VmTerm<'e>;

    fn next(&mut self) -> Option<VmTerm<'e>> {
        let (head, tail) = self.0.as_cons()?;
        self.0 = tail;
        Some(head)
    }
}

/// Counts the elements of a proper list, up to `most`; `None` if the list is improper.
pub(super) fn proper_length(list: VmTerm<'_>, most: usize) -> Option<usize> {
    let mut terms = ListTerms(list);
    let len = terms.by_ref().take(most).count();
    (len == most || terms.0.is_nil()).then_some(len)
}

/// Reads a position. All positions that no object can have become the same number.
pub(super) fn position(term: VmTerm<'_>) -> Result<usize, KnownAtom> {
    let position = term.as_small().ok_or(KnownAtom::None)?;
    usize::try_from(position).map_err(|_| KnownAtom::Position)
}

/// Reads a position and returns the index of the element, from 0.
pub(super) fn index(position: VmTerm<'_>) -> Result<usize, KnownAtom> {
    let position = position.as_small().filter(|position| *position > 0);
    Ok(position.ok_or(KnownAtom::None)? as usize - 1)
}

/// Reads `up` or `down`.
pub(super) fn direction(word: VmWord<'_>) -> Option<Direction> {
    match word {
        word if KnownAtom::Up.is(word) => Some(Direction::Up),
        word if KnownAtom::Down.is(word) => Some(Direction::Down),
        _ => None,
    }
}

/// Returns `up` or `down`.
pub(super) fn direction_word(direction: Direction) -> VmWord<'static> {
    let word = match direction {
        Direction::Up => KnownAtom::Up,
        Direction::Down => KnownAtom::Down,
    };
    word.word()
}

/// Returns the arguments of a function, with the optional default behind them.
#[inline]
pub(super) fn with_default<'e, const ARITY: usize>(
    args: &[VmTerm<'e>],
) -> ([VmTerm<'e>; ARITY], Option<VmTerm<'e>>) {
    let (given, default) = args.split_first_chunk().expect("as many as in the entry");
    (*given, default.first().copied())
}

/// Reads a positive number of milliseconds.
pub(super) fn milliseconds(term: VmTerm<'_>) -> Result<Duration, KnownAtom> {
    match term.as_unsigned() {
        Some(time) if time > 0 => Ok(Duration::from_millis(time)),
        _ => Err(KnownAtom::None),
    }
}
