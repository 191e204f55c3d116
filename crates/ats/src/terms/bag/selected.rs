//! Changes of the objects of a key that the caller selects.

use super::buffers::{Buffers, NewObject};
use super::decided::{Decided, keep, put, remove};
use super::large::{Large, Objects};
use super::rules::Rules;
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::{Rec, record};
use ats_match::RunTerm;
use ats_store::End;
use ats_term::image::{Host, Object};

/// The objects that may be changed, and the number of changed objects.
pub(crate) struct Selected<'a> {
    /// The positions of the objects, ascending; `None` means all objects. The position of an object
    /// of a list is the number of objects before it.
    pub(crate) among: Option<&'a [u64]>,
    /// The number of changed objects, which the call sets.
    pub(crate) changed: &'a mut usize,
}

/// The result of replacing an object.
pub(crate) enum Replacement<T> {
    /// The object does not match and stays.
    None,
    /// The object matches and stays the same.
    Itself,
    /// The object was replaced; `put` returned this.
    New(T),
}

/// Computes replacements of objects.
pub(crate) trait Replace<H: Host> {
    /// Computes the replacement of an object, and passes a new object to `put`.
    fn replacement<T>(
        &mut self,
        object: Object<'_, H>,
        put: impl FnOnce(&mut NewObject<'_, RunTerm<'_, H>>) -> T,
    ) -> Replacement<T>;
}

impl Rules {
    /// Removes the unwanted objects of a key; with `among`, only objects at these positions. Sets
    /// `deleted` to the positions of the removed objects in `current`. Positions ascend, and are
    /// those of [`Selected::among`].
    ///
    /// # Safety
    /// The contract of [`insert`](Rules::insert) holds.
    pub(crate) unsafe fn delete_selected<H: Host>(
        self,
        key: &[u8],
        current: &Rec<H>,
        among: Option<&[u64]>,
        is_unwanted: &mut impl FnMut(Object<'_, H>) -> bool,
        deleted: &mut Vec<u64>,
        buffers: &mut Buffers<H>,
    ) -> Decided<H> {
        deleted.clear();
        let objects = match Objects::of(current) {
            Objects::List(objects) => objects,
            Objects::Large(large) => {
                *deleted = matching(large, among, is_unwanted);
                // SAFETY: the caller promises that `update_bag` passed `current`, whose objects are
                // `large`, to the decision that returns the result (LARGE-1).
                return unsafe { self.delete_positions(key, large, deleted, buffers) };
            }
        };
        let Buffers { list, unpacked, .. } = buffers;
        list.start();
        let mut kept = 0;
        for (at, object) in objects.iter().enumerate() {
            if has(among, at) && is_unwanted(unpacked.object(object)) {
                deleted.push(at as u64);
            } else {
                list.push_copy(object);
                kept += 1;
            }
        }
        if deleted.is_empty() {
            return keep();
        }
        if kept == 0 {
            return remove();
        }
        put(record(key, list.take()))
    }

    /// Removes the oldest or the newest object of a key.
    ///
    /// # Safety
    /// The contract of [`insert`](Rules::insert) holds.
    pub(crate) unsafe fn delete_end<H: Host>(
        self,
        key: &[u8],
        current: &Rec<H>,
        end: End,
        buffers: &mut Buffers<H>,
    ) -> Decided<H> {
        let (mut before, mut is_over, mut among) = (0, false, None);
        let position;
        match (Objects::of(current), end) {
            (Objects::List(_), End::First) => {}
            (Objects::List(objects), End::Last) => before = objects.iter().count() - 1,
            (Objects::Large(large), end) => {
                let outermost = match end {
                    End::First => large.iter_from(0).next(),
                    End::Last => large.iter_before(u64::MAX).next(),
                };
                position = [outermost.expect("no large bag is empty").0];
                among = Some(&position[..]);
            }
        }
        let mut is_unwanted = |_: Object<'_, H>| match before.checked_sub(1) {
            Some(left) => {
                before = left;
                false
            }
            None => !std::mem::replace(&mut is_over, true),
        };
        let deleted = &mut Vec::new();
        // SAFETY: the caller promises that `update_bag` passed `current` to the decision that
        // returns the result (LARGE-1).
        unsafe { self.delete_selected(key, current, among, &mut is_unwanted, deleted, buffers) }
    }

