//! Merge operators that show mistakes: their order matters, they refuse and panic.

use ats_store::{Error, MergeOperator, Merged};
use proptest::prelude::*;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The value that [`Append`] refuses to merge.
pub(crate) const REFUSED: u8 = b'?';
/// The value at which [`Append`] panics.
pub(crate) const PANICS: u8 = b'#';

/// Panics without a message.
fn panic_silently() -> ! {
    panic::resume_unwind(Box::new(()))
}

/// Puts values one behind the other. One that begins with `!` needs nothing older, and an empty one
/// is missing.
#[derive(Debug, Default)]
pub(crate) struct Append {
    /// Bytes that were copied.
    pub copied: AtomicUsize,
}

impl MergeOperator for Append {
    fn name(&self) -> &'static str {
        "append"
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        let has = |mark| earlier.contains(&mark) || later.contains(&mark);
        if has(PANICS) {
            panic_silently();
        }
        if has(REFUSED) {
            return Err(Error::Merge);
        }
        if self.is_base(key, later) {
            return Ok(Merged::Later);
        }
        if later.is_empty() {
            return Ok(Merged::Earlier);
        }
        let value = [earlier, later].concat();
        self.copied.fetch_add(value.len(), Ordering::Relaxed);
        Ok(Merged::New(value))
    }

    fn is_base(&self, _key: &[u8], value: &[u8]) -> bool {
        value.first() == Some(&b'!')
    }

    fn is_absent(&self, _key: &[u8], value: &[u8]) -> bool {
        value.is_empty()
    }
}

/// Another operator that merges more than three values at once, the first two first.
pub(crate) struct AllAtOnce<'a>(pub(crate) &'a dyn MergeOperator);

impl MergeOperator for AllAtOnce<'_> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn version(&self) -> u32 {
        self.0.version()
    }

    fn merge(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        self.0.merge(key, earlier, later)
    }

    fn merge_all(&self, key: &[u8], values: &[&[u8]]) -> Result<Option<Vec<u8>>, Error> {
        assert!(values.len() > 2, "two values are for merge");
        let [oldest, newer @ ..] = values else {
            unreachable!()
        };
        if values.len() == 3 {
            return Ok(None);
        }
        let mut value = oldest.to_vec();
        for newer in newer {
            value = match self.merge(key, &value, newer)? {
                Merged::Earlier => value,
                Merged::Later => newer.to_vec(),
                Merged::New(value) => value,
            };
        }
        Ok(Some(value))
    }

    fn is_base(&self, key: &[u8], value: &[u8]) -> bool {
        self.0.is_base(key, value)
    }

    fn is_absent(&self, key: &[u8], value: &[u8]) -> bool {
        self.0.is_absent(key, value)
    }
}

/// Composes maps `x -> ax + b` modulo a prime. Does not commute. The constant maps are bases, and
/// the map to 0 is missing.
pub(crate) struct Affine;

const PRIME: u64 = 251;

impl Affine {
    pub(crate) fn value(a: u64, b: u64) -> Vec<u8> {
        vec![(a % PRIME) as u8, (b % PRIME) as u8]
    }

    /// Some of its values, among them bases.
    pub(crate) fn values() -> impl Strategy<Value = Vec<u8>> {
        (0..20_u64, 0..PRIME).prop_map(|(a, b)| Affine::value(a, if a == 0 { b % 3 } else { b }))
    }
}

impl MergeOperator for Affine {
    fn name(&self) -> &'static str {
        "affine"
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        let [[a, b], [c, d]] = [earlier, later].map(|map| [u64::from(map[0]), u64::from(map[1])]);
        Ok(Merged::New(Affine::value(a * c, c * b + d)))
    }

    fn is_base(&self, _key: &[u8], value: &[u8]) -> bool {
        value[0] == 0
    }

    fn is_absent(&self, _key: &[u8], value: &[u8]) -> bool {
        value == [0, 0]
    }
}

/// Operator that panics in each function.
pub(crate) struct Panicking;

impl MergeOperator for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, _key: &[u8], _earlier: &[u8], _later: &[u8]) -> Result<Merged, Error> {
        panic_silently()
    }

    fn is_base(&self, _key: &[u8], _value: &[u8]) -> bool {
        panic_silently()
    }

    fn is_absent(&self, _key: &[u8], _value: &[u8]) -> bool {
        panic_silently()
    }
}

/// Adds numbers of eight bytes, the least significant first.
pub(crate) struct Sum;

impl Sum {
    pub(crate) fn number(value: &[u8]) -> u64 {
        u64::from_le_bytes(value.try_into().unwrap())
    }
}

impl MergeOperator for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn version(&self) -> u32 {
        1
    }

    fn merge(&self, _key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        let sum = Sum::number(earlier).wrapping_add(Sum::number(later));
        Ok(Merged::New(sum.to_le_bytes().to_vec()))
    }
}
