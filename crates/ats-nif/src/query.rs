//! Compiled match specifications: as terms, and cached by each thread.
//!
//! A specification is mostly the same from call to call. So each thread caches those it met last by
//! their exact keys, which differ for different terms.

use crate::atoms::{self, KnownAtom};
use crate::call::NoReply;
use crate::env::{Env, VmWord};
use crate::reference::{self, RefKind};
use crate::resource::{Resource, ResourceRef, Slot};
use crate::shared_env::{self, SharedEnv};
use crate::sys::Word;
use crate::vm_host::VmHost;
use crate::vm_term::VmTerm;
use crate::{ident, otp_release, process, scratch};
use ats::terms::Table;
use ats::terms::select::Query;
use ats_match::{Environment, FunctionSet, Options, Program, Shape, Words, parse};
use ats_term::term_ref::has_part;
use ats_term::{Kind, Zeros, exact};
use std::cell::{OnceCell, RefCell};
use std::ffi::CStr;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// A compiled specification that terms refer to.
pub struct Compiled {
    program: Arc<Program<VmHost>>,
    /// Queries planned for the kinds of tables it was used with, the latest last.
    queries: Mutex<Vec<Arc<Query<VmHost>>>>,
    /// The specification as compiled by the VM, to be run on lists.
    by_vm: Option<(Arc<SharedEnv>, Word)>,
    /// `true` if it serves only its one query.
    only: bool,
}

/// Largest number of planned queries kept; beyond it, the oldest are planned again.
const KINDS: usize = 8;

impl Resource for Compiled {
    const NAME: &'static CStr = c"ats_match_spec";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }
}

impl Compiled {
    /// Compiles a specification.
    pub fn new(spec: VmTerm<'_>) -> Result<Self, KnownAtom> {
        let spec = parse(spec, &options()).map_err(|error| {
            if error.is_system_limit() {
                KnownAtom::SystemLimit
            } else {
                KnownAtom::None
            }
        })?;
        Ok(Compiled {
            program: Arc::new(Program::new(spec)),
            queries: Mutex::default(),
            by_vm: None,
            only: false,
        })
    }

    /// Wraps a query whose specification runs only on the objects that the query reads.
    #[must_use]
    pub fn of_query(query: &Arc<Query<VmHost>>) -> Self {
        Compiled {
            only: true,
            ..Compiled::with_query(query)
        }
    }

    /// The specification of a query, which is the first that it has become.
    fn with_query(query: &Arc<Query<VmHost>>) -> Self {
        Compiled {
            program: Arc::clone(query.program()),
            queries: Mutex::new(vec![Arc::clone(query)]),
            by_vm: None,
            only: false,
        }
    }

    /// Adds a reference to the specification as compiled by the VM.
    #[must_use]
    pub fn with_vm_reference(self, reference: VmWord<'_>) -> Self {
        Compiled {
            by_vm: Some(shared_env::hold_alone(reference)),
            ..self
        }
    }

    /// Returns the reference to the specification as compiled by the VM, if it was compiled there.
    pub fn vm_reference<'e>(&self, env: Env<'e>) -> Option<VmWord<'e>> {
        let (_held, word) = self.by_vm.as_ref()?;
        // SAFETY: the environment that holds the term lives as long as `self`.
        Some(env.copy(unsafe { VmWord::new(*word) }))
    }

    fn query(&self, table: &Table<VmHost>) -> Option<Arc<Query<VmHost>>> {
        // Entries are added and removed as a whole, so a poisoned lock is harmless.
        let mut queries = self.queries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(query) = queries.iter().find(|query| query.fits(table)) {
            return Some(Arc::clone(query));
        }
        if self.only {
            return None;
        }
        let query = Arc::new(Query::new(Arc::clone(&self.program), table));
        if queries.len() == KINDS {
            queries.remove(0);
        }
        queries.push(Arc::clone(&query));
        Some(query)
    }
}

/// The options on which the meaning of specifications depends in this VM.
pub(crate) fn options() -> Options {
    let [true_, false_, exit] =
        [KnownAtom::True, KnownAtom::False, KnownAtom::Exit].map(|atom| atom.word().raw());
    Options {
        zeros: otp_release::zeros(),
        functions: functions(),
        whole_bytes: otp_release::otp_release() >= 27,
        // SAFETY: an atom has the same word in the VM as in images.
        words: unsafe { Words::new(true_, false_, exit) },
    }
}

/// The functions that specifications may call in this VM.
fn functions() -> FunctionSet {
    match otp_release::otp_release() {
        ..=25 => FunctionSet::OTP_25,
        _ => FunctionSet::OTP_27,
    }
}

/// A specification that is ready to be run on a table.
#[derive(Clone)]
pub struct Prepared {
    /// The query for this kind of table.
    pub query: Arc<Query<VmHost>>,
    /// The resource that terms refer to, if one was asked for.
    compiled: OnceCell<ResourceRef<Compiled>>,
}

impl Prepared {
    /// A query of which no term exists.
    pub fn of_query(query: Arc<Query<VmHost>>) -> Self {
        Prepared {
            query,
            compiled: OnceCell::new(),
        }
    }

