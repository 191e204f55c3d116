//! Terms captured by closures and native records, with identifiers of this node marked as local.
//!
//! The VM shows these values only through the external term format, where an identifier of this
//! node carries the present name of the node. To keep the identity of a closure across a renaming,
//! such identifiers get the name and the mark that [`ident`] gives to all identifiers of this node.

use crate::ident;
use ats_term::term::{Identifier, List, LocalFun, Map, Tuple};
use ats_term::{Atom, Term};

/// A term that is being rebuilt: its parts, and the number of parts done.
struct Frame<'t> {
    term: &'t Term,
    parts: Vec<&'t Term>,
    done: Vec<Term>,
}

/// Returns the same term with every identifier of this node as a local one. `term` must have been
/// written by the VM under the node's present name. O(size), not recursive.
pub fn with_local_idents(term: &Term) -> Term {
    let marker = Marker::new();
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let mut next = term;
    loop {
        let parts = parts(next);
        let mut value = if parts.is_empty() {
            marker.leaf(next)
        } else {
            let done = Vec::with_capacity(parts.len());
            frames.push(Frame {
                term: next,
                parts,
                done,
            });
            next = frames[frames.len() - 1].parts[0];
            continue;
        };
        // Pass the finished value to the term around it, and that one on if it is now complete.
        next = loop {
            let Some(frame) = frames.last_mut() else {
                return value;
            };
            frame.done.push(value);
            if let Some(&part) = frame.parts.get(frame.done.len()) {
                break part;
            }
            let Frame { term, done, .. } = frames.pop().expect("just seen");
            value = marker.rebuild(term, done);
        };
    }
}

/// Returns the parts of a compound term, in the order [`Marker::rebuild`] takes them.
fn parts(term: &Term) -> Vec<&Term> {
    match term {
        Term::List(list) => vec![list.head(), list.tail()],
        Term::Tuple(tuple) => tuple.iter().collect(),
        Term::Map(map) => map.keys().iter().chain(map.values()).collect(),
        Term::LocalFun(fun) => fun.free().iter().collect(),
        Term::NativeRecord(record) => record.values().iter().collect(),
        _ => Vec::new(),
    }
}

/// The present form of identifiers of this node, and the form to replace it by.
struct Marker {
    written_node: String,
    written_creation: u32,
    node: Atom,
    creation: u32,
}

impl Marker {
    fn new() -> Self {
        let (written_node, written_creation) = ident::written_node();
        ident::with_local(&[0], |local| Marker {
            written_node,
            written_creation,
            node: Atom::new(local.node).expect("the name of a node is an atom"),
            creation: local.creation,
        })
    }

    /// Rebuilds a term without parts.
    fn leaf(&self, term: &Term) -> Term {
        match term {
            Term::Pid(identifier) => Term::Pid(self.mark(identifier)),
            Term::Port(identifier) => Term::Port(self.mark(identifier)),
            Term::Ref(identifier) => Term::Ref(self.mark(identifier)),
            other => other.clone(),
        }
    }

    fn mark(&self, identifier: &Identifier) -> Identifier {
        let ident = identifier.as_ident();
        if ident.node != self.written_node || ident.creation != self.written_creation {
            return identifier.clone();
        }
        Identifier::with_locality(true, self.node, self.creation, ident.numbers)
            .expect("as many numbers as before")
    }

    /// Rebuilds a compound term like `old` from new parts.
    fn rebuild(&self, old: &Term, mut parts: Vec<Term>) -> Term {
        match old {
            Term::List(_) => {
                let tail = parts.pop().expect("a tail");
                Term::List(List::new(parts.pop().expect("a head"), tail))
            }
            Term::Tuple(_) => Term::Tuple(Tuple::new(parts)),
            Term::Map(map) => {
                let values = parts.split_off(map.len());
                let pairs = parts.into_iter().zip(values).collect();
                Term::Map(Map::new(pairs).expect("marking keeps keys distinct"))
            }
            Term::LocalFun(fun) => Term::LocalFun(LocalFun::new(
                fun.module(),
                fun.arity(),
                fun.index(),
                *fun.uniq(),
                fun.old_index(),
                fun.old_uniq(),
                self.mark(fun.creator()),
                parts,
            )),
            Term::NativeRecord(record) => Term::NativeRecord(record.with_values(parts)),
            _ => unreachable!("a term without parts"),
        }
    }
}
