//! Hashes of terms, computed without writing exact keys.
//!
//! Terms that are the same (`=:=`) have the same fingerprint; others hardly ever. The fingerprint
//! of a map combines those of its pairs in any order, and the fingerprint of a map that the run has
//! made is cached. If maps are nested as keys of maps, each is therefore hashed once, and not once
//! for each map around it.

use crate::run_term::RunTerm;
use crate::value::Value;
use ats_term::exact::{Options, exact_key};
use ats_term::image::Host;
use ats_term::term_ref::{Kind, TermRef};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// A hasher of terms. Its fingerprints are comparable until it is cleared.
#[derive(Default)]
pub(crate) struct Fingerprints {
    hasher: RandomState,
    /// Fingerprints of maps made by the run, by the position of their keys in the arena.
    known: HashMap<u32, u64>,
    bytes: Vec<u8>,
}

/// A compound term of which parts are still to be hashed.
enum Frame<'r, H> {
    /// The elements of a tuple from `next` on.
    Tuple {
        tuple: RunTerm<'r, H>,
        next: usize,
        arity: usize,
        hash: u64,
    },
    /// A list cell; its head comes first.
    Cell {
        head: Option<RunTerm<'r, H>>,
        tail: RunTerm<'r, H>,
        hash: u64,
    },
    /// The term at the end of a list.
    End { hash: u64 },
    /// The pairs of a map. The pairs still missing are the last on the stack of pairs.
    Map {
        map: RunTerm<'r, H>,
        missing: usize,
        part: PartOfPair<'r, H>,
        hash: u64,
    },
}

/// The half of a pair that is being hashed.
#[derive(Clone, Copy)]
enum PartOfPair<'r, H> {
    Nothing,
    /// The key is being hashed; this is the value.
    Key(RunTerm<'r, H>),
    /// The value is being hashed; this is the fingerprint of the key.
    Value(u64),
}

/// The next step.
enum Step<'r, H> {
    Part(RunTerm<'r, H>),
    Done(u64),
}

/// Pairs of the maps in the frames.
type Pairs<'r, H> = Vec<(RunTerm<'r, H>, RunTerm<'r, H>)>;

impl Fingerprints {
    /// Discards the cached fingerprints.
    pub(crate) fn clear(&mut self) {
        if !self.known.is_empty() {
            self.known = HashMap::new();
        }
    }

    /// Returns the fingerprint of a term. O(size), but O(1) for made maps that were hashed before;
    /// not recursive.
    pub(crate) fn of<H: Host>(&mut self, term: RunTerm<'_, H>, options: Options) -> u64 {
        let (mut frames, mut pairs) = (Vec::new(), Vec::new());
        let mut done = self.begin(term, options, &mut frames, &mut pairs);
        while let Some(frame) = frames.pop() {
            done = match self.go_on(frame, done, &mut frames, &mut pairs) {
                Step::Part(part) => self.begin(part, options, &mut frames, &mut pairs),
                Step::Done(hash) => Some(hash),
            };
        }
        done.expect("the outermost term is done")
    }

    fn mix(&self, kind: u8, a: u64, b: u64) -> u64 {
        self.hasher.hash_one((kind, a, b))
    }

    /// Starts a term: returns its fingerprint if it has no parts to visit, else pushes a frame.
    fn begin<'r, H: Host>(
        &mut self,
        term: RunTerm<'r, H>,
        options: Options,
        frames: &mut Vec<Frame<'r, H>>,
        pairs: &mut Pairs<'r, H>,
    ) -> Option<u64> {
        let known = made_map_keys(term).and_then(|number| self.known.get(&number));
        if known.is_some() {
            return known.copied();
        }
        match term.kind() {
            Kind::Tuple(arity @ 1..) => frames.push(Frame::Tuple {
                tuple: term,
                next: 0,
                arity,
                hash: arity as u64,
            }),
            Kind::Cons(head, tail) => frames.push(Frame::Cell {
                head: Some(head),
                tail,
                hash: 0,
            }),
            Kind::Map(missing @ 1..) => {
                term.map_pairs(pairs);
                frames.push(Frame::Map {
                    map: term,
                    missing,
                    part: PartOfPair::Nothing,
                    hash: missing as u64,
                });
            }
            _ => {
                self.bytes.clear();
                exact_key(term, &mut self.bytes, options);
                return Some(self.hasher.hash_one(&self.bytes[..]));
            }
        }
        None
    }

    /// Continues a compound term. `done` is the fingerprint of the part that the frame waits for,
    /// if any.
    fn go_on<'r, H: Host>(
        &mut self,
        frame: Frame<'r, H>,
        done: Option<u64>,
        frames: &mut Vec<Frame<'r, H>>,
        pairs: &mut Pairs<'r, H>,
    ) -> Step<'r, H> {
        match frame {
            Frame::Tuple {
                tuple,
                next,
                arity,
                hash,
            } => {
                let hash = done.map_or(hash, |done| self.mix(1, hash, done));
                if next == arity {
                    return Step::Done(hash);
                }
                frames.push(Frame::Tuple {
                    tuple,
                    next: next + 1,
                    arity,
                    hash,
                });
                Step::Part(tuple.element(next))
            }
            Frame::Cell {
                head: Some(head),
                tail,
                hash,
            } => {
                let rest = Frame::Cell {
                    head: None,
                    tail,
                    hash,
                };
                frames.push(rest);
                Step::Part(head)
            }
            Frame::Cell {
                head: None,
                tail,
                hash,
            } => {
                let hash = self.mix(2, hash, done.expect("the head is done"));
                let Kind::Cons(head, tail) = tail.kind() else {
                    frames.push(Frame::End { hash });
                    return Step::Part(tail);
                };
                frames.push(Frame::Cell {
                    head: None,
                    tail,
                    hash,
                });
                Step::Part(head)
            }
            Frame::End { hash } => Step::Done(self.mix(3, hash, done.expect("the tail is done"))),
            Frame::Map {
                map,
                missing,
                part,
                hash,
            } => {
                let done = done.unwrap_or_default();
                // Addition makes the result independent of the order of the pairs.
                let (hash, part, next) = match part {
                    PartOfPair::Key(value) => (hash, PartOfPair::Value(done), Some(value)),
                    PartOfPair::Nothing => (hash, PartOfPair::Nothing, None),
                    PartOfPair::Value(key) => {
                        let pair = self.mix(4, key, done);
                        (hash.wrapping_add(pair), PartOfPair::Nothing, None)
                    }
                };
                let (missing, part, next) = match next {
                    Some(value) => (missing, part, value),
                    None if missing == 0 => {
                        let hash = self.mix(5, hash, 0);
                        if let Some(number) = made_map_keys(map) {
                            self.known.insert(number, hash);
                        }
                        return Step::Done(hash);
                    }
                    None => {
                        let (key, value) = pairs.pop().expect("each map has its pairs");
                        (missing - 1, PartOfPair::Key(value), key)
                    }
                };
                frames.push(Frame::Map {
                    map,
                    missing,
                    part,
                    hash,
                });
                Step::Part(next)
            }
        }
    }
}

/// Returns the position of the keys of a non-empty map that this run has made.
fn made_map_keys<H: Host>(term: RunTerm<'_, H>) -> Option<u32> {
    match term.value {
        Value::Map { keys } if keys.len() > 0 => Some(keys.start()),
        _ => None,
    }
}
