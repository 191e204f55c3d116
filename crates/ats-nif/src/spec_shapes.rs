//! Specifications that differ from earlier ones in their literals only.
//!
//! Most programs make a specification for each call, with the key that is looked for in it. So
//! each thread keeps the programs of the [shapes](Shape) that it met last, and puts the literals of
//! a specification into the program of its shape. That takes no allocation.
//!
//! A specification that stands at the same address with the same literals again and again is a
//! constant of a program. It is left to the [cache](crate::query) of such, which need not look at
//! literals at all.

use crate::builder;
use crate::call::NoReply;
use crate::query::{self, Prepared};
use crate::tags::{IMMEDIATE_TAG, NIL, SMALL_TAG};
use crate::vm_host::VmHost;
use crate::vm_term::VmTerm;
use ats::terms::Table;
use ats::terms::select::Query;
use ats_match::{Program, Shape};
use std::cell::RefCell;
use std::sync::Arc;

/// The number of shapes that a thread keeps.
const KEPT_SHAPES: usize = 64;
/// Number of slots for shapes that were met, by hash, and for specifications, by address.
const MET: usize = 256;
/// The most words of a clause that has a shape.
const MOST_WORDS: usize = 256;
/// A specification that was met so many times at the same address with the same literals is taken
/// for a constant.
const SIGHTINGS: u32 = 4;
/// A shape that was met during the last so many queries is not displaced by a new one: programs
/// with more shapes than are kept use those that are, rather than compile for each.
const RECENT: u64 = 16 * KEPT_SHAPES as u64;

/// A shape that is kept.
struct KeptShape {
    hash: u64,
    prepared: Prepared,
    /// The time at which it was met last.
    at: u64,
}

/// A specification that was met at an address.
#[derive(Clone, Copy)]
struct Sighting {
    word: u64,
    /// The hash of the clause with its literals.
    hash: u64,
    /// The number of times that it was met before.
    count: u32,
}

/// The shapes that a thread keeps.
struct Shapes {
    kept: Vec<KeptShape>,
    /// The indices of the last two shapes of the clauses that [look](look) like this.
    by_look: [[u8; 2]; MET],
    shape: Shape<VmHost>,
    /// Hashes of shapes that were met, by their last bits. A program is compiled for the shape that
    /// is met a second time.
    met: [u64; MET],
    sightings: [Sighting; MET],
    /// The number of specifications that had a shape.
    now: u64,
}

thread_local! {
    static SHAPES: RefCell<Shapes> = const {
        RefCell::new(Shapes {
            kept: Vec::new(),
            by_look: [[0; 2]; MET],
            shape: Shape::new(),
            met: [0; MET],
            sightings: [Sighting { word: 0, hash: 0, count: 0 }; MET],
            now: 0,
        })
    };
}

/// Does something with a specification for a table, which is either as it is written or a reference
/// to a compiled one.
#[inline]
pub fn with_prepared<T>(
    table: &Table<VmHost>,
    spec: VmTerm<'_>,
    work: impl FnOnce(&Prepared) -> Result<T, NoReply>,
) -> Result<T, NoReply> {
    if !query::is_written(spec) {
        return query::with_known(table, spec, |prepared, _known| work(prepared));
    }
    let work = match query::with_constant(table, spec, work) {
        Ok(result) => return result,
        Err(work) => work,
    };
    match with_shape(table, spec, work) {
        Ok(result) => result,
        Err(work) => {
            let (prepared, _known) = query::prepare(table, spec)?;
            work(&prepared)
        }
    }
}

/// Does something with a specification, if its shape is known; else returns `work`.
#[inline]
fn with_shape<T, W: FnOnce(&Prepared) -> T>(
    table: &Table<VmHost>,
    spec: VmTerm<'_>,
    work: W,
) -> Result<T, W> {
    SHAPES.with_borrow_mut(|shapes| match shapes.find(table, spec) {
        Some(prepared) => Ok(work(prepared)),
        None => Err(work),
    })
}

impl Shapes {
    #[inline]
    fn find(&mut self, table: &Table<VmHost>, spec: VmTerm<'_>) -> Option<&Prepared> {
        let (clause, rest) = spec.as_cons()?;
        if !rest.is_nil() {
            return None;
        }
        let look = look(clause)?;
        self.now += 1;
        let index = match self.find_by_look(table, clause, look) {
            Some(index) if self.is_constant(spec, index) => return None,
            Some(index) => index,
            None => self.find_by_shape(table, spec, clause, look)?,
        };
        let found = &mut self.kept[index];
        found.at = self.now;
        Some(&found.prepared)
    }

    /// Looks among the shapes that clauses of this look had last, without making an image.
    #[inline]
    fn find_by_look(
        &mut self,
        table: &Table<VmHost>,
        clause: VmTerm<'_>,
        look: usize,
    ) -> Option<usize> {
        let [last, other] = self.by_look[look];
        if self.has_shape(last, table, clause) {
            return Some(usize::from(last));
        }
        if last == other || !self.has_shape(other, table, clause) {
            return None;
        }
        self.by_look[look] = [other, last];
        Some(usize::from(other))
    }

