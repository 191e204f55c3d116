//! The functions that guards and bodies call.
//!
//! Each behaves like the function of the same name in the module `erlang`. If that function raises
//! an exception, the call fails; the kind of exception is irrelevant.

use crate::environment::Environment;
use crate::evaluation_error::EvaluationError;
use crate::function::Function;
use crate::run::{Run, truth};
use crate::value::{Number, Value};
use ats_term::image::{Host, HostKind, Immediate, View};
use ats_term::term_ref::{FunIdent, Kind, TermRef};
use std::cmp::Ordering;

/// The result of a call.
type Result<'r, H> = std::result::Result<Value<'r, H>, EvaluationError>;

impl<'r, H: Host, E: Environment> Run<'_, 'r, H, E> {
    pub(crate) fn call_one(&mut self, function: Function, value: Value<'r, H>) -> Result<'r, H> {
        match function {
            Function::IsAtom
            | Function::IsFloat
            | Function::IsInteger
            | Function::IsList
            | Function::IsNumber
            | Function::IsPid
            | Function::IsPort
            | Function::IsReference
            | Function::IsTuple
            | Function::IsMap
            | Function::IsBinary
            | Function::IsBitstring
            | Function::IsFunction => {
                let is = is_type(function, self.term(value).kind());
                Ok(self.truth(is))
            }
            Function::IsBoolean => Ok(self.truth(self.boolean(value).is_ok())),
            Function::Not => {
                let word = self.boolean(value)?;
                Ok(self.truth(word == self.words().false_))
            }
            Function::Hd => self.head_and_tail(value).map(|(head, _)| head),
            Function::Tl => self.head_and_tail(value).map(|(_, tail)| tail),
            Function::Length => self.length(value).map(size),
            Function::Size => self.size(value).map(size),
            Function::TupleSize => match self.term(value).kind() {
                Kind::Tuple(arity) => Ok(size(arity)),
                _ => Err(EvaluationError),
            },
            Function::MapSize => match self.term(value).kind() {
                Kind::Map(pairs) => Ok(size(pairs)),
                _ => Err(EvaluationError),
            },
            Function::BitSize => self.bits(value).map(size),
            Function::ByteSize => self.bits(value).map(|bits| size(bits.div_ceil(8))),
            Function::NodeOf => self.node_of(value),
            _ => {
                let zeros = self.comparer.zeros;
                self.pay(function, value, value)?;
                self.arena_mut().calculate_one(function, value, zeros)
            }
        }
    }

    pub(crate) fn call_two(
        &mut self,
        function: Function,
        a: Value<'r, H>,
        b: Value<'r, H>,
    ) -> Result<'r, H> {
        match function {
            Function::Greater
            | Function::GreaterOrEqual
            | Function::Less
            | Function::LessOrEqual
            | Function::Equal
            | Function::NotEqual
            | Function::Same
            | Function::NotSame => {
                let holds = self.compare(function, a, b);
                Ok(self.truth(holds))
            }
            // `max/2` returns its first argument if both are equal.
            Function::Max => Ok(if self.order(a, b) == Ordering::Less {
                b
            } else {
                a
            }),
            Function::Min => Ok(if self.order(a, b) == Ordering::Greater {
                b
            } else {
                a
            }),
            Function::Xor => {
                let (a, b) = (self.boolean(a)?, self.boolean(b)?);
                Ok(self.truth(a != b))
            }
            Function::Element => self.element(a, b),
            Function::IsFunctionOf => self.is_function_of(a, b),
            Function::IsMapKey => {
                let found = self.map_value(a, b)?;
                Ok(self.truth(found.is_some()))
            }
            Function::MapGet => self.map_value(a, b)?.ok_or(EvaluationError),
            Function::BinaryPart => match self.term(b).kind() {
                Kind::Tuple(2) => {
                    let (start, len) = (self.nth(b, 0), self.nth(b, 1));
                    self.binary_part(
                        a,
                        start.ok_or(EvaluationError)?,
                        len.ok_or(EvaluationError)?,
                    )
                }
                _ => Err(EvaluationError),
            },
            _ => {
                self.pay(function, a, b)?;
                self.arena_mut().calculate_two(function, a, b)
            }
        }
    }

    pub(crate) fn call_three(
        &mut self,
        function: Function,
        a: Value<'r, H>,
        b: Value<'r, H>,
        c: Value<'r, H>,
    ) -> Result<'r, H> {
        match function {
            Function::IsRecord => self.is_record(a, b, c),
            _ => self.binary_part(a, b, c),
        }
    }

    fn truth(&self, holds: bool) -> Value<'r, H> {
        truth(self.words(), holds)
    }

    fn order(&mut self, a: Value<'r, H>, b: Value<'r, H>) -> Ordering {
        let (comparer, arena) = self.comparing();
        comparer.order(arena, a, b)
    }

    /// Returns `true` if a comparison holds.
    pub(crate) fn compare(&mut self, function: Function, a: Value<'r, H>, b: Value<'r, H>) -> bool {
        match function {
            Function::Same | Function::NotSame => {
                let (comparer, arena) = self.comparing();
                comparer.same(arena, a, b) == (function == Function::Same)
            }
            Function::Less => self.order(a, b).is_lt(),
            Function::Greater => self.order(a, b).is_gt(),
            Function::LessOrEqual => self.order(a, b).is_le(),
            Function::GreaterOrEqual => self.order(a, b).is_ge(),
            _ => {
                let (comparer, arena) = self.comparing();
                comparer.equal(arena, a, b) == (function == Function::Equal)
            }
        }
    }

    fn element(&self, position: Value<'r, H>, tuple: Value<'r, H>) -> Result<'r, H> {
        let position = position.as_small().ok_or(EvaluationError)?;
        let index = usize::try_from(position)
            .ok()
            .and_then(|n| n.checked_sub(1));
        self.nth(tuple, index.ok_or(EvaluationError)?)
            .ok_or(EvaluationError)
    }

    /// Returns an element of a tuple, counted from 0.
    fn nth(&self, tuple: Value<'r, H>, index: usize) -> Option<Value<'r, H>> {
        match tuple {
            Value::Tuple(parts) => self.arena().elements(parts).get(index).copied(),
            Value::Image(term) => match term.view() {
                View::Tuple(elements) => elements.get(index).map(Value::of),
                _ => None,
            },
            _ => None,
        }
    }

    fn head_and_tail(
        &self,
        list: Value<'r, H>,
    ) -> std::result::Result<(Value<'r, H>, Value<'r, H>), EvaluationError> {
        match list {
            Value::List(parts) => Ok(self.arena().head_and_tail(parts)),
            Value::Image(term) => match term.view() {
                View::List { elements, .. } => {
                    let head = elements.get(0).ok_or(EvaluationError)?;
                    Ok((
                        Value::of(head),
                        Value::of(term.skip(1).ok_or(EvaluationError)?),
                    ))
                }
                _ => Err(EvaluationError),
            },
            _ => Err(EvaluationError),
        }
    }

    /// Returns the length of a proper list.
    fn length(&self, mut list: Value<'r, H>) -> std::result::Result<usize, EvaluationError> {
        let mut length = 0;
        loop {
            list = match list {
                Value::Word(word) if Immediate::from_word(word) == Some(Immediate::Nil) => {
                    return Ok(length);
                }
                Value::List(parts) => {
                    length += parts.len();
                    self.arena().tail(parts)
                }
                Value::Image(term) => match term.view() {
                    View::List { elements, tail } => {
                        length += elements.len();
                        Value::of(tail)
                    }
                    _ => return Err(EvaluationError),
                },
                _ => return Err(EvaluationError),
            };
        }
    }

    fn size(&self, value: Value<'r, H>) -> std::result::Result<usize, EvaluationError> {
        match self.term(value).kind() {
            Kind::Tuple(arity) => Ok(arity),
            Kind::Bits(bits) => Ok(bits / 8),
            _ => Err(EvaluationError),
        }
    }

    fn bits(&self, value: Value<'r, H>) -> std::result::Result<usize, EvaluationError> {
        match self.term(value).kind() {
            Kind::Bits(bits) => Ok(bits),
            _ => Err(EvaluationError),
        }
    }

    /// Returns the value of a key of a map; fails if the term is no map.
    fn map_value(
        &mut self,
        key: Value<'r, H>,
        map: Value<'r, H>,
    ) -> std::result::Result<Option<Value<'r, H>>, EvaluationError> {
        let (comparer, arena) = self.comparing();
        match map {
            Value::Map { keys } => {
                let position = comparer.position(arena, arena.elements(keys), key);
                Ok(position.map(|position| arena.map_values(keys)[position]))
            }
            Value::Image(term) => match term.view() {
                View::Map { keys, values } => {
                    let position = comparer.find_key(keys, arena.term(key));
                    Ok(position
                        .and_then(|position| values.get(position))
                        .map(Value::of))
                }
                _ => Err(EvaluationError),
            },
            _ => Err(EvaluationError),
        }
    }

    fn is_record(&self, term: Value<'r, H>, tag: Value<'r, H>, len: Value<'r, H>) -> Result<'r, H> {
        let tag = match tag {
            Value::Word(word) if is_atom(word) => word,
            _ => return Err(EvaluationError),
        };
        let len = len.as_small().ok_or(EvaluationError)?;
        let has_len = match self.term(term).kind() {
            Kind::Tuple(arity) => arity as i64 == len,
            _ => false,
        };
        let first = self.nth(term, 0);
        let has_tag = matches!(first, Some(Value::Word(word)) if word == tag);
        Ok(self.truth(has_len && has_tag))
    }

    fn is_function_of(&self, term: Value<'r, H>, arity: Value<'r, H>) -> Result<'r, H> {
        let wanted = self.arena().as_integer(arity).ok_or(EvaluationError)?;
        if wanted.is_negative() {
            return Err(EvaluationError);
        }
        let has = match self.term(term).kind() {
            Kind::LocalFun | Kind::ExternalFun => Some(self.term(term).with_fun(|fun| match fun {
                FunIdent::External { arity, .. } | FunIdent::Local { arity, .. } => arity,
            })),
            _ => None,
        };
        let is = has.is_some_and(|has| wanted.as_small() == Some(i64::from(has)));
        Ok(self.truth(is))
    }

    fn node_of(&self, value: Value<'r, H>) -> Result<'r, H> {
        let here = self.environment.node_word();
        let word = match value {
            Value::Word(word) => match Immediate::from_word(word) {
                Some(Immediate::LocalPid | Immediate::LocalPort) => Some(here),
                _ => None,
            },
            Value::Image(term) => match term.view() {
                View::Host(host_box) => match H::kind(host_box) {
                    HostKind::Pid | HostKind::Port | HostKind::Ref => {
                        H::with_ident(host_box, |ident| {
                            if ident.local {
                                Some(here)
                            } else {
                                self.environment.atom_word(ident.node)
                            }
                        })
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        word.map(Value::Word).ok_or(EvaluationError)
    }

    /// Returns `length` bytes of a binary from a position on, or before it if the number is
    /// negative. Where bitstrings are allowed, trailing bits that fill no byte do not count.
    fn binary_part(
        &mut self,
        binary: Value<'r, H>,
        start: Value<'r, H>,
        len: Value<'r, H>,
    ) -> Result<'r, H> {
        let bits = self.bits(binary)?;
        if bits % 8 != 0 && self.program.spec.whole_bytes {
            return Err(EvaluationError);
        }
        let bytes = bits / 8;
        let int = |value| match self.arena().number(value) {
            Some(Number::Int(value)) => Ok(i128::from(value)),
            _ => Err(EvaluationError),
        };
        let (start, len) = (int(start)?, int(len)?);
        let (from, to) = (start.min(start + len), start.max(start + len));
        if from < 0 || to > bytes as i128 {
            return Err(EvaluationError);
        }
        let part = self.arena_mut().slice(binary, from as usize..to as usize);
        part.ok_or(EvaluationError)
    }

    /// Charges the steps of a calculation, which are many for large integers.
    fn pay(
        &mut self,
        function: Function,
        a: Value<'r, H>,
        b: Value<'r, H>,
    ) -> std::result::Result<(), EvaluationError> {
        let (m, n) = (self.arena().words_of_big(a), self.arena().words_of_big(b));
        let words = match function {
            Function::Multiply | Function::Div | Function::Rem => m.saturating_mul(n.max(1)).max(n),
            Function::Bsl => m.saturating_add(b.as_small().unwrap_or(0).max(0) as usize / 64),
            _ => m.max(n),
        };
        if words < WORDS_PER_STEP {
            return Ok(());
        }
        let paid = self.comparer.spend(words / WORDS_PER_STEP);
        paid.ok_or(EvaluationError)
    }
}

/// Number of words of a calculation that count as one step.
const WORDS_PER_STEP: usize = 4;

/// Converts a size to a value.
fn size<'r, H: Host>(size: usize) -> Value<'r, H> {
    Value::int(size as i64)
}

fn is_atom(word: u64) -> bool {
    matches!(Immediate::from_word(word), Some(Immediate::Atom(_)))
}

/// Returns `true` if a term of this kind passes the test.
fn is_type<T>(test: Function, kind: Kind<T>) -> bool {
    match test {
        Function::IsAtom => matches!(kind, Kind::Atom),
        Function::IsFloat => matches!(kind, Kind::Float(_)),
        Function::IsInteger => matches!(kind, Kind::Int(_) | Kind::Big),
        Function::IsList => matches!(kind, Kind::Nil | Kind::Cons(..)),
        Function::IsNumber => matches!(kind, Kind::Int(_) | Kind::Big | Kind::Float(_)),
        Function::IsPid => matches!(kind, Kind::Pid),
        Function::IsPort => matches!(kind, Kind::Port),
        Function::IsReference => matches!(kind, Kind::Ref),
        Function::IsTuple => matches!(kind, Kind::Tuple(_)),
        Function::IsMap => matches!(kind, Kind::Map(_)),
        Function::IsBinary => matches!(kind, Kind::Bits(bits) if bits % 8 == 0),
        Function::IsBitstring => matches!(kind, Kind::Bits(_)),
        _ => matches!(kind, Kind::LocalFun | Kind::ExternalFun),
    }
}
