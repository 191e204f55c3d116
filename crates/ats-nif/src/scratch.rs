//! Buffers kept from call to call, one set per thread, so that a warm call allocates nothing.
//!
//! Each buffer is lent to a closure and cannot be borrowed twice at a time: a nested request
//! panics. References in a buffer, and the memory of a huge term, are freed at the end of the call,
//! so an idle thread does not keep them.

use crate::call::NoReply;
use crate::env::VmWord;
use crate::otp_release;
use crate::process;
use crate::vm_host::VmHost;
use ats::terms::select::Runner;
use ats::terms::{Error, UnpackBuffer, Workspace};
use ats_match::Writer;
use ats_term::image::Scratch;
use std::cell::RefCell;

/// Capacity in bytes above which a key buffer is freed after the call.
const KEEP_BYTES: usize = 1 << 16;

thread_local! {
    static WORKSPACE: RefCell<Workspace<VmHost>> = {
        let mut work = Workspace::with_zeros(otp_release::zeros());
        work.limit(limit());
        RefCell::new(work)
    };
    static READ_BUFFERS: RefCell<ReadBuffers<VmWord<'static>>> = const {
        RefCell::new(ReadBuffers { scratch: Scratch::new(), unpacked: UnpackBuffer::new() })
    };
    static SELECT_BUFFERS: RefCell<SelectBuffers<VmWord<'static>>> = RefCell::new(SelectBuffers {
        runner: Runner::new(otp_release::zeros()),
        results: Results { scratch: Scratch::new(), writer: Writer::new() },
    });
    static KEY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Size in words above which objects are copied on a dirty scheduler: this many take a few hundred
/// microseconds.
pub const LONG_OBJECT: usize = 1 << 14;

/// Returns the number of words that one operation may copy on this scheduler.
#[inline]
pub fn limit() -> usize {
    if process::on_dirty_scheduler() {
        usize::MAX
    } else {
        LONG_OBJECT
    }
}

/// Lends the workspace of this thread to an operation on a table. The operation ends with
/// [`NoReply::DirtyCpu`] if the key or the objects that it copies are larger than the [limit] of
/// this scheduler.
#[inline]
pub fn with_workspace<R>(
    operation: impl FnOnce(&mut Workspace<VmHost>) -> Result<R, Error>,
) -> Result<R, NoReply> {
    WORKSPACE.with_borrow_mut(|work| operation(work).map_err(NoReply::from))
}

/// Buffers for reading objects and building terms from them.
pub struct ReadBuffers<T> {
    /// Stacks for building terms.
    pub scratch: Scratch<T>,
    /// Objects that cannot be read in place.
    pub unpacked: UnpackBuffer,
}

/// Lends this thread's buffers for reading.
#[inline]
pub fn with_read_buffers<'e, R>(f: impl FnOnce(&mut ReadBuffers<VmWord<'e>>) -> R) -> R {
    READ_BUFFERS.with_borrow_mut(|reading| {
        // SAFETY: types that differ in lifetimes only have the same layout. Words of an earlier
        // call that are left in the buffers are dropped unread, and have no destructor.
        let reading: &mut ReadBuffers<VmWord<'e>> =
            unsafe { &mut *std::ptr::from_mut(reading).cast() };
        let result = f(reading);
        reading.scratch.tidy();
        reading.unpacked.tidy();
        result
    })
}

/// Buffers for running match specifications.
pub struct SelectBuffers<T> {
    /// The runner of the specifications.
    pub runner: Runner<VmHost>,
    /// The builder of terms of their results.
    pub results: Results<T>,
}

/// Stacks for building terms of results.
pub struct Results<T> {
    /// Stacks for whole objects.
    pub scratch: Scratch<T>,
    /// Stacks for all other results.
    pub writer: Writer<T>,
}

/// Lends this thread's buffers for running match specifications.
#[inline]
pub fn with_select_buffers<'e, R>(f: impl FnOnce(&mut SelectBuffers<VmWord<'e>>) -> R) -> R {
    SELECT_BUFFERS.with_borrow_mut(|selecting| {
        // SAFETY: types that differ in lifetimes only have the same layout. Words of an earlier
        // call that are left in the buffers are dropped unread, and have no destructor.
        let selecting: &mut SelectBuffers<VmWord<'e>> =
            unsafe { &mut *std::ptr::from_mut(selecting).cast() };
        let result = f(selecting);
        selecting.runner.tidy();
        selecting.results.scratch.tidy();
        selecting.results.writer.tidy();
        result
    })
}

/// Lends the key buffer of this thread, empty.
pub fn with_key<R>(f: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    KEY.with_borrow_mut(|key| {
        key.clear();
        let result = f(key);
        if key.capacity() > KEEP_BYTES {
            *key = Vec::new();
        }
        result
    })
}
