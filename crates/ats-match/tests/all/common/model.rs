//! A model of match specifications, as direct as possible: recursive, on owned terms, and slow.

use super::{atom, call, int, list, tuple};
use ats_term::term::{Bits, Map};
use ats_term::{Atom, Term, TermRef};
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// An exception.
#[derive(Debug)]
struct Exception;

type Value = Result<Term, Exception>;

/// Values of the variables.
type Bindings = BTreeMap<u32, Term>;

/// Returns the result of the specification for an object.
pub(crate) fn run(spec: &Term, object: &Term) -> Option<Term> {
    let clauses = spec.as_list().expect("a list of clauses");
    clauses.filter_map(Term::as_tuple).find_map(|clause| {
        let mut bindings = Bindings::new();
        if !matches(&clause[0], object, &mut bindings) {
            return None;
        }
        let scope = Scope {
            bindings: &bindings,
            object,
            in_body: false,
        };
        let mut guards = clause[1].as_list().expect("a list of guards");
        if !guards.all(|guard| scope.value(guard).is_ok_and(|value| value == atom("true"))) {
            return None;
        }
        let scope = Scope {
            in_body: true,
            ..scope
        };
        let body = clause[2].as_list().expect("a list of expressions");
        body.map(|expression| scope.value(expression).expect("bodies do not fail"))
            .last()
    })
}

fn variable(term: &Term) -> Option<u32> {
    match term {
        Term::Atom(name) => name.as_str().strip_prefix('$')?.parse().ok(),
        _ => None,
    }
}

fn matches(pattern: &Term, term: &Term, bindings: &mut Bindings) -> bool {
    if let Some(number) = variable(pattern) {
        return *bindings.entry(number).or_insert_with(|| term.clone()) == *term;
    }
    match (pattern, term) {
        _ if *pattern == atom("_") => true,
        (Term::Tuple(patterns), Term::Tuple(terms)) => {
            patterns.len() == terms.len()
                && patterns
                    .iter()
                    .zip(terms.iter())
                    .all(|(p, t)| matches(p, t, bindings))
        }
        (Term::List(pattern), Term::List(term)) => {
            matches(pattern.head(), term.head(), bindings)
                && matches(pattern.tail(), term.tail(), bindings)
        }
        (Term::Map(patterns), Term::Map(terms)) => patterns.iter().all(|(key, pattern)| {
            terms
                .get(key)
                .is_some_and(|value| matches(pattern, value, bindings))
        }),
        (Term::Tuple(_) | Term::List(_) | Term::Map(_), _) => false,
        _ => pattern == term,
    }
}

/// The scope in which expressions are evaluated.
struct Scope<'a> {
    bindings: &'a Bindings,
    object: &'a Term,
    in_body: bool,
}

