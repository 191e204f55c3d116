//! The part of `erl_nif.h` that this library uses, declared by hand (NIF version 2.16, OTP 24).
//!
//! Everything here exists in every OTP release since 24, so one build loads into all of them;
//! functions that came later would have to be looked up at run time. Only 64-bit systems are
//! supported, where the header maps the 64-bit integer functions to those of `long`.

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::marker::{PhantomData, PhantomPinned};

const _: () = assert!(
    size_of::<c_long>() == 8 && size_of::<usize>() == 8,
    "64-bit systems only"
);

/// A term of the VM: an immediate value or a tagged pointer to the heap of an environment.
pub type Word = u64;

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            _data: [u8; 0],
            _marker: PhantomData<(*mut u8, PhantomPinned)>,
        }
    )*};
}

opaque! {
    /// An environment, which holds terms.
    ErlNifEnv;
    /// A resource type.
    ErlNifResourceType;
    /// A queue of binaries.
    ErlNifIOQueue;
}

/// A native function as the VM calls it.
pub type NifFn = unsafe extern "C" fn(*mut ErlNifEnv, c_int, *const Word) -> Word;

/// One entry of the function table.
#[repr(C)]
pub struct ErlNifFunc {
    /// Name, zero terminated.
    pub name: *const c_char,
    /// Number of arguments.
    pub arity: c_uint,
    /// The function.
    pub fptr: NifFn,
    /// 0, or the kind of dirty scheduler to run on.
    pub flags: c_uint,
}

/// The VM's description of itself.
#[repr(C)]
pub struct ErlNifSysInfo {
    /// Versions of the driver interface.
    pub driver_versions: [c_int; 2],
    /// Version of the runtime system, zero terminated.
    pub erts_version: *const c_char,
    /// Number of the OTP release, zero terminated.
    pub otp_release: *const c_char,
    /// Support of threads and processors, numbers of threads, version of this interface, support of
    /// dirty schedulers.
    pub rest: [c_int; 7],
}

/// Flag of a function that runs on a dirty CPU scheduler.
pub const DIRTY_JOB_CPU_BOUND: c_uint = 1;
/// Flag of a function that runs on a dirty I/O scheduler.
pub const DIRTY_JOB_IO_BOUND: c_uint = 2;
/// `ERL_NIF_THR_UNDEFINED`: a thread that the VM has not made.
pub const THREAD_UNDEFINED: c_int = 0;
/// `ERL_NIF_THR_NORMAL_SCHEDULER`.
pub const THREAD_NORMAL: c_int = 1;
/// `ERL_NIF_THR_DIRTY_CPU_SCHEDULER`; threads that are no schedulers are below the normal ones.
pub const THREAD_DIRTY_CPU: c_int = 2;
/// `ERL_NIF_THR_DIRTY_IO_SCHEDULER`.
pub const THREAD_DIRTY_IO: c_int = 3;
/// `ERL_NIF_NSEC`.
pub const TIME_UNIT_NSEC: c_int = 3;

/// The description that a library gives the VM when it is loaded.
#[repr(C)]
pub struct ErlNifEntry {
    /// Major version of the NIF interface.
    pub major: c_int,
    /// Minor version of the NIF interface.
    pub minor: c_int,
    /// Module the functions belong to, zero terminated.
    pub name: *const c_char,
    /// Number of functions.
    pub num_of_funcs: c_int,
    /// The functions.
    pub funcs: *mut ErlNifFunc,
    /// The callback for the first load of the library.
    pub load: Option<unsafe extern "C" fn(*mut ErlNifEnv, *mut *mut c_void, Word) -> c_int>,
    /// Unused by the VM today.
    pub reload: Option<unsafe extern "C" fn(*mut ErlNifEnv, *mut *mut c_void, Word) -> c_int>,
    /// The callback for a load of the library while old code of the module has it.
    pub upgrade: Option<
        unsafe extern "C" fn(*mut ErlNifEnv, *mut *mut c_void, *mut *mut c_void, Word) -> c_int,
    >,
    /// The callback for the purge of the module's code.
    pub unload: Option<unsafe extern "C" fn(*mut ErlNifEnv, *mut c_void)>,
    /// Kind of VM, zero terminated.
    pub vm_variant: *const c_char,
    /// Always 1.
    pub options: c_uint,
    /// Size of [`ErlNifResourceTypeInit`].
    pub sizeof_resource_type_init: usize,
    /// Oldest runtime that has this interface, zero terminated.
    pub min_erts: *const c_char,
}

