//! Arithmetic of values: the results and the errors of the arithmetic functions of `erlang`.

use crate::evaluation_error::EvaluationError;
use crate::function::Function;
use crate::value::{Number, Value, ValueArena};
use ats_term::Zeros;
use ats_term::image::Host;

/// The result of a calculation.
type Result<'a, H> = std::result::Result<Value<'a, H>, EvaluationError>;

/// Returns a float as a value; fails if it is not finite.
fn float<'a, H: Host>(value: f64) -> Result<'a, H> {
    if value.is_finite() {
        Ok(Value::Float(value))
    } else {
        Err(EvaluationError)
    }
}

impl<'a, H: Host> ValueArena<'a, H> {
    /// Converts a number to a float; fails if the value is no number or too large.
    fn to_float(&self, value: Value<'a, H>) -> std::result::Result<f64, EvaluationError> {
        match self.number(value).ok_or(EvaluationError)? {
            Number::Int(value) => Ok(value as f64),
            Number::Float(value) => Ok(value),
            Number::Big => self
                .as_integer(value)
                .and_then(|big| big.to_float())
                .ok_or(EvaluationError),
        }
    }

    /// Computes a function of one number.
    pub(crate) fn calculate_one(
        &mut self,
        function: Function,
        value: Value<'a, H>,
        zeros: Zeros,
    ) -> Result<'a, H> {
        match self.number(value).ok_or(EvaluationError)? {
            Number::Float(number) => self.of_float(function, number, zeros),
            Number::Int(number) => self.of_int(function, value, number),
            Number::Big => self.of_big(function, value),
        }
    }

    fn of_float(&mut self, function: Function, value: f64, zeros: Zeros) -> Result<'a, H> {
        let integral = match function {
            Function::Plus | Function::Float => return Ok(Value::Float(value)),
            Function::Negate => return Ok(Value::Float(-value)),
            // The VM returns -0.0 unchanged as long as both zeros are the same term.
            Function::Abs if value == 0.0 && zeros == Zeros::Same => {
                return Ok(Value::Float(value));
            }
            Function::Abs => return Ok(Value::Float(value.abs())),
            Function::Round => value.round(),
            Function::Trunc => value.trunc(),
            Function::Ceil => value.ceil(),
            Function::Floor => value.floor(),
            _ => return Err(EvaluationError),
        };
        Ok(self.integer(ats_term::Integer::from_float(integral)))
    }

    fn of_int(&mut self, function: Function, value: Value<'a, H>, number: i64) -> Result<'a, H> {
        match function {
            Function::Float => float(number as f64),
            Function::Bnot => Ok(Value::int(!number)),
            Function::Negate if number != i64::MIN => Ok(Value::int(-number)),
            Function::Abs if number != i64::MIN => Ok(Value::int(number.abs())),
            Function::Negate | Function::Abs => self.of_big(function, value),
            _ => Ok(value),
        }
    }

    fn of_big(&mut self, function: Function, value: Value<'a, H>) -> Result<'a, H> {
        let integer = self.as_integer(value).ok_or(EvaluationError)?;
        let result = match function {
            Function::Float => return float(integer.to_float().ok_or(EvaluationError)?),
            Function::Bnot => integer.checked_not().ok_or(EvaluationError)?,
            Function::Negate => integer.negate(),
            Function::Abs if integer.is_negative() => integer.negate(),
            _ => return Ok(value),
        };
        Ok(self.integer(result))
    }

    /// Computes a function of two numbers.
    pub(crate) fn calculate_two(
        &mut self,
        function: Function,
        a: Value<'a, H>,
        b: Value<'a, H>,
    ) -> Result<'a, H> {
        let floats = match (self.number(a), self.number(b)) {
            (None, _) | (_, None) => return Err(EvaluationError),
            (Some(a), Some(b)) => matches!(a, Number::Float(_)) || matches!(b, Number::Float(_)),
        };
        if floats || function == Function::Divide {
            return self.of_floats(function, a, b);
        }
        self.of_integers(function, a, b)
    }

    fn of_floats(&mut self, function: Function, a: Value<'a, H>, b: Value<'a, H>) -> Result<'a, H> {
        let (a, b) = (self.to_float(a)?, self.to_float(b)?);
        float(match function {
            Function::Add => a + b,
            Function::Subtract => a - b,
            Function::Multiply => a * b,
            Function::Divide => a / b,
            _ => return Err(EvaluationError),
        })
    }

    fn of_integers(
        &mut self,
        function: Function,
        a: Value<'a, H>,
        b: Value<'a, H>,
    ) -> Result<'a, H> {
        let (a, b) = (
            self.as_integer(a).ok_or(EvaluationError)?,
            self.as_integer(b).ok_or(EvaluationError)?,
        );
        let result = match function {
            Function::Add => a.checked_add(&b),
            Function::Subtract => a.checked_sub(&b),
            Function::Multiply => a.checked_mul(&b),
            Function::Div => a.checked_div(&b),
            Function::Rem => a.checked_rem(&b),
            Function::Band => Some(a.bit_and(&b)),
            Function::Bor => Some(a.bit_or(&b)),
            Function::Bxor => Some(a.bit_xor(&b)),
            Function::Bsl => a.checked_shl(&b),
            Function::Bsr => a.checked_shl(&b.negate()),
            _ => None,
        };
        Ok(self.integer(result.ok_or(EvaluationError)?))
    }
}

/// Computes a function of two small integers if that is cheap and the result fits 64 bits. Only
/// products can overflow.
#[inline]
pub(crate) fn of_small(function: Function, a: i64, b: i64) -> Option<i64> {
    match function {
        Function::Add => Some(a + b),
        Function::Subtract => Some(a - b),
        Function::Multiply => a.checked_mul(b),
        Function::Div => a.checked_div(b),
        Function::Rem => a.checked_rem(b),
        Function::Band => Some(a & b),
        Function::Bor => Some(a | b),
        Function::Bxor => Some(a ^ b),
        Function::Bsr if (0..64).contains(&b) => Some(a >> b),
        _ => None,
    }
}
