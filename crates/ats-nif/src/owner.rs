//! The processes that a table can belong to: owners and heirs.

use crate::env::{OwnEnv, VmWord};
use crate::sys::Word;

/// The owner of a table. Processes are words of local pids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A process.
    Process(Word),
    /// The process that lives as long as an application and is the group leader of its processes.
    Application(Word),
    /// None: the table stays until it is deleted.
    Nobody,
}

/// The process that gets the table when its owner dies.
pub struct Heir {
    pid: Word,
    data: Word,
    /// The environment in which `data` lives.
    _env: OwnEnv,
    is_gone: bool,
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
            is_gone: false,
        }
    }

    /// Its pid.
    pub fn pid(&self) -> VmWord<'static> {
        // SAFETY: the word of a local pid, which is an immediate.
        unsafe { VmWord::new(self.pid) }
    }

    /// Its pid and the word of the data for it, which lives as long as the heir; none if it will not inherit.
    pub fn inheritance(&self) -> Option<(VmWord<'static>, Word)> {
        (!self.is_gone).then_some((self.pid(), self.data))
    }

    /// It will not inherit. It is still shown as the heir, as `ets` does.
    pub fn set_gone(&mut self) {
        self.is_gone = true;
    }
}
