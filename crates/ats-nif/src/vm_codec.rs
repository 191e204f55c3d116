//! Objects of the VM as bytes that every VM understands: the external term format, as the VM writes
//! and reads it.
//!
//! Some properties are lost, as in `dets`: a pid of a node without a name belongs to another node
//! once the node has a name, and a reference to a resource does not keep the resource alive.

use crate::builder;
use crate::env::OwnEnv;
use crate::etf::{Etf, TooLong};
use crate::vm_host::VmHost;
use crate::vm_sink::make_object;
use crate::vm_term::VmTerm;
use ats::terms::{Codec, Error};
use ats_term::image::{Built, Object, Scratch};
use std::cell::Cell;

/// The codec of the external term format.
pub struct VmCodec;

thread_local! {
    /// A cached environment for the terms of one call. Creating one takes longer than reading a
    /// small object.
    static IDLE_ENV: Cell<Option<OwnEnv>> = const { Cell::new(None) };
}

/// Lends an environment, which is emptied afterwards.
fn with_env<R>(work: impl FnOnce(&mut OwnEnv) -> R) -> R {
    let mut own = IDLE_ENV.take().unwrap_or_default();
    let result = work(&mut own);
    own.clear();
    IDLE_ENV.set(Some(own));
    result
}

impl Codec<VmHost> for VmCodec {
    fn write(&self, object: Object<'_, VmHost>, out: &mut Vec<u8>) -> Result<(), Error> {
        with_env(|own| {
            let term = make_object(own.env(), object, &mut Scratch::new());
            // The caller may hold locks of the store, so nothing may unwind.
            let etf = Etf::within_limits(term);
            let etf = etf.map_err(|TooLong| {
                Error::Storage(ats_store::Error::TooLong {
                    len: 1 << 32,
                    limit: u32::MAX as usize,
                })
            })?;
            out.extend_from_slice(etf.bytes());
            Ok(())
        })
    }

    fn read(&self, bytes: &[u8], keep: &mut dyn FnMut(Built<'_, VmHost>)) -> Result<(), Error> {
        let corrupt = Error::Storage(ats_store::Error::Corrupt);
        with_env(|own| {
            let env = own.env();
            let term = env.from_etf(bytes).ok_or(corrupt)?;
            builder::with(|image| {
                let encoded = image.encode_object(VmTerm::of(env, term));
                encoded.map_err(|_| corrupt)?;
                keep(image.take());
                Ok(())
            })
        })
    }
}
