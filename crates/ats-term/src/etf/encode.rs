//! Encoder of the external term format.

use std::fmt;

use super::tag::{self, VERSION};
use crate::term::Term;
use crate::term_ref::{FunIdent, Ident, Kind, Opaque, TermRef};

/// The error of a term with a part too large for the 32-bit lengths of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of the term has more than 2^32 - 1 elements or bytes")
    }
}

impl std::error::Error for TooLarge {}

/// Name and creation of a node, as in identifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// Name of the node, UTF-8.
    pub name: &'a str,
    /// Creation (incarnation) of the node.
    pub creation: u32,
}

/// Returns the external term format of a term, with version byte. O(size), not recursive.
///
/// # Errors
/// Returns [`TooLarge`] if a binary, tuple, map or list has 2^32 or more bytes, elements or pairs.
pub fn encode(term: &Term) -> Result<Vec<u8>, TooLarge> {
    let mut out = Vec::new();
    encode_into(term, &mut out)?;
    Ok(out)
}

/// Appends the external term format of a term of any host, with version byte. Pairs of maps are in
/// the order in which the term [shows them](TermRef::map_pairs). O(size), not recursive.
///
/// Identifiers of the running node are written with the node name in [their
/// identity](Ident::local); [`encode_on_node`] writes another one.
///
/// # Errors
/// Like [`encode`]; part of the term may have been written then.
pub fn encode_into<T: TermRef>(term: T, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    out.push(VERSION);
    Writer::new(None, out).write(term)
}

/// Encodes like [`encode_into`], but writes identifiers of the running node with its present name
/// and creation. A virtual machine of that name decodes them as its own.
///
/// # Errors
/// Like [`encode_into`].
pub fn encode_on_node<T: TermRef>(
    term: T,
    node: Node<'_>,
    out: &mut Vec<u8>,
) -> Result<(), TooLarge> {
    out.push(VERSION);
    Writer::new(Some(node), out).write(term)
}

/// Remaining work, kept on a stack.
enum Job<T> {
    /// The elements of a tuple from `next` on, at least one.
    Elements { tuple: T, next: usize, arity: usize },
    /// The rest of a list after an element: more elements, or the tail.
    Rest(T),
    /// A key or a value of a map.
    Part(T),
    /// The captured values of a fun, or the values of a native record, from `next` on.
    Captured { of: T, next: usize },
    /// The size of a fun, which is known when the whole fun is written.
    FunSize { start: usize },
}

struct Writer<'a, T> {
    jobs: Vec<Job<T>>,
    /// Pairs of the current map; empty between maps.
    pairs: Vec<(T, T)>,
    /// The node to write in identifiers of the running node, if not the one in their identity.
    node: Option<Node<'a>>,
    out: &'a mut Vec<u8>,
}

impl<'a, T: TermRef> Writer<'a, T> {
    fn new(node: Option<Node<'a>>, out: &'a mut Vec<u8>) -> Self {
        Writer {
            jobs: Vec::new(),
            pairs: Vec::new(),
            node,
            out,
        }
    }

    fn write(&mut self, term: T) -> Result<(), TooLarge> {
        self.begin(term)?;
        while let Some(job) = self.jobs.pop() {
            match job {
                Job::Elements { tuple, next, arity } => {
                    if next + 1 < arity {
                        let next = next + 1;
                        self.jobs.push(Job::Elements { tuple, next, arity });
                    }
                    self.begin(tuple.element(next))?;
                }
                Job::Rest(rest) => match rest.kind() {
                    Kind::Cons(head, tail) => {
                        self.jobs.push(Job::Rest(tail));
                        self.begin(head)?;
                    }
                    _ => self.begin(rest)?,
                },
                Job::Part(part) => self.begin(part)?,
                Job::Captured { of, next } => {
                    if let Some(value) = of.captured_value(next) {
                        let next = next + 1;
                        self.jobs.push(Job::Captured { of, next });
                        self.begin(value)?;
                    }
                }
                Job::FunSize { start } => {
                    let size = length(self.out.len() - start)?;
                    self.out[start..start + 4].copy_from_slice(&size.to_be_bytes());
                }
            }
        }
        Ok(())
    }

