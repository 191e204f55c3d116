//! Making maps, and finding values in them, which takes the order of map keys.

use std::fmt;

use super::node::{Map, Term};

/// Two keys of a map are the same term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey(
    /// The key that is there twice.
    pub Term,
);

impl fmt::Display for DuplicateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duplicate map key {}", self.0)
    }
}

impl std::error::Error for DuplicateKey {}

impl Map {
    /// A map of these pairs, in O(n log n) comparisons.
    ///
    /// # Errors
    /// [`DuplicateKey`] if a key is there twice.
    pub fn new(mut pairs: Vec<(Term, Term)>) -> Result<Map, DuplicateKey> {
        pairs.sort_by(|(a, _), (b, _)| a.compare_exact(b));
        for neighbours in pairs.windows(2) {
            if neighbours[0].0 == neighbours[1].0 {
                return Err(DuplicateKey(neighbours[0].0.clone()));
            }
        }
        let (mut terms, mut values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        terms.append(&mut values);
        Ok(Map::from_sorted(terms))
    }

    /// The value of a key (`=:=`), in O(log n) comparisons.
    #[must_use]
    pub fn get(&self, key: &Term) -> Option<&Term> {
        let index = self
            .keys()
            .binary_search_by(|k| k.compare_exact(key))
            .ok()?;
        Some(&self.values()[index])
    }
}
