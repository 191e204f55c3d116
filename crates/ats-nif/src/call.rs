//! How the VM calls functions of this library, and how they fail.
//!
//! A function is written as `fn(Env<'e>, [VmTerm<'e>; N]) -> NifResult<'e>` and entered into the
//! function table with [`nif!`](crate::nif), which adds what every call needs: a panic must not
//! leave the function (that would end the VM), and an error becomes an exception. Neither costs
//! anything when nothing goes wrong, and nothing is allocated.
//!
//! # How a function is called again
//! A function that fails with [`KnownAtom::Busy`] met a key that is held by a longer change under way, or a lock
//! that was not free for a while; it has
//! changed nothing and is called again after other processes had their turn. How often that has happened
//! is told by an argument behind those of the function. After `ATTEMPTS` the call goes on on a dirty
//! scheduler, which may wait, so that there is an end. One that fails with
//! [`KnownAtom::Dirty`] has too much to do for a normal scheduler and is called again on a dirty one, where
//! it runs to its end even if its process is killed.
//!
//! # How a function fails
//! It raises `error:{ats_error, Cause}`. `Cause` is an atom of [`KnownAtom`], which the Erlang module
//! turns into the exception of `ets`; or `{panic, Text}`, which is a defect of this library and stays
//! loud.

use crate::atoms::KnownAtom;
use crate::env::{Env, VmWord};
use crate::process;
use crate::sys::{self, NifFn, Word};
use crate::vm_term::VmTerm;
use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// What a function returns: a term, or the cause of the exception to raise.
pub type NifResult<'e> = Result<VmWord<'e>, KnownAtom>;

/// An entry of the function table: `nif!("name", function, arity)`, or with flags as fourth
/// argument. The function takes the environment and an array of that many terms.
#[macro_export]
macro_rules! nif {
    ($name:literal, $function:path, $arity:literal) => {
        $crate::nif!($name, $function, $arity, 0)
    };
    ($name:literal, $function:path, $arity:literal, $flags:expr) => {{
        unsafe extern "C" fn entry(
            env: *mut $crate::sys::ErlNifEnv,
            argc: std::ffi::c_int,
            argv: *const $crate::sys::Word,
        ) -> $crate::sys::Word {
            // SAFETY: the VM gives the environment of this call (VE1) and as many valid terms as
            // the table says, good until the call returns (VE2).
            let (env, words) = unsafe {
                (
                    $crate::env::Env::from_raw(env),
                    &*argv.cast::<[$crate::sys::Word; $arity]>(),
                )
            };
            let again = $crate::call::Again {
                name: concat!($name, "\0").as_ptr().cast(),
                entry,
                arity: $arity,
                argc,
                argv,
            };
            $crate::call::run(env, again, || {
                $function(
                    env,
                    // SAFETY: as above.
                    words.map(|word| unsafe { $crate::vm_term::VmTerm::new(env, word) }),
                )
            })
        }
        $crate::sys::ErlNifFunc {
            name: concat!($name, "\0").as_ptr().cast(),
            arity: $arity,
            fptr: entry,
            flags: $flags,
        }
    }};
}

/// How to make a call once more.
#[derive(Clone, Copy)]
pub struct Again {
    /// Name of the function.
    pub name: *const c_char,
    /// The function.
    pub entry: NifFn,
    /// How many arguments the function has. One more is the number of attempts.
    pub arity: usize,
    /// How many arguments there are.
    pub argc: c_int,
    /// The arguments.
    pub argv: *const Word,
}

/// Runs the body of a native function and turns what comes out of it into what the VM expects.
#[inline]
pub fn run<'e>(env: Env<'e>, again: Again, body: impl FnOnce() -> NifResult<'e>) -> Word {
    // What a panicking body leaves behind is the concern of the structures it worked on; here it is
    // only kept from unwinding into the VM.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(term)) => term.raw(),
        Ok(Err(KnownAtom::Busy)) => call_when_free(env, again),
        Ok(Err(KnownAtom::Dirty)) => call_again(env, again, true),
        Ok(Err(cause)) => raise_cause(env, cause),
        Err(_) => raise_panic(env),
    }
}

/// So many attempts are made on a normal scheduler.
const ATTEMPTS: i64 = 16;

/// Has the VM make the same call again, which found something held.
#[cold]
fn call_when_free(env: Env<'_>, again: Again) -> Word {
    // SAFETY: the VM gives as many valid terms as it says (VE2).
    let args = unsafe { std::slice::from_raw_parts(again.argv, again.argc as usize) };
    let (args, told) = args.split_at(again.arity);
    let before = told.first().and_then(|word| {
        // SAFETY: a term of this call.
        unsafe { VmTerm::new(env, *word) }.as_small()
    });
    let attempts = before.unwrap_or(0) + 1;
    let mut args = args.to_vec();
    args.push(env.int(attempts).raw());
    let again = Again {
        argc: args.len() as c_int,
        argv: args.as_ptr(),
        ..again
    };
    let dirty = attempts >= ATTEMPTS || process::on_dirty_scheduler();
    // The VM copies the arguments.
    call_again(env, again, dirty)
}

/// Has the VM make the same call again, after other processes had their turn.
#[cold]
fn call_again(env: Env<'_>, again: Again, dirty: bool) -> Word {
    let flags = if dirty { sys::DIRTY_JOB_CPU_BOUND } else { 0 };
    let Again {
        name,
        entry,
        argc,
        argv,
        ..
    } = again;
    // SAFETY: these are the name, function and arguments of the call being made.
    unsafe { sys::enif_schedule_nif(env.raw(), name, flags as c_int, entry, argc, argv) }
}

#[cold]
fn raise_cause(env: Env<'_>, cause: KnownAtom) -> Word {
    let reason = env.tuple(&[KnownAtom::AtsError.word(), cause.word()]);
    env.raise(reason).raw()
}

#[cold]
fn raise_panic(env: Env<'_>) -> Word {
    let text = last_panic();
    let cause = env.tuple(&[KnownAtom::Panic.word(), env.binary(text.as_bytes())]);
    let reason = env.tuple(&[KnownAtom::AtsError.word(), cause]);
    env.raise(reason).raw()
}

thread_local! {
    /// Message and place of the last panic of this thread.
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps the text of a panic for [`run`] instead of printing it on the VM's standard error. The hook
/// is that of this library's own standard library, so nothing else in the VM is affected.
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
