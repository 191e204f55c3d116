//! Running programs.

use crate::arithmetic::of_small;
use crate::code::{Home, Op, Program};
use crate::compare::Comparer;
use crate::environment::Environment;
use crate::evaluation_error::EvaluationError;
use crate::function::Function;
use crate::outcome::Outcome;
use crate::run::{Buffers, IdleBuffers, Run, truth};
use crate::run_term::RunTerm;
use crate::spec::Words;
use crate::value::{Value, ValueArena};
use ats_term::image::{Host, Object};

/// A virtual machine that runs programs on objects. It keeps its buffers: a warm one allocates
/// nothing unless bignums or large maps are computed. Each thread needs its own.
pub struct Machine<H: Host> {
    buffers: IdleBuffers<H>,
    comparer: Comparer,
}

impl<H: Host> Machine<H> {
    /// Creates a machine without buffers. Does not allocate.
    #[must_use]
    pub const fn new() -> Self {
        Machine {
            buffers: IdleBuffers::new(),
            comparer: Comparer::new(),
        }
    }

    /// Frees buffers that a huge term has blown up. Meant to be called after each use.
    pub fn tidy(&mut self) {
        self.buffers.for_run();
        self.comparer.tidy();
    }

    /// Limits each later run to about `most` steps of 10 ns. Only operations that may take long are
    /// counted: comparing terms, making keys of them, and calculating with large integers. A new
    /// machine has no limit.
    pub fn limit(&mut self, most: usize) {
        self.comparer.limit(most);
    }

    /// Returns `true` if a run has exceeded the limit since the last call of
    /// [`limit`](Self::limit). The result of that run is meaningless, and the runs after it had
    /// none.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.comparer.gave_up()
    }

    /// Runs the program on an object; returns `None` if no clause matches.
    ///
    /// The clauses are tried in order; the first whose head matches and whose guards are all `true`
    /// gives the result. Nothing is built that the result does not need. O(size of the program),
    /// plus the comparisons of terms, each O(size of the common front).
    #[inline]
    pub fn run<'r, E: Environment>(
        &'r mut self,
        program: &'r Program<H>,
        object: Object<'r, H>,
        environment: &E,
    ) -> Option<Outcome<'r, H>> {
        self.comparer.zeros = program.spec.zeros();
        if !self.comparer.begin_run() {
            return None;
        }
        let mut run = Run {
            buffers: self.buffers.for_run(),
            comparer: &mut self.comparer,
            program,
            object,
            environment,
        };
        let found = program
            .clauses
            .iter()
            .find_map(|&start| run.clause(start as usize))?;
        let buffers: &'r Buffers<'r, H> = run.buffers;
        let arena = &buffers.arena;
        Some(match found {
            Found::Object => Outcome::object(object, arena),
            Found::Value(value) => {
                let most_words = object.len_words() + program.constant_words;
                Outcome::value(RunTerm { value, arena }, program.spec.words(), most_words)
            }
        })
    }
}

impl<H: Host> Default for Machine<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Host> std::fmt::Debug for Machine<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Machine").finish_non_exhaustive()
    }
}

enum Found<'r, H> {
    Object,
    Value(Value<'r, H>),
}

