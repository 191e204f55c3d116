//! Calls of functions of this library by the VM, and their failures.
//!
//! A function is written as `fn(Env<'e>, [VmTerm<'e>; N]) -> NifResult<'e>` and entered into the
//! function table with [`nif!`](crate::nif), which adds what every call needs: a panic must not
//! leave the function (that would end the VM), and a function without a reply ends as its
//! [`NoReply`] says. Neither costs anything when there is a reply, and nothing is allocated.
//!
//! # How a function is called again
//! A function that ends with [`NoReply::Retry`] has changed nothing and is called again after other
//! processes had their turn. An argument behind those of the function tells how often that has
//! happened. After `ATTEMPTS` the call goes on on a dirty scheduler, which may wait, so that there
//! is an end. A function that ends with [`NoReply::DirtyCpu`] or [`NoReply::DirtyIo`] has changed
//! nothing either. It is called again on a dirty scheduler, where it runs to its end even if its
//! process is killed.
//!
//! # How a function fails
//! It raises `error:{ats_error, Cause}`. `Cause` is the atom of [`NoReply::Refused`], which the
//! Erlang module turns into the exception of `ets`; or `{panic, Text}`, which is a defect of this
//! library and stays loud.

use crate::atoms::KnownAtom;
use crate::disk::word_of;
use crate::env::{Env, VmWord};
use crate::etf::TooLong;
use crate::process;
use crate::sys::{self, NifFn, Word};
use crate::vm_term::VmTerm;
use ats::Error;
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// The result of a function: a term, or the reason why there is none.
pub type NifResult<'e> = Result<VmWord<'e>, NoReply>;

const _: () = assert!(
    size_of::<NifResult<'static>>() == 2 * size_of::<Word>(),
    "returned in two registers"
);

/// The reason why a call ends without a reply, and its consequence. `?` makes one of a cause and of
/// an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// The call is refused: it raises an exception with this cause, which is one that `ats_errors`
    /// knows.
    Refused(KnownAtom),
    /// A longer change under way holds a key, or a lock was not free for a while: the call is made
    /// again after other processes had their turn.
    Retry,
    /// The call has too much to do for a normal scheduler: it is made again on a dirty CPU
    /// scheduler.
    DirtyCpu,
    /// The call has to wait for a device, as one that reads or writes a file does: it is made again
    /// on a dirty I/O scheduler. Operations on objects in memory never end so.
    DirtyIo,
}

impl From<KnownAtom> for NoReply {
    #[inline]
    fn from(cause: KnownAtom) -> Self {
        NoReply::Refused(cause)
    }
}

impl From<Error> for NoReply {
    fn from(error: Error) -> Self {
        NoReply::Refused(match error {
            Error::NotATuple | Error::NoKey | Error::NotAnInteger => KnownAtom::None,
            Error::BadKey => KnownAtom::BadKey,
            Error::KeyPosition => KnownAtom::KeyPos,
            Error::Position => KnownAtom::Position,
            Error::Operand => KnownAtom::Operand,
            Error::Element => KnownAtom::Value,
            Error::TableType => KnownAtom::TableType,
            Error::Snapshot => KnownAtom::Snapshot,
            Error::Ended => KnownAtom::SnapshotEnded,
            Error::SystemLimit => KnownAtom::SystemLimit,
            Error::Storage(ats_store::Error::WouldBlock) => return NoReply::DirtyIo,
            Error::Storage(ats_store::Error::Corrupt) => KnownAtom::Damaged,
            Error::Storage(ats_store::Error::Merge) => KnownAtom::MergeFailed,
            Error::Storage(ats_store::Error::Expired) => KnownAtom::SnapshotExpired,
            Error::Storage(ats_store::Error::Io(error)) => word_of(error),
            Error::Storage(ats_store::Error::TooLong { .. }) => KnownAtom::TooLong,
            Error::Storage(ats_store::Error::Pending) => KnownAtom::Pending,
            Error::Storage(_) => KnownAtom::Storage,
            Error::TooLarge => return NoReply::DirtyCpu,
            Error::Busy => return NoReply::Retry,
        })
    }
}

/// An entry of the function table: `nif!("name", function, arity)`. The function, or closure, takes
/// the environment and an array of that many terms.
#[macro_export]
macro_rules! nif {
    ($name:literal, $function:expr, $arity:literal) => {{
        unsafe extern "C" fn entry(
            env: *mut $crate::sys::ErlNifEnv,
            argc: std::ffi::c_int,
            argv: *const $crate::sys::Word,
        ) -> $crate::sys::Word {
            // SAFETY: the VM gives the environment of this call (ENV-1) and as many valid terms as
            // the table says, good until the call returns (ENV-2).
            let (env, args) = unsafe {
                let env = $crate::env::Env::from_raw(env);
                let words = &*argv.cast::<[$crate::sys::Word; $arity]>();
                (
                    env,
                    words.map(|word| $crate::vm_term::VmTerm::new(env, word)),
                )
            };
            let again = $crate::call::Reschedule {
                name: concat!($name, "\0").as_ptr().cast(),
                entry,
                arity: $arity,
                argc,
                argv,
            };
            $crate::call::run(env, again, args, $function)
        }
        $crate::sys::ErlNifFunc {
            name: concat!($name, "\0").as_ptr().cast(),
            arity: $arity,
            fptr: entry,
            flags: 0,
        }
    }};
}

