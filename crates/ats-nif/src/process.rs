//! Processes, schedulers and the clock of the VM.

use crate::atoms::KnownAtom;
use crate::env::{Env, OwnEnv, VmWord};
use crate::sys::{self, Word};
use ats_store::MayBlock;
use std::ffi::c_int;
use std::ptr;

/// Returns `true` if a local process is alive. Takes two nanoseconds.
#[inline]
pub fn is_alive(env: Env<'_>, pid: VmWord<'_>) -> bool {
    let pid = sys::ErlNifPid { pid: pid.raw() };
    // SAFETY: the environment is valid (ENV-1) and the pid is a local one.
    unsafe { sys::enif_is_process_alive(env.raw(), &raw const pid) != 0 }
}

/// Sends a message built in an environment of its own, which is empty afterwards. Returns `false`
/// if the receiver is dead, or the caller is being killed while it runs on a dirty scheduler.
pub fn send(env: Env<'_>, to: VmWord<'_>, message_env: &mut OwnEnv, message: Word) -> bool {
    let to = sys::ErlNifPid { pid: to.raw() };
    // SAFETY: both environments are valid, the message was built in the second.
    unsafe { sys::enif_send(env.raw(), &raw const to, message_env.raw(), message) != 0 }
}

/// Sends a message from a thread that the VM did not create. Returns `false` if the receiver is
/// dead.
pub fn tell(to: Word, build: impl FnOnce(Env<'_>) -> VmWord<'_>) -> bool {
    assert_eq!(thread_type(), sys::THREAD_UNDEFINED);
    let mut message_env = OwnEnv::new();
    let message = build(message_env.env()).raw();
    let to = sys::ErlNifPid { pid: to };
    // SAFETY: a thread of our own has no environment of a call; the message was built in the other
    // one.
    unsafe { sys::enif_send(ptr::null_mut(), &raw const to, message_env.raw(), message) != 0 }
}

/// Sends a message that was built in an environment of its own, from a thread that the VM did not
/// create, to the process with this name. Returns `false` if there is none.
pub fn tell_named(name: KnownAtom, message_env: &mut OwnEnv, message: Word) -> bool {
    assert_eq!(thread_type(), sys::THREAD_UNDEFINED);
    let mut to = sys::ErlNifPid { pid: 0 };
    // SAFETY: a thread of our own has no environment of a call; the name is an atom, and the pid is
    // written only if the answer is not 0.
    let is_there =
        unsafe { sys::enif_whereis_pid(ptr::null_mut(), name.word().raw(), &raw mut to) != 0 };
    // SAFETY: a thread of our own has no environment of a call; the message was built in the other
    // one, and the pid is that of a process.
    is_there
        && unsafe {
            sys::enif_send(ptr::null_mut(), &raw const to, message_env.raw(), message) != 0
        }
}

/// Returns `true` if the VM did not create the calling thread.
pub fn is_own_thread() -> bool {
    thread_type() == sys::THREAD_UNDEFINED
}

/// Returns the type of the calling thread: one of the constants `THREAD_...` of [`sys`], or another
/// number if it is no scheduler. Takes a nanosecond.
#[inline]
pub fn thread_type() -> c_int {
    thread_local! {
        /// Type of this thread, which never changes. Asking the VM takes longer than this cache.
        static TYPE: c_int =
            // SAFETY: `enif_thread_type` takes nothing and may be called by any thread.
            unsafe { sys::enif_thread_type() };
    }
    TYPE.with(|thread_type| *thread_type)
}

/// Returns `true` if the caller runs on a dirty scheduler. Takes a nanosecond.
#[inline]
pub fn on_dirty_scheduler() -> bool {
    thread_type() >= sys::THREAD_DIRTY_CPU
}

/// Returns `true` if the calling thread may wait for a lock indefinitely. A normal scheduler may
/// not: other processes wait for it.
pub fn may_wait() -> bool {
    thread_type() != sys::THREAD_NORMAL
}

/// Returns the capability to block, unless the calling thread is a normal or a dirty CPU scheduler.
/// Takes a nanosecond.
#[inline]
#[expect(
    clippy::disallowed_methods,
    reason = "this is the function that others are to ask"
)]
pub fn may_block() -> Option<MayBlock> {
    let is_busy = matches!(thread_type(), sys::THREAD_NORMAL | sys::THREAD_DIRTY_CPU);
    (!is_busy).then(MayBlock::here)
}

/// Charges a percentage of the caller's time slice; more than 100 count as 100.
pub fn consume(env: Env<'_>, percent: u128) {
    if percent > 0 {
        // SAFETY: the environment is that of this call (ENV-1).
        unsafe { sys::enif_consume_timeslice(env.raw(), percent.min(100) as c_int) };
    }
}

/// A point in time on both clocks of Erlang, which follow changes of the machine's clock slowly or
/// not at all.
#[derive(Clone, Copy)]
pub struct Clocks {
    /// Erlang system time, since 1970.
    pub system_micros: i64,
    /// Erlang monotonic time.
    pub monotonic_nanos: i64,
}

impl Clocks {
    /// Reads both clocks.
    pub fn now() -> Self {
        // SAFETY: any thread may call this function of the VM.
        let monotonic_nanos = unsafe { sys::enif_monotonic_time(sys::TIME_UNIT_NSEC) };
        // SAFETY: any thread may call this function of the VM.
        let offset_nanos = unsafe { sys::enif_time_offset(sys::TIME_UNIT_NSEC) };
        Clocks {
            system_micros: (monotonic_nanos + offset_nanos).div_euclid(1000),
            monotonic_nanos,
        }
    }
}
