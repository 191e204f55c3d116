//! Changing those objects of a key that somebody selects.

use super::large::Large;
use super::{Buffers, Decided, Effect, Objects, Rules, keep, put, with_leftovers};
use crate::select::{Replace, Replacement};
use crate::value::{Rec, Room};
use crate::write::record;
use ats_mem::Change;
use ats_term::image::{Host, Object};

/// Which objects may be changed, and how many were.
pub(crate) struct Selected<'a> {
    /// Of a key that has many, only those at these positions; `None`: all.
    pub(crate) positions: Option<&'a [u64]>,
    /// Is set.
    pub(crate) changed: &'a mut usize,
}

impl Rules {
    /// Removes the objects of a key that are unwanted.
    ///
    /// # Safety
    /// As for [`insert`](Rules::insert).
    pub(crate) unsafe fn delete_selected<H: Host>(
        self,
        key: &[u8],
        current: &Rec<H>,
        selected: Selected<'_>,
        is_unwanted: &mut impl FnMut(Object<'_, H>) -> bool,
        buffers: &mut Buffers<H>,
    ) -> Decided<H> {
        let deleted = selected.changed;
        *deleted = 0;
        let objects = match Objects::of(current) {
            Objects::List(objects) => objects,
            Objects::Large(large) => {
                let meant = matching(large, selected.positions, is_unwanted);
                *deleted = meant.len();
                // SAFETY: handed on.
                return unsafe { self.delete_positions(key, current, large, &meant, buffers) };
            }
        };
        let Buffers { list, room, .. } = buffers;
        list.start();
        let mut kept = 0;
        for object in objects.iter() {
            if is_unwanted(room.object(object)) {
                *deleted += 1;
            } else {
                list.push_copy(object);
                kept += 1;
            }
        }
        if *deleted == 0 {
            return keep();
        }
        if kept == 0 {
            return (Change::Remove, Effect::of_removal(current));
        }
        put(Some(current), record(key, list.take()))
    }

    /// # Safety
    /// As for [`insert`](Rules::insert); the objects are those of `current`.
    unsafe fn delete_positions<H: Host>(
        self,
        key: &[u8],
        current: &Rec<H>,
        large: &Large<H>,
        positions: &[u64],
        buffers: &mut Buffers<H>,
    ) -> Decided<H> {
        if positions.is_empty() {
            return keep();
        }
        let mut room = Room::new();
        let mut draft = large.draft(self, buffers);
        for &position in positions {
            if let Some(object) = large.object(position, &mut room) {
                let hash = draft.hash(object);
                draft.remove(hash, position);
            }
        }
        if draft.len() == 0 {
            return (Change::Remove, Effect::of_removal(current));
        }
        // SAFETY: handed on.
        let (large, leftovers) = unsafe { draft.take_over() };
        with_leftovers(put(Some(current), large.into_record(key)), leftovers)
    }

    /// Replaces objects of a key, which keep their places. For tables that may hold equal objects.
    ///
    /// # Safety
    /// As for [`insert`](Rules::insert).
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
                let positions = match selected.positions {
                    Some(positions) => positions.to_vec(),
                    None => large.iter_from(0).map(|(position, _)| position).collect(),
                };
                let mut room = Room::new();
                let mut draft = large.draft(self, buffers);
                for position in positions {
                    let Some(object) = large.object(position, &mut room) else {
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
                // SAFETY: handed on.
                let (large, leftovers) = unsafe { draft.take_over() };
                return with_leftovers(put(Some(current), large.into_record(key)), leftovers);
            }
        };
        let Buffers { list, room, .. } = buffers;
        list.start();
        for object in objects.iter() {
            let replacement = replace.replacement(room.object(object), |new| list.push(new.take()));
            *replaced += usize::from(!matches!(replacement, Replacement::None));
            match replacement {
                Replacement::New(()) => is_new = true,
                _ => list.push_copy(object),
            }
        }
        match is_new {
            true => put(Some(current), record(key, list.take())),
            false => keep(),
        }
    }
}

/// The positions of the objects that match, of those given or of all.
fn matching<H: Host>(
    large: &Large<H>,
    positions: Option<&[u64]>,
    matches: &mut impl FnMut(Object<'_, H>) -> bool,
) -> Vec<u64> {
    let mut room = Room::new();
    match positions {
        Some(positions) => {
            let among = positions.iter().copied();
            let is_there =
                |&position: &u64| large.object(position, &mut room).is_some_and(&mut *matches);
            among.filter(is_there).collect()
        }
        None => {
            let all = large.iter_from(0);
            all.filter(|(_, stored)| matches(room.object(*stored)))
                .map(|(position, _)| position)
                .collect()
        }
    }
}