impl Scope<'_> {
    /// Evaluates an expression. In a body, a failure gives `'EXIT'`.
    fn value(&self, expression: &Term) -> Value {
        match self.attempt(expression) {
            Err(Exception) if self.in_body => Ok(atom("EXIT")),
            value => value,
        }
    }

    fn values(&self, expressions: &[Term]) -> Result<Vec<Term>, Exception> {
        expressions
            .iter()
            .map(|expression| self.value(expression))
            .collect()
    }

    fn attempt(&self, expression: &Term) -> Value {
        if let Some(number) = variable(expression) {
            return Ok(self.bindings[&number].clone());
        }
        match expression {
            Term::Atom(name) => Ok(match name.as_str() {
                "$_" => self.object.clone(),
                "$$" => list(self.bindings.values().cloned()),
                _ => expression.clone(),
            }),
            Term::List(cell) => {
                let (head, tail) = (self.value(cell.head())?, self.value(cell.tail())?);
                Ok(Term::list_with_tail([head], tail))
            }
            Term::Map(map) => self.map(map),
            Term::Tuple(parts) => match &**parts {
                [Term::Tuple(parts)] => Ok(tuple(self.values(parts)?)),
                [Term::Atom(name), arguments @ ..] => self.form(name.as_str(), arguments),
                _ => panic!("no expression: {expression}"),
            },
            _ => Ok(expression.clone()),
        }
    }

    fn map(&self, map: &Map) -> Value {
        let mut pairs: Vec<_> = map.iter().collect();
        pairs.sort_by(|(a, _), (b, _)| a.compare(b));
        let mut made: Vec<(Term, Term)> = Vec::new();
        for (key, value) in pairs {
            let (key, value) = (self.value(key)?, self.value(value)?);
            made.retain(|(other, _)| *other != key);
            made.push((key, value));
        }
        Ok(super::map(made))
    }

    fn form(&self, name: &str, arguments: &[Term]) -> Value {
        match name {
            "const" => Ok(arguments[0].clone()),
            "self" => Ok(atom("the process")),
            "and" | "or" => {
                let values = self
                    .values(arguments)?
                    .iter()
                    .map(boolean)
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(truth(match name {
                    "and" => values.into_iter().all(|value| value),
                    _ => values.into_iter().any(|value| value),
                }))
            }
            "andalso" | "orelse" => {
                let (last, others) = arguments.split_last().expect("arguments");
                for other in others {
                    let value = boolean(&self.value(other)?)?;
                    if value == (name == "orelse") {
                        return Ok(truth(value));
                    }
                }
                self.value(last)
            }
            _ => function(name, &self.values(arguments)?),
        }
    }
}

fn boolean(term: &Term) -> Result<bool, Exception> {
    match term {
        Term::Atom(name) => match name.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Exception),
        },
        _ => Err(Exception),
    }
}

fn truth(value: bool) -> Term {
    atom(if value { "true" } else { "false" })
}

/// Returns the integer that a term is.
fn integer(term: &Term) -> Result<BigInt, Exception> {
    match term {
        Term::Int(value) => Ok(BigInt::from(*value)),
        Term::Big(_) => Ok(term.with_big(|negative, magnitude| {
            let sign = if negative { Sign::Minus } else { Sign::Plus };
            BigInt::from_bytes_le(sign, magnitude)
        })),
        _ => Err(Exception),
    }
}

fn from_integer(value: &BigInt) -> Term {
    let (sign, magnitude) = value.to_bytes_le();
    Term::integer(sign == Sign::Minus, &magnitude)
}

/// Returns the float that a number is or can be converted to.
fn float(term: &Term) -> Result<f64, Exception> {
    if let Term::Float(value) = term {
        return Ok(value.get());
    }
    let (sign, digits) = integer(term)?.to_u64_digits();
    let mut value = 0.0;
    for digit in digits.into_iter().rev() {
        value = value * 2f64.powi(64) + digit as f64;
    }
    let value = if sign == Sign::Minus { -value } else { value };
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Exception)
    }
}

fn from_float(value: f64) -> Value {
    Term::try_from(value).map_err(|_| Exception)
}

fn is_float(term: &Term) -> bool {
    matches!(term, Term::Float(_))
}

/// Converts a rounded float to an integer.
fn from_rounded(value: f64) -> Term {
    let text = format!("{value:.0}");
    from_integer(&text.parse().expect("digits"))
}

fn function(name: &str, arguments: &[Term]) -> Value {
    match arguments {
        [] => Ok(atom("nonode@nohost")),
        [a] => one(name, a),
        [a, b] => two(name, a, b),
        _ => three(name, arguments),
    }
}

