//! Loading of the library: checks of this VM, and facts about it that other modules cache.
//!
//! Images hold immediate terms as words of the VM, which is the fastest way to store them and
//! relies on more than the NIF interface promises. So the tags of immediates are checked here, and
//! a VM with other tags is refused before any table exists.
//!
//! # Reloading
//! When the module is purged and loaded again, the VM uses the same mapping of the library (it is
//! never unmapped), and all tables live on. Another build, or a copy of the file, is another
//! library with its own statics, which cannot use the tables of this one. It is refused as long as
//! code of the module uses this library. After that it can be loaded, and does not know the tables
//! of this one.

use crate::env::{Env, VmWord};
use crate::handle::Handle;
use crate::process_monitor::ProcessMonitor;
use crate::query::Compiled;
use crate::sys::{self, Word};
use crate::tags::{BOXED_TAG, IMMEDIATE_TAG, NIL, PID_TAG, PORT_TAG, SMALL_TAG};
use crate::{atoms, big, call, etf, heap, ident, otp_release, process, reference, resource};
use std::ffi::{c_int, c_void};
use std::io::Write;
use std::panic::catch_unwind;

/// The private data that the VM keeps for a loaded library, by which another library can recognize
/// it.
#[repr(C)]
struct PrivData {
    magic: u64,
    abi_version: u32,
    /// Address of a static of the library: it differs between two mapped libraries, even if their
    /// files are equal.
    library: *const (),
}

// SAFETY: the pointer is only compared, and no code reads or writes through it.
unsafe impl Sync for PrivData {}

const MAGIC: u64 = u64::from_le_bytes(*b"ats priv");
const ABI_VERSION: u32 = 1;

static LIBRARY: u8 = 0;
static PRIV_DATA: PrivData = PrivData {
    magic: MAGIC,
    abi_version: ABI_VERSION,
    library: (&raw const LIBRARY).cast(),
};

/// Handles a load of the library while no code of the module uses it.
///
/// # Safety
/// Only the VM may call this.
pub unsafe extern "C" fn load(
    env: *mut sys::ErlNifEnv,
    priv_data: *mut *mut c_void,
    _info: Word,
) -> c_int {
    // SAFETY: the VM gives a valid environment and a slot for our data.
    unsafe { finish(prepare(Env::from_raw(env)), priv_data) }
}

/// Handles a load while old code of the module uses this library, or another build of it.
///
/// # Safety
/// Only the VM may call this.
pub unsafe extern "C" fn upgrade(
    env: *mut sys::ErlNifEnv,
    priv_data: *mut *mut c_void,
    old_priv_data: *mut *mut c_void,
    _info: Word,
) -> c_int {
    // SAFETY: the VM gives a valid environment and the slots of both data. `finish` of this
    // library, or of another build, wrote the old pointer, and the data begin with the same fields
    // in all builds.
    unsafe {
        let old = (*old_priv_data).cast::<PrivData>();
        let same = !old.is_null()
            && (*old).magic == MAGIC
            && (*old).abi_version == ABI_VERSION
            && (*old).library == PRIV_DATA.library;
        let result = if same {
            prepare(Env::from_raw(env))
        } else {
            Err("another build of this library is in use; restart the node to change it".into())
        };
        finish(result, priv_data)
    }
}

/// Handles a purge of code that uses the library. Nothing to do: the library stays mapped, and
/// tables belong to the references that users hold.
///
/// # Safety
/// Only the VM may call this.
pub unsafe extern "C" fn unload(_env: *mut sys::ErlNifEnv, _priv_data: *mut c_void) {}

/// Reports the outcome of loading to the VM, and a failure to the operator, because the VM passes
/// on only a number.
///
/// # Safety
/// `priv_data` must be valid for writes.
unsafe fn finish(result: Result<(), String>, priv_data: *mut *mut c_void) -> c_int {
    match result {
        Ok(()) => {
            // SAFETY: the caller promises that `priv_data` is valid for writes.
            unsafe { *priv_data = (&raw const PRIV_DATA).cast_mut().cast() };
            0
        }
        Err(reason) => {
            // A failure to write the message is ignored: it must not change the outcome.
            let _ = writeln!(std::io::stderr(), "ats_nif: not loaded: {reason}");
            1
        }
    }
}