/// A call that can be made once more.
#[derive(Clone, Copy)]
pub struct Reschedule {
    /// Name of the function.
    pub name: *const c_char,
    /// The function.
    pub entry: NifFn,
    /// The number of arguments of the function. One more is the number of attempts.
    pub arity: usize,
    /// The number of arguments.
    pub argc: c_int,
    /// The arguments.
    pub argv: *const Word,
}

/// Runs the body of a native function and turns what comes out of it into what the VM expects.
#[inline]
pub fn run<'e, const ARITY: usize>(
    env: Env<'e>,
    again: Reschedule,
    args: [VmTerm<'e>; ARITY],
    function: impl FnOnce(Env<'e>, [VmTerm<'e>; ARITY]) -> NifResult<'e>,
) -> Word {
    // The structures that a panicking body worked on keep themselves whole; here it is only kept
    // from unwinding into the VM.
    match catch_unwind(AssertUnwindSafe(|| function(env, args))) {
        Ok(Ok(term)) => term.raw(),
        Ok(Err(NoReply::Refused(cause))) => raise(env, cause.word()),
        Ok(Err(NoReply::Retry)) => retry_when_free(env, again),
        Ok(Err(NoReply::DirtyCpu)) => reschedule(env, again, sys::DIRTY_JOB_CPU_BOUND),
        Ok(Err(NoReply::DirtyIo)) => reschedule(env, again, sys::DIRTY_JOB_IO_BOUND),
        Err(cause) if cause.is::<TooLong>() => raise(env, KnownAtom::TooLong.word()),
        Err(_) => raise_panic(env),
    }
}

/// The number of attempts on a normal scheduler.
const ATTEMPTS: i64 = 16;

/// Has the VM make the same call again, which found a lock or key taken.
#[cold]
fn retry_when_free(env: Env<'_>, again: Reschedule) -> Word {
    // SAFETY: the VM gives as many valid terms as it says (ENV-2).
    let args = unsafe { std::slice::from_raw_parts(again.argv, again.argc as usize) };
    let (args, attempts) = args.split_at(again.arity);
    let before = attempts.first().and_then(|word| {
        // SAFETY: the word is that of a term of this call (ENV-2).
        unsafe { VmTerm::new(env, *word) }.as_small()
    });
    let attempts = before.unwrap_or(0) + 1;
    let mut args = args.to_vec();
    args.push(env.int(attempts).raw());
    let again = Reschedule {
        argc: args.len() as c_int,
        argv: args.as_ptr(),
        ..again
    };
    // Work of a call on one dirty scheduler may not be for another one.
    let flags = match process::thread_type() {
        sys::THREAD_DIRTY_IO => sys::DIRTY_JOB_IO_BOUND,
        sys::THREAD_DIRTY_CPU => sys::DIRTY_JOB_CPU_BOUND,
        _ if attempts >= ATTEMPTS => sys::DIRTY_JOB_CPU_BOUND,
        _ => 0,
    };
    // The VM copies the arguments.
    reschedule(env, again, flags)
}

/// Has the VM make the same call again, after other processes had their turn. The flags are those
/// of an entry of the function table.
#[cold]
fn reschedule(env: Env<'_>, again: Reschedule, flags: c_uint) -> Word {
    let (name, args, count) = (again.name, again.argv, again.argc);
    // SAFETY: these are the name, function and arguments of the call being made.
    unsafe { sys::enif_schedule_nif(env.raw(), name, flags as c_int, again.entry, count, args) }
}

/// Raises `error:{ats_error, Cause}`.
#[cold]
fn raise(env: Env<'_>, cause: VmWord<'_>) -> Word {
    let reason = env.tuple(&[KnownAtom::AtsError.word(), cause]);
    env.raise(reason).raw()
}

#[cold]
fn raise_panic(env: Env<'_>) -> Word {
    let text = env.binary(last_panic().as_bytes());
    raise(env, env.tuple(&[KnownAtom::Panic.word(), text]))
}

thread_local! {
    /// Message and place of the last panic of this thread.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the text of a panic for [`run`] instead of printing it on the VM's standard error. The
/// hook is that of this library's own standard library, so nothing else in the VM is affected.
pub fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            LAST_PANIC.with(|last| *last.borrow_mut() = info.to_string());
        }));
    });
}

/// Message and place of the last panic of this thread, which is forgotten.
pub fn last_panic() -> String {
    LAST_PANIC.take()
}
