//! Compiled match specifications: as terms, and kept by each thread.
//!
//! A specification is a term that is mostly the same from call to call. So each thread keeps those
//! it met last, by their exact key, which tells all terms apart that are not the same.

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
use ats::Table;
use ats::select::Query;
use ats_match::{Environment, FunctionSet, Options, Program, Words, parse};
use ats_term::term_ref::has_part;
use ats_term::{Kind, Zeros, exact};
use std::cell::RefCell;
use std::ffi::CStr;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// A compiled specification that terms refer to.
pub struct Compiled {
    program: Arc<Program<VmHost>>,
    /// The queries that it has become for the kinds of tables it was used for, the latest last.
    queries: Mutex<Vec<Arc<Query<VmHost>>>>,
    /// The specification as the VM has compiled it, for running it on lists.
    by_vm: Option<(Arc<SharedEnv>, Word)>,
    /// `true` if it is not to be used for anything but its only query.
    only: bool,
}

/// There are not many kinds of tables; of more than this, the first are planned again.
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
        let [true_, false_, exit] =
            [KnownAtom::True, KnownAtom::False, KnownAtom::Exit].map(|atom| atom.word().raw());
        // SAFETY: the words of these atoms in the VM are what they are in images.
        let words = unsafe { Words::new(true_, false_, exit) };
        let options = Options {
            zeros: otp_release::zeros(),
            functions: functions(),
            whole_bytes: otp_release::otp_release() >= 27,
            words,
        };
        let spec = parse(spec, &options).map_err(|error| match error.is_system_limit() {
            true => KnownAtom::SystemLimit,
            false => KnownAtom::None,
        })?;
        Ok(Compiled {
            program: Arc::new(Program::new(spec)),
            queries: Mutex::default(),
            by_vm: None,
            only: false,
        })
    }

    /// A query whose specification is to be run on nothing but what the query reads.
    #[must_use]
    pub fn of_query(query: &Arc<Query<VmHost>>) -> Self {
        Compiled {
            program: Arc::clone(query.program()),
            queries: Mutex::new(vec![Arc::clone(query)]),
            by_vm: None,
            only: true,
        }
    }

    /// The same, with a reference to what the VM compiled the specification to.
    #[must_use]
    pub fn with_vm_reference(self, reference: VmWord<'_>) -> Self {
        Compiled {
            by_vm: Some(shared_env::hold_alone(reference)),
            ..self
        }
    }

    /// The reference to what the VM compiled the specification to, if it was asked to.
    pub fn vm_reference<'e>(&self, env: Env<'e>) -> Option<VmWord<'e>> {
        let (_held, word) = self.by_vm.as_ref()?;
        // SAFETY: the environment that holds the term lives as long as `self`.
        Some(env.copy(unsafe { VmWord::new(*word) }))
    }

    fn query(&self, table: &Table<VmHost>) -> Option<Arc<Query<VmHost>>> {
        // Entries are only added and removed as a whole.
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
    /// For this kind of table.
    pub query: Arc<Query<VmHost>>,
    /// For terms.
    pub compiled: ResourceRef<Compiled>,
}

/// A specification that this thread has met.
struct CachedSpec {
    /// A copy of the specification, if all terms that are the same as it are written like it, and
    /// the copy refers to nothing else in the VM.
    term: Option<(Arc<SharedEnv>, Word)>,
    hash: u64,
    /// The exact key of the specification.
    key: Box<[u8]>,
    prepared: Prepared,
    /// The time at which it was met last.
    at: u64,
}

/// The specifications that a thread keeps.
struct SpecCache {
    specifications: Vec<CachedSpec>,
    /// The index of the one that a term was at an address that ends like this. Most specifications
    /// are constants of a program, which stay where they are.
    by_address: [u8; ADDRESSES],
    /// The number of specifications that were looked for.
    now: u64,
    hasher: RandomState,
}

/// A thread keeps so many specifications.
const CACHED_SPECS: usize = 64;
/// Number of different ends of addresses.
const ADDRESSES: usize = 256;
/// Specifications whose keys take more steps are compiled on a dirty scheduler.
const SLOW: usize = 1 << 16;
/// Copies of terms have copies of bitstrings up to this length, and share longer ones.
const COPIED_BITS: usize = 64 * 8;
/// Specifications with longer keys are not kept.
const LONG: usize = 1 << 13;

