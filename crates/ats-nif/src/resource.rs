//! Objects that Erlang code holds by a reference: resources of the VM.
//!
//! The VM counts the terms that refer to a resource and drops it after the last. A call reads a
//! resource without taking a count: the argument keeps it alive.
//!
//! # Invariant
//! - RESOURCE-1. Only [`ResourceRef::new`] makes a resource of type `T`, so its memory holds
//!   a `T` from the moment any term refers to it until the VM calls its destructor.
//! - RESOURCE-2. A handle in a [`Slot`] was opened for its type, and the VM does not reuse the
//!   handle's memory for another type as long as this library is mapped.

use crate::env::{Env, VmWord};
use crate::sys;
use crate::vm_term::VmTerm;
use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The VM's handles of a resource type, in one static per type.
///
/// The handle changes when the module is deleted, purged and loaded again, while older resources
/// keep the one they were made with. So older handles are remembered, and for each a resource that
/// is never freed keeps the VM from reusing its memory (RESOURCE-2).
pub struct Slot {
    current: AtomicPtr<sys::ErlNifResourceType>,
    /// `true` if a resource with the current handle is never freed.
    pinned: AtomicBool,
    has_older: AtomicBool,
    older: Mutex<Vec<Handle>>,
}

#[derive(Clone, Copy)]
struct Handle(*mut sys::ErlNifResourceType);

// SAFETY: the VM's handles can be used on every thread.
unsafe impl Send for Handle {}

impl Slot {
    /// Creates a slot for a type that is not opened yet.
    pub const fn new() -> Self {
        Slot {
            current: AtomicPtr::new(std::ptr::null_mut()),
            pinned: AtomicBool::new(false),
            has_older: AtomicBool::new(false),
            older: Mutex::new(Vec::new()),
        }
    }

    /// Returns the handle for new resources. Relaxed access suffices here and below: making the
    /// functions of the library callable orders all that happens while loading.
    #[inline]
    fn get(&self) -> *mut sys::ErlNifResourceType {
        self.current.load(Ordering::Relaxed)
    }

    /// Sets the handle while the library is loaded.
    fn set(&self, opened: *mut sys::ErlNifResourceType) {
        let known = self.get();
        if known == opened {
            return;
        }
        // Without a pin no resource was ever made, so the old handle is unused.
        if self.pinned.swap(false, Ordering::Relaxed) {
            self.older().push(Handle(known));
            self.has_older.store(true, Ordering::Relaxed);
        }
        self.current.store(opened, Ordering::Relaxed);
    }

    /// Makes sure that the VM never reuses the current handle, before its first resource is made.
    #[inline]
    fn pin<T: Resource>(&self) {
        // Nearly always pinned already: the load avoids an atomic exchange.
        if !self.pinned.load(Ordering::Relaxed) && !self.pinned.swap(true, Ordering::Relaxed) {
            // SAFETY: the type is opened. Nothing refers to the new resource and it is never
            // released, so it need not hold a `T`.
            unsafe { sys::enif_alloc_resource(self.get(), size_of::<T>()) };
        }
    }

    fn older(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.older.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

/// A type that can be a resource. Its alignment is at most that of a pointer, which the VM
/// guarantees.
pub trait Resource: Send + Sync + Sized + 'static {
    /// Name of the type. Resources of the same name are taken over when the module is loaded again.
    const NAME: &'static CStr;

    /// Returns the slot of this type.
    fn slot() -> &'static Slot;

    /// Handles the exit of a process that this resource monitors. Runs while that process exits and
    /// cannot be interrupted, so it must be quick.
    fn down(&self, env: Env<'_>, pid: VmWord<'_>) {
        let _ = (env, pid);
    }
}

/// Registers the type with the VM while the library is loaded. Fails if another build of this
/// library, still mapped, has resources of the type: their memory has another layout.
pub fn open<T: Resource>(env: Env<'_>) -> Result<(), String> {
    const { assert!(align_of::<T>() <= align_of::<*const ()>()) };
    let init = sys::ErlNifResourceTypeInit {
        dtor: Some(drop_resource::<T>),
        stop: None,
        down: Some(process_down::<T>),
        members: 3,
        dyncall: None,
    };
    let mut tried = 0;
    // SAFETY: this is called while the library is loaded, with a complete description.
    let opened = unsafe {
        sys::enif_init_resource_type(
            env.raw(),
            T::NAME.as_ptr(),
            &raw const init,
            sys::RT_CREATE | sys::RT_TAKEOVER,
            &raw mut tried,
        )
    };
    if opened.is_null() {
        return Err(format!("cannot open the resource type {:?}", T::NAME));
    }
    if tried == sys::RT_TAKEOVER && T::slot().get() != opened {
        return Err("another build of this library has resources of the same name".to_owned());
    }
    T::slot().set(opened);
    Ok(())
}

unsafe extern "C" fn drop_resource<T: Resource>(_env: *mut sys::ErlNifEnv, object: *mut c_void) {
    // A panic must not unwind into the VM. The contents of the object are leaked then.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the object is a resource in which a `T` was written (RESOURCE-1), and the VM
        // calls this once, after the last reference.
        unsafe { std::ptr::drop_in_place(object.cast::<T>()) }
    }));
}

