//! Functions that expose conversions of terms to tests. Only in builds with the feature
//! `test-nifs`.

use crate::atoms::{KnownAtom, boolean};
use crate::call::{NifResult, NoReply};
use crate::env::{Env, VmWord};
use crate::resource::{self, Resource, ResourceRef, Slot};
use crate::vm_host::VmHost;
use crate::vm_term::VmTerm;
use crate::{
    big, builder, heap, ident, nif, opaque, otp_release, process, reference, scratch, sys, vm_sink,
};
use ats_term::exact::{self, Atoms};
use ats_term::image::{self, Object};
use ats_term::{Kind, TermRef, order};
use std::ffi::CStr;
use std::sync::atomic::{AtomicI64, Ordering};

/// Returns the functions.
pub(crate) fn functions() -> Vec<sys::ErlNifFunc> {
    vec![
        nif!("known_layouts", known_layouts, 0),
        nif!("roundtrip", roundtrip, 1),
        nif!("order_key", order_key, 1),
        nif!("exact_key", exact_key, 1),
        nif!("image_store", image_store, 1),
        nif!("image_fetch", image_fetch, 1),
        nif!("image_same", image_same, 2),
        nif!("image_keys", image_keys, 1),
        nif!("make_opaque", make_opaque, 1),
        nif!("panic", panic, 0),
        nif!("on_thread", on_thread, 2),
    ]
}

/// Opens the resource types of the tests.
pub(crate) fn open_resources(env: Env<'_>) -> Result<(), String> {
    resource::open::<Stored>(env)
}

/// `make_opaque(Float | none) -> true`: makes floats of this value count as terms of an unknown
/// kind.
fn make_opaque<'e>(_env: Env<'e>, [float]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let value = match float.kind() {
        Kind::Float(value) => value,
        _ => f64::NAN,
    };
    opaque::make_opaque(value);
    Ok(boolean(true))
}

/// `known_layouts() -> {Pids, References, Integers, Others}`: `true` for each kind of term that is
/// read by its known layout. Others are tuples, lists, floats, small binaries and small maps.
fn known_layouts<'e>(env: Env<'e>, []: [VmTerm<'e>; 0]) -> NifResult<'e> {
    let known = [
        ident::is_layout_known(),
        reference::is_layout_known(),
        big::is_layout_known(),
        heap::are_layouts_known(),
    ];
    Ok(env.tuple(&known.map(boolean)))
}

/// `roundtrip(T) -> T`, through an image.
fn roundtrip<'e>(env: Env<'e>, [term]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let object = VmTerm::of(env, env.tuple(&[term.word()]));
    builder::with(|builder| {
        builder
            .encode_object(object)
            .map_err(|_| KnownAtom::Position)?;
        let image = builder.object();
        let tuple =
            scratch::with_read_buffers(|read| vm_sink::make_object(env, image, &mut read.scratch));
        let element = VmTerm::of(env, tuple).element(0).word();
        let direct = scratch::with_read_buffers(|read| {
            vm_sink::make_term(env, image.element(0), &mut read.scratch)
        });
        assert!(element.is_identical(direct), "element and object differ");
        Ok(element)
    })
}

fn order_key<'e>(env: Env<'e>, [term]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    Ok(order_key_of(env, term))
}

fn exact_key<'e>(env: Env<'e>, [term]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    Ok(exact_key_of(env, term))
}

fn order_key_of(env: Env<'_>, term: impl TermRef) -> VmWord<'_> {
    scratch::with_key(|key| {
        order::order_key(term, key, otp_release::zeros());
        env.binary(key)
    })
}

fn exact_key_of(env: Env<'_>, term: impl TermRef) -> VmWord<'_> {
    let options = exact::Options {
        zeros: otp_release::zeros(),
        atoms: Atoms::Word,
    };
    scratch::with_key(|key| {
        exact::exact_key(term, key, options);
        env.binary(key)
    })
}

/// An image that lives as long as a reference to it.
struct Stored(Box<[u64]>);

impl Stored {
    fn object(&self) -> Object<'_, VmHost> {
        // SAFETY: the words were taken from a builder of this host, and are released when `self` is
        // dropped.
        unsafe { Object::from_words(&self.0) }
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        // SAFETY: the words are those of an image whose units this object took.
        unsafe { image::release_all::<VmHost>(&self.0) }
    }
}

static STORED: Slot = Slot::new();

impl Resource for Stored {
    const NAME: &'static CStr = c"ats_test_stored";

    fn slot() -> &'static Slot {
        &STORED
    }
}

/// `image_store(Tuple) -> Reference`.
fn image_store<'e>(env: Env<'e>, [tuple]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let stored = builder::with(|builder| {
        builder
            .encode_object(tuple)
            .map_err(|_| KnownAtom::Position)?;
        Ok::<_, NoReply>(Stored(builder.take().words().into()))
    })?;
    // A copy, released at once, shows that the counts balance.
    let copy: Box<[u64]> = stored.0.clone();
    // SAFETY: the words are those of an image that is alive; the copy owns the units that
    // `retain_all` added.
    unsafe {
        image::retain_all::<VmHost>(&copy);
        image::release_all::<VmHost>(&copy);
    }
    Ok(ResourceRef::new(stored).term(env))
}

/// `image_fetch(Reference) -> Tuple`.
fn image_fetch<'e>(env: Env<'e>, [stored]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let stored = resource::get::<Stored>(stored).ok_or(KnownAtom::Type)?;
    Ok(scratch::with_read_buffers(|read| {
        vm_sink::make_object(env, stored.object(), &mut read.scratch)
    }))
}

/// `image_same(Reference, Reference) -> boolean()`.
fn image_same<'e>(_env: Env<'e>, [a, b]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    let a = resource::get::<Stored>(a).ok_or(KnownAtom::Type)?;
    let b = resource::get::<Stored>(b).ok_or(KnownAtom::Type)?;
    let same = image::image_eq(a.object(), b.object(), otp_release::zeros());
    Ok(boolean(same))
}

/// `image_keys(Reference) -> {OrderKey, ExactKey}` of the stored tuple.
fn image_keys<'e>(env: Env<'e>, [stored]: [VmTerm<'e>; 1]) -> NifResult<'e> {
    let stored = resource::get::<Stored>(stored).ok_or(KnownAtom::Type)?;
    let term = stored.object().term();
    Ok(env.tuple(&[order_key_of(env, term), exact_key_of(env, term)]))
}

/// `on_thread(Type, Times) -> Type`: reschedules itself on this type of dirty scheduler, 2 for CPU
/// or 3 for I/O, and there `Times` times more as if a lock were taken; returns the type of the
/// thread it ends on.
fn on_thread<'e>(env: Env<'e>, [wanted, times]: [VmTerm<'e>; 2]) -> NifResult<'e> {
    static LEFT: AtomicI64 = AtomicI64::new(0);
    let here = process::thread_type();
    if Some(i64::from(here)) == wanted.as_small() {
        return if LEFT.fetch_sub(1, Ordering::Relaxed) > 0 {
            Err(NoReply::Retry)
        } else {
            Ok(env.int(i64::from(here)))
        };
    }
    LEFT.store(times.as_small().ok_or(KnownAtom::None)?, Ordering::Relaxed);
    match wanted.as_small() {
        Some(2) => Err(NoReply::DirtyCpu),
        Some(3) => Err(NoReply::DirtyIo),
        _ => Err(KnownAtom::None.into()),
    }
}

/// `panic()`: panics.
fn panic<'e>(_env: Env<'e>, []: [VmTerm<'e>; 0]) -> NifResult<'e> {
    panic!("as asked")
}
