//! Terms that the NIF interface does not show: closures, native records, and terms of unknown
//! kinds. They are read through the external term format.

use crate::env::{Env, VmWord};
use crate::fun_environment;
use ats_term::term::NativeRecord;
use ats_term::term_ref::{FunIdent, Opaque, TermRef};
use ats_term::{Term, etf};

/// Lends the identity of a fun encoded by this VM; further bytes may follow.
///
/// Its atoms exist in the VM already, so reading them adds none. If it has captured a term of an
/// unknown kind, all its captured terms are compared as bytes: then a fun with identifiers is
/// another fun after the node was renamed.
pub fn with_etf_fun<R>(etf: &[u8], f: impl FnOnce(FunIdent<'_>) -> R) -> R {
    let fun = match etf::decode_first(etf, etf::Options::TRUSTED) {
        Ok((fun, _)) => fun,
        Err(_) => etf::decode_sealed_fun(etf, etf::Options::TRUSTED).expect("a fun of this VM"),
    };
    (&fun_environment::with_local_idents(&fun)).with_fun(f)
}

/// Decodes a native record, if `etf` is one and this library knows all terms in it.
pub fn record(etf: &[u8]) -> Option<NativeRecord> {
    match etf::decode_first(etf, etf::Options::TRUSTED) {
        Ok((Term::NativeRecord(record), _)) => Some(record),
        _ => None,
    }
}

/// Lends the known facts about an opaque term encoded by this VM; further bytes may follow a
/// record.
pub fn with_etf_opaque<R>(etf: &[u8], f: impl FnOnce(Opaque<'_>) -> R) -> R {
    match record(etf) {
        Some(record) => {
            let marked = fun_environment::with_local_idents(&Term::NativeRecord(record));
            (&marked).with_opaque(f)
        }
        None => f(Opaque::Unknown(etf)),
    }
}

#[cfg(feature = "test-nifs")]
mod made {
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A float that counts as a term of an unknown kind, and stands for kinds of later VMs. While
    /// this is not finite, no float does.
    static FLOAT: AtomicU64 = AtomicU64::new(f64::NAN.to_bits());

    pub(crate) fn make_opaque(float: f64) {
        FLOAT.store(float.to_bits(), Ordering::Relaxed);
    }

    pub(super) fn is_opaque(float: f64) -> bool {
        float.to_bits() == FLOAT.load(Ordering::Relaxed)
    }
}

#[cfg(feature = "test-nifs")]
pub(crate) use made::make_opaque;

/// Returns `true` for the float that tests declare to be of an unknown kind.
#[cfg(feature = "test-nifs")]
pub fn is_made(env: Env<'_>, word: VmWord<'_>) -> bool {
    let mut value = 0.0;
    // SAFETY: the term is valid; the VM fills `value` on success.
    let found = unsafe { crate::sys::enif_get_double(env.raw(), word.raw(), &raw mut value) };
    found != 0 && made::is_opaque(value)
}

/// Returns `false`: only the build for tests has such terms.
#[cfg(not(feature = "test-nifs"))]
#[inline]
pub const fn is_made(_: Env<'_>, _: VmWord<'_>) -> bool {
    false
}