impl<'r, H: Host, E: Environment> Run<'_, 'r, H, E> {
    /// Runs a clause; returns `None` if it does not match.
    #[inline]
    #[expect(clippy::too_many_lines, reason = "one arm for each operation")]
    fn clause(&mut self, start: usize) -> Option<Found<'r, H>> {
        self.buffers.clear();
        let words = self.object.words();
        let mut at = start;
        let mut current = None;
        let mut in_body = false;
        loop {
            // The operation is borrowed: a copy of the whole would wait for its own stores.
            let op = &self.program.code[at];
            at += 1;
            match *op {
                Op::ElementIs { index, word } => {
                    (words.get(index as usize) == Some(&word)).then_some(())?;
                }
                Op::Arity(arity) => {
                    let elements = self.object.elements();
                    (elements.len() == arity as usize).then_some(())?;
                    self.buffers.containers.push(elements);
                }
                Op::PartIs {
                    container,
                    index,
                    word,
                } => {
                    let container = &self.buffers.containers[container as usize];
                    (container.word(index as usize) == Some(word)).then_some(())?;
                }
                Op::PartTuple {
                    container,
                    index,
                    arity,
                } => {
                    let container = &self.buffers.containers[container as usize];
                    let elements = container.get(index as usize)?.tuple()?;
                    (elements.len() == arity as usize).then_some(())?;
                    self.buffers.containers.push(elements);
                }
                Op::GuardPart {
                    function,
                    container,
                    index,
                    word,
                } => {
                    let holds = self.compare_part(function, (container, index), word);
                    holds.then_some(())?;
                }
                Op::ComparePart {
                    function,
                    container,
                    index,
                    word,
                } => {
                    let holds = self.compare_part(function, (container, index), word);
                    self.buffers.stack.push(truth(self.words(), holds));
                }
                Op::Guard => self.is_true().then_some(())?,
                Op::Body => in_body = true,
                Op::ReturnObject => return Some(Found::Object),
                Op::ReturnHome(home) => return Some(Found::Value(Value::of(self.home(home)))),
                Op::ReturnWord(word) => return Some(Found::Value(Value::Word(word))),
                Op::ReturnTuple(n) => {
                    let parts = top(&self.buffers.stack, n);
                    let tuple = self.buffers.arena.tuple(parts);
                    return Some(Found::Value(tuple.unwrap_or(self.exit())));
                }
                Op::Return => return self.buffers.stack.pop().map(Found::Value),
                Op::Drop => {
                    self.buffers.stack.pop();
                }
                Op::Push(home) => {
                    let value = Value::of(self.home(home));
                    self.buffers.stack.push(value);
                }
                Op::PushWord(word) => self.buffers.stack.push(Value::Word(word)),
                Op::PushConstant(index) => {
                    let value = Value::of(self.constant(index));
                    self.buffers.stack.push(value);
                }
                Op::AndAlso { end } | Op::OrElse { end } => {
                    let goes_on = match *op {
                        Op::AndAlso { .. } => self.words().true_,
                        _ => self.words().false_,
                    };
                    match self.boolean(self.top()) {
                        Ok(word) if word == goes_on => {
                            self.buffers.stack.pop();
                        }
                        Ok(_) => at = end as usize,
                        Err(EvaluationError) if in_body => {
                            self.replace(1, self.exit());
                            at = end as usize;
                        }
                        Err(EvaluationError) => return None,
                    }
                }
                Op::Call(function) if self.call_small(function) => {}
                Op::Call(_)
                | Op::PushSelf
                | Op::MakeTuple(_)
                | Op::MakeList(_)
                | Op::MakeMap(_)
                | Op::And(_)
                | Op::Or(_) => {
                    let (takes, result) = self.evaluate(op);
                    match result {
                        Ok(value) => self.replace(takes, value),
                        Err(EvaluationError) if in_body => self.replace(takes, self.exit()),
                        Err(EvaluationError) => return None,
                    }
                }
                _ => current = Some(self.test(op, current)?),
            }
        }
    }

    /// Evaluates an operation. Returns the number of values to pop and the value to push.
    fn evaluate(&mut self, op: &Op) -> (usize, Result<Value<'r, H>, EvaluationError>) {
        let (takes, result) = match *op {
            Op::Call(function) => (function.arity() as u32, self.call_top(function)),
            Op::PushSelf => {
                let word = self.environment.self_word();
                (0, word.map(Value::Word).ok_or(EvaluationError))
            }
            Op::MakeTuple(n) => {
                let parts = top(&self.buffers.stack, n);
                (
                    n,
                    self.buffers
                        .arena
                        .tuple(parts)
                        .map_err(EvaluationError::from),
                )
            }
            Op::MakeList(n) => {
                let parts = top(&self.buffers.stack, n + 1);
                (
                    n + 1,
                    self.buffers
                        .arena
                        .list(parts)
                        .map_err(EvaluationError::from),
                )
            }
            Op::MakeMap(n) => {
                let pairs = top(&self.buffers.stack, 2 * n);
                (
                    2 * n,
                    make_map(&mut self.buffers.arena, self.comparer, pairs),
                )
            }
            Op::And(n) => (n, self.logical(n, self.words().false_)),
            Op::Or(n) => (n, self.logical(n, self.words().true_)),
            other => unreachable!("match: not an operation with a result: {other:?}"),
        };
        (takes as usize, result)
    }

    /// Evaluates `and` or `or`: the deciding boolean if one operand has it, else the other operand.
    fn logical(&self, n: u32, decides: u64) -> Result<Value<'r, H>, EvaluationError> {
        let mut result = match self.words() {
            Words { true_, false_, .. } if decides == true_ => false_,
            Words { true_, .. } => true_,
        };
        for &value in top(&self.buffers.stack, n) {
            if self.boolean(value)? == decides {
                result = decides;
            }
        }
        Ok(Value::Word(result))
    }

    fn call_top(&mut self, function: Function) -> Result<Value<'r, H>, EvaluationError> {
        let stack = &self.buffers.stack;
        match *top(stack, function.arity() as u32) {
            [] => Ok(Value::Word(self.environment.node_word())),
            [a] => self.call_one(function, a),
            [a, b] => self.call_two(function, a, b),
            [a, b, c] => self.call_three(function, a, b, c),
            _ => unreachable!("match: no function has more arguments"),
        }
    }

    /// Fast path for functions of two small integers whose result is a word. Returns `false` if
    /// this is no such call.
    #[inline]
    fn call_small(&mut self, function: Function) -> bool {
        let words = self.words();
        let stack = &mut self.buffers.stack;
        let [.., Value::Word(a), Value::Word(b)] = stack[..] else {
            return false;
        };
        if function.arity() != 2 || !are_small(a, b) {
            return false;
        }
        let result = match compare_small(function, a, b) {
            Some(holds) => Some(truth(words, holds)),
            None => of_small(function, a as i64 >> 4, b as i64 >> 4).map(Value::int),
        };
        let Some(result) = result else {
            return false;
        };
        stack.pop();
        let len = stack.len();
        stack[len - 1] = result;
        true
    }

    /// Returns `true` if the comparison of a part with an immediate is true.
    #[inline(always)]
    fn compare_part(
        &mut self,
        function: Function,
        (container, index): (u32, u32),
        word: u64,
    ) -> bool {
        let part = self.buffers.containers[container as usize].word(index as usize);
        if let Some(part) = part
            && are_small(part, word)
            && let Some(holds) = compare_small(function, part, word)
        {
            return holds;
        }
        let value = Value::of(self.home(Home::Part { container, index }));
        self.compare(function, value, Value::Word(word))
    }
}

