//! A table as processes know it: its identifier, its name, its owner, and who may do what.
//!
//! A table identifier is a reference to a [`Handle`], a resource of one word that leads to the
//! [`Shared`] part as long as the table exists. Deleting a table takes that word away, at one moment
//! for everybody; operations that are under way finish on what they have.
//!
//! # Invariants
//! - H1. `Handle::shared` goes from null to the table to null again, once. Whoever takes the pointer
//!   out deletes the table; nobody else does.
//! - H2. A `Shared` is freed by epochs only, after H1, and after its name was taken out of the names.
//! - H3. `Shared::id` keeps the resource alive as long as the table exists, even if no process knows
//!   the identifier any more.

use crate::atoms::Known;
use crate::env::{Env, OwnEnv, VmWord};
use crate::foreign::Vm;
use crate::full_scan;
use crate::process;
use crate::registry;
use crate::resource::{Resource, ResourceRef, Slot};
use crate::sys::Word;
use ats::Table;
use ats::reaper::Reap;
use ats_sync::Guard;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a table identifier refers to.
pub struct Handle {
    shared: AtomicPtr<Shared>,
}

/// Who may read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Protection {
    /// Every process may do both.
    Public = 0,
    /// Every process may read, the owner may write.
    Protected = 1,
    /// Only the owner may do either.
    Private = 2,
}

/// Options that are reported but change nothing here.
#[derive(Clone, Copy)]
pub struct Reported {
    /// `{write_concurrency, _}`.
    pub write_concurrency: WriteConcurrency,
    /// `{read_concurrency, _}`.
    pub read_concurrency: bool,
    /// `{decentralized_counters, _}`.
    pub decentralized_counters: bool,
}

/// The values of `{write_concurrency, _}`.
#[derive(Clone, Copy)]
pub enum WriteConcurrency {
    /// `false`
    False,
    /// `true`
    True,
    /// `auto`
    Auto,
    /// `{debug_hash_fixed_number_of_locks, N}`
    Locks(i64),
}

/// An existing table.
pub struct Shared {
    /// The objects.
    pub table: Table<Vm>,
    /// The identifier.
    pub id: ResourceRef<Handle>,
    /// Whether users know it by its name.
    pub named: bool,
    /// Who may do what.
    pub protection: Protection,
    /// Options that are only reported.
    pub reported: Reported,
    /// Queries that read everything.
    pub full_scan: full_scan::Watch,
    /// The word of the name; changes by renaming.
    pub name: AtomicU64,
    /// The word of the owner's pid; changes when an heir takes over.
    owner: AtomicU64,
    admin: Mutex<Admin>,
}

/// What changes seldom and only under a lock.
pub struct Admin {
    /// Who gets the table when its owner dies.
    pub heir: Option<Heir>,
    /// Who has fixed the table, and how often.
    pub fixes: Vec<(Word, usize)>,
    /// When the table became fixed.
    pub fixed_since: Option<process::Moment>,
}

/// Who gets the table when its owner dies.
pub struct Heir {
    /// The word of its pid.
    pub pid: Word,
    data: Word,
    /// Where `data` lives.
    _env: OwnEnv,
}

impl Heir {
    /// An heir, with data that is kept for the message to it.
    pub fn new(pid: Word, data: VmWord<'_>) -> Self {
        let mut env = OwnEnv::new();
        let data = env.env().copy(data).raw();
        Heir {
            pid,
            data,
            _env: env,
        }
    }
}

/// What a table is made with.
pub struct Recipe {
    /// The table, empty.
    pub table: Table<Vm>,
    /// The word of its name.
    pub name: Word,
    /// Whether the name shall lead to it.
    pub named: bool,
    /// Who may do what.
    pub protection: Protection,
    /// Options that are only reported.
    pub reported: Reported,
    /// Queries that read everything.
    pub full_scan: full_scan::Watch,
    /// Who gets it when its owner dies.
    pub heir: Option<Heir>,
}

impl Resource for Handle {
    const NAME: &'static CStr = c"ats_table";

