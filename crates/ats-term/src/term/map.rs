//! Construction of maps and lookups in them, by the order of map keys.

use std::fmt;

use super::node::{Map, Term};

/// The error of a map in which two keys are the same term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey(
    /// The key that occurs twice.
    pub Term,
);

impl fmt::Display for DuplicateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duplicate map key {}", self.0)
    }
}

impl std::error::Error for DuplicateKey {}

impl Map {
    /// Creates a map of these pairs, in O(n log n) comparisons.
    ///
    /// # Errors
    /// Returns [`DuplicateKey`] if a key occurs twice.
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

    /// Returns the value of a key (`=:=`), in O(log n) comparisons.
    #[must_use]
    pub fn get(&self, key: &Term) -> Option<&Term> {
        let index = self
            .keys()
            .binary_search_by(|k| k.compare_exact(key))
            .ok()?;
        Some(&self.values()[index])
    }
}
