//! Differences between releases of the VM, determined when the library is loaded.

use crate::env::Env;
use crate::sys;
use ats_term::Zeros;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static OTP_RELEASE: AtomicU32 = AtomicU32::new(0);

/// Returns the number of the OTP release, for example 25.
#[inline]
pub fn otp_release() -> u32 {
    OTP_RELEASE.load(Ordering::Relaxed)
}

static ZEROS_DISTINCT: AtomicBool = AtomicBool::new(false);

/// Returns this VM's rule for zeros: up to OTP 26, 0.0 and -0.0 are the same term.
#[inline]
pub fn zeros() -> Zeros {
    if ZEROS_DISTINCT.load(Ordering::Relaxed) {
        Zeros::Distinct
    } else {
        Zeros::Same
    }
}

/// Determines the release of this VM when the library is loaded.
pub fn load(env: Env<'_>) {
    let zero_is_zero = env.float(0.0).is_identical(env.float(-0.0));
    ZEROS_DISTINCT.store(!zero_is_zero, Ordering::Relaxed);
    OTP_RELEASE.store(ask_otp_release(), Ordering::Relaxed);
}

/// Asks the VM for the number of its release; 0 if it is no number.
fn ask_otp_release() -> u32 {
    let mut info = sys::ErlNifSysInfo {
        driver_versions: [0; 2],
        erts_version: std::ptr::null(),
        otp_release: std::ptr::null(),
        rest: [0; 7],
    };
    // SAFETY: the VM fills the structure, whose size is passed; the texts that it points to are
    // never freed.
    let text = unsafe {
        sys::enif_system_info(&raw mut info, size_of_val(&info));
        CStr::from_ptr(info.otp_release)
    };
    let text = text.to_str().ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