    fn slot() -> &'static Slot {
        static SLOT: Slot = Slot::new();
        &SLOT
    }

    fn down(&self, env: Env<'_>, pid: VmWord<'_>) {
        let guard = ats_sync::pin();
        let Some(shared) = self.shared(&guard) else {
            return;
        };
        shared.forget_fixes_of(pid.raw());
        if shared.owner().raw() == pid.raw() && !shared.bequeath(env) {
            self.delete(&guard);
        }
    }
}

impl Handle {
    /// The table, unless it has been deleted.
    #[inline]
    pub fn shared<'g>(&self, _guard: &'g Guard) -> Option<&'g Shared> {
        // SAFETY: a table found under a guard lives as long as the guard (H2).
        unsafe { self.shared.load(Ordering::Acquire).as_ref() }
    }

    /// Makes a table that belongs to the calling process. Fails if its name is taken.
    pub fn create<'g>(env: Env<'_>, recipe: Recipe, guard: &'g Guard) -> Result<&'g Shared, Known> {
        let owner = env.own_pid().ok_or(Known::None)?;
        let id = ResourceRef::new(Handle {
            shared: AtomicPtr::new(ptr::null_mut()),
        });
        let shared = Box::into_raw(Box::new(Shared {
            table: recipe.table,
            id: id.clone(),
            named: recipe.named,
            protection: recipe.protection,
            reported: recipe.reported,
            full_scan: recipe.full_scan,
            name: AtomicU64::new(recipe.name),
            owner: AtomicU64::new(owner.raw()),
            admin: Mutex::new(Admin {
                heir: recipe.heir,
                fixes: Vec::new(),
                fixed_since: None,
            }),
        }));
        if recipe.named && !registry::claim_name(env, recipe.name, shared, guard) {
            // SAFETY: the name was refused, so nobody else has the pointer.
            drop(unsafe { Box::from_raw(shared) });
            return Err(Known::AlreadyExists);
        }
        registry::enter(shared);
        id.shared.store(shared, Ordering::Release);
        // The caller is alive, so the monitor cannot fail.
        id.monitor(env, owner);
        // SAFETY: published just now; whoever deletes it retires it after our guard.
        Ok(unsafe { &*shared })
    }

    /// Deletes the table: nobody finds it from now on. Its memory is freed by and by. False if
    /// somebody else was first.
    pub fn delete(&self, guard: &Guard) -> bool {
        let shared = self.shared.swap(ptr::null_mut(), Ordering::AcqRel);
        if shared.is_null() {
            return false;
        }
        // SAFETY: we took the pointer out, so the table is ours to delete (H1).
        unsafe {
            registry::leave(shared, guard);
            guard.retire(shared.cast(), size_of::<Shared>(), free);
        }
        ats::reaper::wake();
        true
    }
}

unsafe fn free(raw: *mut u8) {
    // SAFETY: made by `Box::into_raw` in `create`, and nobody can reach it any more (H2).
    drop(unsafe { Box::from_raw(raw.cast::<Shared>()) });
}