/// Returns `true` if both words are those of small integers.
#[inline]
fn are_small(a: u64, b: u64) -> bool {
    a & b & 0xF == 0xF
}

/// Compares two small integers. Their low bits are equal, so the words compare like the integers.
#[inline]
fn compare_small(function: Function, a: u64, b: u64) -> Option<bool> {
    let (a, b) = (a as i64, b as i64);
    Some(match function {
        Function::Less => a < b,
        Function::Greater => a > b,
        Function::LessOrEqual => a <= b,
        Function::GreaterOrEqual => a >= b,
        Function::Equal | Function::Same => a == b,
        Function::NotEqual | Function::NotSame => a != b,
        _ => return None,
    })
}

/// Returns the top `n` values of the stack.
fn top<'s, 'r, H>(stack: &'s [Value<'r, H>], n: u32) -> &'s [Value<'r, H>] {
    &stack[stack.len() - n as usize..]
}

/// Makes a map of keys, and the values behind them. The last pair wins if a key occurs twice.
fn make_map<'r, H: Host>(
    arena: &mut ValueArena<'r, H>,
    comparer: &mut Comparer,
    pairs: &[Value<'r, H>],
) -> Result<Value<'r, H>, EvaluationError> {
    let (keys, values) = pairs.split_at(pairs.len() / 2);
    let last = comparer.last_of_each(arena, keys);
    if last.len() == keys.len() {
        return Ok(arena.map(keys, values)?);
    }
    let pick = |from: &[Value<'r, H>]| last.iter().map(|&i| from[i]).collect::<Vec<_>>();
    let (keys, values) = (pick(keys), pick(values));
    Ok(arena.map(&keys, &values)?)
}
