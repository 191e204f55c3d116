//! Deletion of objects, with or without returning them. Each operation is atomic.

use crate::terms::bag::{self, Buffers, Rules, TooMany};
use crate::terms::cells;
use crate::terms::error::Error;
use crate::terms::lock_budget::is_long_to_compare;
use crate::terms::lookup_result::LookupResult;
use crate::terms::operations::insert::Encoded;
use crate::terms::table::Table;
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::{Rec, Values};
use crate::terms::workspace::{Room, Workspace};
use ats_mem::{Change, RecordBox};
use ats_store::{BatchPlan, Direction, End};
use ats_sync::Guard;
use ats_term::Term;
use ats_term::image::{Host, HostTerm, Object, Scratch, TermHost, decode_object, image_eq};
use ats_term::term::TermBuilder;

impl<H: Host> Table<H> {
    /// Removes all objects of a key.
    ///
    /// All objects are removed at one moment. O(log n) in tables with order, else O(1).
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// table.delete(&Term::from("pear"), &mut work)?;
    /// assert!(table.is_empty()?);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the key is larger than the workspace's [limit](Workspace::limit);
    /// [`Error::Busy`]; [`Error::Storage`].
    pub fn delete(&self, key: H::Term<'_>, work: &mut Workspace<H>) -> Result<(), Error> {
        let work = work.lend();
        self.make_key(key, work)?;
        let done = self.delete_bytes(&work.key, &ats_sync::pin());
        work.tidy_key();
        done
    }

    /// Removes all objects of a key like [`delete`](Table::delete), by its bytes.
    ///
    /// # Errors
    /// [`Error::Busy`]; [`Error::Storage`].
    #[inline]
    pub fn delete_bytes(&self, key: &[u8], guard: &Guard) -> Result<(), Error> {
        self.store(guard).remove(key, guard)
    }

