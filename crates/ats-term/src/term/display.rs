//! Terms in Erlang syntax, as shown by `io:format("~0p")`, not recursive.
//!
//! Lists of integers are shown as lists, never as strings. Identifiers and closures have no syntax
//! in Erlang; they are shown with the name of their node in place of its number.

use std::fmt::{self, Display, Formatter, Write};

use super::{Bits, Identifier, LocalFun, Term};
use crate::atom::Atom;

/// Remaining work, kept on a stack.
enum Job<'a> {
    Text(&'static str),
    Term(&'a Term),
    /// The rest of a list after an element.
    Tail(&'a Term),
    /// The rest of the elements of a tuple, separated by commas.
    Elements(&'a [Term]),
    /// The rest of the pairs of a map: keys and values.
    Pairs(&'a [Term], &'a [Term]),
    /// The rest of the fields of a native record, separated by commas: names and values.
    Fields(&'a [Atom], &'a [Term]),
}

impl Display for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut jobs = vec![Job::Term(self)];
        while let Some(job) = jobs.pop() {
            match job {
                Job::Text(text) => f.write_str(text)?,
                Job::Term(term) => write_term(term, f, &mut jobs)?,
                Job::Tail(Term::Nil) => f.write_str("]")?,
                Job::Tail(Term::List(list)) => {
                    f.write_str(",")?;
                    jobs.extend([Job::Tail(list.tail()), Job::Term(list.head())]);
                }
                Job::Tail(improper) => {
                    f.write_str("|")?;
                    jobs.extend([Job::Text("]"), Job::Term(improper)]);
                }
                Job::Elements(elements) => {
                    if let Some((element, rest)) = elements.split_first() {
                        if !rest.is_empty() {
                            jobs.extend([Job::Elements(rest), Job::Text(",")]);
                        }
                        jobs.push(Job::Term(element));
                    }
                }
                Job::Pairs(keys, values) => {
                    if let (Some((key, keys)), Some((value, values))) =
                        (keys.split_first(), values.split_first())
                    {
                        if !keys.is_empty() {
                            jobs.extend([Job::Pairs(keys, values), Job::Text(",")]);
                        }
                        jobs.extend([Job::Term(value), Job::Text(" => "), Job::Term(key)]);
                    }
                }
                Job::Fields(fields, values) => {
                    if let (Some((field, fields)), Some((value, values))) =
                        (fields.split_first(), values.split_first())
                    {
                        if !fields.is_empty() {
                            jobs.extend([Job::Fields(fields, values), Job::Text(",")]);
                        }
                        write!(f, "{field} = ")?;
                        jobs.push(Job::Term(value));
                    }
                }
            }
        }
        Ok(())
    }
}

/// The text of [`Display`], because a derived implementation would recurse.
impl fmt::Debug for Term {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

/// Writes a term up to its first part.
fn write_term<'a>(term: &'a Term, f: &mut Formatter<'_>, jobs: &mut Vec<Job<'a>>) -> fmt::Result {
    match term {
        Term::Int(i) => write!(f, "{i}"),
        Term::Big(big) => write!(f, "{big}"),
        Term::Float(float) => write!(f, "{float}"),
        Term::Atom(atom) => write!(f, "{atom}"),
        Term::Nil => f.write_str("[]"),
        Term::List(list) => {
            jobs.extend([Job::Tail(list.tail()), Job::Term(list.head())]);
            f.write_str("[")
        }
        Term::Tuple(tuple) => {
            jobs.extend([Job::Text("}"), Job::Elements(tuple)]);
            f.write_str("{")
        }
        Term::Map(map) => {
            jobs.extend([Job::Text("}"), Job::Pairs(map.keys(), map.values())]);
            f.write_str("#{")
        }
        Term::Bits(bits) => write!(f, "{bits}"),
        Term::Pid(ident) => write_identifier("#Pid", ident, f),
        Term::Port(ident) => write_identifier("#Port", ident, f),
        Term::Ref(ident) => write_identifier("#Ref", ident, f),
        Term::LocalFun(fun) => write_fun(fun, f),
        Term::ExternalFun(fun) => {
            write!(f, "fun {}:{}/{}", fun.module, fun.function, fun.arity)
        }
        Term::NativeRecord(record) => {
            jobs.extend([
                Job::Text("}"),
                Job::Fields(record.fields(), record.values()),
            ]);
            write!(f, "#{}:{}{{", record.module(), record.name())
        }
    }
}

fn write_identifier(kind: &str, ident: &Identifier, f: &mut Formatter<'_>) -> fmt::Result {
    write!(f, "{kind}<{}", ident.node())?;
    ident
        .as_ident()
        .numbers
        .iter()
        .try_for_each(|number| write!(f, ".{number}"))?;
    f.write_str(">")
}

fn write_fun(fun: &LocalFun, f: &mut Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "#Fun<{}.{}.{}>",
        fun.module(),
        fun.old_index(),
        fun.old_uniq()
    )
}

/// The binary syntax; printable ASCII is shown as text.
impl Display for Bits {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let printable = |byte: &u8| (b' '..=b'~').contains(byte);
        if self.is_binary() && self.bit_len() > 0 && self.bytes().iter().all(printable) {
            f.write_str("<<\"")?;
            for &byte in self.bytes() {
                if matches!(byte, b'"' | b'\\') {
                    f.write_char('\\')?;
                }
                f.write_char(char::from(byte))?;
            }
            return f.write_str("\">>");
        }
        let spare_bits = self.bytes().len() * 8 - self.bit_len();
        f.write_str("<<")?;
        for (i, &byte) in self.bytes().iter().enumerate() {
            let separator = if i == 0 { "" } else { "," };
            if spare_bits > 0 && i + 1 == self.bytes().len() {
                write!(f, "{separator}{}:{}", byte >> spare_bits, 8 - spare_bits)?;
            } else {
                write!(f, "{separator}{byte}")?;
            }
        }
        f.write_str(">>")
    }
}