unsafe extern "C" fn process_down<T: Resource>(
    env: *mut sys::ErlNifEnv,
    object: *mut c_void,
    pid: *mut sys::ErlNifPid,
    _monitor: *mut sys::ErlNifMonitor,
) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the VM keeps the object and the environment during the call (RESOURCE-1), and
        // gives a valid pid.
        let (object, env, pid) = unsafe {
            (
                &*object.cast::<T>(),
                Env::from_raw(env),
                VmWord::new((*pid).pid),
            )
        };
        object.down(env, pid);
    }));
}

/// Returns the resource that a term refers to, if it is one of type `T`. Takes no lock and no
/// count.
#[inline]
pub fn get<T: Resource>(term: VmTerm<'_>) -> Option<&T> {
    let slot = T::slot();
    get_with(term, slot.get()).or_else(|| {
        if slot.has_older.load(Ordering::Relaxed) {
            get_older(term)
        } else {
            None
        }
    })
}

#[cold]
fn get_older<T: Resource>(term: VmTerm<'_>) -> Option<&T> {
    let older = T::slot().older();
    older.iter().find_map(|handle| get_with(term, handle.0))
}

#[inline]
fn get_with<T: Resource>(term: VmTerm<'_>, handle: *mut sys::ErlNifResourceType) -> Option<&T> {
    let mut object = std::ptr::null_mut();
    // SAFETY: the term is valid; the handle was opened for `T` and belongs to no other type
    // (RESOURCE-2).
    let found = unsafe {
        sys::enif_get_resource(term.env().raw(), term.word().raw(), handle, &raw mut object)
    };
    // SAFETY: the object is a resource in which a `T` was written before it was shared
    // (RESOURCE-1), and the term keeps it alive.
    (found != 0).then(|| unsafe { &*object.cast::<T>() })
}

/// A counted reference to a resource that is not a term.
pub struct ResourceRef<T: Resource> {
    object: *mut T,
    owns: PhantomData<T>,
}

// SAFETY: a reference is a shared pointer to a `T`, which is `Send` and `Sync` as a `Resource`; the
// VM counts references atomically.
unsafe impl<T: Resource> Send for ResourceRef<T> {}
// SAFETY: a shared reference lends nothing but a shared `T`, which is `Sync` as a `Resource`.
unsafe impl<T: Resource> Sync for ResourceRef<T> {}

impl<T: Resource> ResourceRef<T> {
    /// Moves `value` to a new resource.
    pub fn new(value: T) -> Self {
        T::slot().pin::<T>();
        // SAFETY: the type is opened; the new memory is written before another thread can see it
        // (RESOURCE-1).
        unsafe {
            let object = sys::enif_alloc_resource(T::slot().get(), size_of::<T>()).cast::<T>();
            assert!(!object.is_null(), "out of memory");
            object.write(value);
            ResourceRef {
                object,
                owns: PhantomData,
            }
        }
    }

    /// Takes a reference to the resource of a term, if it is one of type `T`.
    pub fn of_term(term: VmTerm<'_>) -> Option<Self> {
        let object = std::ptr::from_ref(get::<T>(term)?).cast_mut();
        // SAFETY: `get` lends the memory of a resource, which is alive.
        unsafe { sys::enif_keep_resource(object.cast()) };
        Some(ResourceRef {
            object,
            owns: PhantomData,
        })
    }

    /// Builds a term that refers to the resource. All such terms are `=:=`.
    pub fn term<'e>(&self, env: Env<'e>) -> VmWord<'e> {
        // SAFETY: this reference holds a count of the resource, which is thus alive.
        unsafe { VmWord::new(sys::enif_make_resource(env.raw(), self.object.cast())) }
    }

    /// Has [`Resource::down`] called when the process exits. Returns `false` if it is gone already.
    pub fn monitor(&self, env: Env<'_>, pid: VmWord<'_>) -> bool {
        let pid = sys::ErlNifPid { pid: pid.raw() };
        let mut monitor = sys::ErlNifMonitor { words: [0; 4] };
        // SAFETY: the resource is alive and its type has a `down` callback.
        unsafe {
            sys::enif_monitor_process(
                env.raw(),
                self.object.cast(),
                &raw const pid,
                &raw mut monitor,
            ) == 0
        }
    }
}

impl<T: Resource> Deref for ResourceRef<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the resource is alive as long as `self` (RESOURCE-1).
        unsafe { &*self.object }
    }
}

impl<T: Resource> Clone for ResourceRef<T> {
    fn clone(&self) -> Self {
        // SAFETY: this reference holds a count of the resource, which is thus alive.
        unsafe { sys::enif_keep_resource(self.object.cast()) };
        ResourceRef {
            object: self.object,
            owns: PhantomData,
        }
    }
}

impl<T: Resource> Drop for ResourceRef<T> {
    fn drop(&mut self) {
        // SAFETY: this reference holds one count, which it gives up here.
        unsafe { sys::enif_release_resource(self.object.cast()) }
    }
}