    /// Removes all objects of a key and returns them, unless they exceed the workspace's
    /// [limit](Workspace::limit). The objects of a large bag do not count towards the limit.
    ///
    /// Returns the objects as of the moment of their removal.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    ///
    /// let guard = ats::terms::pin();
    /// let taken = table.take(&Term::from("pear"), &mut work, &guard)?;
    /// assert_eq!(taken.map(|taken| taken.to_terms()), Some(vec![Term::from(("pear", 40))]));
    /// assert!(table.is_empty()?);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the objects exceed the limit; then they stay. [`Error::Busy`];
    /// [`Error::Storage`].
    pub fn take<'g>(
        &'g self,
        key: H::Term<'_>,
        work: &mut Workspace<H>,
        guard: &'g Guard,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        let work = work.lend();
        self.make_key(key, work)?;
        let taken = self.take_bytes(&work.key, work.words_left, guard);
        work.tidy_key();
        taken
    }

    /// Removes all objects of a key and returns them like [`take`](Table::take), by the bytes of
    /// the key, unless they exceed a number of words.
    ///
    /// # Errors
    /// The errors of [`take`](Table::take).
    pub fn take_bytes<'g>(
        &'g self,
        key: &[u8],
        limit: usize,
        guard: &'g Guard,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        let mut taken = Ok(None);
        self.store(guard).update_bag(key, guard, &mut |current| {
            let Some(record) = current else {
                return bag::keep();
            };
            let found = LookupResult::new(record);
            if found.len_words() > limit {
                taken = Err(Error::TooLarge);
                return bag::keep();
            }
            // The caller gets the object as of its removal, so the cells must not change any more.
            cells::stop(record).for_ever();
            taken = Ok(Some(found));
            bag::remove()
        })?;
        taken
    }

    /// Removes the first or the last object of a table with order, if the table has any, and
    /// returns it. At the moment of the removal no other object has a lower key, or a higher key.
    /// O(log n).
    ///
    /// A table without order removes any object; a bag without order removes the oldest object of
    /// any key. It returns `None` only if no object was present throughout the call. O(1),
    /// amortised, plus the cost of removing one object of a key.
    ///
    /// Refuses to remove an object if the objects of its key exceed the workspace's
    /// [limit](Workspace::limit).
    ///
    /// ```
    /// # use ats::terms::{End, Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::OrderedBag, 1);
    /// # let mut work = Workspace::new();
    /// for (priority, job) in [(2, "write"), (1, "wake up"), (2, "test")] {
    ///     table.insert(&Term::from((priority, job)), &mut work)?;
    /// }
    /// let guard = ats::terms::pin();
    /// let first = table.take_end(End::First, &mut work, &guard)?;
    /// assert_eq!(first.map(|job| job.to_term()), Some(Term::from((1, "wake up"))));
    /// let next = table.take_end(End::First, &mut work, &guard)?; // the older one
    /// assert_eq!(next.map(|job| job.to_term()), Some(Term::from((2, "write"))));
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the call refuses; [`Error::Busy`]; [`Error::Storage`].
    pub fn take_end<'g>(
        &'g self,
        end: End,
        work: &mut Workspace<H>,
        guard: &'g Guard,
    ) -> Result<Option<Taken<'g, H>>, Error> {
        let work = work.lend();
        let mut taken = Ok(None);
        let is_bag = self.table_type.is_bag();
        let of_key = if self.table_type.is_ordered() {
            end
        } else {
            End::First
        };
        let store = self.store(guard);
        store.update_bag_end(end, guard, &mut |current| {
            let Some(record) = current else {
                return bag::keep();
            };
            let found = LookupResult::new(record);
            if found.len_words() > work.words_left {
                taken = Err(Error::TooLarge);
                return bag::keep();
            }
            // The caller gets the object as of its removal, so the cells must not change any more.
            cells::stop(record).for_ever();
            taken = Ok(Some(Taken { found, of_key }));
            if is_bag {
                // SAFETY: this is the decision of `update_bag_end`, whose contract is that of
                // `update_bag`.
                unsafe {
                    let rules = self.bag_rules(store.is_read());
                    rules.delete_end(record.key(), record, of_key, &mut work.bag)
                }
            } else {
                bag::remove()
            }
        })?;
        work.bag.tidy();
        taken
    }

    /// Removes all objects that are equal (`=:=`) to this one; only a duplicate bag can hold
    /// several. O(log objects of the key) for each.
    ///
    /// All of them are removed at one moment.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Bag, 1);
    /// # let mut work = Workspace::new();
    /// let prices = [("pear", 40), ("pear", 45)].map(Term::from);
    /// table.insert_many(prices.iter(), &mut work)?;
    /// table.delete_object(&prices[0], &mut work)?;
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotATuple`] and [`Error::NoKey`] if the term is not an object of the table;
    /// [`Error::TooLarge`] if it exceeds the workspace's [limit](Workspace::limit);
    /// [`Error::Busy`]; [`Error::Storage`].
    pub fn delete_object(&self, object: H::Term<'_>, work: &mut Workspace<H>) -> Result<(), Error> {
        self.delete_object_if_few(object, usize::MAX, work)
            .map(|_| ())
    }

    /// Removes objects like [`delete_object`](Table::delete_object), if there are at most `most` of
    /// them. Otherwise returns `false` and changes nothing. Meant for callers that must return
    /// quickly.
    ///
    /// # Errors
    /// The errors of [`delete_object`](Table::delete_object).
    pub fn delete_object_if_few(
        &self,
        object: H::Term<'_>,
        most: usize,
        work: &mut Workspace<H>,
    ) -> Result<bool, Error> {
        let work = work.lend();
        let mut guard = ats_sync::pin();
        let encoded = match self.encode_pinned(object, &guard, work) {
            Ok(Encoded::Large) => {
                drop(guard);
                let image = &mut work.image;
                let encoded = image.encode_object_within(object, work.words_left);
                guard = ats_sync::pin();
                encoded.map_err(Error::from)
            }
            encoded => encoded.map(|_| ()),
        };
        let done = encoded.and_then(|()| self.delete_encoded(most, work, guard));
        work.tidy();
        done
    }

    /// Removes the objects that equal the encoded object, for
    /// [`delete_object_if_few`](Table::delete_object_if_few).
    fn delete_encoded<T: HostTerm<Host = H>>(
        &self,
        most: usize,
        work: &mut Room<T>,
        guard: Guard,
    ) -> Result<bool, Error> {
        let store = self.store(&guard);
        let Room {
            key,
            image,
            bag,
            unpacked,
            ..
        } = work;
        let unwanted = image.object();
        if let Some((records, bags)) = store.bags() {
            let bytes = records.object_bytes(unwanted)?;
            return records.remove_equal(bags, key, &bytes, most);
        }
        if self.table_type.is_bag() {
            let mut is_quick = true;
            store.update_bag(key, &guard, &mut |current| {
                let Some(current) = current else {
                    return bag::keep();
                };
                // SAFETY: this closure is the decision of `update_bag`, gets `current` from it, and
                // returns the result (LARGE-1).
                let decided = unsafe {
                    (self.bag_rules(store.is_read())).delete_object(key, current, unwanted, bag)
                };
                decided.unwrap_or_else(|TooMany| {
                    is_quick = false;
                    bag::keep()
                })
            })?;
            if is_quick {
                return Ok(true);
            }
            drop(guard);
            let batch = self.store.long_batch()?;
            let mut deleting = Deleting {
                rules: self.bag_rules(true),
                key,
                unwanted,
                most,
                buffers: bag,
                done: true,
            };
            batch.update(&[&key[..]], &mut deleting)?;
            return Ok(deleting.done);
        }
        drop(guard);
        self.update_pinned_shortly(key, false, &mut |current, alone| {
            let Some(current) = current else {
                return Some(Change::Keep);
            };
            if !alone && is_long_to_compare(current) {
                return None;
            }
            let stopped = cells::stop(current);
            if !image_eq(
                LookupResult::new(current).first(unpacked),
                unwanted,
                self.zeros,
            ) {
                return Some(Change::Keep);
            }
            stopped.for_ever();
            Some(Change::Remove)
        })?;
        Ok(true)
    }
}

/// A long deletion of equal objects of a key of a bag, while only the key is held.
struct Deleting<'a, H: Host> {
    rules: Rules,
    key: &'a [u8],
    unwanted: Object<'a, H>,
    most: usize,
    buffers: &'a mut Buffers<H>,
    /// `true` unless there were too many.
    done: bool,
}

impl<H: Host> BatchPlan<Rec<H>, RecordBox<Values<H>>> for Deleting<'_, H> {
    fn decide(&mut self, _index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        current.map_or(Change::Keep, |_| Change::Later)
    }

    fn build(&mut self, _index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        let Some(current) = current else {
            return Change::Keep;
        };
        let (key, unwanted, most) = (self.key, self.unwanted, self.most);
        let decided = (self.rules).delete_object_slowly(key, current, unwanted, most, self.buffers);
        match decided {
            Ok((change, _)) => change,
            Err(TooMany) => {
                self.done = false;
                Change::Keep
            }
        }
    }
}

/// An object that [`take_end`](Table::take_end) has removed.
#[derive(Clone, Copy)]
pub struct Taken<'g, H: Host> {
    found: LookupResult<'g, H>,
    /// The end of the key's objects from which the object was removed.
    of_key: End,
}

impl<'g, H: Host> Taken<'g, H> {
    /// Returns the object as of its removal.
    pub fn object<'b>(&self, unpacked: &'b mut UnpackBuffer) -> Object<'b, H>
    where
        'g: 'b,
    {
        match self.of_key {
            End::First => self.found.first(unpacked),
            End::Last => self.found.nth(0, Direction::Down, unpacked),
        }
    }
}

impl Taken<'_, TermHost> {
    /// Returns the object as an owned term. O(its size).
    pub fn to_term(&self) -> Term {
        let (mut builder, mut scratch, mut unpacked) =
            (TermBuilder::new(), Scratch::new(), UnpackBuffer::new());
        let built = decode_object(self.object(&mut unpacked), &mut builder, &mut scratch);
        let term = builder.finish(built);
        term.expect("what was a term can be built again")
    }
}
