//! Creation and deletion of tables.

use crate::atoms::KnownAtom;
use crate::env::Env;
use crate::handle::{Handle, Recipe, Shared};
use crate::names::Renaming;
use crate::owner::{Heir, Owner};
use crate::ownership::Fate;
use crate::process;
use crate::process_monitor::TableMonitors;
use crate::registry;
use crate::sys::Word;
use ats_sync::Guard;

/// Creates a table. Fails if its name is taken, or its owner is not alive.
///
/// A table with the same name and a dead owner gives way, unless an heir takes it: a process that a
/// supervisor restarted must not find the name of its predecessor taken.
pub fn create<'g>(env: Env<'_>, recipe: Recipe, guard: &'g Guard) -> Result<&'g Shared, KnownAtom> {
    let name = recipe.name;
    let (id, mut monitors) = (Handle::new(), TableMonitors::default());
    let is_monitored = match (recipe.owner, &recipe.heir) {
        (Owner::Process(owner), None) => {
            is_running_here(env, owner) && monitors.monitor(env, owner, &id)
        }
        _ => false,
    };
    let shared = Shared::publish(recipe, id, monitors, guard);
    // SAFETY: the table is new, so it was not entered before.
    while !unsafe { registry::enter(shared, guard) } {
        if is_taken(env, name, guard) {
            // The table is private still: only its identifier refers to it.
            shared.id.end(guard, |_| ());
            shared.stop_monitoring();
            return Err(KnownAtom::AlreadyExists);
        }
    }
    // The owner is monitored only now, when its exit would find the table; an owner that runs here
    // cannot exit before this call returns.
    if is_monitored || monitor_all(env, shared) {
        Ok(shared)
    } else {
        delete(shared, guard);
        Err(KnownAtom::None)
    }
}

/// Returns `true` if a process is the caller and cannot exit during the call. A call on a dirty
/// scheduler goes on when its process is killed.
fn is_running_here(env: Env<'_>, pid: Word) -> bool {
    !process::may_wait() && env.own_pid().is_some_and(|own| own.raw() == pid)
}

/// Monitors the owner and the heir of a new table. Returns `false` if the owner is gone.
fn monitor_all(env: Env<'_>, shared: &Shared) -> bool {
    let mut admin = shared.admin();
    if let Some(heir) = admin.heir.as_ref().map(Heir::pid)
        && !shared.monitor(env, &mut admin, heir.raw())
    {
        admin.heir = None;
    }
    let owner = shared.owner();
    owner.is_none_or(|owner| shared.monitor(env, &mut admin, owner.raw()))
}

/// Deletes a table: no process finds it from now on, and its memory is reclaimed later. Returns
/// `false` if another thread has deleted it already.
pub fn delete(shared: &Shared, guard: &Guard) -> bool {
    let left = registry::leave(shared, guard);
    if left {
        shared.stop_monitoring();
        shared.table.end_queries();
        if let Some(snapshot) = &shared.limited_snapshot {
            snapshot.end();
        }
        if let Some(read_point) = &shared.read_point {
            read_point.end();
        }
    }
    left
}

/// Passes a table with a dead owner to its heir, or deletes it. Returns `false` if the table is
/// gone. Any thread may call this at any time.
#[cold]
pub fn inherit_or_end(env: Env<'_>, shared: &Shared, guard: &Guard) -> bool {
    let fate = shared.inherit_if_orphaned(env);
    if fate == Fate::Ended {
        delete(shared, guard);
    }
    fate == Fate::Lives
}

/// Returns `true` if a table that was found still exists. If its owner is dead, the heir inherits
/// the table, or it is deleted.
#[inline]
pub fn ensure_alive(env: Env<'_>, shared: &Shared, guard: &Guard) -> bool {
    shared.has_living_owner(env) || inherit_or_end(env, shared, guard)
}

/// Returns `true` if a table has this name and stays.
fn is_taken(env: Env<'_>, name: Word, guard: &Guard) -> bool {
    registry::find(name, guard).is_some_and(|other| ensure_alive(env, other, guard))
}

/// Gives a named table another name, as [`registry::rename`] does. A table whose owner is dead
/// gives way, as in [`create`].
pub fn rename(
    env: Env<'_>,
    shared: &Shared,
    old: Option<Word>,
    new: Word,
    guard: &Guard,
) -> Renaming {
    loop {
        let renaming = registry::rename(shared, old, new, guard);
        if renaming != Renaming::Taken || is_taken(env, new, guard) {
            return renaming;
        }
    }
}
