//! Table fixation (`safe_fixtable`): walks over a fixed table meet every object that stays in it.

use crate::atoms::KnownAtom;
use crate::env::Env;
use crate::handle::{Admin, Handle, Shared};
use crate::process::Clocks;
use crate::resource::ResourceRef;
use crate::sys::Word;
use ats::background::{self, FreeInSlices};

impl Shared {
    /// Fixes the table on behalf of the calling process.
    pub fn fix(&self, env: Env<'_>) -> Result<(), KnownAtom> {
        let pid = env.own_pid().ok_or(KnownAtom::None)?.raw();
        let mut admin = self.admin();
        if admin.fixes.is_empty() {
            admin.fixed_since = Some(Clocks::now());
        }
        let mut fixes = admin.fixes.iter_mut();
        match fixes.find(|(fixer, _)| *fixer == pid) {
            Some((_, count)) => *count += 1,
            None => {
                admin.fixes.push((pid, 1));
                self.table.fix();
                if !self.monitor(env, &mut admin, pid) {
                    // The calling process was killed meanwhile. The VM would not report its exit,
                    // so this fixation would never end.
                    let last = admin.fixes.len() - 1;
                    self.end_fix(&mut admin, last);
                }
            }
        }
        Ok(())
    }

    /// Undoes one fixation of the calling process, if it has any.
    pub fn unfix(&self, env: Env<'_>) -> Result<(), KnownAtom> {
        let pid = env.own_pid().ok_or(KnownAtom::None)?.raw();
        let mut admin = self.admin();
        if let Some(at) = admin.fixes.iter().position(|(fixer, _)| *fixer == pid) {
            admin.fixes[at].1 -= 1;
            if admin.fixes[at].1 == 0 {
                self.end_fix(&mut admin, at);
            }
        }
        Ok(())
    }

    /// Ends all fixations of a process.
    pub(crate) fn end_fixes_of(&self, admin: &mut Admin, pid: Word) {
        if let Some(at) = admin.fixes.iter().position(|(fixer, _)| *fixer == pid) {
            self.end_fix(admin, at);
        }
    }

    fn end_fix(&self, admin: &mut Admin, at: usize) {
        admin.fixes.swap_remove(at);
        if admin.fixes.is_empty() {
            admin.fixed_since = None;
        }
        if !self.table.unfix() {
            background::free(Box::new(RemoveMarkedObjects(self.id.clone())));
        }
    }
}

/// The work left when a table with many removed objects is unfixed.
struct RemoveMarkedObjects(ResourceRef<Handle>);

impl FreeInSlices for RemoveMarkedObjects {
    fn free_slice(&mut self) -> bool {
        let guard = ats_sync::pin();
        self.0.get(&guard).is_none_or(|shared| shared.table.tidy())
    }
}