    /// Writes a term up to its first part.
    fn begin(&mut self, term: T) -> Result<(), TooLarge> {
        match term.kind() {
            Kind::Int(value) => push_int(value, self.out),
            Kind::Big => {
                term.with_big(|negative, magnitude| push_big(negative, magnitude, self.out))?;
            }
            Kind::Float(value) => {
                self.out.push(tag::NEW_FLOAT);
                self.out.extend_from_slice(&value.to_be_bytes());
            }
            Kind::Atom => term.with_atom(|text| push_atom(text, self.out)),
            Kind::Nil => self.out.push(tag::NIL),
            Kind::Cons(..) => self.begin_list(term)?,
            Kind::Tuple(arity) => {
                match u8::try_from(arity) {
                    Ok(arity) => self.out.extend_from_slice(&[tag::SMALL_TUPLE, arity]),
                    Err(_) => push_head(tag::LARGE_TUPLE, arity, self.out)?,
                }
                if arity > 0 {
                    let (tuple, next) = (term, 0);
                    self.jobs.push(Job::Elements { tuple, next, arity });
                }
            }
            Kind::Map(len) => {
                push_head(tag::MAP, len, self.out)?;
                term.map_pairs(&mut self.pairs);
                debug_assert_eq!(self.pairs.len(), len);
                let parts = |(key, value)| [Job::Part(value), Job::Part(key)];
                self.jobs.extend(self.pairs.drain(..).rev().flat_map(parts));
            }
            Kind::Bits(bits) => term.with_bits(|bytes| push_bits(bytes, bits, self.out))?,
            Kind::Pid => term.with_ident(|ident| push_pid(ident, self.node, self.out)),
            Kind::Port => term.with_ident(|ident| push_port(ident, self.node, self.out)),
            Kind::Ref => term.with_ident(|ident| push_reference(ident, self.node, self.out)),
            Kind::LocalFun | Kind::ExternalFun => self.begin_fun(term)?,
            Kind::Opaque => self.begin_opaque(term)?,
        }
        Ok(())
    }

    /// Begins a list. Lists of bytes are written as strings, as in the VM.
    fn begin_list(&mut self, list: T) -> Result<(), TooLarge> {
        let (mut count, mut only_bytes) = (0, true);
        let mut rest = list;
        let is_proper = loop {
            match rest.kind() {
                Kind::Cons(head, tail) => {
                    count += 1;
                    only_bytes = only_bytes && byte(head).is_some();
                    rest = tail;
                }
                kind => break matches!(kind, Kind::Nil),
            }
        };
        match u16::try_from(count) {
            Ok(length) if only_bytes && is_proper => {
                self.out.push(tag::STRING);
                self.out.extend_from_slice(&length.to_be_bytes());
                let mut rest = list;
                while let Kind::Cons(head, tail) = rest.kind() {
                    self.out.extend(byte(head));
                    rest = tail;
                }
            }
            _ => {
                push_head(tag::LIST, count, self.out)?;
                self.jobs.push(Job::Rest(list));
            }
        }
        Ok(())
    }

    fn begin_fun(&mut self, term: T) -> Result<(), TooLarge> {
        let start = self.out.len() + 1;
        term.with_fun(|fun| {
            push_fun(&fun, self.node, self.out)?;
            let FunIdent::Local { free, .. } = fun else {
                return Ok(());
            };
            self.jobs.push(Job::FunSize { start });
            self.begin_captured(term, free)
        })
    }

    fn begin_opaque(&mut self, term: T) -> Result<(), TooLarge> {
        term.with_opaque(|opaque| match opaque {
            Opaque::Record {
                module,
                name,
                exported,
                fields,
                values,
            } => {
                push_head(tag::RECORD, fields.len(), self.out)?;
                self.out.push(u8::from(exported));
                push_atom(module, self.out);
                push_atom(name, self.out);
                for field in fields {
                    push_atom(field.as_str(), self.out);
                }
                self.begin_captured(term, values)
            }
            Opaque::Unknown(etf) => {
                self.out.extend_from_slice(&etf[1..]);
                Ok(())
            }
        })
    }

    /// Begins the values in a fun or a native record, or writes them if they cannot be walked in
    /// place.
    fn begin_captured(&mut self, of: T, values: &[Term]) -> Result<(), TooLarge> {
        if of.captured_value(0).is_some() {
            self.jobs.push(Job::Captured { of, next: 0 });
            return Ok(());
        }
        // The recursion has depth one: the values are owned terms, whose own captured values can be
        // walked in place.
        let mut writer = Writer::new(self.node, self.out);
        values.iter().try_for_each(|value| writer.write(value))
    }
}

/// Converts a length to 32 bits.
fn length(length: usize) -> Result<u32, TooLarge> {
    u32::try_from(length).map_err(|_| TooLarge)
}

