//! Owners and heirs of tables.

use crate::env::{OwnEnv, VmWord};
use crate::sys::Word;

/// The owner of a table. Processes are given as words of local pids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A process.
    Process(Word),
    /// The process that lives as long as an application and is the group leader of its processes.
    Application(Word),
    /// Nobody: the table stays until it is deleted.
    Nobody,
}

/// The process that gets the table when its owner dies.
pub struct Heir {
    pid: Word,
    data: Word,
    /// The environment that holds `data`.
    _env: OwnEnv,
    is_gone: bool,
}

impl Heir {
    /// Creates an heir, with data for the message to it.
    pub fn new(pid: Word, data: VmWord<'_>) -> Self {
        let mut env = OwnEnv::new();
        let data = env.env().copy(data).raw();
        Heir {
            pid,
            data,
            _env: env,
            is_gone: false,
        }
    }

    /// Returns the pid.
    pub fn pid(&self) -> VmWord<'static> {
        // SAFETY: the word is a local pid, which is an immediate and so a term in every
        // environment (ENV-2).
        unsafe { VmWord::new(self.pid) }
    }

    /// Returns the pid and the word of its data, which lives as long as the heir; `None` if the
    /// heir is gone.
    pub fn inheritance(&self) -> Option<(VmWord<'static>, Word)> {
        (!self.is_gone).then_some((self.pid(), self.data))
    }

    /// Marks the heir as gone. It is still shown as the heir, as in `ets`.
    pub fn set_gone(&mut self) {
        self.is_gone = true;
    }
}
