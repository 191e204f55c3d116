//! Programs whose literals can be exchanged.
//!
//! Such a program is compiled from a clause in which each immediate literal is a marker, an integer
//! that stands nowhere else in the clause. Literals are to be put into the instructions,
//! patterns and expressions in which markers turn up. Literals that are no immediates are read from
//! the image wherever they are needed.

use crate::code::{Op, Program};
use crate::error::Error;
use crate::owned_image::OwnedImage;
use crate::parse::{self, Options};
use crate::shape::{At, Literals, Shape, Use, WIPED, WIPED_FIRST, hash, is_literal};
use crate::spec::{Constant, Expression, Pattern};
use ats_term::Kind;
use ats_term::image::{
    BoxKind, Host, HostTerm, ImageBox, Immediate, Location, overwrite_leaf, small_word,
};

/// The integer that is the first marker. Nothing depends on it: a clause in which it stands is not
/// compiled in this way.
const FIRST_MARKER: i64 = -0x0316_5EED_1A7E_0000;

impl<H: Host> Program<H> {
    /// Compiles a specification of one clause so that its literals can be exchanged, if that can be
    /// done. O(size of the specification); not recursive.
    ///
    /// # Errors
    /// If it is no specification, as [`parse`](fn@crate::parse).
    pub fn of_shape(shape: &Shape<H>, options: &Options) -> Option<Result<Self, Error>> {
        let mut image = OwnedImage::<H>::of_words(&shape.image);
        let markers: Vec<u64> = (FIRST_MARKER..)
            .map_while(small_word)
            .take(shape.slots.len())
            .collect();
        if shape.wiped.iter().any(|word| markers.contains(word)) {
            return None;
        }
        let mut words = shape.image.clone();
        for (marker, &slot) in markers.iter().zip(&shape.slots) {
            words[slot as usize] = *marker;
        }
        image.overwrite(0, &words);
        let spec = match parse::read(vec![image], options) {
            Ok(spec) => spec,
            Err(error) => return Some(Err(error)),
        };
        let mut program = Program::new(spec);
        let literal = |word: u64| {
            let marker = markers.iter().position(|marker| *marker == word)?;
            Some(shape.slots[marker])
        };
        program.literals = Some(Box::new(Literals {
            shape: shape.wiped.as_slice().into(),
            boxes: shape.boxes.as_slice().into(),
            ranges: shape.ranges().into(),
            uses: program.uses(literal).into(),
            image: shape.image.as_slice().into(),
        }));
        program.exchange_literals(shape);
        Some(Ok(program))
    }

    /// Returns `true` if the program was compiled for clauses of this shape. O(size of the clause).
    #[must_use]
    #[inline]
    pub fn has_shape(&self, shape: &Shape<H>) -> bool {
        let literals = self.literals.as_ref();
        literals.is_some_and(|literals| *literals.shape == *shape.wiped)
    }

    /// Puts the literals of a clause in the place of those that the program has. O(size of the
    /// clause).
    ///
    /// # Panics
    /// If the program [has another shape](Program::has_shape).
    pub fn exchange_literals(&mut self, shape: &Shape<H>) {
        assert!(self.has_shape(shape), "match: a clause of another shape");
        if let Some(literals) = &mut self.literals {
            literals.image.copy_from_slice(&shape.image);
        }
        self.use_literals();
    }

    /// Exchanges the literals like [`exchange_literals`](Program::exchange_literals), for a clause
    /// that was not taken apart. Does nothing and returns `false` if the clause has another shape,
    /// or if that cannot be told without its image. O(size of the clause).
    #[inline]
    pub fn read_literals<T: HostTerm<Host = H>>(&mut self, clause: T) -> bool {
        let is_read = (self.literals.as_mut()).is_some_and(|literals| literals.read(clause));
        if is_read {
            self.use_literals();
        }
        is_read
    }

    /// Returns a number that clauses with the same literals have in common:
    /// [`Shape::hash_with_literals`]. O(size of the clause).
    #[must_use]
    pub fn hash_with_literals(&self) -> u64 {
        hash(self.spec.images[0].object().words())
    }

    /// Puts the literals of the image that was read where they belong.
    fn use_literals(&mut self) {
        let Program {
            spec,
            code,
            literals: Some(literals),
            ..
        } = self
        else {
            unreachable!("match: a shape without literals");
        };
        for literal in &literals.ranges {
            let range = literal.start as usize..literal.end as usize;
            spec.images[0].overwrite(range.start, &literals.image[range]);
        }
        for Use { at, literal } in &literals.uses {
            let word = literals.image[*literal as usize];
            let constant = || Constant {
                image: 0,
                location: Location::of_immediate(word).expect("a literal is an immediate"),
            };
            match *at {
                At::Op(index) => {
                    *code[index as usize].immediate_mut().expect("as before") = word;
                }
                At::Pattern(index) => {
                    spec.patterns[index as usize] = Pattern::Literal(constant());
                }
                At::Expression(index) => {
                    spec.expressions[index as usize] = Expression::Constant(constant());
                }
            }
        }
    }

