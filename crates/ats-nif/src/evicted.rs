//! Messages about objects that are gone because of the limits of their table.
//!
//! Whoever removes such objects builds their terms in an environment of the table. About ten times
//! a second a thread of our own sends them to the process `ats_evicted`, which passes them on, or
//! counts them, if the receiver does not keep up. So no writer sends a message or waits for a
//! process.
//!
//! # Invariants
//! - EVICTED-1. The words of [`Pending`] are terms of its environment.

use crate::atoms::KnownAtom;
use crate::env::{OwnEnv, VmWord};
use crate::handle::Handle;
use crate::process;
use crate::resource::ResourceRef;
use crate::scratch::LONG_OBJECT;
use crate::sys::Word;
use crate::vm_host::VmHost;
use crate::vm_sink::make_object;
use ats::background::{self, FreeInSlices};
use ats::terms::{Gone, LookupResult, OnGone, UnpackBuffer};
use ats_term::image::Scratch;
use std::mem;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The most objects that wait to be sent, and their most words. Others are counted.
const MOST_OBJECTS: usize = 10_000;
const MOST_WORDS: usize = 1 << 20;
/// The most objects of a key that are sent; more are counted, because building them takes long.
const MOST_OF_KEY: usize = 1_000;

/// The objects that are gone from a table, until its receiver is told. See the [module](self).
pub(crate) struct Evicted {
    receiver: Word,
    table: OnceLock<ResourceRef<Handle>>,
    pending: Mutex<Pending>,
}

/// Objects by their reason, and the number of those that are only counted.
#[derive(Default)]
struct Pending {
    env: OwnEnv,
    objects: [Vec<Word>; REASONS.len()],
    counts: [usize; REASONS.len()],
    words: usize,
}

const REASONS: [KnownAtom; 3] = [
    KnownAtom::Expired,
    KnownAtom::MaxObjects,
    KnownAtom::MaxMemory,
];

fn index(why: Gone) -> usize {
    match why {
        Gone::Expired => 0,
        Gone::Objects => 1,
        Gone::Bytes => 2,
    }
}

impl Evicted {
    /// Returns a collector for a local process.
    pub(crate) fn new(receiver: Word) -> Arc<Self> {
        Arc::new(Evicted {
            receiver,
            table: OnceLock::new(),
            pending: Mutex::default(),
        })
    }

    /// Sets the table, once. Nothing is sent before.
    pub(crate) fn set_table(&self, table: ResourceRef<Handle>) {
        let _ = self.table.set(table);
    }

    /// Takes the objects that are to be told, if there are some.
    fn take(&self) -> Option<Pending> {
        let mut pending = self.lock();
        (!pending.is_empty()).then(|| mem::take(&mut *pending))
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        // Only the system can fail while it is locked, for lack of memory, which ends the process.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OnGone<VmHost> for Evicted {
    fn note(&self, why: Gone, found: LookupResult<'_, VmHost>) {
        let mut pending = self.lock();
        let (number, words) = (found.count(), found.len_words());
        let objects: usize = pending.objects.iter().map(Vec::len).sum();
        let is_long = number > MOST_OF_KEY || words > LONG_OBJECT;
        if is_long || objects + number > MOST_OBJECTS || pending.words + words > MOST_WORDS {
            pending.counts[index(why)] += number;
            return;
        }
        let Pending { env, objects, .. } = &mut *pending;
        let (env, mut scratch) = (env.env(), Scratch::new());
        // The operation that removes the objects may use the buffers of this thread.
        let _all = found.each(&mut UnpackBuffer::new(), |object| {
            let object = make_object(env, object, &mut scratch);
            objects[index(why)].push(object.raw());
            ControlFlow::Continue(())
        });
        pending.words += words;
    }

    fn tell(&self) {
        // A scheduler can send only through the environment of its call, which is unknown here.
        if let Some(table) = self.table.get()
            && process::is_own_thread()
            && let Some(pending) = self.take()
        {
            pending.send(self.receiver, table);
        }
    }
}

impl Drop for Evicted {
    fn drop(&mut self) {
        if let Some(pending) = self.take()
            && let Some(table) = self.table.take()
        {
            background::free(Box::new(Last {
                pending: Some(pending),
                receiver: self.receiver,
                table,
            }));
        }
    }
}

/// The objects that were not sent yet when their table ended.
struct Last {
    pending: Option<Pending>,
    receiver: Word,
    table: ResourceRef<Handle>,
}

impl FreeInSlices for Last {
    fn free_slice(&mut self) -> bool {
        if let Some(pending) = self.pending.take()
            && process::is_own_thread()
        {
            pending.send(self.receiver, &self.table);
        }
        true
    }
}

impl Pending {
    fn is_empty(&self) -> bool {
        let has_none = |(objects, count): (&Vec<Word>, &usize)| objects.is_empty() && *count == 0;
        self.objects.iter().zip(&self.counts).all(has_none)
    }

    /// Sends `{gone, Table, Receiver, [{Reason, Objects, Number}]}` to the process `ats_evicted`.
    /// `Number` is that of the objects that are only counted.
    fn send(mut self, receiver: Word, table: &ResourceRef<Handle>) {
        let env = self.env.env();
        let reasons: Vec<_> = REASONS
            .iter()
            .zip(self.objects.iter().zip(self.counts))
            .filter(|(_, (objects, count))| !objects.is_empty() || *count > 0)
            .map(|(why, (objects, count))| {
                let objects = objects.iter().rfold(VmWord::NIL, |list, word| {
                    // SAFETY: the word is a term of the environment (EVICTED-1).
                    env.cons(unsafe { VmWord::new(*word) }, list)
                });
                env.tuple(&[why.word(), objects, env.uint(count as u64)])
            })
            .collect();
        // SAFETY: a local pid is an immediate, which is a term in every environment.
        let receiver = unsafe { VmWord::new(receiver) };
        let reasons = env.list(&reasons);
        let gone = KnownAtom::Gone.word();
        let message = env.tuple(&[gone, table.term(env), receiver, reasons]).raw();
        // Without the process, which ends with the application, nobody is told.
        let _ = process::tell_named(KnownAtom::AtsEvicted, &mut self.env, message);
    }
}
