//! Insertion of an object. Each operation is atomic.

use crate::terms::bag::{self, NewObject};
use crate::terms::error::Error;
use crate::terms::lock_budget::{SHORT_WORDS, is_long_change};
use crate::terms::note::Dating;
use crate::terms::operations::lifetime::Lifetime;
use crate::terms::table::Table;
use crate::terms::workspace::{Room, Workspace};
use ats_mem::Change;
use ats_store::AddRule;
use ats_sync::Guard;
use ats_term::TermRef;
use ats_term::image::{Host, HostTerm};

/// Largest object, in words, that is encoded while the thread is pinned. Nothing is freed
/// meanwhile, and so many words take a few hundred microseconds. A smaller object is encoded while
/// the position of its key is fetched from memory.
pub(crate) const PINNED_WORDS: usize = 1 << 14;

/// The result of an attempt to encode an object.
pub(crate) enum Encoded {
    /// Key and image are encoded.
    Small,
    /// Only the key is encoded.
    Large,
}

/// Effect of an insert if the table has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingKey {
    /// The object is written: it replaces the old object, or, in a bag, joins it.
    Accepted,
    /// Nothing is written.
    Refused,
}

impl<H: Host> Table<H> {
    /// Inserts an object. In a set it replaces the object with the same key. A `bag` that has an
    /// equal object stays unchanged.
    ///
    /// Readers see the old object or the new one. O(log n) in an `ordered_set`, else O(1), besides
    /// the size of the object.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// table.insert(&Term::from(("pear", 45)), &mut work)?; // replaces the other
    /// assert_eq!(table.len()?, 1);
    /// assert_eq!(table.insert(&Term::from(7), &mut work), Err(ats::terms::Error::NotATuple));
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotATuple`] and [`Error::NoKey`] if the term is not an object of the table;
    /// [`Error::TooLarge`] if it exceeds the workspace's [limit](Workspace::limit);
    /// [`Error::Busy`]; [`Error::Storage`]. A failed call changes nothing.
    pub fn insert(&self, object: H::Term<'_>, work: &mut Workspace<H>) -> Result<(), Error> {
        let work = work.lend();
        work.dating = self.dating_of_table();
        let done = self.insert_if(object, work, ExistingKey::Accepted);
        done.map(|_| ())
    }

    /// Inserts an object unless the table has one with the same key. Returns `true` if it did.
    ///
    /// Exactly one of several threads that insert the same key concurrently succeeds.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// assert!(table.insert_new(&Term::from(("pear", 40)), &mut work)?);
    /// assert!(!table.insert_new(&Term::from(("pear", 45)), &mut work)?);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`insert`](Table::insert).
    pub fn insert_new(&self, object: H::Term<'_>, work: &mut Workspace<H>) -> Result<bool, Error> {
        let work = work.lend();
        work.dating = self.dating_of_table();
        self.insert_if(object, work, ExistingKey::Refused)
    }

    /// Inserts an object like [`insert`](Table::insert), or like [`insert_new`](Table::insert_new),
    /// that is there for a time. Returns `true` if it did.
    ///
    /// ```
    /// # use ats::terms::{ExistingKey, Lifetime, Table, TableType, TermHost, Ttl, Workspace};
    /// # use ats::terms::Term;
    /// # use std::time::Duration;
    /// let table = Table::<TermHost>::new(TableType::Set, 1).expiring(Ttl::Never)?;
    /// # let mut work = Workspace::new();
    /// let time = Lifetime::For(Duration::from_millis(20));
    /// table.insert_for(&Term::from(("pear", 40)), time, ExistingKey::Accepted, &mut work)?;
    /// std::thread::sleep(Duration::from_millis(20));
    /// assert!(table.is_empty()?);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTtl`] if objects of the table do not [expire](Table::expiring); the errors of
    /// [`insert`](Table::insert).
    pub fn insert_for(
        &self,
        object: H::Term<'_>,
        lifetime: Lifetime,
        existing: ExistingKey,
        work: &mut Workspace<H>,
    ) -> Result<bool, Error> {
        let work = work.lend();
        work.dating = Some(self.dating(lifetime)?);
        self.insert_if(object, work, existing)
    }