    /// Makes a prepared query of a query and the resource that its terms refer to.
    pub fn with_compiled(query: Arc<Query<VmHost>>, compiled: ResourceRef<Compiled>) -> Self {
        Prepared {
            query,
            compiled: OnceCell::from(compiled),
        }
    }

    /// A term that refers to the specification.
    pub fn term<'e>(&self, env: Env<'e>) -> VmWord<'e> {
        let make = || ResourceRef::new(Compiled::with_query(&self.query));
        self.compiled.get_or_init(make).term(env)
    }

    /// Replaces the literals of the query by those of a clause. Returns `false` if the clause has
    /// another shape, or if the query is in use elsewhere: by terms, which refer to the query
    /// with other literals.
    #[inline]
    pub(crate) fn read_literals(&mut self, clause: VmTerm<'_>) -> bool {
        self.compiled.take();
        Query::read_literals(&mut self.query, clause)
    }

    /// Replaces the literals like [`read_literals`](Prepared::read_literals), for a clause that was
    /// taken apart.
    pub(crate) fn exchange_literals(&mut self, shape: &Shape<VmHost>) -> bool {
        self.compiled.take();
        Query::exchange_literals(&mut self.query, shape)
    }
}

/// A specification in a thread's cache.
struct CachedSpec {
    /// A copy of the specification, if it was met again and [can be copied](can_be_copied).
    term: Option<(Arc<SharedEnv>, Word)>,
    hash: u64,
    /// The exact key of the specification.
    key: Box<[u8]>,
    prepared: Prepared,
    /// Time of its last use.
    at: u64,
}

/// The cache of specifications of a thread.
struct SpecCache {
    specifications: Vec<CachedSpec>,
    /// Index of the entry last found at an address with this low part. Most specifications are
    /// constants of a program, whose address stays.
    by_address: [u8; ADDRESSES],
    /// Number of lookups, which serves as the clock.
    now: u64,
    hasher: RandomState,
}

/// Largest number of specifications in the cache.
const CACHED_SPECS: usize = 64;
/// Number of low parts of addresses.
const ADDRESSES: usize = 256;
/// Steps of a key above which a specification is compiled on a dirty scheduler.
const SLOW: usize = 1 << 16;
/// Length in bits up to which bitstrings are copied with a term; longer ones are shared.
const COPIED_BITS: usize = 64 * 8;
/// Key length above which a specification is not cached.
const LONG: usize = 1 << 13;

thread_local! {
    static CACHE: RefCell<SpecCache> = RefCell::new(SpecCache {
        specifications: Vec::new(),
        by_address: [0; ADDRESSES],
        now: 0,
        hasher: RandomState::new(),
    });
}

/// Returns `true` if a specification is not a reference to a compiled one.
pub fn is_written(spec: VmTerm<'_>) -> bool {
    spec.as_cons().is_some()
}

/// Calls a function with a prepared specification for a table, and tells it whether the
/// specification was known. The term is a specification or a reference to a compiled one. The
/// steps of a query depend on the whole specification.
pub fn with_known<T>(
    table: &Table<VmHost>,
    spec: VmTerm<'_>,
    work: impl FnOnce(&Prepared, bool) -> Result<T, NoReply>,
) -> Result<T, NoReply> {
    if let Some(compiled) = (!is_written(spec))
        .then(|| ResourceRef::<Compiled>::of_term(spec))
        .flatten()
    {
        let query = compiled.query(table).ok_or(KnownAtom::None)?;
        return work(&Prepared::with_compiled(query, compiled), true);
    }
    let work = CACHE.with_borrow_mut(|met| match met.find_at_address(table, spec) {
        Some(prepared) => Ok(work(prepared, true)),
        None => Err(work),
    });
    match work {
        Ok(result) => result,
        Err(work) => {
            let (prepared, known) = prepare(table, spec)?;
            work(&prepared, known)
        }
    }
}

/// Does something with a specification that this thread has met at the same address; else returns
/// `work`. The usual case is spared counting references, which other threads count as well.
#[inline]
pub fn with_constant<T, W: FnOnce(&Prepared) -> T>(
    table: &Table<VmHost>,
    spec: VmTerm<'_>,
    work: W,
) -> Result<T, W> {
    CACHE.with_borrow_mut(|met| match met.find_at_address(table, spec) {
        Some(prepared) => Ok(work(prepared)),
        None => Err(work),
    })
}

/// Compiles a written specification for a table, unless this thread has met it. Tells whether it
/// has.
pub fn prepare(table: &Table<VmHost>, spec: VmTerm<'_>) -> Result<(Prepared, bool), NoReply> {
    scratch::with_key(|key| {
        // Heads compare floats by their bits, so specifications that differ in the sign of a zero
        // differ.
        let options = exact::Options {
            zeros: Zeros::Distinct,
            atoms: exact::Atoms::Word,
        };
        let most = if process::on_dirty_scheduler() {
            usize::MAX
        } else {
            SLOW
        };
        if exact::exact_key_within(spec, key, options, most).is_none() {
            return Err(NoReply::DirtyCpu);
        }
        Ok(if key.len() > LONG {
            (compile(table, spec)?, false)
        } else {
            CACHE.with_borrow_mut(|met| met.find(table, spec, key))?
        })
    })
}