    /// Removes the objects of a large bag at these positions.
    ///
    /// # Safety
    /// The contract of [`insert`](Rules::insert) holds, and `large` belongs to the record that was
    /// passed to the decision.
    unsafe fn delete_positions<H: Host>(
        self,
        key: &[u8],
        large: &Large<H>,
        positions: &[u64],
        buffers: &mut Buffers<H>,
    ) -> Decided<H> {
        if positions.is_empty() {
            return keep();
        }
        let mut unpacked = UnpackBuffer::new();
        let mut draft = large.draft(self, buffers);
        for &position in positions {
            if let Some(object) = large.object(position, &mut unpacked) {
                let hash = draft.hash(object);
                draft.remove(hash, position);
            }
        }
        if draft.len() == 0 {
            return remove();
        }
        // SAFETY: the draft was made of the objects of `current`, and the decision, which the
        // caller promises this is, replaces them with the result (LARGE-3).
        unsafe { draft.put(key, self) }
    }

    /// Visits the objects of a key that [`delete_selected`](Rules::delete_selected) has removed, in
    /// the order of `deleted`.
    pub(crate) fn visit_deleted<H: Host>(
        before: &Rec<H>,
        deleted: &[u64],
        unpacked: &mut UnpackBuffer,
        visit: &mut dyn FnMut(Object<'_, H>),
    ) {
        match Objects::of(before) {
            Objects::Large(large) => {
                for &position in deleted {
                    visit(large.object(position, unpacked).expect("it was there"));
                }
            }
            Objects::List(objects) => {
                let objects: Vec<_> = objects.iter().collect();
                for &at in deleted {
                    visit(unpacked.object(objects[at as usize]));
                }
            }
        }
    }

    /// Replaces objects of a key, which keep their positions. Only tables that may hold equal
    /// objects call this.
    ///
    /// # Safety
    /// The contract of [`insert`](Rules::insert) holds.
    pub(crate) unsafe fn replace_selected<H: Host>(
        self,
        key: &[u8],
        current: &Rec<H>,
        selected: Selected<'_>,
        replace: &mut impl Replace<H>,
        buffers: &mut Buffers<H>,
    ) -> Decided<H> {
        debug_assert!(!self.distinct);
        let replaced = selected.changed;
        *replaced = 0;
        let mut is_new = false;
        let objects = match Objects::of(current) {
            Objects::List(objects) => objects,
            Objects::Large(large) => {
                let positions = match selected.among {
                    Some(positions) => positions.to_vec(),
                    None => large.iter_from(0).map(|(position, _)| position).collect(),
                };
                let mut unpacked = UnpackBuffer::new();
                let mut draft = large.draft(self, buffers);
                for position in positions {
                    let Some(object) = large.object(position, &mut unpacked) else {
                        continue;
                    };
                    let hash = draft.hash(object);
                    let replacement = replace.replacement(object, |new| {
                        let new_hash = draft.hash(new.object());
                        draft.replace(position, hash, new_hash, new.take());
                    });
                    is_new |= matches!(replacement, Replacement::New(()));
                    *replaced += usize::from(!matches!(replacement, Replacement::None));
                }
                if !is_new {
                    return keep();
                }
                // SAFETY: the draft was made of the objects of `current`, and the decision, which
                // the caller promises this is, replaces them with the result (LARGE-3).
                return unsafe { draft.put(key, self) };
            }
        };
        let Buffers { list, unpacked, .. } = buffers;
        list.start();
        for (at, object) in objects.iter().enumerate() {
            if !has(selected.among, at) {
                list.push_copy(object);
                continue;
            }
            let replacement =
                replace.replacement(unpacked.object(object), |new| list.push(new.take()));
            *replaced += usize::from(!matches!(replacement, Replacement::None));
            match replacement {
                Replacement::New(()) => is_new = true,
                _ => list.push_copy(object),
            }
        }
        if is_new {
            put(record(key, list.take()))
        } else {
            keep()
        }
    }
}

/// Returns `true` if the object with `at` objects before it may be changed.
fn has(among: Option<&[u64]>, at: usize) -> bool {
    among.is_none_or(|among| among.binary_search(&(at as u64)).is_ok())
}

/// Returns the positions of the objects that match, among `positions` or all.
fn matching<H: Host>(
    large: &Large<H>,
    positions: Option<&[u64]>,
    matches: &mut impl FnMut(Object<'_, H>) -> bool,
) -> Vec<u64> {
    let mut unpacked = UnpackBuffer::new();
    match positions {
        Some(positions) => {
            let among = positions.iter().copied();
            let is_there = |&position: &u64| {
                large
                    .object(position, &mut unpacked)
                    .is_some_and(&mut *matches)
            };
            among.filter(is_there).collect()
        }
        None => {
            let all = large.iter_from(0);
            all.filter(|(_, stored)| matches(unpacked.object(*stored)))
                .map(|(position, _)| position)
                .collect()
        }
    }
}
