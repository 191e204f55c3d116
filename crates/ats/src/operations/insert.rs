//! Inserting an object. Each operation is atomic.

use crate::bag::{self, NewObject};
use crate::error::Error;
use crate::lock_budget::{SHORT_WORDS, is_long_change};
use crate::table::Table;
use crate::workspace::{Room, Workspace};
use ats_mem::Change;
use ats_store::AddRule;
use ats_sync::Guard;
use ats_term::TermRef;
use ats_term::image::{Host, HostTerm};

/// An object of more words is not encoded while the thread is pinned, since nothing is freed
/// meanwhile: so many take a few hundred microseconds. Smaller ones are, so that the place of the
/// key can be fetched from memory at the same time.
pub(crate) const PINNED_WORDS: usize = 1 << 14;

/// The outcome of an attempt to encode an object.
pub(crate) enum Encoded {
    /// Key and image are made.
    Small,
    /// Only the key is.
    Large,
}

/// The fate of an insert if the key is in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingKey {
    /// The object is written: in the place of the old one, or, in a bag, beside it.
    Accepted,
    /// Nothing is written.
    Refused,
}

impl<H: Host> Table<H> {
    /// Inserts an object. In sets it replaces the one with the same key; a bag that has an equal
    /// object stays as it is.
    ///
    /// Readers see the old object or the new one. O(log n) in an `ordered_set`, else O(1), besides
    /// the size of the object.
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// table.insert(&Term::from(("pear", 45)), &mut work)?; // in the place of the other
    /// assert_eq!(table.len()?, 1);
    /// assert_eq!(table.insert(&Term::from(7), &mut work), Err(ats::Error::NotATuple));
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotATuple`] and [`Error::NoKey`] for a term that is no object of the table;
    /// [`Error::TooLarge`] if it is larger than the workspace's [limit](Workspace::limit);
    /// [`Error::Busy`]; [`Error::Storage`]. Nothing has changed then.
    pub fn insert<'t>(&self, object: H::Term<'t>, work: &mut Workspace<H>) -> Result<(), Error> {
        let work = work.lend();
        let done = self.insert_if(object, work, ExistingKey::Accepted);
        done.map(|_| ())
    }

    /// Inserts an object unless there is one with the same key; says whether it did.
    ///
    /// Of several threads that insert the same key at a time one does.
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// assert!(table.insert_new(&Term::from(("pear", 40)), &mut work)?);
    /// assert!(!table.insert_new(&Term::from(("pear", 45)), &mut work)?);
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`insert`](Table::insert).
    pub fn insert_new<'t>(
        &self,
        object: H::Term<'t>,
        work: &mut Workspace<H>,
    ) -> Result<bool, Error> {
        let work = work.lend();
        self.insert_if(object, work, ExistingKey::Refused)
    }

    fn insert_if<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Room<T>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        let is_bag = self.table_type.is_bag();
        let guard = ats_sync::pin();
        let done = match self.encode_pinned(object, &guard, work) {
            Err(error) => Err(error),
            Ok(Encoded::Small) if is_bag => self.put_in_bag(work, existing, guard),
            Ok(Encoded::Small) => self.put_in_set(work, existing, &guard),
            Ok(Encoded::Large) => {
                drop(guard);
                self.insert_large(object, work, existing)
            }
        };
        match is_bag {
            true => work.tidy(),
            false => work.tidy_object(),
        }
        done
    }

    /// Inserts the object that was encoded, in a set.
    fn put_in_set<T: HostTerm<Host = H>>(
        &self,
        work: &mut Room<T>,
        existing: ExistingKey,
        guard: &Guard,
    ) -> Result<bool, Error> {
        let Room {
            key, image, packer, ..
        } = work;
        let store = self.store(guard);
        if existing == ExistingKey::Accepted {
            // Made before the lock is taken.
            let new = self.record(key, image.take(), packer);
            store.put(key, new, guard)?;
            return Ok(true);
        }
        let mut made = None;
        if image.object().len_words() > SHORT_WORDS || is_long_change(0, key) {
            if store.get(key, guard)?.is_some() {
                return Ok(false);
            }
            made = Some(self.record(key, image.take(), packer));
        }
        let mut done = true;
        store.update(key, guard, &mut |current| {
            if current.is_some() {
                done = false;
                return Change::Keep;
            }
            let made = made.take();
            Change::Put(made.unwrap_or_else(|| self.record(key, image.take(), packer)))
        })?;
        Ok(done)
    }

    /// Inserts the object that was encoded, in a bag.
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
        // More is not copied under a lock.
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
            // SAFETY: this closure is the decision of `update_bag`, was given `current`, and
            // answers with the result (LARGE-1).
            unsafe { (self.bag_rules(store.is_read())).insert(key, current, &mut object, bag) }
        })?;
        if !is_quick {
            drop(guard);
            return self.insert_slowly(work, existing);
        }
        Ok(done)
    }

    /// The rule by which objects are added to keys of a bag.
    pub(crate) fn add_rule(&self, existing: ExistingKey) -> AddRule {
        AddRule {
            distinct: self.table_type.is_distinct_bag(),
            only_to_new_keys: existing == ExistingKey::Refused,
        }
    }

    /// Inserts a large object, of which the key has been encoded: image and record are made while
    /// the thread is not pinned, unless the caller is.
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
            key, image, packer, ..
        } = work;
        let mut new = Some(self.record(key, image.take(), packer));
        let guard = ats_sync::pin();
        self.store(&guard)
            .update(key, &guard, &mut |current| match current {
                Some(_) if existing == ExistingKey::Refused => Change::Keep,
                _ => Change::Put(new.take().expect("decided once")),
            })?;
        Ok(new.is_none())
    }

    /// Makes the key of an object that is on its way to a store, and the image unless the object is
    /// so large that the thread must not be pinned meanwhile.
    #[inline]
    pub(crate) fn encode_pinned<T: HostTerm<Host = H>>(
        &self,
        object: T,
        guard: &Guard,
        work: &mut Room<T>,
    ) -> Result<Encoded, Error> {
        self.check_object(object)?;
        self.make_key(object.element(self.key_index), work)?;
        // While the image is made.
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
    /// [`Error::NotATuple`] if it is no tuple, [`Error::NoKey`] if it has no element at the
    /// position of the key.
    pub fn check_object<T: TermRef>(&self, object: T) -> Result<(), Error> {
        match object.kind() {
            ats_term::Kind::Tuple(arity) if arity > self.key_index => Ok(()),
            ats_term::Kind::Tuple(_) => Err(Error::NoKey),
            _ => Err(Error::NotATuple),
        }
    }
}
