//! Objects of a key that have been present since an earlier moment.

use super::buffers::Buffers;
use super::large::Objects;
use super::rules::Rules;
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::Rec;
use ats_term::image::{Host, Object, ObjectList, Stored, image_eq};

impl Rules {
    /// Returns the positions of the objects of `current` that `then`, the record of the key at an
    /// earlier moment, contains, too, in ascending order. The position of an object of a list is
    /// the number of objects before it. If `then` is a large bag, only its objects at `positions`
    /// are looked up. Of equal objects, as many are returned as both records have.
    ///
    /// Called in the decision about `current` (LARGE-1).
    pub(crate) fn positions_since<H: Host>(
        self,
        then: &Rec<H>,
        positions: Option<&[u64]>,
        current: &Rec<H>,
        buffers: &mut Buffers<H>,
    ) -> Vec<u64> {
        let positions = positions.unwrap_or_default().iter().copied();
        let mut found: Vec<u64> = match (Objects::of(then), Objects::of(current)) {
            (Objects::Large(then), Objects::Large(now)) => {
                let is_there = |position: &u64| {
                    let (then, now) = (then.stored(*position), now.stored(*position));
                    let both = then.zip(now);
                    both.is_some_and(|(then, now)| self.are_equal(then, now, buffers))
                };
                positions.filter(is_there).collect()
            }
            (Objects::Large(then), Objects::List(now)) => {
                let wanted = positions.filter_map(|position| then.stored(position));
                self.positions_in_list(wanted, now, buffers)
            }
            (Objects::List(then), Objects::List(now)) => {
                self.positions_in_list(then.iter(), now, buffers)
            }
            (Objects::List(then), Objects::Large(now)) => {
                let (mut found, mut unpacked) = (Vec::new(), UnpackBuffer::new());
                let mut draft = now.draft(self, buffers);
                for wanted in then {
                    let object = unpacked.object(wanted);
                    let hash = draft.hash(object);
                    let position = draft
                        .equal(hash, object)
                        .find(|position| !found.contains(position));
                    found.extend(position);
                }
                found
            }
        };
        found.sort_unstable();
        found
    }

    /// Returns the positions of objects in a list. Objects keep their order unless they are
    /// removed, so each search begins behind the previous result.
    fn positions_in_list<'o, H: Host>(
        self,
        wanted: impl Iterator<Item = Stored<'o, H>>,
        now: ObjectList<'_, H>,
        buffers: &mut Buffers<H>,
    ) -> Vec<u64> {
        let now: Vec<_> = now.iter().collect();
        let (mut is_taken, mut next) = (vec![false; now.len()], 0);
        let mut found = Vec::new();
        for wanted in wanted {
            let mut all = (next..now.len()).chain(0..next);
            let first = all.find(|at| !is_taken[*at] && self.are_equal(wanted, now[*at], buffers));
            if let Some(at) = first {
                is_taken[at] = true;
                next = at + 1;
                found.push(at as u64);
            }
        }
        found
    }

    fn are_equal<H: Host>(
        self,
        one: Stored<'_, H>,
        other: Stored<'_, H>,
        buffers: &mut Buffers<H>,
    ) -> bool {
        let one: Object<'_, H> = buffers.unpacked.object(one);
        image_eq(one, buffers.second_unpacked.object(other), self.zeros)
    }
}
