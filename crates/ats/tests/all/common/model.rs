//! A model of tables: a list of objects, slow and obvious.

use super::same_key;
use ats::terms::{Error, Integer, TableType};
use ats_term::Term;
use ats_term::term::Tuple;

/// One change of one counter, as small numbers: position, increment, limit and reset.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    pub(crate) position: usize,
    pub(crate) increment: i128,
    pub(crate) wrap: Option<(i128, i128)>,
}

/// The content that a table of one type must have: its objects, oldest first.
pub(crate) struct Model {
    pub(crate) kind: TableType,
    /// The index of the key in objects, from 0.
    pub(crate) key_index: usize,
    pub(crate) objects: Vec<Term>,
    pub(crate) fixed: usize,
    pub(crate) cleared: bool,
    /// Keys that were removed since the table was fixed.
    pub(crate) removed: Vec<Term>,
}

impl Model {
    pub(crate) fn new(kind: TableType, key_index: usize) -> Self {
        Model {
            kind,
            key_index,
            objects: Vec::new(),
            fixed: 0,
            cleared: false,
            removed: Vec::new(),
        }
    }

    pub(crate) fn is_bag(&self) -> bool {
        self.kind.is_bag()
    }

    pub(crate) fn key<'a>(&self, object: &'a Term) -> &'a Term {
        &object.as_tuple().expect("an object is a tuple")[self.key_index]
    }

    pub(crate) fn check(&self, object: &Term) -> Result<(), Error> {
        match object.as_tuple() {
            None => Err(Error::NotATuple),
            Some(tuple) if tuple.len() <= self.key_index => Err(Error::NoKey),
            Some(_) => Ok(()),
        }
    }

    fn has(&self, object: &Term, key: &Term) -> bool {
        same_key(self.kind, self.key(object), key)
    }

    pub(crate) fn lookup(&self, key: &Term) -> Vec<Term> {
        let with_key = self.objects.iter().filter(|object| self.has(object, key));
        with_key.cloned().collect()
    }

    /// Returns the keys in the order of their first objects.
    pub(crate) fn keys(&self) -> Vec<Term> {
        let mut keys: Vec<Term> = Vec::new();
        for object in &self.objects {
            let key = self.key(object);
            if !keys.iter().any(|other| same_key(self.kind, other, key)) {
                keys.push(key.clone());
            }
        }
        keys
    }

    fn insert_or_replace(&mut self, object: &Term) {
        let same = |other: &Term| self.has(other, self.key(object));
        let is_known = self.kind.is_distinct_bag() && self.objects.contains(object);
        let replaced = (!self.is_bag()).then(|| self.objects.iter().position(same));
        if let Some(at) = replaced.flatten() {
            self.objects[at] = object.clone();
        } else if !is_known {
            self.objects.push(object.clone());
        }
    }

    pub(crate) fn insert(&mut self, objects: &[Term], new_only: bool) -> Result<bool, Error> {
        objects.iter().try_for_each(|object| self.check(object))?;
        let known = |object: &Term| !self.lookup(self.key(object)).is_empty();
        if new_only && objects.iter().any(known) {
            return Ok(false);
        }
        for object in objects {
            self.insert_or_replace(object);
        }
        Ok(true)
    }

    pub(crate) fn take(&mut self, key: &Term) -> Vec<Term> {
        let taken = self.lookup(key);
        let (kind, at) = (self.kind, self.key_index);
        let key_of = |object: &Term| object.as_tuple().expect("a tuple")[at].clone();
        self.objects
            .retain(|object| !same_key(kind, &key_of(object), key));
        if !taken.is_empty() && self.fixed > 0 {
            self.removed.push(key.clone());
        }
        taken
    }

    pub(crate) fn delete_object(&mut self, object: &Term) -> Result<(), Error> {
        self.check(object)?;
        let before = self.objects.len();
        self.objects.retain(|other| other != object);
        let key = self.key(object).clone();
        if self.objects.len() < before && self.lookup(&key).is_empty() && self.fixed > 0 {
            self.removed.push(key);
        }
        Ok(())
    }

    pub(crate) fn exchange(
        &mut self,
        seen: Option<&Term>,
        new: Option<&Term>,
    ) -> Result<bool, Error> {
        if self.is_bag() {
            return Err(Error::TableType);
        }
        for object in seen.iter().chain(&new) {
            self.check(object)?;
        }
        let Some(key) = new.or(seen).map(|object| self.key(object).clone()) else {
            return Ok(true);
        };
        if self.lookup(&key).first() != seen {
            return Ok(false);
        }
        match new {
            Some(new) => self.insert_or_replace(new),
            None => drop(self.take(&key)),
        }
        Ok(true)
    }

    fn index_to_change(&self, position: usize) -> Result<usize, Error> {
        match position {
            0 => Err(Error::Position),
            _ if position == self.key_index + 1 => Err(Error::KeyPosition),
            _ => Ok(position - 1),
        }
    }

    /// Returns the object to be changed: the object of the key, or the default object with this
    /// key.
    fn object_or(&self, key: &Term, default: Option<&Term>) -> Result<Option<Vec<Term>>, Error> {
        if let Some(default) = default {
            self.check(default)?;
        }
        let parts = |object: &Term| object.as_tuple().expect("a tuple").to_vec();
        Ok(match (self.lookup(key).first(), default) {
            (Some(object), _) => Some(parts(object)),
            (None, Some(default)) => {
                let mut object = parts(default);
                object[self.key_index] = key.clone();
                Some(object)
            }
            (None, None) => None,
        })
    }

    pub(crate) fn update_element(
        &mut self,
        key: &Term,
        values: &[(usize, Term)],
        default: Option<&Term>,
    ) -> Result<bool, Error> {
        if self.is_bag() {
            return Err(Error::TableType);
        }
        for (position, _) in values {
            self.index_to_change(*position)?;
        }
        let Some(mut object) = self.object_or(key, default)? else {
            return Ok(false);
        };
        for (position, value) in values {
            *object.get_mut(position - 1).ok_or(Error::Position)? = value.clone();
        }
        self.insert_or_replace(&Term::Tuple(Tuple::new(object)));
        Ok(true)
    }

    pub(crate) fn update_counter(
        &mut self,
        key: &Term,
        counts: &[Count],
        default: Option<&Term>,
    ) -> Result<Vec<i128>, Error> {
        if self.is_bag() {
            return Err(Error::TableType);
        }
        for count in counts {
            self.index_to_change(count.position)?;
        }
        let mut object = self.object_or(key, default)?.ok_or(Error::BadKey)?;
        let mut results = Vec::new();
        for count in counts {
            let element = object.get_mut(count.position - 1).ok_or(Error::Position)?;
            let value = number(element).ok_or(Error::NotAnInteger)? + count.increment;
            let value = match count.wrap {
                Some((limit, reset)) if count.increment < 0 && value < limit => reset,
                Some((limit, reset)) if count.increment >= 0 && value > limit => reset,
                _ => value,
            };
            *element = Term::from(value);
            results.push(value);
        }
        self.insert_or_replace(&Term::Tuple(Tuple::new(object)));
        Ok(results)
    }

    pub(crate) fn clear(&mut self) {
        self.objects.clear();
        self.cleared |= self.fixed > 0;
    }

    pub(crate) fn fix(&mut self) {
        self.fixed += 1;
    }

    pub(crate) fn unfix(&mut self) {
        self.fixed = self.fixed.saturating_sub(1);
        if self.fixed == 0 {
            self.cleared = false;
            self.removed.clear();
        }
    }
}

/// Returns the value of an integer term of up to 127 bits.
fn number(term: &Term) -> Option<i128> {
    value(&Integer::from_term(term)?)
}

/// Returns the value of an integer of up to 127 bits.
pub(crate) fn value(integer: &Integer) -> Option<i128> {
    integer.with_parts(|parts| match parts {
        Ok(small) => Some(i128::from(small)),
        Err((negative, magnitude)) => {
            let mut bytes = [0; 16];
            bytes.get_mut(..magnitude.len())?.copy_from_slice(magnitude);
            let magnitude = i128::from_le_bytes(bytes);
            Some(if negative { -magnitude } else { magnitude })
        }
    })
}
