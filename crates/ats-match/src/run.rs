//! State of a run: its position in the program, and the terms found and made so far.

use crate::code::{Home, Program};
use crate::compare::Comparer;
use crate::evaluation_error::EvaluationError;
use crate::run_term::RunTerm;
use crate::spec::Words;
use crate::value::{Value, ValueArena, empty};
use ats_term::image::{Host, ImageRef, Object, Slots};

/// The memory of a run.
pub(crate) struct Buffers<'a, H> {
    pub(crate) stack: Vec<Value<'a, H>>,
    pub(crate) containers: Vec<Slots<'a, H>>,
    pub(crate) lists: Vec<ImageRef<'a, H>>,
    pub(crate) bound: Vec<ImageRef<'a, H>>,
    pub(crate) arena: ValueArena<'a, H>,
}

/// Buffers that no run is using.
pub(crate) struct IdleBuffers<H>(Buffers<'static, H>);

impl<H: Host> IdleBuffers<H> {
    /// Creates empty buffers. Does not allocate.
    pub(crate) const fn new() -> Self {
        IdleBuffers(Buffers {
            stack: Vec::new(),
            containers: Vec::new(),
            lists: Vec::new(),
            bound: Vec::new(),
            arena: ValueArena::new(),
        })
    }

    /// Lends the emptied buffers to a run that ends with `'r`.
    #[inline]
    pub(crate) fn for_run<'r>(&'r mut self) -> &'r mut Buffers<'r, H> {
        // SAFETY: the two types differ in a lifetime only. Terms that a run leaves in the buffers
        // may not live as long as `self`, but no code reads them: this is the only way to the
        // buffers, and it empties them. Dropping does not read them either, since references have
        // no destructors.
        let buffers: &'r mut Buffers<'r, H> = unsafe { std::mem::transmute(&mut self.0) };
        buffers.clear();
        buffers.arena.clear();
        buffers
    }
}

impl<H: Host> Buffers<'_, H> {
    /// Discards the state of a clause. Made values stay, because they are numbered.
    #[inline]
    pub(crate) fn clear(&mut self) {
        empty(&mut self.stack);
        empty(&mut self.containers);
        empty(&mut self.lists);
        empty(&mut self.bound);
    }
}

/// A program being run on an object.
pub(crate) struct Run<'m, 'r, H: Host, E> {
    pub(crate) buffers: &'r mut Buffers<'r, H>,
    pub(crate) comparer: &'m mut Comparer,
    pub(crate) program: &'r Program<H>,
    pub(crate) object: Object<'r, H>,
    pub(crate) environment: &'m E,
}

impl<'r, H: Host, E> Run<'_, 'r, H, E> {
    #[inline]
    pub(crate) fn home(&self, home: Home) -> ImageRef<'r, H> {
        match home {
            Home::Object => self.object.term(),
            Home::Part { container, index } => self.buffers.containers[container as usize]
                .get(index as usize)
                .expect("match: the container has this part"),
            Home::Bound(index) => self.buffers.bound[index as usize],
        }
    }

    pub(crate) fn constant(&self, index: u32) -> ImageRef<'r, H> {
        self.program
            .spec
            .constant(self.program.constants[index as usize])
    }

    pub(crate) fn words(&self) -> Words {
        self.program.spec.words()
    }

    pub(crate) fn arena_mut(&mut self) -> &mut ValueArena<'r, H> {
        &mut self.buffers.arena
    }

    pub(crate) fn arena(&self) -> &ValueArena<'r, H> {
        &self.buffers.arena
    }

    pub(crate) fn term(&self, value: Value<'r, H>) -> RunTerm<'_, H> {
        self.buffers.arena.term(value)
    }

    /// Lends the comparer, and the arena of the terms it may meet.
    pub(crate) fn comparing(&mut self) -> (&mut Comparer, &ValueArena<'r, H>) {
        (self.comparer, &self.buffers.arena)
    }

    pub(crate) fn exit(&self) -> Value<'r, H> {
        Value::Word(self.words().exit)
    }

    pub(crate) fn top(&self) -> Value<'r, H> {
        *self.buffers.stack.last().expect("match: an empty stack")
    }

    /// Pops the top of the stack. Returns `true` if it is the atom `true`.
    pub(crate) fn is_true(&mut self) -> bool {
        let value = self.buffers.stack.pop();
        matches!(value, Some(Value::Word(word)) if word == self.words().true_)
    }

    /// Returns the word of a boolean; fails if the value is none.
    pub(crate) fn boolean(&self, value: Value<'r, H>) -> Result<u64, EvaluationError> {
        match value {
            Value::Word(word) if word == self.words().true_ || word == self.words().false_ => {
                Ok(word)
            }
            _ => Err(EvaluationError),
        }
    }

    /// Replaces the top `takes` values of the stack by one.
    pub(crate) fn replace(&mut self, takes: usize, value: Value<'r, H>) {
        let stack = &mut self.buffers.stack;
        stack.truncate(stack.len() - takes);
        stack.push(value);
    }
}

/// Returns a boolean as a value.
#[inline]
pub(crate) fn truth<'r, H: Host>(words: Words, holds: bool) -> Value<'r, H> {
    Value::Word(if holds { words.true_ } else { words.false_ })
}