fn compile(table: &Table<VmHost>, spec: VmTerm<'_>) -> Result<Prepared, KnownAtom> {
    let compiled = ResourceRef::new(Compiled::new(spec)?);
    let query = compiled.query(table).ok_or(KnownAtom::None)?;
    Ok(Prepared::with_compiled(query, compiled))
}

/// Returns the low part of a term's address.
fn address(spec: VmTerm<'_>) -> usize {
    // Terms are aligned to eight bytes, and their words have tags in the low bits.
    (spec.word().raw() >> 3) as usize % ADDRESSES
}

impl SpecCache {
    /// Returns the cached specification if the one last found at this address is the same term.
    #[inline]
    fn find_at_address(&mut self, table: &Table<VmHost>, spec: VmTerm<'_>) -> Option<&Prepared> {
        let index = self.by_address[address(spec)];
        let met = self.specifications.get_mut(usize::from(index))?;
        let (_held, word) = met.term.as_ref()?;
        // SAFETY: the environment that holds the term lives as long as the entry.
        let same = spec.word().is_identical(unsafe { VmWord::new(*word) });
        if !same || !met.prepared.query.fits(table) {
            return None;
        }
        self.now += 1;
        met.at = self.now;
        Some(&met.prepared)
    }

    fn find(
        &mut self,
        table: &Table<VmHost>,
        spec: VmTerm<'_>,
        key: &[u8],
    ) -> Result<(Prepared, bool), KnownAtom> {
        self.now += 1;
        let hash = self.hasher.hash_one(key);
        let is_it = |met: &&mut CachedSpec| {
            met.hash == hash && met.prepared.query.fits(table) && *met.key == *key
        };
        if let Some(index) = self
            .specifications
            .iter_mut()
            .position(|mut met| is_it(&mut met))
        {
            let met = &mut self.specifications[index];
            met.at = self.now;
            // A specification that is never met again is spared the copy.
            if met.term.is_none() && can_be_copied(spec) {
                met.term = shared_env::hold_copy(spec.word());
            }
            self.by_address[address(spec)] = index as u8;
            return Ok((met.prepared.clone(), true));
        }
        let prepared = compile(table, spec)?;
        if prepared.query.program().spec().owns_resources() {
            // A specification with resources is not cached: they would stay alive until this thread
            // drops it.
            return Ok((prepared, false));
        }
        if self.specifications.len() == CACHED_SPECS {
            let ages = self.specifications.iter().map(|met| met.at).enumerate();
            let (oldest, _) = ages.min_by_key(|(_, at)| *at).expect("there are some");
            self.specifications.swap_remove(oldest);
        }
        self.by_address[address(spec)] = self.specifications.len() as u8;
        self.specifications.push(CachedSpec {
            term: None,
            hash,
            key: key.into(),
            prepared: prepared.clone(),
            at: self.now,
        });
        Ok((prepared, false))
    }
}

/// Returns `true` if all terms that are the same as this one are written like it, and a copy of it
/// refers to nothing else in the VM.
fn can_be_copied(spec: VmTerm<'_>) -> bool {
    !has_float_zero(spec) && !refers_to_node(spec) && !has_large_bits(spec)
}

/// Returns `true` if a zero of either sign is in a term. Some VMs take them for the same term;
/// heads do not.
fn has_float_zero(term: VmTerm<'_>) -> bool {
    has_part(term, |_, kind| matches!(kind, Kind::Float(0.0)))
}

/// Returns `true` if a bitstring in a term may be a part of a larger one, which a copy of the term
/// would keep alive.
fn has_large_bits(term: VmTerm<'_>) -> bool {
    has_part(
        term,
        |_, kind| matches!(kind, Kind::Bits(bits) if *bits > COPIED_BITS),
    )
}

/// Returns `true` if an identifier in a term keeps an entry of the VM's node table alive: one of
/// another node, or a reference with more than its numbers. A thread may keep a specification for
/// ever.
fn refers_to_node(term: VmTerm<'_>) -> bool {
    has_part(term, |part, kind| match kind {
        Kind::Pid | Kind::Port => !part.is_immediate(),
        Kind::Ref => !matches!(reference::classify(part.word()), RefKind::Local(_)),
        // An opaque term may contain such an identifier.
        Kind::Opaque => true,
        _ => false,
    })
}

/// The process that runs a specification, and its node.
pub struct Caller<'e>(pub Env<'e>);

// SAFETY: pids of the caller's node and atoms are immediates of the VM, and mean the same for ever.
unsafe impl Environment for Caller<'_> {
    fn self_word(&self) -> Option<u64> {
        self.0.own_pid().map(VmWord::raw)
    }

    fn node_word(&self) -> u64 {
        let (node, _) = ident::written_node();
        let word = self.atom_word(&node);
        word.expect("the name of a node is an atom")
    }

    fn atom_word(&self, text: &str) -> Option<u64> {
        atoms::of_text(self.0, text).map(VmWord::raw)
    }
}
