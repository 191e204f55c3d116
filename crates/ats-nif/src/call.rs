//! The entry of native functions, and their failures.
//!
//! A function is written as `fn(Env<'e>, [VmTerm<'e>; N]) -> NifResult<'e>` and entered into the
//! function table with [`nif!`](crate::nif), which wraps each call: a panic is caught (it would end
//! the VM), and a function without a reply ends as its [`NoReply`] says. A call with a reply pays
//! for neither, and nothing is allocated.
//!
//! # Rescheduled calls
//! A function that ends with [`NoReply::Retry`] has changed nothing and is called again after other
//! processes had their turn. An extra argument counts the attempts. After `ATTEMPTS` the call moves
//! to a dirty scheduler, which may block, so it ends eventually. A function that ends with
//! [`NoReply::DirtyCpu`] or [`NoReply::DirtyIo`] has changed nothing either. It is called again on
//! a dirty scheduler, where it runs to its end even if its process is killed.
//!
//! # Failures
//! It raises `error:{ats_error, Cause}`. `Cause` is the atom of [`NoReply::Refused`], which the
//! Erlang module turns into the exception of `ets`; or `{panic, Text}`, which reports a defect of
//! this library.

use crate::atoms::KnownAtom;
use crate::disk::word_of;
use crate::env::{Env, VmWord};
use crate::etf::TooLong;
use crate::process;
use crate::sys::{self, NifFn, Word};
use crate::vm_term::VmTerm;
use ats::terms::Error;
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

/// The reason why a call ends without a reply. `?` converts a cause or an [`Error`] to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReply {
    /// The call is refused: it raises an exception with this cause, which `ats_errors` knows.
    Refused(KnownAtom),
    /// A longer change holds the key, or a lock was contended for a while: the call is made again
    /// after other processes had their turn.
    Retry,
    /// The call has too much to do for a normal scheduler: it is made again on a dirty CPU
    /// scheduler.
    DirtyCpu,
    /// The call waits for a device, because it reads or writes a file: it is made again on a dirty
    /// I/O scheduler. Operations on objects in memory never end this way.
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
            Error::NoTtl => KnownAtom::Ttl,
            Error::Bound => KnownAtom::MaxMemory,
            Error::Snapshot => KnownAtom::Snapshot,
            Error::Ended => KnownAtom::SnapshotEnded,
            Error::SystemLimit => KnownAtom::SystemLimit,
            Error::TooManyTables => KnownAtom::Tables,
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

/// A call that can be rescheduled.
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

/// Runs the body of a native function and converts its outcome to the word that the VM expects.
#[inline]
pub fn run<'e, const ARITY: usize>(
    env: Env<'e>,
    again: Reschedule,
    args: [VmTerm<'e>; ARITY],
    function: impl FnOnce(Env<'e>, [VmTerm<'e>; ARITY]) -> NifResult<'e>,
) -> Word {
    // Structures stay consistent by themselves when a body panics; this only keeps the panic from
    // unwinding into the VM.
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

/// Number of attempts on a normal scheduler.
const ATTEMPTS: i64 = 16;

/// Reschedules a call that found a lock or a key taken.
#[cold]
fn retry_when_free(env: Env<'_>, again: Reschedule) -> Word {
    // SAFETY: the VM gives as many valid terms as it says (ENV-2).
    let args = unsafe { std::slice::from_raw_parts(again.argv, again.argc as usize) };
    let (args, attempts) = args.split_at(again.arity);
    let before = attempts.first().and_then(|word| {
        // SAFETY: the word is a term of this call (ENV-2).
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
    // A call that runs on a dirty scheduler stays on one of the same kind.
    let flags = match process::thread_type() {
        sys::THREAD_DIRTY_IO => sys::DIRTY_JOB_IO_BOUND,
        sys::THREAD_DIRTY_CPU => sys::DIRTY_JOB_CPU_BOUND,
        _ if attempts >= ATTEMPTS => sys::DIRTY_JOB_CPU_BOUND,
        _ => 0,
    };
    // The VM copies the arguments.
    reschedule(env, again, flags)
}

/// Has the VM make the same call again after other processes had their turn. `flags` is that of a
/// function table entry.
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
    /// Message and source location of the last panic of this thread.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Installs a hook that keeps the text of a panic for [`run`] instead of printing it on the VM's
/// standard error. This library has a standard library of its own, so the hook affects nothing else
/// in the VM.
pub fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            LAST_PANIC.with(|last| *last.borrow_mut() = info.to_string());
        }));
    });
}

/// Takes message and source location of the last panic of this thread.
pub fn last_panic() -> String {
    LAST_PANIC.take()
}