    /// Returns `true` if a clause has this shape, which has its literals then.
    #[inline]
    fn has_shape(&mut self, index: u8, table: &Table<VmHost>, clause: VmTerm<'_>) -> bool {
        let Some(KeptShape { prepared, .. }) = self.kept.get_mut(usize::from(index)) else {
            return false;
        };
        prepared.query.fits(table) && prepared.read_literals(clause)
    }

    /// Returns `true` if a specification whose shape was found is a constant of a program.
    #[inline]
    fn is_constant(&mut self, spec: VmTerm<'_>, index: usize) -> bool {
        let program = self.kept[index].prepared.query.program();
        let sightings = &mut self.sightings;
        sight(sightings, spec, || program.hash_with_literals()) >= SIGHTINGS
    }

    fn find_by_shape(
        &mut self,
        table: &Table<VmHost>,
        spec: VmTerm<'_>,
        clause: VmTerm<'_>,
        look: usize,
    ) -> Option<usize> {
        let shape = &mut self.shape;
        let has_shape = builder::with(|builder| {
            builder.encode_object_within(clause, MOST_WORDS).is_ok() && shape.read(builder)
        });
        if !has_shape {
            return None;
        }
        let Shapes { kept, shape, .. } = self;
        let hash = shape.hash();
        let sightings = sight(&mut self.sightings, spec, || shape.hash_with_literals());
        let fits = |kept: &KeptShape| {
            let query = &kept.prepared.query;
            kept.hash == hash && query.program().has_shape(shape) && query.fits(table)
        };
        let index = match kept.iter().position(fits) {
            Some(_) if sightings >= SIGHTINGS => return None,
            Some(index) => {
                if !kept[index].prepared.exchange_literals(shape) {
                    return None;
                }
                index
            }
            None if sightings > 0 => return None,
            None => self.add(table, hash)?,
        };
        let [last, _] = self.by_look[look];
        self.by_look[look] = [index as u8, last];
        Some(index)
    }

    /// Keeps a shape that was met before.
    #[cold]
    fn add(&mut self, table: &Table<VmHost>, hash: u64) -> Option<usize> {
        let met = &mut self.met[hash as usize % MET];
        if *met != hash {
            *met = hash;
            return None;
        }
        let oldest = self.kept.iter().enumerate().min_by_key(|(_, kept)| kept.at);
        let displaced = match oldest {
            Some((index, oldest)) if self.kept.len() == KEPT_SHAPES => {
                if self.now - oldest.at < RECENT {
                    return None;
                }
                Some(index)
            }
            _ => None,
        };
        // An error is told by who compiles the specification as it is.
        let program = Program::of_shape(&self.shape, &query::options())?.ok()?;
        let query = Arc::new(Query::of_shape(Arc::new(program), table));
        let kept = KeptShape {
            hash,
            prepared: Prepared::of_query(query),
            at: self.now,
        };
        if let Some(index) = displaced {
            self.kept[index] = kept;
            return Some(index);
        }
        self.kept.push(kept);
        Some(self.kept.len() - 1)
    }
}

/// Notes that a specification was met. Returns how many times it was met before, at the same
/// address and with the same hash.
#[inline]
fn sight(sightings: &mut [Sighting; MET], spec: VmTerm<'_>, hash: impl FnOnce() -> u64) -> u32 {
    let word = spec.word().raw();
    // Terms lie at multiples of eight bytes.
    let met = &mut sightings[(word >> 3) as usize % MET];
    if met.word != word {
        *met = Sighting {
            word,
            hash: 0,
            count: 0,
        };
        return 0;
    }
    let hash = hash();
    met.count = if met.hash == hash { met.count + 1 } else { 0 };
    met.hash = hash;
    met.count
}

/// A number that differs for many clauses of different shapes, and hardly ever for clauses of the
/// same shape. `None` if a term is no clause, or its head no tuple.
#[inline]
fn look(clause: VmTerm<'_>) -> Option<usize> {
    let &[head, guards, body] = clause.tuple_words()? else {
        return None;
    };
    let env = clause.env();
    let elements = VmTerm::of(env, head).tuple_words()?;
    let (result, _) = VmTerm::of(env, body).as_cons()?;
    let mut look = (elements.len() as u64) << 1 | u64::from(guards.raw() == NIL);
    for element in elements.iter().take(16) {
        let element = VmTerm::of(env, *element);
        // Literals of the same kind look alike, and so do atoms, which may be literals.
        let kind = match element.word().raw() & 0b11 {
            IMMEDIATE_TAG => 0b11 + u64::from(element.is_atom()),
            tag => tag,
        };
        look = look << 3 ^ look >> 61 ^ kind;
    }
    let result = result.word().raw();
    if result & IMMEDIATE_TAG == IMMEDIATE_TAG && result & 0xF != SMALL_TAG {
        look ^= result << 16;
    }
    Some((look.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize)
}