fn one(name: &str, a: &Term) -> Value {
    let is = |is: bool| Ok(truth(is));
    let count = |count: Option<usize>| count.map(|count| int(count as i64)).ok_or(Exception);
    let bits = match a {
        Term::Bits(bits) => Some(bits.bit_len()),
        _ => None,
    };
    match name {
        "is_atom" => is(matches!(a, Term::Atom(_))),
        "is_float" => is(is_float(a)),
        "is_integer" => is(integer(a).is_ok()),
        "is_list" => is(matches!(a, Term::Nil | Term::List(_))),
        "is_number" => is(is_float(a) || integer(a).is_ok()),
        "is_pid" => is(matches!(a, Term::Pid(_))),
        "is_port" => is(matches!(a, Term::Port(_))),
        "is_reference" => is(matches!(a, Term::Ref(_))),
        "is_tuple" => is(matches!(a, Term::Tuple(_))),
        "is_map" => is(matches!(a, Term::Map(_))),
        "is_binary" => is(bits.is_some_and(|bits| bits % 8 == 0)),
        "is_bitstring" => is(bits.is_some()),
        "is_boolean" => is(boolean(a).is_ok()),
        "is_function" => is(matches!(a, Term::LocalFun(_) | Term::ExternalFun(_))),
        "not" => Ok(truth(!boolean(a)?)),
        "hd" => a
            .as_list()
            .and_then(|mut list| list.next())
            .cloned()
            .ok_or(Exception)
            .or_else(|_| match a {
                Term::List(list) => Ok(list.head().clone()),
                _ => Err(Exception),
            }),
        "tl" => match a {
            Term::List(list) => Ok(list.tail().clone()),
            _ => Err(Exception),
        },
        "length" => count(match a {
            Term::Nil => Some(0),
            Term::List(list) => {
                let mut elements = list.elements();
                let len = elements.by_ref().count();
                (*elements.tail() == Term::Nil).then_some(len)
            }
            _ => None,
        }),
        "size" => count(match a {
            Term::Tuple(parts) => Some(parts.len()),
            _ => bits.map(|bits| bits / 8),
        }),
        "tuple_size" => count(a.as_tuple().map(<[Term]>::len)),
        "map_size" => count(match a {
            Term::Map(map) => Some(map.len()),
            _ => None,
        }),
        "bit_size" => count(bits),
        "byte_size" => count(bits.map(|bits| bits.div_ceil(8))),
        "node" => match a {
            Term::Pid(identifier) | Term::Port(identifier) | Term::Ref(identifier) => {
                let local = identifier.as_ident().local;
                let here = Atom::new("nonode@nohost").expect("a name");
                Ok(Term::Atom(if local { here } else { identifier.node() }))
            }
            _ => Err(Exception),
        },
        "float" => from_float(float(a)?),
        "bnot" => Ok(from_integer(&!integer(a)?)),
        _ => match a {
            Term::Float(value) => of_float(name, value.get()),
            _ => {
                let value = integer(a)?;
                Ok(from_integer(&match name {
                    "-" => -value,
                    "abs" if value.sign() == Sign::Minus => -value,
                    _ => value,
                }))
            }
        },
    }
}

fn of_float(name: &str, value: f64) -> Value {
    match name {
        "+" => from_float(value),
        "-" => from_float(-value),
        "abs" => from_float(value.abs()),
        "round" => Ok(from_rounded(value.round())),
        "trunc" => Ok(from_rounded(value.trunc())),
        "ceil" => Ok(from_rounded(value.ceil())),
        "floor" => Ok(from_rounded(value.floor())),
        _ => panic!("{name}"),
    }
}