fn prepare(env: Env<'_>) -> Result<(), String> {
    call::install_panic_hook();
    ats_sync::lock::set_may_wait(process::may_wait);
    let prepared = catch_unwind(std::panic::AssertUnwindSafe(|| {
        etf::load();
        atoms::load(env);
        check_immediates(env)?;
        big::load(env);
        heap::load(env);
        ident::load(env)?;
        reference::load(env);
        otp_release::load(env);
        open_resources(env)
    }));
    prepared.unwrap_or_else(|_| Err(format!("panic: {}", call::last_panic())))
}

/// Opens the resource types.
fn open_resources(env: Env<'_>) -> Result<(), String> {
    #[cfg(feature = "test-nifs")]
    crate::test_nifs::open_resources(env)?;
    resource::open::<Handle>(env)?;
    resource::open::<ProcessMonitor<Handle>>(env)?;
    #[cfg(not(feature = "test-nifs"))]
    resource::open::<crate::functions::TakenObjects>(env)?;
    #[cfg(not(feature = "test-nifs"))]
    resource::open::<crate::functions::Reading>(env)?;
    #[cfg(not(feature = "test-nifs"))]
    resource::open::<crate::functions::ChangedKeys>(env)?;
    #[cfg(not(feature = "test-nifs"))]
    resource::open::<crate::functions::HeldSnapshot>(env)?;
    resource::open::<Compiled>(env)
}

/// Checks that this VM's immediates have the words used in images, and that no other term looks
/// like one.
fn check_immediates(env: Env<'_>) -> Result<(), String> {
    const SMALLS: [i64; 7] = [0, 1, -1, 42, -(1 << 32), (1 << 59) - 1, -(1 << 59)];
    const BIGS: [i64; 4] = [1 << 59, -(1 << 59) - 1, i64::MAX, i64::MIN];

    let check = |what: &str, word: VmWord<'_>, good: bool| {
        let word = word.raw();
        good.then_some(())
            .ok_or_else(|| format!("this VM has an unknown format of terms: {what} is {word:#x}"))
    };
    for value in SMALLS {
        let word = env.int(value);
        check(
            "a small integer",
            word,
            word.raw() == (value as u64) << 4 | SMALL_TAG,
        )?;
    }
    for atom in [
        atoms::KnownAtom::True,
        atoms::KnownAtom::AtsError,
        atoms::KnownAtom::EndOfTable,
    ] {
        check(
            "an atom",
            atom.word(),
            atom.word().raw() & 0x3F == atoms::ATOM_TAG,
        )?;
    }
    let nil = env.from_etf(&[131, 106]).ok_or("no empty list")?;
    check("the empty list", nil, nil.raw() == NIL)?;
    let pid = env.own_pid().ok_or("not loaded by a process")?;
    check("a pid", pid, pid.raw() & 0xF == PID_TAG)?;
    let port = ident::some_port(env).ok_or("no port")?;
    check("a port", port, port.raw() & 0xF == PORT_TAG)?;

    let boxed = BIGS.map(|value| env.int(value)).into_iter().chain([
        env.float(1.5),
        env.tuple(&[]),
        env.tuple(&[nil]),
        env.binary(b"x"),
        env.map(&[], &[]).ok_or("no empty map")?,
        env.make_ref(),
    ]);
    for word in boxed {
        check(
            "a boxed term",
            word,
            word.raw() & IMMEDIATE_TAG == BOXED_TAG,
        )?;
    }
    let cell = env.cons(pid, nil);
    check("a list cell", cell, cell.raw() & IMMEDIATE_TAG == 0b01)
}
