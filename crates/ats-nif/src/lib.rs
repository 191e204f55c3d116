//! The tables of `ats` inside the Erlang VM: a NIF library.
//!
//! This crate knows the VM and no algorithms. It converts terms of the VM to keys and images, the
//! only forms that the layers below see, and images to terms.
//!
//! The modules from bottom to top. Each uses only those above it in the table.
//!
//! | module | contents |
//! |---|---|
//! | [`sys`] | the functions of the VM, as C declares them |
//! | [`env`](mod@env), [`tags`] | environments, and words that are terms in them |
//! | [`etf`] | the external term format, for terms that the NIF interface does not show |
//! | [`big`], [`heap`] | integers beyond 64 bits; tuples and list cells, read in place |
//! | [`process`], [`otp_release`] | processes, schedulers and the clock; differences between VM
//! releases |
//! | [`atoms`], [`ident`], [`mod@reference`] | texts of atoms; identities of pids, ports, references |
//! | [`fun_environment`], [`opaque`] | closures, native records, and terms of unknown kinds |
//! | [`vm_term`] | terms of the VM as the layers below see them |
//! | [`map_layout`] | orders and trees of maps, by their keys |
//! | [`counted_binary`], [`shared_binary`], [`shared_env`] | large binaries; terms in environments |
//! | [`vm_host`] | terms that an image only refers to: large binaries, closures, ... |
//! | [`vm_sink`] | terms that the layers below build |
//! | [`vm_codec`] | objects as bytes, for stores of bytes |
//! | [`disk`] | tables in directories |
//! | [`call`] | entry and end of native functions |
//! | [`resource`] | objects that Erlang refers to |
//! | [`builder`], [`scratch`] | buffers kept from call to call |
//! | [`query`], [`spec_shapes`] | compiled match specifications; those that differ in literals |
//! | `full_scan`, [`owner`], [`handle`] | tables as processes know them |
//! | [`registry`], [`ownership`], `fixation` | all tables and their names; owners and heirs;
//! fixations |
//! | [`lifetime`], `process_exit` | creation and deletion of tables; exits of processes |
//! | `functions` | the functions that Erlang calls |
//! | [`load`] | loading and reloading, and checks of the VM |

#![allow(
    clippy::unnecessary_wraps,
    reason = "a native function returns a result, even if it cannot fail"
)]

pub mod atoms;
pub mod big;
pub mod builder;
pub mod call;
pub mod counted_binary;
pub mod disk;
pub mod env;
pub mod etf;
#[cfg(not(feature = "test-nifs"))]
mod evicted;
mod fixation;
mod full_scan;
pub mod fun_environment;
#[cfg(not(feature = "test-nifs"))]
mod functions;
pub mod handle;
pub mod heap;
pub mod ident;
pub mod lifetime;
pub mod load;
pub mod map_layout;
pub mod names;
pub mod opaque;
pub mod otp_release;
pub mod owner;
pub mod ownership;
pub mod process;
mod process_exit;
pub mod process_monitor;
pub mod query;
pub mod reference;
pub mod registry;
pub mod resource;
pub mod scratch;
pub mod shared_binary;
pub mod shared_env;
pub mod spec_shapes;
pub mod sys;
pub mod tags;
#[cfg(feature = "test-nifs")]
mod test_nifs;
pub mod vm_codec;
pub mod vm_host;
pub mod vm_sink;
pub mod vm_term;

#[cfg(not(feature = "test-nifs"))]
use functions::all as all_functions;
use std::ffi::CStr;
#[cfg(feature = "test-nifs")]
use test_nifs::functions as all_functions;

/// Name of the Erlang module of these functions. The build for tests has its own, so that both can
/// be loaded side by side.
const MODULE: &CStr = if cfg!(feature = "test-nifs") {
    c"ats_term_nif"
} else {
    c"ats_nif"
};

/// Describes the library: the entry point for the VM. The VM reads the description as long as the
/// library is loaded, and calls this once per load, so the description is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn nif_init() -> *const sys::ErlNifEntry {
    let functions = all_functions().leak();
    Box::leak(Box::new(sys::ErlNifEntry {
        major: sys::NIF_VERSION.0,
        minor: sys::NIF_VERSION.1,
        name: MODULE.as_ptr(),
        num_of_funcs: functions.len() as i32,
        funcs: functions.as_mut_ptr(),
        load: Some(load::load),
        reload: None,
        upgrade: Some(load::upgrade),
        unload: Some(load::unload),
        vm_variant: c"beam.vanilla".as_ptr(),
        options: 1,
        sizeof_resource_type_init: size_of::<sys::ErlNifResourceTypeInit>(),
        min_erts: c"erts-12.0".as_ptr(),
    }))
}
