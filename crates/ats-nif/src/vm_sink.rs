//! Construction of VM terms.

use crate::env::{Env, VmWord};
use crate::etf;
use crate::map_layout;
use crate::vm_host::{self, VmHost};
use ats_term::image::{self, HostBox, HostSink, ImageRef, Object, Scratch};
use ats_term::term_ref::TermSink;

/// A sink that builds terms in an environment.
pub struct VmSink<'e> {
    env: Env<'e>,
}

impl<'e> VmSink<'e> {
    /// Creates a sink that builds in `env`.
    pub const fn new(env: Env<'e>) -> Self {
        VmSink { env }
    }

    /// Decodes a term that the NIF interface cannot build.
    fn decode_encoded(&self, encoded: &[u8]) -> VmWord<'e> {
        self.env.from_etf(encoded).expect("a term")
    }
}

impl<'e> TermSink for VmSink<'e> {
    type Term = VmWord<'e>;

    #[inline]
    fn immediate(&mut self, word: u64) -> VmWord<'e> {
        assert_eq!(word & 0b11, 0b11, "not the word of an immediate");
        // SAFETY: immediates are terms in every environment; the words of images of this host came
        // from the VM.
        unsafe { VmWord::new(word) }
    }

    fn big(&mut self, negative: bool, magnitude: &[u8]) -> VmWord<'e> {
        if magnitude.len() > 8 {
            return self.decode_encoded(&etf::encode_integer(negative, magnitude));
        }
        let mut bytes = [0; 8];
        bytes[..magnitude.len()].copy_from_slice(magnitude);
        let magnitude_value = u64::from_le_bytes(bytes);
        if !negative {
            return self.env.uint(magnitude_value);
        }
        match i64::try_from(-i128::from(magnitude_value)) {
            Ok(value) => self.env.int(value),
            Err(_) => self.decode_encoded(&etf::encode_integer(negative, magnitude)),
        }
    }

    fn float(&mut self, value: f64) -> VmWord<'e> {
        self.env.float(value)
    }

    fn bits(&mut self, bytes: &[u8], bits: usize) -> VmWord<'e> {
        if bits.is_multiple_of(8) {
            self.env.binary(bytes)
        } else {
            self.decode_encoded(&etf::encode_bitstring(bytes, bits))
        }
    }

    fn tuple(&mut self, elements: &[VmWord<'e>]) -> VmWord<'e> {
        self.env.tuple(elements)
    }

    fn cons(&mut self, head: VmWord<'e>, tail: VmWord<'e>) -> VmWord<'e> {
        self.env.cons(head, tail)
    }

    /// Builds a list like repeated calls of [`cons`](TermSink::cons), but the VM makes all cells at
    /// once if it may choose the tail.
    fn list(&mut self, elements: &[VmWord<'e>], tail: VmWord<'e>) -> VmWord<'e> {
        if tail.raw() == VmWord::NIL.raw() {
            self.env.list(elements)
        } else {
            self.env.list_before(elements, tail)
        }
    }

    fn map(&mut self, keys: &[VmWord<'e>], values: &[VmWord<'e>]) -> VmWord<'e> {
        map_layout::make(self.env, keys, values)
    }
}

impl HostSink<VmHost> for VmSink<'_> {
    fn host_box(&mut self, host_box: HostBox<'_, VmHost>) -> Self::Term {
        vm_host::make(self.env, host_box)
    }

    #[inline]
    fn tuple_of_immediates(&mut self, words: &[u64]) -> Self::Term {
        self.env.tuple_of_immediates(words)
    }
}

/// Builds the object as a tuple in `env`. O(size); a tuple of immediates takes one call.
#[inline]
pub fn make_object<'e>(
    env: Env<'e>,
    object: Object<'_, VmHost>,
    scratch: &mut Scratch<VmWord<'e>>,
) -> VmWord<'e> {
    match image::all_immediate(object) {
        Some(words) => env.tuple_of_immediates(words),
        None => image::decode_object(object, &mut VmSink::new(env), scratch),
    }
}

/// Builds a term of an image in `env`. O(size of the term).
#[inline]
pub fn make_term<'e>(
    env: Env<'e>,
    term: ImageRef<'_, VmHost>,
    scratch: &mut Scratch<VmWord<'e>>,
) -> VmWord<'e> {
    image::decode(term, &mut VmSink::new(env), scratch)
}
