//! Objects of bags in a store of bytes that changes single objects of a key.

use super::codec::Codec;
use crate::terms::lookup_result::LookupResult;
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::record;
use ats_store::BagValues;
use ats_term::Zeros;
use ats_term::exact;
use ats_term::image::{Host, Object, image_eq};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The equality (`=:=`) of objects that a codec has written.
pub struct ObjectIdentity<H: Host> {
    codec: Arc<dyn Codec<H>>,
    zeros: Zeros,
}

impl<H: Host> ObjectIdentity<H> {
    /// Returns the equality of the objects of a table with this codec and this rule for zeros.
    pub fn new(codec: Arc<dyn Codec<H>>, zeros: Zeros) -> Self {
        ObjectIdentity { codec, zeros }
    }

    fn with_object<R>(
        &self,
        bytes: &[u8],
        look: impl FnOnce(Object<'_, H>) -> R,
    ) -> Result<R, ats_store::Error> {
        let mut made = None;
        // A record releases the resources of the object.
        let read = self
            .codec
            .read(bytes, &mut |built| made = Some(record(&[], built)));
        read.map_err(|_| ats_store::Error::Corrupt)?;
        let made = made.ok_or(ats_store::Error::Corrupt)?;
        Ok(look(
            LookupResult::new(&made).first(&mut UnpackBuffer::new()),
        ))
    }
}

impl<H: Host> BagValues for ObjectIdentity<H> {
    /// Hashes an object in O(size), a map in O(size log size).
    fn hash(&self, value: &[u8]) -> Result<u64, ats_store::Error> {
        // All tables use one rule here, so that a hash does not depend on the rule of the table.
        // `is_equal` decides by the rule of the table.
        let options = exact::Options {
            zeros: Zeros::Same,
            atoms: exact::Atoms::Text,
        };
        self.with_object(value, |object| {
            let mut content = Vec::new();
            exact::exact_key(object.term(), &mut content, options);
            xxh3_64(&content)
        })
    }

    fn is_equal(&self, one: &[u8], other: &[u8]) -> Result<bool, ats_store::Error> {
        self.with_object(one, |one| {
            self.with_object(other, |other| image_eq(one, other, self.zeros))
        })?
    }
}