impl Shared {
    /// The process the table belongs to.
    #[inline]
    pub fn owner(&self) -> VmWord<'static> {
        // SAFETY: the word of a local pid, which is an immediate.
        unsafe { VmWord::new(self.owner.load(Ordering::Acquire)) }
    }

    /// The name it was given.
    pub fn name(&self) -> VmWord<'static> {
        // SAFETY: the word of an atom, which is an immediate.
        unsafe { VmWord::new(self.name.load(Ordering::Acquire)) }
    }

    /// How users know the table: by its name if it is a named one, else by its identifier.
    pub fn known_as<'e>(&self, env: Env<'e>) -> VmWord<'e> {
        match self.named {
            true => self.name(),
            false => self.id.term(env),
        }
    }

    /// Whether the calling process may read.
    #[inline]
    pub fn may_read(&self, env: Env<'_>) -> bool {
        self.protection != Protection::Private || self.is_owner(env)
    }

    /// Whether the calling process may write.
    #[inline]
    pub fn may_write(&self, env: Env<'_>) -> bool {
        self.protection == Protection::Public || self.is_owner(env)
    }

    fn is_owner(&self, env: Env<'_>) -> bool {
        env.own_pid()
            .is_some_and(|pid| pid.raw() == self.owner().raw())
    }

    /// The part under a lock.
    pub fn admin(&self) -> MutexGuard<'_, Admin> {
        // A panic cannot leave it half changed: it holds plain values that are set one by one.
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fixes the table on behalf of the calling process.
    pub fn fix(&self, env: Env<'_>) -> Result<(), Known> {
        let pid = env.own_pid().ok_or(Known::None)?;
        let mut admin = self.admin();
        if admin.fixes.is_empty() {
            admin.fixed_since = Some(process::Moment::now());
        }
        match admin
            .fixes
            .iter_mut()
            .find(|(fixer, _)| *fixer == pid.raw())
        {
            Some((_, count)) => *count += 1,
            None => {
                admin.fixes.push((pid.raw(), 1));
                self.table.fix();
                drop(admin);
                // The owner is monitored anyway; a second notice finds nothing left to do.
                self.id.monitor(env, pid);
            }
        }
        Ok(())
    }

    /// Takes back one fixation of the calling process, if it has any.
    pub fn unfix(&self, env: Env<'_>) -> Result<(), Known> {
        let pid = env.own_pid().ok_or(Known::None)?.raw();
        let mut admin = self.admin();
        if let Some(at) = admin.fixes.iter().position(|(fixer, _)| *fixer == pid) {
            admin.fixes[at].1 -= 1;
            if admin.fixes[at].1 == 0 {
                self.end_fix(&mut admin, at);
            }
        }
        Ok(())
    }

    fn forget_fixes_of(&self, pid: Word) {
        let mut admin = self.admin();
        if let Some(at) = admin.fixes.iter().position(|(fixer, _)| *fixer == pid) {
            self.end_fix(&mut admin, at);
        }
    }

    fn end_fix(&self, admin: &mut Admin, at: usize) {
        admin.fixes.swap_remove(at);
        if admin.fixes.is_empty() {
            admin.fixed_since = None;
        }
        if !self.table.unfix() {
            ats::reaper::reap(Box::new(Tidying(self.id.clone())));
        }
    }

    /// Gives the table of a dead owner to its heir; false if there is none, or it is dead, too.
    fn bequeath(&self, env: Env<'_>) -> bool {
        let mut admin = self.admin();
        let Some(heir) = &mut admin.heir else {
            return false;
        };
        let former = self.owner();
        // SAFETY: the word of a local pid, which is an immediate.
        let pid: VmWord<'static> = unsafe { VmWord::new(heir.pid) };
        self.owner.store(heir.pid, Ordering::Release);
        if self.id.monitor(env, pid).is_none() {
            self.owner.store(former.raw(), Ordering::Release);
            return false;
        }
        let mut message = OwnEnv::new();
        let inside = message.env();
        // SAFETY: the data lives in the heir's environment.
        let data = inside.copy(unsafe { VmWord::new(heir.data) });
        let parts = [
            Known::EtsTransfer.word(),
            self.known_as(inside),
            former,
            data,
        ];
        let message_term = inside.tuple(&parts).raw();
        process::send(env, pid, &mut message, message_term);
        true
    }
}

/// The work that a table with many removed objects has left when it is fixed no more.
struct Tidying(ResourceRef<Handle>);

impl Reap for Tidying {
    fn free_slice(&mut self) -> bool {
        let guard = ats_sync::pin();
        self.0
            .shared(&guard)
            .is_none_or(|shared| shared.table.tidy())
    }
}

impl Admin {
    /// The pid of the heir.
    pub fn heir_pid(&self) -> Option<VmWord<'static>> {
        // SAFETY: the word of a local pid, which is an immediate.
        self.heir
            .as_ref()
            .map(|heir| unsafe { VmWord::new(heir.pid) })
    }
}
