//! The state of a run of a program: its place, and all that it has found and made so far.

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

/// Buffers between two runs.
pub(crate) struct IdleBuffers<H>(Buffers<'static, H>);

impl<H: Host> IdleBuffers<H> {
    /// No buffers yet; does not allocate.
    pub(crate) const fn new() -> Self {
        IdleBuffers(Buffers {
            stack: Vec::new(),
            containers: Vec::new(),
            lists: Vec::new(),
            bound: Vec::new(),
            arena: ValueArena::new(),
        })
    }

    /// The buffers, empty, for a run that is over when `'r` is.
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
    /// Forgets what belongs to a clause. Values that were made stay, as they are numbered.
    #[inline]
    pub(crate) fn clear(&mut self) {
        empty(&mut self.stack);
        empty(&mut self.containers);
        empty(&mut self.lists);
        empty(&mut self.bound);
    }
}

/// A program on its way through an object.
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

    /// The comparer of values, and the terms that it may meet.
    pub(crate) fn comparing(&mut self) -> (&mut Comparer, &ValueArena<'r, H>) {
        (self.comparer, &self.buffers.arena)
    }

    pub(crate) fn exit(&self) -> Value<'r, H> {
        Value::Word(self.words().exit)
    }

    pub(crate) fn top(&self) -> Value<'r, H> {
        *self.buffers.stack.last().expect("match: an empty stack")
    }

    /// Takes the top off the stack and says whether it is `true`.
    pub(crate) fn is_true(&mut self) -> bool {
        let value = self.buffers.stack.pop();
        matches!(value, Some(Value::Word(word)) if word == self.words().true_)
    }

    /// The word of a boolean.
    pub(crate) fn boolean(&self, value: Value<'r, H>) -> Result<u64, EvaluationError> {
        match value {
            Value::Word(word) if word == self.words().true_ || word == self.words().false_ => {
                Ok(word)
            }
            _ => Err(EvaluationError),
        }
    }

    /// Puts a value in the place of the last so many.
    pub(crate) fn replace(&mut self, takes: usize, value: Value<'r, H>) {
        let stack = &mut self.buffers.stack;
        stack.truncate(stack.len() - takes);
        stack.push(value);
    }
}

/// The word of a boolean, as a value.
#[inline]
pub(crate) fn truth<'r, H: Host>(words: Words, holds: bool) -> Value<'r, H> {
    Value::Word(if holds { words.true_ } else { words.false_ })
}
