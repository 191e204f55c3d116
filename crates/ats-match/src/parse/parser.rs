//! State of the parser while it parses a clause.

use crate::error::Error;
use crate::function::FunctionSet;
use crate::spec::{Constant, Id, Range, Spec};
use ats_term::image::{Host, ImageRef, Immediate};
use std::collections::HashMap;

/// Returns a position as the index of an arena; fails if it is too large.
pub(super) fn index(position: usize) -> Result<u32, Error> {
    u32::try_from(position).map_err(|_| Error::SystemLimit)
}

/// Appends `len` nodes to an arena, to be filled in later.
pub(super) fn reserve<N: Copy, I: Id>(
    arena: &mut Vec<N>,
    len: usize,
    node: N,
) -> Result<Range<I>, Error> {
    let start = arena.len();
    // The last index must fit.
    index(start + len)?;
    arena.resize(start + len, node);
    Ok(Range {
        start: I::new(start as u32),
        len: len as u32,
    })
}

/// A clause that is being read.
pub(super) struct Parser<'s, H: Host> {
    pub(super) spec: &'s mut Spec<H>,
    pub(super) functions: FunctionSet,
    /// Number of the clause, which is also that of its image.
    pub(super) image: u32,
    /// Slots of the head's variables, by their numbers.
    pub(super) slots: HashMap<u32, u32>,
}

impl<H: Host> Parser<'_, H> {
    pub(super) fn constant(&self, term: ImageRef<'_, H>) -> Constant {
        Constant {
            image: self.image,
            location: term.location(),
        }
    }
}

/// Returns the number `N` of a variable `'$N'`. An atom with a larger number than a variable may
/// have is no variable.
pub(crate) fn variable<H: Host>(term: ImageRef<'_, H>) -> Option<u32> {
    let word = term.immediate()?;
    let Some(Immediate::Atom(_)) = Immediate::from_word(word) else {
        return None;
    };
    H::with_atom(word, variable_number)
}

fn variable_number(text: &str) -> Option<u32> {
    const LARGEST: u32 = i32::MAX as u32;
    let digits = text.strip_prefix('$')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (digits.starts_with('0') && digits.len() > 1) {
        return None;
    }
    digits.parse().ok().filter(|&number| number <= LARGEST)
}

#[cfg(test)]
mod tests {
    use super::variable_number;

    #[test]
    fn variables_have_plain_numbers() {
        for (text, number) in [
            ("$0", Some(0)),
            ("$1", Some(1)),
            ("$100000000", Some(100_000_000)),
            ("$01", None),
            ("$00", None),
            ("$", None),
            ("$$", None),
            ("$_", None),
            ("$1a", None),
            ("$+1", None),
            ("$-1", None),
            ("1", None),
            ("$99999999999999999999", None),
        ] {
            assert_eq!(variable_number(text), number, "{text}");
        }
    }
}
