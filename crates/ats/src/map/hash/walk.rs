//! Walks over a store without order.

use crate::map::piece::Piece;
use crate::map::records::break_if;
use crate::map::store::MapStore;
use crate::map::store_of_map::StoreOfMap;
use crate::map::words::unpack;
use ats_mem::{WalkFrom, When};
use ats_sync::pin;

/// Number of calls of `pause` after which a piece ends, even if it has no record.
const PAUSES: usize = 1_000;

/// The position of a walk.
enum From {
    Start,
    Behind(Vec<u8>),
    At(u64),
    End,
}

/// A walk: its position, and the piece that it has read.
pub(super) struct Walk {
    from: From,
    piece: Piece,
    /// The number of bytes of a value, if it is the same for all values of the type.
    len: Option<usize>,
}

impl Walk {
    pub(super) fn new(len: Option<usize>) -> Self {
        Walk {
            from: From::Start,
            piece: Piece::default(),
            len,
        }
    }

    /// Returns the next record.
    pub(super) fn next<S: MapStore>(
        &mut self,
        store: &StoreOfMap<S>,
        when: When,
    ) -> Option<(&[u8], &[u8])> {
        while self.piece.is_empty() && !matches!(self.from, From::End) {
            self.read(store, when);
        }
        self.piece.pop_front()
    }

    fn read<S: MapStore>(&mut self, store: &StoreOfMap<S>, when: When) {
        let from = match &self.from {
            From::Start => WalkFrom::Start,
            From::Behind(key) => WalkFrom::Behind(key),
            From::At(slot) => WalkFrom::Position(*slot),
            From::End => return,
        };
        let (mut is_full, mut pauses) = (false, 0);
        let (piece, len) = (&mut self.piece, self.len);
        piece.begin();
        let mut visit = |record: &ats_mem::Record<S::Of>| {
            is_full = !piece.push(record.key(), unpack(S::words(record), len));
            break_if(is_full)
        };
        let mut pause = || {
            pauses += 1;
            break_if(pauses > PAUSES)
        };
        let guard = pin();
        let store = store.get(&guard);
        let walk = ats_mem::Walk::up(from).at(when);
        let paused = store.walk(walk, &guard, &mut visit, &mut pause);
        let paused = paused.expect("any key will do");
        self.from = match (paused, self.piece.last_key()) {
            (Some(slot), _) => From::At(slot),
            (None, Some(key)) if is_full => From::Behind(key.to_vec()),
            (None, _) => From::End,
        };
    }
}