    /// Returns all uses of immediates that `literal` knows.
    fn uses(&mut self, literal: impl Fn(u64) -> Option<u32>) -> Vec<Use> {
        let (code, spec) = (&mut self.code, &self.spec);
        let constant = |constant: Constant| spec.constant(constant).immediate();
        let of_code = code.iter_mut().zip(0..).filter_map(|(op, index)| {
            let literal = literal(*op.immediate_mut()?)?;
            Some((At::Op(index), literal))
        });
        let of_patterns = spec
            .patterns
            .iter()
            .zip(0..)
            .filter_map(|(pattern, index)| {
                let Pattern::Literal(value) = pattern else {
                    return None;
                };
                Some((At::Pattern(index), literal(constant(*value)?)?))
            });
        let of_expressions = spec.expressions.iter().zip(0..);
        let of_expressions = of_expressions.filter_map(|(expression, index)| {
            let Expression::Constant(value) = expression else {
                return None;
            };
            Some((At::Expression(index), literal(constant(*value)?)?))
        });
        of_code
            .chain(of_patterns)
            .chain(of_expressions)
            .map(|(at, literal)| Use { at, literal })
            .collect()
    }
}

impl Literals {
    /// Reads the literals of a clause. Returns `false` if it has another shape; the image means
    /// nothing then.
    #[inline]
    fn read<T: HostTerm>(&mut self, clause: T) -> bool {
        const CLAUSE: usize = 3;
        if self.boxes.is_empty() || !matches!(clause.kind(), Kind::Tuple(CLAUSE)) {
            return false;
        }
        let mut reader = Reader {
            shape: &self.shape,
            boxes: self.boxes.iter(),
            image: &mut self.image,
        };
        let mut slots = clause.elements(CLAUSE).enumerate();
        slots.all(|(at, part)| reader.slot(at, part))
    }
}

/// A clause on its way through a shape.
struct Reader<'l> {
    shape: &'l [u64],
    /// The boxes that are still to come: each is followed by those below it.
    boxes: std::slice::Iter<'l, ImageBox>,
    image: &'l mut [u64],
}

impl Reader<'_> {
    /// Reads the term that belongs to a slot.
    #[inline]
    fn slot<T: HostTerm>(&mut self, at: usize, term: T) -> bool {
        match (self.shape[at], term.immediate()) {
            (wiped @ (WIPED | WIPED_FIRST), Some(word)) => {
                self.image[at] = word;
                is_literal::<T::Host>(word, wiped)
            }
            (WIPED | WIPED_FIRST, None) => false,
            (fixed, Some(word)) => word == fixed,
            (slot, None) => Immediate::from_word(slot).is_none() && self.next_box(term),
        }
    }

    /// Reads the term that belongs to the next box. Recursive, but no clause that has a shape is
    /// deep: its image is short.
    fn next_box<T: HostTerm>(&mut self, term: T) -> bool {
        let Some(&part) = self.boxes.next() else {
            return false;
        };
        let begin = part.at + 1;
        match (part.kind, term.kind()) {
            (BoxKind::Tuple, Kind::Tuple(arity)) if arity == part.len => {
                let mut elements = term.elements(arity).zip(begin..);
                elements.all(|(element, at)| self.slot(at, element))
            }
            (BoxKind::List, Kind::Cons(head, tail)) => self.list(head, tail, part),
            (BoxKind::Leaf, _) => overwrite_leaf(self.image, part, term),
            _ => false,
        }
    }

    fn list<T: HostTerm>(&mut self, mut head: T, mut tail: T, part: ImageBox) -> bool {
        let (mut at, end) = (part.at + 1, part.at + part.len);
        loop {
            if at == end || !self.slot(at, head) {
                return false;
            }
            at += 1;
            match tail.kind() {
                Kind::Cons(next, rest) => (head, tail) = (next, rest),
                _ => return at == end && self.slot(at, tail),
            }
        }
    }
}

impl Op {
    /// Returns the immediate of the operation, if it has one.
    fn immediate_mut(&mut self) -> Option<&mut u64> {
        match self {
            Op::ElementIs { word, .. }
            | Op::PartIs { word, .. }
            | Op::GuardPart { word, .. }
            | Op::ComparePart { word, .. }
            | Op::Is(word)
            | Op::PushWord(word)
            | Op::ReturnWord(word) => Some(word),
            _ => None,
        }
    }
}
