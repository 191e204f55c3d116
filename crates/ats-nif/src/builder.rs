//! The image builder of a thread, kept from object to object so that a warm one allocates nothing.
//!
//! The builder is lent to a closure and cannot be borrowed twice at a time: a nested request
//! panics. A closure that is done leaves no reference in it, and no memory of a huge term.

use crate::otp_release;
use crate::vm_term::VmTerm;
use ats_term::image::ImageBuilder;
use std::cell::RefCell;

thread_local! {
    static BUILDER: RefCell<ImageBuilder<VmTerm<'static>>> =
        RefCell::new(ImageBuilder::new(otp_release::zeros()));
}

/// Lends the image builder of this thread.
pub fn with<'e, R>(f: impl FnOnce(&mut ImageBuilder<VmTerm<'e>>) -> R) -> R {
    BUILDER.with_borrow_mut(|builder| {
        // SAFETY: types that differ in lifetimes only have the same layout. Terms of an earlier
        // call that are left in the buffers are dropped unread when the builder starts again.
        let builder: &mut ImageBuilder<VmTerm<'e>> =
            unsafe { &mut *std::ptr::from_mut(builder).cast() };
        let result = f(builder);
        builder.tidy();
        result
    })
}