fn two(name: &str, a: &Term, b: &Term) -> Value {
    let order = a.compare(b);
    match name {
        "<" => Ok(truth(order == Ordering::Less)),
        ">" => Ok(truth(order == Ordering::Greater)),
        "=<" => Ok(truth(order != Ordering::Greater)),
        ">=" => Ok(truth(order != Ordering::Less)),
        "==" => Ok(truth(order == Ordering::Equal)),
        "/=" => Ok(truth(order != Ordering::Equal)),
        "=:=" => Ok(truth(a == b)),
        "=/=" => Ok(truth(a != b)),
        "max" => Ok(if order == Ordering::Less { b } else { a }.clone()),
        "min" => Ok(if order == Ordering::Greater { b } else { a }.clone()),
        "xor" => Ok(truth(boolean(a)? != boolean(b)?)),
        "element" => match (a, b) {
            (Term::Int(position @ 1..), Term::Tuple(parts)) => {
                parts.get(*position as usize - 1).cloned().ok_or(Exception)
            }
            _ => Err(Exception),
        },
        "is_function" => {
            let wanted = integer(b)?;
            if wanted.sign() == Sign::Minus {
                return Err(Exception);
            }
            Ok(truth(match a {
                Term::LocalFun(fun) => BigInt::from(fun.arity()) == wanted,
                Term::ExternalFun(fun) => BigInt::from(fun.arity) == wanted,
                _ => false,
            }))
        }
        "is_map_key" | "map_get" => {
            let Term::Map(map) = b else {
                return Err(Exception);
            };
            match name {
                "map_get" => map.get(a).cloned().ok_or(Exception),
                _ => Ok(truth(map.get(a).is_some())),
            }
        }
        "binary_part" => match b.as_tuple() {
            Some([start, len]) => binary_part(a, start, len),
            _ => Err(Exception),
        },
        _ => arithmetic(name, a, b),
    }
}

fn arithmetic(name: &str, a: &Term, b: &Term) -> Value {
    if name == "/" || (is_float(a) || is_float(b)) && ["+", "-", "*"].contains(&name) {
        let (a, b) = (float(a)?, float(b)?);
        return from_float(match name {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            _ => a / b,
        });
    }
    let (a, b) = (integer(a)?, integer(b)?);
    let zero = BigInt::from(0);
    Ok(from_integer(&match name {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "div" | "rem" if b == zero => return Err(Exception),
        "div" => a / b,
        "rem" => a % b,
        "band" => a & b,
        "bor" => a | b,
        "bxor" => a ^ b,
        "bsl" => shift(a, b)?,
        "bsr" => shift(a, -b)?,
        _ => panic!("{name}"),
    }))
}

fn shift(value: BigInt, left: BigInt) -> Result<BigInt, Exception> {
    const MOST_BITS: i64 = 64 * ((1 << 19) - 1);
    let zero = BigInt::from(0);
    if value == zero || left == zero {
        return Ok(value);
    }
    match i64::try_from(&left) {
        Ok(left) if left > 0 => {
            let fits = left <= MOST_BITS && value.bits() as i64 + left <= MOST_BITS;
            if fits {
                Ok(value << left as u64)
            } else {
                Err(Exception)
            }
        }
        Ok(left) if left > -MOST_BITS => Ok(value >> left.unsigned_abs()),
        _ if left > zero => Err(Exception),
        _ if value < zero => Ok(BigInt::from(-1)),
        _ => Ok(zero),
    }
}

fn three(name: &str, arguments: &[Term]) -> Value {
    match (name, arguments) {
        ("is_record", [term, tag, len]) => {
            let small = -(1i64 << 59)..1 << 59;
            let (Term::Atom(_), Term::Int(len)) = (tag, len) else {
                return Err(Exception);
            };
            if !small.contains(len) {
                return Err(Exception);
            }
            Ok(truth(term.as_tuple().is_some_and(|parts| {
                parts.len() as i64 == *len && parts.first() == Some(tag)
            })))
        }
        ("binary_part", [binary, start, len]) => binary_part(binary, start, len),
        _ => panic!("{}", call(name, arguments.to_vec())),
    }
}

fn binary_part(binary: &Term, start: &Term, len: &Term) -> Value {
    let (Term::Bits(bits), Term::Int(start), Term::Int(len)) = (binary, start, len) else {
        return Err(Exception);
    };
    let end = start.checked_add(*len).ok_or(Exception)?;
    let (from, to) = (*start.min(&end), *start.max(&end));
    if bits.bit_len() % 8 != 0 || from < 0 || to > (bits.bit_len() / 8) as i64 {
        return Err(Exception);
    }
    let part = &bits.bytes()[from as usize..to as usize];
    Ok(Term::Bits(Bits::from_bytes(part)))
}
