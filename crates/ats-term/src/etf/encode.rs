//! Writing the external term format.

use std::fmt;

use super::{VERSION, tag};
use crate::atom::Atom;
use crate::term::{Bits, Elements, Identifier, List, LocalFun, Term};

/// A part of a term is too large for the 32-bit lengths of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of the term has more than 2^32 - 1 elements or bytes")
    }
}

impl std::error::Error for TooLarge {}

/// The external form of a term, with its version byte. O(size), without recursion.
///
/// # Errors
/// [`TooLarge`] if a binary, tuple, map or list has 2^32 bytes, elements or pairs, or more.
pub fn encode(term: &Term) -> Result<Vec<u8>, TooLarge> {
    let mut out = Vec::new();
    encode_into(term, &mut out)?;
    Ok(out)
}

/// Appends the external form of a term, with its version byte.
///
/// # Errors
/// As [`encode`]; part of the term may have been written then.
pub fn encode_into(term: &Term, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    out.push(VERSION);
    let mut jobs = vec![Job::Term(term)];
    while let Some(job) = jobs.pop() {
        match job {
            Job::Term(term) => write_term(term, out, &mut jobs)?,
            Job::Terms(terms) => {
                if let Some((term, rest)) = terms.split_first() {
                    if !rest.is_empty() {
                        jobs.push(Job::Terms(rest));
                    }
                    jobs.push(Job::Term(term));
                }
            }
            Job::List(mut elements) => match elements.next() {
                Some(element) => jobs.extend([Job::List(elements), Job::Term(element)]),
                None => jobs.push(Job::Term(elements.tail())),
            },
            Job::Pairs(keys, values) => {
                if let (Some((key, keys)), Some((value, values))) =
                    (keys.split_first(), values.split_first())
                {
                    jobs.extend([Job::Pairs(keys, values), Job::Term(value), Job::Term(key)]);
                }
            }
            Job::FunSize { start } => {
                let size = length(out.len() - start)?;
                out[start..start + 4].copy_from_slice(&size.to_be_bytes());
            }
        }
    }
    Ok(())
}

