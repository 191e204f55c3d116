//! The keys of numbers, as maps have them.

use std::borrow::Borrow;
use std::hash::Hash;

/// The type that a map has for a key.
pub trait Key: Borrow<Self::Lent> + Clone + Hash + Ord + Send + Sync + 'static {
    /// The type by which a key is looked up.
    type Lent: Hash + Ord + ?Sized;

    /// Returns the key of a number.
    fn new(number: u64) -> Self;

    /// Lends the borrowed form of the key of a number, for a lookup.
    fn lend<R>(number: u64, to: impl FnOnce(&Self::Lent) -> R) -> R;
}

impl Key for u64 {
    type Lent = u64;

    #[inline(always)]
    fn new(number: u64) -> Self {
        number
    }

    #[inline(always)]
    fn lend<R>(number: u64, to: impl FnOnce(&u64) -> R) -> R {
        to(&number)
    }
}

/// A key of `LENGTH` bytes in a box of its own, as a map needs it for byte strings of any length.
/// All keys of ats are such strings.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes<const LENGTH: usize>(Box<[u8]>);

impl<const LENGTH: usize> Borrow<[u8]> for Bytes<LENGTH> {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl<const LENGTH: usize> Key for Bytes<LENGTH> {
    type Lent = [u8];

    #[inline(always)]
    fn new(number: u64) -> Self {
        Bytes(Box::new(bytes_of::<LENGTH>(number)))
    }

    #[inline(always)]
    fn lend<R>(number: u64, to: impl FnOnce(&[u8]) -> R) -> R {
        to(&bytes_of::<LENGTH>(number))
    }
}

/// The beginning that long keys have in common, as paths have.
const COMMON: &[u8; 32] = b"/customers/orders/open/by-number";

/// Returns the bytes of the key of a number: the number, most significant byte first, behind as
/// much of [`COMMON`] as there is room for.
#[inline(always)]
pub fn bytes_of<const LENGTH: usize>(number: u64) -> [u8; LENGTH] {
    let mut key = [0; LENGTH];
    let (common, last) = key.split_at_mut(LENGTH - 8);
    common.copy_from_slice(&COMMON[..LENGTH - 8]);
    last.copy_from_slice(&number.to_be_bytes());
    key
}
