//! Terms that the NIF interface does not show: closures, native records, and terms of kinds that this
//! library does not know. They are read from the external term format.

use crate::env::{Env, VmWord};
use crate::fun_environment;
use ats_term::term::NativeRecord;
use ats_term::term_ref::{FunIdent, Opaque, TermRef};
use ats_term::{Term, etf};

/// Lends the identity of the fun that `etf` encodes, written by this VM; bytes may follow it.
///
/// Its atoms are those of the VM, so taking them over exhausts nothing that the VM did not. If it has
/// captured a term of a kind that this library does not know, all that it has captured counts as bytes:
/// then the fun is another one when the node has got another name and identifiers are among them.
pub fn with_etf_fun<R>(etf: &[u8], f: impl FnOnce(FunIdent<'_>) -> R) -> R {
    let fun = match etf::decode_first(etf, etf::Options::TRUSTED) {
        Ok((fun, _)) => fun,
        Err(_) => etf::decode_sealed_fun(etf, etf::Options::TRUSTED).expect("a fun of this VM"),
    };
    (&fun_environment::with_local_idents(&fun)).with_fun(f)
}

/// The native record that `etf` encodes, if it is one and this library knows all terms in it.
pub fn record(etf: &[u8]) -> Option<NativeRecord> {
    match etf::decode_first(etf, etf::Options::TRUSTED) {
        Ok((Term::NativeRecord(record), _)) => Some(record),
        _ => None,
    }
}

/// Lends what is known of the opaque term that `etf` encodes, written by this VM; bytes may follow it
/// if it is a record.
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

    /// Floats of this value count as terms of an unknown kind, which stand for what a later release of
    /// the VM may have. No float is meant while this is not finite.
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

/// Returns `true` for a term that tests want to be of an unknown kind, although this library knows it.
#[cfg(feature = "test-nifs")]
pub fn is_made(env: Env<'_>, word: VmWord<'_>) -> bool {
    let mut value = 0.0;
    // SAFETY: the term is valid; the VM fills `value` on success.
    let found = unsafe { crate::sys::enif_get_double(env.raw(), word.raw(), &mut value) };
    found != 0 && made::is_opaque(value)
}

/// Returns `false`; see the build for tests.
#[cfg(not(feature = "test-nifs"))]
#[inline]
pub const fn is_made(_: Env<'_>, _: VmWord<'_>) -> bool {
    false
}