/// What remains to be written, last first.
enum Job<'a> {
    Term(&'a Term),
    Terms(&'a [Term]),
    /// The elements and the tail of a list.
    List(Elements<'a>),
    /// Keys and values of a map.
    Pairs(&'a [Term], &'a [Term]),
    /// The size of a fun, known when all of it is written.
    FunSize {
        start: usize,
    },
}

/// A length of 32 bits.
fn length(length: usize) -> Result<u32, TooLarge> {
    u32::try_from(length).map_err(|_| TooLarge)
}

/// Writes a tag and a length of 32 bits.
fn write_head(tag: u8, size: usize, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    out.push(tag);
    out.extend_from_slice(&length(size)?.to_be_bytes());
    Ok(())
}

/// Writes a term as far as its first part.
fn write_term<'a>(
    term: &'a Term,
    out: &mut Vec<u8>,
    jobs: &mut Vec<Job<'a>>,
) -> Result<(), TooLarge> {
    match term {
        Term::Int(value) => write_int(*value, out),
        Term::Big(big) => write_big(big.is_negative(), big.magnitude(), out)?,
        Term::Float(float) => {
            out.push(tag::NEW_FLOAT);
            out.extend_from_slice(&float.get().to_be_bytes());
        }
        Term::Atom(atom) => write_atom(*atom, out),
        Term::Nil => out.push(tag::NIL),
        Term::List(list) => write_list(list, out, jobs)?,
        Term::Tuple(tuple) => {
            match u8::try_from(tuple.len()) {
                Ok(arity) => out.extend_from_slice(&[tag::SMALL_TUPLE, arity]),
                Err(_) => write_head(tag::LARGE_TUPLE, tuple.len(), out)?,
            }
            jobs.push(Job::Terms(tuple));
        }
        Term::Map(map) => {
            write_head(tag::MAP, map.len(), out)?;
            jobs.push(Job::Pairs(map.keys(), map.values()));
        }
        Term::Bits(bits) => write_bits(bits, out)?,
        Term::Pid(ident) => write_pid(ident, out),
        Term::Port(ident) => write_port(ident, out),
        Term::Ref(ident) => write_reference(ident, out),
        Term::LocalFun(fun) => write_fun(fun, out, jobs)?,
        Term::ExternalFun(fun) => {
            out.push(tag::EXPORT);
            write_atom(fun.module, out);
            write_atom(fun.function, out);
            out.extend_from_slice(&[tag::SMALL_INTEGER, fun.arity]);
        }
    }
    Ok(())
}

fn write_int(value: i64, out: &mut Vec<u8>) {
    if let Ok(byte) = u8::try_from(value) {
        out.extend_from_slice(&[tag::SMALL_INTEGER, byte]);
    } else if let Ok(value) = i32::try_from(value) {
        out.push(tag::INTEGER);
        out.extend_from_slice(&value.to_be_bytes());
    } else {
        let magnitude = value.unsigned_abs();
        let length = 8 - magnitude.leading_zeros() as usize / 8;
        out.extend_from_slice(&[tag::SMALL_BIG, length as u8, u8::from(value < 0)]);
        out.extend_from_slice(&magnitude.to_le_bytes()[..length]);
    }
}

fn write_big(negative: bool, magnitude: &[u8], out: &mut Vec<u8>) -> Result<(), TooLarge> {
    match u8::try_from(magnitude.len()) {
        Ok(length) => out.extend_from_slice(&[tag::SMALL_BIG, length]),
        Err(_) => write_head(tag::LARGE_BIG, magnitude.len(), out)?,
    }
    out.push(u8::from(negative));
    out.extend_from_slice(magnitude);
    Ok(())
}

fn write_atom(atom: Atom, out: &mut Vec<u8>) {
    let text = atom.as_str();
    match u8::try_from(text.len()) {
        Ok(length) => out.extend_from_slice(&[tag::SMALL_ATOM_UTF8, length]),
        Err(_) => {
            // 255 characters have at most 1020 bytes.
            out.push(tag::ATOM_UTF8);
            out.extend_from_slice(&(text.len() as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(text.as_bytes());
}

/// Lists of bytes are written as strings, as the machine does it.
fn write_list<'a>(
    list: &'a List,
    out: &mut Vec<u8>,
    jobs: &mut Vec<Job<'a>>,
) -> Result<(), TooLarge> {
    let mut elements = list.elements();
    let mut count = 0;
    let mut only_bytes = true;
    for element in elements.by_ref() {
        count += 1;
        only_bytes &= byte(element).is_some();
    }
    let proper = matches!(elements.tail(), Term::Nil);
    match u16::try_from(count) {
        Ok(length) if only_bytes && proper => {
            out.push(tag::STRING);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend(list.elements().filter_map(byte));
        }
        _ => {
            write_head(tag::LIST, count, out)?;
            jobs.push(Job::List(list.elements()));
        }
    }
    Ok(())
}

fn byte(term: &Term) -> Option<u8> {
    u8::try_from(term.as_int()?).ok()
}

fn write_bits(bits: &Bits, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    if bits.is_binary() {
        write_head(tag::BINARY, bits.bytes().len(), out)?;
    } else {
        write_head(tag::BIT_BINARY, bits.bytes().len(), out)?;
        out.push((bits.bit_len() % 8) as u8);
    }
    out.extend_from_slice(bits.bytes());
    Ok(())
}

/// The last `N` numbers of an identifier, with zeros in front if there are fewer.
fn last_numbers<const N: usize>(ident: &Identifier) -> [u32; N] {
    let mut numbers = ident.as_ident().numbers.iter().rev();
    let mut last: [u32; N] = std::array::from_fn(|_| numbers.next().copied().unwrap_or(0));
    last.reverse();
    last
}

fn write_pid(ident: &Identifier, out: &mut Vec<u8>) {
    let [serial, number] = last_numbers(ident);
    out.push(tag::NEW_PID);
    write_atom(ident.node(), out);
    for field in [number, serial, ident.as_ident().creation] {
        out.extend_from_slice(&field.to_be_bytes());
    }
}

fn write_port(ident: &Identifier, out: &mut Vec<u8>) {
    let [high, low] = last_numbers(ident);
    out.push(tag::V4_PORT);
    write_atom(ident.node(), out);
    for field in [high, low, ident.as_ident().creation] {
        out.extend_from_slice(&field.to_be_bytes());
    }
}

/// The format has the least significant number first.
fn write_reference(ident: &Identifier, out: &mut Vec<u8>) {
    let identity = ident.as_ident();
    out.push(tag::NEWER_REFERENCE);
    // An identifier has at most five numbers.
    out.extend_from_slice(&(identity.numbers.len() as u16).to_be_bytes());
    write_atom(ident.node(), out);
    out.extend_from_slice(&identity.creation.to_be_bytes());
    for number in identity.numbers.iter().rev() {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn write_fun<'a>(
    fun: &'a LocalFun,
    out: &mut Vec<u8>,
    jobs: &mut Vec<Job<'a>>,
) -> Result<(), TooLarge> {
    out.push(tag::NEW_FUN);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(fun.arity());
    out.extend_from_slice(fun.uniq());
    out.extend_from_slice(&fun.index().to_be_bytes());
    out.extend_from_slice(&length(fun.free().len())?.to_be_bytes());
    write_atom(fun.module(), out);
    // The machine keeps these two as signed numbers.
    write_int(i64::from(fun.old_index() as i32), out);
    write_int(i64::from(fun.old_uniq() as i32), out);
    write_pid(fun.creator(), out);
    jobs.extend([Job::FunSize { start }, Job::Terms(fun.free())]);
    Ok(())
}
