//! Keys in the order in which they were added, each with some bytes before it. They lie in pieces
//! of memory, which are freed one by one, so that a list takes little more memory than its keys.

use std::collections::VecDeque;

/// Bytes of the first piece, and of the largest, unless a key needs more.
const LEAST_BYTES: usize = 64;
const MOST_BYTES: usize = 4096;
/// Bytes of the length of a key.
const LEN_BYTES: usize = 4;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Pieces<const HEAD: usize> {
    pieces: VecDeque<Vec<u8>>,
    /// The number of bytes of the first piece that were taken already.
    taken: usize,
    len: usize,
    bytes: usize,
}

impl<const HEAD: usize> Pieces<HEAD> {
    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of the pieces.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a key.
    pub(super) fn push(&mut self, head: [u8; HEAD], key: &[u8]) {
        let needed = HEAD + LEN_BYTES + key.len();
        let last = self.pieces.back().map_or(0, Vec::capacity);
        let has_room = |piece: &Vec<u8>| piece.capacity() - piece.len() >= needed;
        if !self.pieces.back().is_some_and(has_room) {
            let bytes = (2 * last).clamp(LEAST_BYTES, MOST_BYTES).max(needed);
            let piece = Vec::with_capacity(bytes);
            self.bytes += piece.capacity();
            self.pieces.push_back(piece);
        }
        if let Some(piece) = self.pieces.back_mut() {
            piece.extend_from_slice(&head);
            // A key of a record has less than 4 GiB.
            piece.extend_from_slice(&(key.len() as u32).to_le_bytes());
            piece.extend_from_slice(key);
            self.len += 1;
        }
    }

    /// Takes the first key.
    pub(super) fn pop(&mut self) -> Option<([u8; HEAD], Box<[u8]>)> {
        let piece = self.pieces.front()?;
        let (head, rest) = piece[self.taken..].split_first_chunk()?;
        let (len, rest) = rest.split_first_chunk::<LEN_BYTES>()?;
        let key: Box<[u8]> = rest[..u32::from_le_bytes(*len) as usize].into();
        let head = *head;
        self.taken += HEAD + LEN_BYTES + key.len();
        self.len -= 1;
        if self.taken == piece.len() {
            self.bytes -= piece.capacity();
            self.pieces.pop_front();
            self.taken = 0;
        }
        Some((head, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_order_and_their_memory_returns() {
        let mut pieces = Pieces::default();
        for round in 0..3_u32 {
            for number in 0..5000_u32 {
                let key = number.to_le_bytes().repeat((number % 7) as usize);
                pieces.push((number as u16).to_le_bytes(), &key);
            }
            pieces.push([0; 2], &[round as u8; 10_000]);
            assert_eq!(pieces.len(), 5001);
            assert!(pieces.bytes() < 5001 * (6 + 12) + 10_000 + 3 * MOST_BYTES);
            for number in 0..5000_u32 {
                let key = number.to_le_bytes().repeat((number % 7) as usize);
                let head = (number as u16).to_le_bytes();
                assert_eq!(pieces.pop(), Some((head, key.into())));
            }
            let large = Some(([0; 2], [round as u8; 10_000].into()));
            assert_eq!(pieces.pop(), large);
            assert_eq!((pieces.pop(), pieces.len(), pieces.bytes()), (None, 0, 0));
        }
    }
}
