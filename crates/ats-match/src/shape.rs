//! Shapes: clauses without their literals.
//!
//! A program that asks for one key after the other makes a new specification for each, which
//! differs from the last one in the key. The program of a specification does not depend on its
//! literals, so one program serves all specifications of the same shape:
//! [`Program::exchange_literals`](crate::Program::exchange_literals).
//!
//! A shape is the image of the clause with the literals wiped out. An image has the same layout
//! whatever its immediates are, so offsets in it stay right if two images have the same shape.

use ats_term::image::{BoxKind, Host, HostTerm, ImageBox, ImageBuilder, Immediate, Object};
use std::marker::PhantomData;
use std::ops::Range;

/// The word in the place of a literal. No slot and no header is like it.
pub(crate) const WIPED: u64 = 0;
/// The word in the place of a literal that would be a name if it were an atom.
pub(crate) const WIPED_FIRST: u64 = 1 << 8;

/// The literals of a program: their offsets in the image, and their uses.
pub(crate) struct Literals {
    /// The wiped image: [`Shape::wiped`].
    pub(crate) shape: Box<[u64]>,
    /// The boxes of the image, if there is no map among them.
    pub(crate) boxes: Box<[ImageBox]>,
    /// The ranges of words of the image that have literals.
    pub(crate) ranges: Box<[Range<u32>]>,
    pub(crate) uses: Box<[Use]>,
    /// The image of a clause that is being read.
    pub(crate) image: Box<[u64]>,
}

/// A use of a literal.
pub(crate) struct Use {
    pub(crate) at: At,
    /// The index of the literal in the image.
    pub(crate) literal: u32,
}

/// The user of a literal: an instruction, a pattern or an expression, by its index.
pub(crate) enum At {
    Op(u32),
    Pattern(u32),
    Expression(u32),
}

/// A clause, taken apart into its shape and its literals. A reusable buffer.
///
/// Literals are immediates, floats, integers, bitstrings and identifiers, wherever another one of
/// the same size could stand without a change of the program. These are not: atoms with a
/// meaning in specifications, names of functions, the empty list, and all that stands in a map or
/// behind one.
///
/// # Invariant
/// - SHAPE-1. If the shapes of two clauses are equal, their images have boxes of the same kinds
///   and sizes at the same offsets.
pub struct Shape<H> {
    /// The image of the clause, which owns nothing.
    pub(crate) image: Vec<u64>,
    /// The image with its literals wiped out.
    pub(crate) wiped: Vec<u64>,
    /// The indices of the immediates that were wiped out.
    pub(crate) slots: Vec<u32>,
    /// The ranges of words of the leaves that were wiped out, with their headers.
    leaves: Vec<Range<u32>>,
    /// The boxes of the image. None if there is a map among them.
    pub(crate) boxes: Vec<ImageBox>,
    host: PhantomData<fn() -> H>,
}

impl<H: Host> Shape<H> {
    /// Creates a buffer without a clause; does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Shape {
            image: Vec::new(),
            wiped: Vec::new(),
            slots: Vec::new(),
            leaves: Vec::new(),
            boxes: Vec::new(),
            host: PhantomData,
        }
    }

    /// Takes the clause that was built last apart. Returns `false` if it has no shape: if it is no
    /// tuple of three elements, or owns something. Panics if nothing was built, or if it was taken.
    /// O(size of the clause).
    pub fn read<T: HostTerm<Host = H>>(&mut self, builder: &ImageBuilder<T>) -> bool {
        let clause = builder.object();
        if builder.owns() || clause.arity() != 3 {
            return false;
        }
        self.image.clear();
        self.image.extend_from_slice(clause.words());
        self.wiped.clear();
        self.wiped.extend_from_slice(clause.words());
        self.slots.clear();
        self.leaves.clear();
        self.boxes.clear();
        self.wipe(clause);
        true
    }

    /// Returns a number that equal shapes have in common. O(size of the clause).
    #[must_use]
    #[inline]
    pub fn hash(&self) -> u64 {
        hash(&self.wiped)
    }

    /// Returns a number that clauses with the same literals have in common, too. O(size of the
    /// clause).
    #[must_use]
    pub fn hash_with_literals(&self) -> u64 {
        hash(&self.image)
    }

    /// Returns the ranges of words that have literals, in no particular order.
    pub(crate) fn ranges(&self) -> Vec<Range<u32>> {
        let slots = self.slots.iter().map(|&slot| slot..slot + 1);
        slots.chain(self.leaves.iter().cloned()).collect()
    }

    fn wipe(&mut self, clause: Object<'_, H>) {
        let guards = clause.element_box(1).or(clause.element_box(2));
        let expressions = guards.unwrap_or(self.image.len());
        let (mut is_expression, mut is_kept, mut has_map) = (false, false, false);
        for part in clause.boxes() {
            if part.at >= expressions && !is_expression {
                (is_expression, is_kept) = (true, false);
            }
            // Keys are in an order that depends on all of them. The boxes of its parts follow,
            // and nothing tells where they end.
            is_kept |= part.kind == BoxKind::Map;
            has_map |= is_kept;
            self.boxes.push(part);
            match part.kind {
                _ if is_kept => {}
                BoxKind::Leaf => self.wipe_leaf(part),
                _ => self.wipe_slots(part, is_expression && part.kind == BoxKind::Tuple),
            }
        }
        if has_map {
            self.boxes.clear();
        }
    }

    /// Wipes out the content, and the part of the header that is finer than the number of words.
    fn wipe_leaf(&mut self, leaf: ImageBox) {
        let tag = self.image[leaf.at] as u8;
        self.wiped[leaf.at] = (leaf.len as u64) << 8 | u64::from(tag);
        self.wiped[leaf.at + 1..][..leaf.len].fill(WIPED);
        self.leaves
            .push(leaf.at as u32..(leaf.at + 1 + leaf.len) as u32);
    }

    /// Wipes out the immediates in a tuple or list.
    fn wipe_slots(&mut self, part: ImageBox, has_name: bool) {
        let begin = part.at + 1;
        for at in begin..begin + part.len {
            let wiped = if has_name && at == begin {
                WIPED_FIRST
            } else {
                WIPED
            };
            if is_literal::<H>(self.image[at], wiped) {
                self.wiped[at] = wiped;
                self.slots.push(at as u32);
            }
        }
    }
}

impl<H: Host> Default for Shape<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H> std::fmt::Debug for Shape<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shape").finish_non_exhaustive()
    }
}

/// A hash of words, each of which is mixed with its index alone: no step waits for the one before.
#[inline]
pub(crate) fn hash(words: &[u64]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |(word, index): (&u64, u64)| {
        let mixed = (word ^ index.wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
        mixed ^ mixed >> 32
    };
    let hash = words.iter().zip(1..).map(mix);
    let hash = hash.fold(words.len() as u64, u64::wrapping_add);
    hash ^ hash >> 32
}

/// Returns `true` if a slot has an immediate that means itself, in the place of which `wiped` shall
/// stand.
#[inline]
pub(crate) fn is_literal<H: Host>(word: u64, wiped: u64) -> bool {
    match Immediate::from_word(word) {
        Some(Immediate::Atom(_)) => wiped == WIPED && !H::with_atom(word, may_be_special),
        Some(Immediate::Small(_) | Immediate::LocalPid | Immediate::LocalPort) => true,
        Some(Immediate::Nil) | None => false,
    }
}

/// Returns `true` for `'_'`, variables, `'$_'` and `'$$'`.
fn may_be_special(atom: &str) -> bool {
    atom.starts_with('$') || atom == "_"
}