    fn insert_if<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Room<T>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        let is_bag = self.table_type.is_bag();
        let guard = ats_sync::pin();
        if existing == ExistingKey::Refused && self.refuses(object, &guard, work)? {
            return Ok(false);
        }
        let done = match self.encode_pinned(object, &guard, work) {
            Err(error) => Err(error),
            Ok(Encoded::Small) if is_bag => self.put_in_bag(work, existing, guard),
            Ok(Encoded::Small) => self.put_in_set(work, existing, &guard),
            Ok(Encoded::Large) => {
                drop(guard);
                self.insert_large(object, work, existing)
            }
        };
        if is_bag {
            work.tidy();
        } else {
            work.tidy_object();
        }
        done
    }

    /// Returns `true` if the key of an object is seen in the table, for an insert of a new key.
    /// Looks only if that is likely.
    #[inline]
    fn refuses<T: HostTerm<Host = H>>(
        &self,
        object: T,
        guard: &Guard,
        work: &mut Room<T>,
    ) -> Result<bool, Error> {
        let may_look = !self.has_byte_store && self.refusals.is_worth_a_look(&mut work.sampler);
        if !may_look {
            return Ok(false);
        }
        self.check_object(object)?;
        self.make_key(object.element(self.key_index), work)?;
        let is_there = self.store(guard).has_key(&work.key, guard)?;
        self.refusals.note(is_there, &work.sampler);
        work.tidy_key();
        Ok(is_there)
    }

    /// Inserts the encoded object, in a set.
    fn put_in_set<T: HostTerm<Host = H>>(
        &self,
        work: &mut Room<T>,
        existing: ExistingKey,
        guard: &Guard,
    ) -> Result<bool, Error> {
        if existing == ExistingKey::Accepted && self.overwrite(work, guard)? {
            return Ok(true);
        }
        let Room {
            key,
            image,
            packer,
            dating,
            ..
        } = work;
        let store = self.store(guard);
        if existing == ExistingKey::Accepted {
            // The record is made before the lock is taken, to keep the lock short.
            let new = self.record_dated(key, image.take(), packer, *dating);
            store.put(key, new, guard)?;
            return Ok(true);
        }
        let mut made = None;
        if image.object().len_words() > SHORT_WORDS || is_long_change(0, key) {
            if store.has_key(key, guard)? {
                return Ok(false);
            }
            made = Some(self.record_dated(key, image.take(), packer, *dating));
        }
        let mut done = true;
        store.update(key, guard, &mut |current| {
            if current.is_some() {
                done = false;
                return Change::Keep;
            }
            let made = made.take();
            Change::Put(
                made.unwrap_or_else(|| self.record_dated(key, image.take(), packer, *dating)),
            )
        })?;
        Ok(done)
    }

    /// Inserts the encoded object, in a bag.
    fn put_in_bag<T: HostTerm<Host = H>>(
        &self,
        work: &mut Room<T>,
        existing: ExistingKey,
        guard: Guard,
    ) -> Result<bool, Error> {
        let Room {
            key,
            image,
            packer,
            bag,
            dating,
            ..
        } = work;
        if let Some((records, bags)) = self.store(&guard).bags() {
            let bytes = records.object_bytes(image.object())?;
            let rule = self.add_rule(existing);
            return Ok(bags.add(records.may_block(), &[(key, &bytes)], rule)?);
        }
        let mut done = true;
        let mut object = NewObject {
            packs: self.packs(),
            image,
            packer,
        };
        // Copying more words takes too long for a lock.
        let Some(most) = SHORT_WORDS.checked_sub(object.object().len_words()) else {
            drop(guard);
            return self.insert_slowly(work, existing);
        };
        let mut is_quick = true;
        let store = self.store(&guard);
        store.update_bag(key, &guard, &mut |current| {
            if existing == ExistingKey::Refused && current.is_some() {
                done = false;
                return bag::keep();
            }
            if current.is_some_and(|current| current.value_words().1 > most) {
                is_quick = false;
                return bag::keep();
            }
            // SAFETY: this closure is the decision of `update_bag`, gets `current` from it, and
            // returns the result (LARGE-1).
            let (change, leftovers) =
                unsafe { (self.bag_rules(store.is_read())).insert(key, current, &mut object, bag) };
            (Dating::of_change(*dating, change), leftovers)
        })?;
        if !is_quick {
            drop(guard);
            return self.insert_slowly(work, existing);
        }
        Ok(done)
    }

    /// Returns the rule for adding objects to keys of a bag.
    pub(crate) fn add_rule(&self, existing: ExistingKey) -> AddRule {
        AddRule {
            distinct: self.table_type.is_distinct_bag(),
            only_to_new_keys: existing == ExistingKey::Refused,
        }
    }

    /// Inserts a large object whose key has been encoded. Image and record are made while the
    /// thread is not pinned, unless the caller is.
    #[cold]
    fn insert_large<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Room<T>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        work.image.encode_object_within(object, work.words_left)?;
        if self.table_type.is_bag() {
            return self.put_in_bag(work, existing, ats_sync::pin());
        }
        let Room {
            key,
            image,
            packer,
            dating,
            ..
        } = work;
        let mut new = Some(self.record_dated(key, image.take(), packer, *dating));
        let guard = ats_sync::pin();
        self.store(&guard)
            .update(key, &guard, &mut |current| match current {
                Some(_) if existing == ExistingKey::Refused => Change::Keep,
                _ => Change::Put(new.take().expect("decided once")),
            })?;
        Ok(new.is_none())
    }

    /// Encodes the key of an object, and its image unless the object is too large to be encoded
    /// while the thread is pinned.
    #[inline]
    pub(crate) fn encode_pinned<T: HostTerm<Host = H>>(
        &self,
        object: T,
        guard: &Guard,
        work: &mut Room<T>,
    ) -> Result<Encoded, Error> {
        self.check_object(object)?;
        self.make_key(object.element(self.key_index), work)?;
        // The prefetch overlaps with encoding the image.
        self.store(guard).prefetch(&work.key);
        let most = work.words_left.min(PINNED_WORDS);
        match work
            .image
            .encode_object_within(object, most)
            .map_err(Error::from)
        {
            Ok(()) => Ok(Encoded::Small),
            Err(Error::TooLarge) if most < work.words_left => Ok(Encoded::Large),
            Err(error) => Err(error),
        }
    }

    /// Checks that a term can be an object of this table.
    ///
    /// # Errors
    /// [`Error::NotATuple`] if the term is not a tuple, [`Error::NoKey`] if it has no element at
    /// the position of the key.
    pub fn check_object<T: TermRef>(&self, object: T) -> Result<(), Error> {
        match object.kind() {
            ats_term::Kind::Tuple(arity) if arity > self.key_index => Ok(()),
            ats_term::Kind::Tuple(_) => Err(Error::NoKey),
            _ => Err(Error::NotATuple),
        }
    }
}
