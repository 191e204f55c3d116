//! A merge operator whose values have a fixed size, and show in which order they were merged.

use ats_store::{Error, MergeOperator, Merged};

/// Composes maps `x -> a x + b` modulo a prime, the earlier one applied first. Not commutative, of
/// a fixed size.
pub(crate) struct Affine;

const PRIME: u64 = 1_000_003;

/// Returns the bytes of a map.
pub(crate) fn affine(a: u64, b: u64) -> Vec<u8> {
    [(a % PRIME).to_le_bytes(), (b % PRIME).to_le_bytes()].concat()
}

fn parts(value: &[u8]) -> Result<(u64, u64), Error> {
    let (a, rest) = value.split_first_chunk().ok_or(Error::Merge)?;
    let (b, _) = rest.split_first_chunk().ok_or(Error::Merge)?;
    Ok((u64::from_le_bytes(*a), u64::from_le_bytes(*b)))
}

impl MergeOperator for Affine {
    fn name(&self) -> &'static str {
        "affine"
    }

    fn version(&self) -> u32 {
        3
    }

    fn merge(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        let ((a, b), (c, d)) = (parts(earlier)?, parts(later)?);
        Ok(Merged::New(affine(c * a, c * b + d)))
    }

    /// The identity is neutral.
    fn is_absent(&self, _key: &[u8], value: &[u8]) -> bool {
        value == affine(1, 0)
    }
}
