//! Ownership of tables: exit of the owner, inheritance, `give_away` and `setopts`.
//!
//! The VM notifies a library of a process exit after the linked processes, and in turn with the
//! monitoring ones. A process that has been notified must find the table gone, or with its heir. So
//! no operation relies on the notification. Every operation checks whether the owner is alive,
//! which takes two nanoseconds, and an operation that finds it dead completes the inheritance
//! ([`Shared::inherit_if_orphaned`]). The notification serves the tables that no process uses.
//!
//! # Invariants
//! - OWNERSHIP-1. The owner changes only under the lock of [`Admin`]. A dead owner is replaced
//!   once, by an heir, or the table is deleted.
//! - OWNERSHIP-2. An owner is monitored: the VM reports its exit, so a table of a dead owner does
//!   not stay.
//! - OWNERSHIP-3. An heir is monitored, and removed when it exits, so that a reused pid inherits
//!   nothing.

use crate::atoms::KnownAtom;
use crate::env::{Env, OwnEnv, VmWord};
use crate::handle::{Admin, Protection, Shared};
use crate::owner::{Heir, Owner};
use crate::process;

/// The changes that `setopts/2` makes.
#[derive(Default)]
pub struct Changes {
    /// The heir to set; `Some(None)` removes it.
    pub heir: Option<Option<Heir>>,
    /// The processes that may read and write.
    pub protection: Option<Protection>,
    /// The owner to set.
    pub owner: Option<Owner>,
}

/// The fate of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The owner is alive, or not needed.
    Lives,
    /// The owner is dead, and there is no heir: the caller deletes the table.
    Ended,
    /// The heir is alive, but the calling process is being killed and can send it no message. A
    /// later caller will.
    Undecided,
}

impl Shared {
    /// Gives the table to its heir if the owner is dead. The answer [`Fate::Ended`] is final:
    /// without an owner no process can change the heir.
    pub fn inherit_if_orphaned(&self, env: Env<'_>) -> Fate {
        let mut admin = self.admin();
        // Checked under the lock, so that only the first of many threads that found the owner dead
        // goes on (OWNERSHIP-1).
        if self.has_living_owner(env) {
            return Fate::Lives;
        }
        self.bequeath(env, &mut admin)
    }

    fn bequeath(&self, env: Env<'_>, admin: &mut Admin) -> Fate {
        let Some((heir, data)) = admin.heir.as_ref().and_then(Heir::inheritance) else {
            return Fate::Ended;
        };
        let former = self.owner().unwrap_or(KnownAtom::None.word());
        if !process::is_alive(env, heir) || !self.monitor(env, admin, heir.raw()) {
            return Fate::Ended;
        }
        // SAFETY: the data lives in the heir's environment, which the lock keeps.
        let data = unsafe { VmWord::new(data) };
        if self.announce(env, heir, former, data) {
            self.set_owner(admin, Owner::Process(heir.raw()));
            Fate::Lives
        } else if process::is_alive(env, heir) {
            Fate::Undecided
        } else {
            Fate::Ended
        }
    }

    /// Gives the table away, with a message to the new owner. The caller has checked that it is a
    /// local pid.
    pub fn give_away(
        &self,
        env: Env<'_>,
        to: VmWord<'_>,
        gift: VmWord<'_>,
        group_leader: VmWord<'_>,
    ) -> Result<(), KnownAtom> {
        let giver = env.own_pid().ok_or(KnownAtom::None)?;
        let mut admin = self.admin();
        if !process::is_alive(env, to) {
            return Err(KnownAtom::None);
        }
        if !self.has_rights(env, &admin, group_leader) {
            return Err(KnownAtom::NotOwner);
        }
        if self.owner().is_some_and(|owner| owner.raw() == to.raw()) {
            return Err(KnownAtom::Owner);
        }
        if !self.monitor(env, &mut admin, to.raw()) {
            return Err(KnownAtom::None);
        }
        // The message comes last: the process that gets it must find itself the owner. If it dies
        // before, the table is treated as that of a dead owner.
        self.set_owner(&mut admin, Owner::Process(to.raw()));
        self.announce(env, to, giver, gift);
        Ok(())
    }

    /// Makes all changes, or none if the caller lacks the rights or the changes conflict.
    pub fn change(
        &self,
        env: Env<'_>,
        changes: Changes,
        group_leader: VmWord<'_>,
    ) -> Result<(), KnownAtom> {
        let mut admin = self.admin();
        if !self.has_rights(env, &admin, group_leader) {
            return Err(KnownAtom::None);
        }
        let protection = changes.protection.unwrap_or(self.protection());
        let for_processes = match changes.owner {
            Some(owner) => matches!(owner, Owner::Process(_)),
            None => self.owner().is_some() && !admin.of_application,
        };
        // Any other protection would keep all processes from writing to the table.
        if !for_processes && protection != Protection::Public {
            return Err(KnownAtom::None);
        }
        if let Some(Owner::Process(pid) | Owner::Application(pid)) = changes.owner
            && !self.monitor(env, &mut admin, pid)
        {
            return Err(KnownAtom::None);
        }
        if let Some(heir) = changes.heir {
            admin.heir = heir.filter(|heir| self.monitor(env, &mut admin, heir.pid().raw()));
        }
        if let Some(owner) = changes.owner {
            self.set_owner(&mut admin, owner);
        }
        self.protect(protection);
        Ok(())
    }

    /// Returns `true` if the caller has the rights of an owner. A table of an application
    /// belongs to all processes of the application, which have the same group leader. A table
    /// without an owner belongs to every process.
    fn has_rights(&self, env: Env<'_>, admin: &Admin, group_leader: VmWord<'_>) -> bool {
        match self.owner() {
            None => true,
            Some(owner) => {
                self.is_owner(env) || admin.of_application && owner.raw() == group_leader.raw()
            }
        }
    }

    /// Tells a process that it is the owner now. Returns `false` if it is dead, or the caller is
    /// being killed.
    fn announce(&self, env: Env<'_>, to: VmWord<'_>, former: VmWord<'_>, data: VmWord<'_>) -> bool {
        let mut message = OwnEnv::new();
        let inside = message.env();
        let data = inside.copy(data);
        let tag = KnownAtom::EtsTransfer.word();
        let term = inside.tuple(&[tag, self.user_term(inside), former, data]);
        let term = term.raw();
        process::send(env, to, &mut message, term)
    }
}