/// Writes a tag and a length of 32 bits.
fn push_head(tag: u8, size: usize, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    out.push(tag);
    out.extend_from_slice(&length(size)?.to_be_bytes());
    Ok(())
}

fn push_int(value: i64, out: &mut Vec<u8>) {
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

fn push_big(negative: bool, magnitude: &[u8], out: &mut Vec<u8>) -> Result<(), TooLarge> {
    match u8::try_from(magnitude.len()) {
        Ok(length) => out.extend_from_slice(&[tag::SMALL_BIG, length]),
        Err(_) => push_head(tag::LARGE_BIG, magnitude.len(), out)?,
    }
    out.push(u8::from(negative));
    out.extend_from_slice(magnitude);
    Ok(())
}

fn push_atom(text: &str, out: &mut Vec<u8>) {
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

fn byte<T: TermRef>(term: T) -> Option<u8> {
    match term.kind() {
        Kind::Int(value) => u8::try_from(value).ok(),
        _ => None,
    }
}

fn push_bits(bytes: &[u8], bits: usize, out: &mut Vec<u8>) -> Result<(), TooLarge> {
    let bytes = &bytes[..bits.div_ceil(8)];
    if bits.is_multiple_of(8) {
        push_head(tag::BINARY, bytes.len(), out)?;
    } else {
        push_head(tag::BIT_BINARY, bytes.len(), out)?;
        out.push((bits % 8) as u8);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// Returns the node to write in an identifier.
fn node_of<'a>(ident: Ident<'a>, running: Option<Node<'a>>) -> Node<'a> {
    running.filter(|_| ident.local).unwrap_or(Node {
        name: ident.node,
        creation: ident.creation,
    })
}

/// Returns the last `N` numbers of an identifier, with zeros in front if it has fewer.
fn last_numbers<const N: usize>(ident: Ident<'_>) -> [u32; N] {
    let mut numbers = ident.numbers.iter().rev();
    let mut last: [u32; N] = std::array::from_fn(|_| numbers.next().copied().unwrap_or(0));
    last.reverse();
    last
}

fn push_pid(ident: Ident<'_>, running: Option<Node<'_>>, out: &mut Vec<u8>) {
    let [serial, number] = last_numbers(ident);
    push_two_numbers(tag::NEW_PID, [number, serial], node_of(ident, running), out);
}

fn push_port(ident: Ident<'_>, running: Option<Node<'_>>, out: &mut Vec<u8>) {
    let [high, low] = last_numbers(ident);
    push_two_numbers(tag::V4_PORT, [high, low], node_of(ident, running), out);
}

fn push_two_numbers(tag: u8, [first, second]: [u32; 2], node: Node<'_>, out: &mut Vec<u8>) {
    out.push(tag);
    push_atom(node.name, out);
    for field in [first, second, node.creation] {
        out.extend_from_slice(&field.to_be_bytes());
    }
}

/// Writes a reference. The format has the least significant number first.
fn push_reference(ident: Ident<'_>, running: Option<Node<'_>>, out: &mut Vec<u8>) {
    let node = node_of(ident, running);
    out.push(tag::NEWER_REFERENCE);
    // An identifier has at most five numbers.
    out.extend_from_slice(&(ident.numbers.len() as u16).to_be_bytes());
    push_atom(node.name, out);
    out.extend_from_slice(&node.creation.to_be_bytes());
    for number in ident.numbers.iter().rev() {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

/// Writes a fun without its captured values. The size of a closure follows its tag and is left out.
fn push_fun(
    fun: &FunIdent<'_>,
    running: Option<Node<'_>>,
    out: &mut Vec<u8>,
) -> Result<(), TooLarge> {
    match *fun {
        FunIdent::External {
            module,
            function,
            arity,
        } => {
            out.push(tag::EXPORT);
            push_atom(module, out);
            push_atom(function, out);
            push_int(i64::from(arity), out);
        }
        FunIdent::Local {
            module,
            arity,
            index,
            uniq,
            old_index,
            old_uniq,
            creator,
            free,
        } => {
            out.push(tag::NEW_FUN);
            out.extend_from_slice(&[0; 4]);
            // A function has at most 255 arguments.
            out.push(arity as u8);
            out.extend_from_slice(&uniq);
            out.extend_from_slice(&index.to_be_bytes());
            out.extend_from_slice(&length(free.len())?.to_be_bytes());
            push_atom(module, out);
            // The VM keeps these two as signed numbers.
            push_int(i64::from(old_index as i32), out);
            push_int(i64::from(old_uniq as i32), out);
            push_pid(creator, running, out);
        }
    }
    Ok(())
}
