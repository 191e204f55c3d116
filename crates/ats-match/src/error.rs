//! The errors of match specifications.

use crate::show::show;
use ats_term::TermRef;
use std::fmt;

/// The reason why a term is no match specification, with the same text as in `ets`.
///
/// Terms are kept as text, shortened if they are large.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The specification is not a list, or is the empty list.
    NotAList,
    /// The specification is an improper list.
    NotAProperList,
    /// A clause is not a tuple of three elements.
    NotAClause,
    /// Guards or body are no list.
    ExpressionsNotAList,
    /// Guards or body are an improper list.
    ExpressionsNotProper,
    /// The body is not a list of at least one expression.
    NoBody,
    /// A variable is a key of a map in a head.
    VariableInMapKey,
    /// `'_'` is a key of a map in a head.
    UnderscoreInMapKey,
    /// The variable with this number is not bound by the head.
    Unbound(u32),
    /// A tuple that neither calls a function nor makes a tuple.
    NotACall(Box<str>),
    /// The function does not exist.
    NoSuchFunction {
        /// The name.
        name: Box<str>,
        /// The number of arguments.
        arity: usize,
    },
    /// A function that can be called only where calls are traced.
    OnlyForTrace {
        /// The name.
        name: Box<str>,
        /// The number of arguments.
        arity: usize,
    },
    /// A special form that can be used only where calls are traced.
    WrongDialect(Box<str>),
    /// `const` with other than one argument.
    ConstArguments(Box<str>),
    /// `self` with arguments.
    SelfArguments(Box<str>),
    /// `and`, `or`, `andalso` or `orelse` without arguments.
    NoArguments {
        /// The form.
        form: &'static str,
        /// The expression.
        expression: Box<str>,
    },
    /// The specification exceeds the limits of this crate.
    SystemLimit,
}

impl Error {
    /// Returns `true` if `ets` calls this `system_limit` and not `badarg`. O(1).
    #[must_use]
    pub fn is_system_limit(&self) -> bool {
        *self == Error::SystemLimit
    }
}

/// Returns the text of a term for an error.
pub(crate) fn text<T: TermRef>(term: T) -> Box<str> {
    show(term).into()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotAList => f.write_str("Match programs are not in a list."),
            Error::NotAProperList => f.write_str("Match programs are not in a proper list."),
            Error::NotAClause => f.write_str("Match program part is not a tuple of arity 3."),
            Error::ExpressionsNotAList => f.write_str("Match expression is not a list."),
            Error::ExpressionsNotProper => f.write_str("Match expression is not a proper list."),
            Error::NoBody => f.write_str("Body clause does not return anything."),
            Error::VariableInMapKey => f.write_str("Variable found in map key."),
            Error::UnderscoreInMapKey => f.write_str("Underscore found in map key."),
            Error::Unbound(number) => write!(f, "Variable ${number} is unbound."),
            Error::NotACall(term) => write!(
                f,
                "{term} is neither a function call, nor a tuple (tuples are written {{{{ ... }}}})."
            ),
            Error::NoSuchFunction { name, arity } => {
                write!(f, "Function {name}/{arity} does_not_exist.")
            }
            Error::OnlyForTrace { name, arity } => {
                write!(
                    f,
                    "Function {name}/{arity} cannot be called in this context."
                )
            }
            Error::WrongDialect(form) => {
                write!(f, "Special form '{form}' used in wrong dialect.")
            }
            Error::ConstArguments(expression) => write!(
                f,
                "Special form 'const' called with more than one argument in {expression}."
            ),
            Error::SelfArguments(expression) => {
                write!(
                    f,
                    "Special form 'self' called with arguments in {expression}."
                )
            }
            Error::NoArguments { form, expression } => write!(
                f,
                "Special form '{form}' called without arguments in {expression}."
            ),
            Error::SystemLimit => f.write_str("Excessive size; system limit reached."),
        }
    }
}

impl std::error::Error for Error {}