thread_local! {
    static CACHE: RefCell<SpecCache> = RefCell::new(SpecCache {
        specifications: Vec::new(),
        by_address: [0; ADDRESSES],
        now: 0,
        hasher: RandomState::new(),
    });
}

/// Does something with a specification for a table, which is either as it is written or a reference
/// to a compiled one. Also says whether there was no need to compile it.
pub fn with_prepared<T>(
    table: &Table<VmHost>,
    spec: VmTerm<'_>,
    work: impl FnOnce(&Prepared, bool) -> Result<T, NoReply>,
) -> Result<T, NoReply> {
    let written = spec.as_cons().is_some();
    if let Some(compiled) = (!written)
        .then(|| ResourceRef::<Compiled>::of_term(spec))
        .flatten()
    {
        let query = compiled.query(table).ok_or(KnownAtom::None)?;
        return work(&Prepared { query, compiled }, true);
    }
    // The usual case is spared counting references, which other threads count as well.
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

fn prepare(table: &Table<VmHost>, spec: VmTerm<'_>) -> Result<(Prepared, bool), NoReply> {
    scratch::with_key(|key| {
        // Heads compare floats by their bits, so specifications that differ in the sign of a zero
        // differ.
        let options = exact::Options {
            zeros: Zeros::Distinct,
            atoms: exact::Atoms::Word,
        };
        let most = match process::on_dirty_scheduler() {
            true => usize::MAX,
            false => SLOW,
        };
        if exact::exact_key_within(spec, key, options, most).is_none() {
            return Err(NoReply::DirtyCpu);
        }
        Ok(match key.len() > LONG {
            true => (compile(table, spec)?, false),
            false => CACHE.with_borrow_mut(|met| met.find(table, spec, key))?,
        })
    })
}

fn compile(table: &Table<VmHost>, spec: VmTerm<'_>) -> Result<Prepared, KnownAtom> {
    let compiled = ResourceRef::new(Compiled::new(spec)?);
    let query = compiled.query(table).ok_or(KnownAtom::None)?;
    Ok(Prepared { query, compiled })
}

/// The end of an address of a term.
fn address(spec: VmTerm<'_>) -> usize {
    // Terms lie at multiples of eight bytes, and their words have tags in the bits below.
    (spec.word().raw() >> 3) as usize % ADDRESSES
}

impl SpecCache {
    /// The specification, if one that is the same was met at this address.
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
            self.by_address[address(spec)] = index as u8;
            return Ok((met.prepared.clone(), true));
        }
        let prepared = compile(table, spec)?;
        if prepared.query.program().spec().owns_resources() {
            // Not kept: the resources must not stay alive until this thread drops the
            // specification.
            return Ok((prepared, false));
        }
        if self.specifications.len() == CACHED_SPECS {
            let ages = self.specifications.iter().map(|met| met.at).enumerate();
            let (oldest, _) = ages.min_by_key(|(_, at)| *at).expect("there are some");
            self.specifications.swap_remove(oldest);
        }
        self.by_address[address(spec)] = self.specifications.len() as u8;
        let is_copied = !has_float_zero(spec) && !refers_to_node(spec) && !has_large_bits(spec);
        self.specifications.push(CachedSpec {
            term: is_copied
                .then(|| shared_env::hold_copy(spec.word()))
                .flatten(),
            hash,
            key: key.into(),
            prepared: prepared.clone(),
            at: self.now,
        });
        Ok((prepared, false))
    }
}

/// Returns `true` if a zero of either sign is in a term. Some VMs take them for the same term;
/// heads do not.
fn has_float_zero(term: VmTerm<'_>) -> bool {
    has_part(term, |_, kind| matches!(kind, Kind::Float(0.0)))
}

/// Returns `true` if a bitstring in a term may be part of a larger one, which a copy of the term
/// would keep, of whatever size.
fn has_large_bits(term: VmTerm<'_>) -> bool {
    has_part(
        term,
        |_, kind| matches!(kind, Kind::Bits(bits) if *bits > COPIED_BITS),
    )
}

/// Returns `true` if an identifier in a term keeps what the VM knows of a node: one of another
/// node, or a reference that is more than its numbers. A thread may keep a specification for ever.
fn refers_to_node(term: VmTerm<'_>) -> bool {
    has_part(term, |part, kind| match kind {
        Kind::Pid | Kind::Port => !part.is_immediate(),
        Kind::Ref => !matches!(reference::classify(part.word()), RefKind::Local(_)),
        // It may have such an identifier in it.
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
