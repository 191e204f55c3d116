//! Deleting objects, and taking them. Each operation is atomic.

use crate::bag::{self, Buffers, Rules, TooMany};
use crate::counter_cell;
use crate::error::Error;
use crate::lock_budget::is_long_to_compare;
use crate::lookup_result::LookupResult;
use crate::operations::insert::Encoded;
use crate::table::Table;
use crate::unpack::UnpackBuffer;
use crate::value::{Rec, Values};
use crate::workspace::{Room, Workspace};
use ats_mem::{Change, RecordBox};
use ats_store::{BatchPlan, Direction, End};
use ats_sync::Guard;
use ats_term::Term;
use ats_term::image::{Host, HostTerm, Object, Scratch, TermHost, decode_object, image_eq};
use ats_term::term::TermBuilder;

impl<H: Host> Table<H> {
    /// Removes all objects of a key.
    ///
    /// All of them go at one moment. O(log n) in tables with order, else O(1).
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    /// table.delete(&Term::from("pear"), &mut work)?;
    /// assert!(table.is_empty()?);
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the key is larger than the workspace's [limit](Workspace::limit);
    /// [`Error::Busy`]; [`Error::Storage`].
    pub fn delete<'t>(&self, key: H::Term<'t>, work: &mut Workspace<H>) -> Result<(), Error> {
        let work = work.lend();
        self.make_key(key, work)?;
        let guard = ats_sync::pin();
        let done = self.store(&guard).remove(&work.key, &guard);
        work.tidy_key();
        done
    }

    /// Removes all objects of a key and returns them, unless they are larger than the workspace's
    /// [limit](Workspace::limit) says. Those of a key that has very many are not counted in words.
    ///
    /// The objects are those that were there at the moment of their removal.
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// table.insert(&Term::from(("pear", 40)), &mut work)?;
    ///
    /// let guard = ats::pin();
    /// let taken = table.take(&Term::from("pear"), &mut work, &guard)?;
    /// assert_eq!(taken.map(|taken| taken.to_terms()), Some(vec![Term::from(("pear", 40))]));
    /// assert!(table.is_empty()?);
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] if they are; then they stay. [`Error::Busy`]; [`Error::Storage`].
    pub fn take<'g, 't>(
        &'g self,
        key: H::Term<'t>,
        work: &mut Workspace<H>,
        guard: &'g Guard,
    ) -> Result<Option<LookupResult<'g, H>>, Error> {
        let work = work.lend();
        self.make_key(key, work)?;
        let store = self.store(guard);
        let mut taken = Ok(None);
        store.update_bag(&work.key, guard, &mut |current| {
            let Some(record) = current else {
                return bag::keep();
            };
            let found = LookupResult::new(record);
            if found.len_words() > work.words_left {
                taken = Err(Error::TooLarge);
                return bag::keep();
            }
            // What is returned must be what was there at the end.
            counter_cell::stop(record).for_ever();
            taken = Ok(Some(found));
            bag::remove()
        })?;
        work.tidy_key();
        taken
    }

    /// Removes the first or the last object of a table with order, if there is one, and returns it.
    /// At the moment of its removal no object has a key before it, or behind it. O(log n).
    ///
    /// Of types without order it is some object, of a bag the oldest of some key; none only if no
    /// object was there throughout the call. O(1), amortised, besides what it costs to take one
    /// object of those of a key.
    ///
    /// Refuses to take one of objects that are larger than the workspace's
    /// [limit](Workspace::limit) says.
    ///
    /// ```
    /// # use ats::{End, Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::OrderedBag, 1);
    /// # let mut work = Workspace::new();
    /// for (priority, job) in [(2, "write"), (1, "wake up"), (2, "test")] {
    ///     table.insert(&Term::from((priority, job)), &mut work)?;
    /// }
    /// let guard = ats::pin();
    /// let first = table.take_end(End::First, &mut work, &guard)?;
    /// assert_eq!(first.map(|job| job.to_term()), Some(Term::from((1, "wake up"))));
    /// let next = table.take_end(End::First, &mut work, &guard)?; // the older one
    /// assert_eq!(next.map(|job| job.to_term()), Some(Term::from((2, "write"))));
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it refuses; [`Error::Busy`]; [`Error::Storage`].
    pub fn take_end<'g>(
        &'g self,
        end: End,
        work: &mut Workspace<H>,
        guard: &'g Guard,
    ) -> Result<Option<Taken<'g, H>>, Error> {
        let work = work.lend();
        let mut taken = Ok(None);
        let is_bag = self.table_type.is_bag();
        let of_key = match self.table_type.is_ordered() {
            true => end,
            false => End::First,
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
            // What is returned must be what was there at the end.
            counter_cell::stop(record).for_ever();
            taken = Ok(Some(Taken { found, of_key }));
            match is_bag {
                // SAFETY: this is the decision of `update_end`, which is as that of `update_bag`.
                true => unsafe {
                    let rules = self.bag_rules(store.is_read());
                    rules.delete_end(record.key(), record, of_key, &mut work.bag)
                },
                false => bag::remove(),
            }
        })?;
        work.bag.tidy();
        taken
    }

    /// Removes the object that is equal (`=:=`) to this one; a `duplicate_bag` may hold several,
    /// which all go. O(log objects of the key) for each.
    ///
    /// All of them go at one moment.
    ///
    /// ```
    /// # use ats::{Table, TableType, TermHost, Workspace};
    /// # use ats_term::Term;
    /// # let table = Table::<TermHost>::new(TableType::Bag, 1);
    /// # let mut work = Workspace::new();
    /// let prices = [("pear", 40), ("pear", 45)].map(Term::from);
    /// table.insert_many(prices.iter(), &mut work)?;
    /// table.delete_object(&prices[0], &mut work)?;
    /// assert_eq!(table.len()?, 1);
    /// # Ok::<(), ats::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotATuple`] and [`Error::NoKey`] for a term that is no object of the table;
    /// [`Error::TooLarge`] if it is larger than the workspace's [limit](Workspace::limit);
    /// [`Error::Busy`]; [`Error::Storage`].
    pub fn delete_object<'t>(
        &self,
        object: H::Term<'t>,
        work: &mut Workspace<H>,
    ) -> Result<(), Error> {
        self.delete_object_if_few(object, usize::MAX, work)
            .map(|_| ())
    }

    /// Does what [`delete_object`](Table::delete_object) does, unless very many would go: false, if
    /// they are more than
    /// `most`, and nothing has changed. For callers that must return quickly.
    ///
    /// # Errors
    /// Those of [`delete_object`](Table::delete_object).
    pub fn delete_object_if_few<'t>(
        &self,
        object: H::Term<'t>,
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

    /// Removes the object that was encoded, as
    /// [`delete_object_if_few`](Table::delete_object_if_few) says.
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
                // SAFETY: this closure is the decision of `update_bag`, was given `current`, and
                // answers with the result (LARGE-1).
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
            let stopped = counter_cell::stop(current);
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

/// The deletion of equal objects of a key of a bag that takes long, while the key is held.
struct Deleting<'a, H: Host> {
    rules: Rules,
    key: &'a [u8],
    unwanted: Object<'a, H>,
    most: usize,
    buffers: &'a mut Buffers<H>,
    /// `true` if there were not too many.
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

/// An object that was [taken](Table::take_end).
#[derive(Clone, Copy)]
pub struct Taken<'g, H: Host> {
    found: LookupResult<'g, H>,
    /// The end of the key's objects that was taken.
    of_key: End,
}

impl<'g, H: Host> Taken<'g, H> {
    /// The object, as it was when it was removed.
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
    /// The object as an owned term. O(its size).
    pub fn to_term(&self) -> Term {
        let (mut builder, mut scratch, mut unpacked) =
            (TermBuilder::new(), Scratch::new(), UnpackBuffer::new());
        let built = decode_object(self.object(&mut unpacked), &mut builder, &mut scratch);
        let term = builder.finish(built);
        term.expect("what was a term can be built again")
    }
}