/// The version of the NIF interface that is declared here.
pub const NIF_VERSION: (c_int, c_int) = (2, 16);

/// A view of a binary's bytes.
#[repr(C)]
pub struct ErlNifBinary {
    /// Number of bytes.
    pub size: usize,
    /// The bytes.
    pub data: *mut u8,
    /// The binary of the VM that this counts; null in a view of a term.
    pub ref_bin: *mut c_void,
    _spare: [*mut c_void; 2],
}

impl ErlNifBinary {
    /// Returns a view for the VM to fill.
    pub const fn empty() -> Self {
        ErlNifBinary {
            size: 0,
            data: std::ptr::null_mut(),
            ref_bin: std::ptr::null_mut(),
            _spare: [std::ptr::null_mut(); 2],
        }
    }
}

/// A local process.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ErlNifPid {
    /// The term.
    pub pid: Word,
}

/// The monitor of a resource: the words of a reference.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ErlNifMonitor {
    /// The words, of which references of today use three.
    pub words: [u64; 4],
}

/// Bytes in memory, as in `struct iovec` of POSIX.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SysIOVec {
    /// The bytes.
    pub base: *mut u8,
    /// Number of bytes.
    pub len: usize,
}

/// An I/O vector, with room for its parts.
#[repr(C)]
pub struct ErlNifIOVec {
    /// Number of parts.
    pub iovcnt: c_int,
    /// Number of bytes.
    pub size: usize,
    /// The parts.
    pub iov: *mut SysIOVec,
    /// The binary of each part, which counts the vector.
    pub ref_bins: *mut *mut c_void,
    flags: c_int,
    small_iov: [SysIOVec; IOVEC_SIZE],
    small_ref_bin: [*mut c_void; IOVEC_SIZE],
}

/// Number of parts that an I/O vector has room for.
const IOVEC_SIZE: usize = 16;

/// Iterator over a map. The VM fills it; it only has to be large enough.
#[repr(C)]
pub struct ErlNifMapIterator {
    _map: Word,
    _size: u64,
    _idx: u64,
    _u: [*mut c_void; 2],
    _spare: [*mut c_void; 2],
}

/// Callbacks of a resource type.
#[repr(C)]
pub struct ErlNifResourceTypeInit {
    /// The callback for the release of the last reference to a resource.
    pub dtor: Option<unsafe extern "C" fn(*mut ErlNifEnv, *mut c_void)>,
    /// The callback for the deselection of an event.
    pub stop: Option<unsafe extern "C" fn(*mut ErlNifEnv, *mut c_void, c_int, c_int)>,
    /// The callback for the exit of a monitored process.
    pub down: Option<
        unsafe extern "C" fn(*mut ErlNifEnv, *mut c_void, *mut ErlNifPid, *mut ErlNifMonitor),
    >,
    /// Number of callbacks given.
    pub members: c_int,
    /// The callback for other libraries.
    pub dyncall: Option<unsafe extern "C" fn(*mut ErlNifEnv, *mut c_void, *mut c_void)>,
}

/// Flag to create a resource type.
pub const RT_CREATE: c_uint = 1;
/// Flag to take a resource type over from an older library of the module.
pub const RT_TAKEOVER: c_uint = 2;

/// Flag to start at the first pair of a map.
pub const MAP_ITERATOR_FIRST: c_uint = 1;

/// The only kind of I/O queue.
pub const IOQ_NORMAL: c_uint = 1;

