//! The stack of a walk.

/// A stack whose lowest few entries need no heap.
pub(crate) struct Stack<F> {
    lowest: [Option<F>; INLINE_LEVELS],
    /// Number of entries in `lowest`. Further entries are in `rest`, which is empty unless `lowest`
    /// is full.
    used: usize,
    rest: Vec<F>,
}

const INLINE_LEVELS: usize = 4;

impl<F: Copy> Stack<F> {
    pub(crate) fn new() -> Stack<F> {
        Stack {
            lowest: [None; INLINE_LEVELS],
            used: 0,
            rest: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, frame: F) {
        match self.lowest.get_mut(self.used) {
            Some(slot) => {
                *slot = Some(frame);
                self.used += 1;
            }
            None => self.rest.push(frame),
        }
    }

    pub(crate) fn top(&mut self) -> Option<&mut F> {
        if self.rest.is_empty() {
            self.lowest[self.used.checked_sub(1)?].as_mut()
        } else {
            self.rest.last_mut()
        }
    }

    pub(crate) fn pop(&mut self) {
        if self.rest.pop().is_none() {
            self.used = self.used.saturating_sub(1);
        }
    }
}