// The VM's documentation describes each function. Points that it leaves open are explained where
// this library relies on them.
#[allow(missing_docs)]
unsafe extern "C" {
    // Inspection of terms. `enif_term_type` is left out: it aborts the VM on a kind of term that it
    // does not know, and in OTP 29 it does not know native records.
    pub fn enif_is_fun(env: *mut ErlNifEnv, term: Word) -> c_int;
    pub fn enif_is_number(env: *mut ErlNifEnv, term: Word) -> c_int;
    pub fn enif_is_pid(env: *mut ErlNifEnv, term: Word) -> c_int;
    pub fn enif_is_port(env: *mut ErlNifEnv, term: Word) -> c_int;
    pub fn enif_is_ref(env: *mut ErlNifEnv, term: Word) -> c_int;
    pub fn enif_is_identical(a: Word, b: Word) -> c_int;
    pub fn enif_get_long(env: *mut ErlNifEnv, term: Word, out: *mut c_long) -> c_int;
    pub fn enif_get_ulong(env: *mut ErlNifEnv, term: Word, out: *mut c_ulong) -> c_int;
    pub fn enif_get_double(env: *mut ErlNifEnv, term: Word, out: *mut f64) -> c_int;
    pub fn enif_get_list_cell(
        env: *mut ErlNifEnv,
        term: Word,
        head: *mut Word,
        tail: *mut Word,
    ) -> c_int;
    pub fn enif_get_tuple(
        env: *mut ErlNifEnv,
        term: Word,
        arity: *mut c_int,
        elements: *mut *const Word,
    ) -> c_int;
    pub fn enif_inspect_binary(env: *mut ErlNifEnv, term: Word, out: *mut ErlNifBinary) -> c_int;
    pub fn enif_get_map_size(env: *mut ErlNifEnv, term: Word, out: *mut usize) -> c_int;
    pub fn enif_get_map_value(env: *mut ErlNifEnv, map: Word, key: Word, value: *mut Word)
    -> c_int;
    pub fn enif_map_iterator_create(
        env: *mut ErlNifEnv,
        map: Word,
        iter: *mut ErlNifMapIterator,
        entry: c_uint,
    ) -> c_int;
    pub fn enif_map_iterator_destroy(env: *mut ErlNifEnv, iter: *mut ErlNifMapIterator);
    pub fn enif_map_iterator_next(env: *mut ErlNifEnv, iter: *mut ErlNifMapIterator) -> c_int;
    pub fn enif_map_iterator_get_pair(
        env: *mut ErlNifEnv,
        iter: *mut ErlNifMapIterator,
        key: *mut Word,
        value: *mut Word,
    ) -> c_int;
    pub fn enif_self(env: *mut ErlNifEnv, pid: *mut ErlNifPid) -> *mut ErlNifPid;

    // Construction of terms.
    pub fn enif_make_atom_len(env: *mut ErlNifEnv, name: *const c_char, len: usize) -> Word;
    pub fn enif_make_long(env: *mut ErlNifEnv, value: c_long) -> Word;
    pub fn enif_make_ulong(env: *mut ErlNifEnv, value: c_ulong) -> Word;
    pub fn enif_make_double(env: *mut ErlNifEnv, value: f64) -> Word;
    pub fn enif_make_tuple_from_array(env: *mut ErlNifEnv, a: *const Word, n: c_uint) -> Word;
    pub fn enif_make_list_cell(env: *mut ErlNifEnv, head: Word, tail: Word) -> Word;
    pub fn enif_make_list_from_array(env: *mut ErlNifEnv, a: *const Word, n: c_uint) -> Word;
    pub fn enif_make_map_from_arrays(
        env: *mut ErlNifEnv,
        keys: *const Word,
        values: *const Word,
        count: usize,
        out: *mut Word,
    ) -> c_int;
    pub fn enif_make_sub_binary(env: *mut ErlNifEnv, binary: Word, pos: usize, size: usize)
    -> Word;
    pub fn enif_make_new_binary(env: *mut ErlNifEnv, size: usize, out: *mut Word) -> *mut u8;
    pub fn enif_make_ref(env: *mut ErlNifEnv) -> Word;
    pub fn enif_make_monitor_term(env: *mut ErlNifEnv, monitor: *const ErlNifMonitor) -> Word;
    pub fn enif_make_copy(env: *mut ErlNifEnv, term: Word) -> Word;
    pub fn enif_raise_exception(env: *mut ErlNifEnv, reason: Word) -> Word;

    // The external term format.
    pub fn enif_term_to_binary(env: *mut ErlNifEnv, term: Word, out: *mut ErlNifBinary) -> c_int;
    pub fn enif_binary_to_term(
        env: *mut ErlNifEnv,
        data: *const u8,
        size: usize,
        out: *mut Word,
        options: c_uint,
    ) -> usize;
    pub fn enif_release_binary(bin: *mut ErlNifBinary);

    // Environments without a process.
    pub fn enif_alloc_env() -> *mut ErlNifEnv;
    pub fn enif_clear_env(env: *mut ErlNifEnv);
    pub fn enif_free_env(env: *mut ErlNifEnv);

    // I/O queues.
    pub fn enif_inspect_iovec(
        env: *mut ErlNifEnv,
        max: usize,
        list: Word,
        tail: *mut Word,
        out: *mut *mut ErlNifIOVec,
    ) -> c_int;
    pub fn enif_free_iovec(iov: *mut ErlNifIOVec);
    pub fn enif_ioq_create(options: c_uint) -> *mut ErlNifIOQueue;
    pub fn enif_ioq_destroy(queue: *mut ErlNifIOQueue);
    pub fn enif_ioq_enqv(queue: *mut ErlNifIOQueue, iov: *mut ErlNifIOVec, skip: usize) -> c_int;
    pub fn enif_ioq_peek(queue: *mut ErlNifIOQueue, count: *mut c_int) -> *mut SysIOVec;
    pub fn enif_ioq_peek_head(
        env: *mut ErlNifEnv,
        queue: *mut ErlNifIOQueue,
        size: *mut usize,
        out: *mut Word,
    ) -> c_int;

    // Resources.
    pub fn enif_init_resource_type(
        env: *mut ErlNifEnv,
        name: *const c_char,
        init: *const ErlNifResourceTypeInit,
        flags: c_uint,
        tried: *mut c_uint,
    ) -> *mut ErlNifResourceType;
    pub fn enif_alloc_resource(kind: *mut ErlNifResourceType, size: usize) -> *mut c_void;
    pub fn enif_release_resource(object: *mut c_void);
    pub fn enif_keep_resource(object: *mut c_void);
    pub fn enif_make_resource(env: *mut ErlNifEnv, object: *mut c_void) -> Word;
    pub fn enif_get_resource(
        env: *mut ErlNifEnv,
        term: Word,
        kind: *mut ErlNifResourceType,
        object: *mut *mut c_void,
    ) -> c_int;
    pub fn enif_monitor_process(
        env: *mut ErlNifEnv,
        object: *mut c_void,
        pid: *const ErlNifPid,
        monitor: *mut ErlNifMonitor,
    ) -> c_int;

    // The VM.
    pub fn enif_system_info(info: *mut ErlNifSysInfo, size: usize);

    // Scheduling.
    pub fn enif_consume_timeslice(env: *mut ErlNifEnv, percent: c_int) -> c_int;
    pub fn enif_schedule_nif(
        env: *mut ErlNifEnv,
        name: *const c_char,
        flags: c_int,
        function: NifFn,
        argc: c_int,
        argv: *const Word,
    ) -> Word;
    pub fn enif_thread_type() -> c_int;
    pub fn enif_monotonic_time(unit: c_int) -> i64;
    pub fn enif_time_offset(unit: c_int) -> i64;
    pub fn enif_send(
        env: *mut ErlNifEnv,
        to: *const ErlNifPid,
        message_env: *mut ErlNifEnv,
        message: Word,
    ) -> c_int;
    pub fn enif_whereis_pid(env: *mut ErlNifEnv, name: Word, pid: *mut ErlNifPid) -> c_int;
    pub fn enif_is_process_alive(env: *mut ErlNifEnv, pid: *const ErlNifPid) -> c_int;
}
