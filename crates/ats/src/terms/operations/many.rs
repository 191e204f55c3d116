//! Atomic insertion of several objects.

use crate::terms::bag::{Buffers, Rules, is_quick};
use crate::terms::error::Error;
use crate::terms::note::Dating;
use crate::terms::operations::insert::{Encoded, ExistingKey, PINNED_WORDS};
use crate::terms::operations::lifetime::Lifetime;
use crate::terms::sorted_batch::{One, SortedBatch};
use crate::terms::store::bytes::ByteStore;
use crate::terms::table::Table;
use crate::terms::unpack::UnpackBuffer;
use crate::terms::value::{Rec, Values, content};
use crate::terms::workspace::{Room, Workspace};
use ats_mem::{Change, RecordBox};
use ats_store::{Bags, BatchPlan};
use ats_term::image::{Host, HostTerm, Stored};
use std::ops::Range;

/// Number of groups that need no allocation.
const FEW: usize = 16;
/// Number of objects that are encoded under one guard, and of records that are written under one.
const PIECE: usize = ats_mem::batch::PIECE;

impl<H: Host> Table<H> {
    /// Inserts all objects at one moment: every reader sees all of them or none. Of several objects
    /// with the same key a set keeps the last one. Takes O(n log n) for n objects, and locks only
    /// the keys it changes.
    ///
    /// The thread is pinned for at most some hundred objects at a time, unless the caller is
    /// pinned. A long change of one key does not hold a lock that other keys share.
    ///
    /// ```
    /// # use ats::terms::{Table, TableType, TermHost, Workspace};
    /// # use ats::terms::Term;
    /// # let table = Table::<TermHost>::new(TableType::Set, 1);
    /// # let mut work = Workspace::new();
    /// let prices = [("apple", 30), ("pear", 40)].map(Term::from);
    /// table.insert_many(prices.iter(), &mut work)?; // no reader sees one without the other
    /// assert_eq!(table.len()?, 2);
    /// # Ok::<(), ats::terms::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`insert`](Table::insert), for any of the objects. A failed call changes
    /// nothing.
    pub fn insert_many<'t>(
        &self,
        objects: impl Iterator<Item = H::Term<'t>>,
        work: &mut Workspace<H>,
    ) -> Result<(), Error> {
        let work = work.lend();
        work.dating = self.dating_of_table();
        self.insert_many_if(objects, work, ExistingKey::Accepted)
            .map(|_| ())
    }

    /// Inserts all objects at one moment, unless the table has the key of one of them. Returns
    /// `true` if it did. Otherwise the same as [`insert_many`](Table::insert_many).
    ///
    /// # Errors
    /// The errors of [`insert_many`](Table::insert_many).
    pub fn insert_many_new<'t>(
        &self,
        objects: impl Iterator<Item = H::Term<'t>>,
        work: &mut Workspace<H>,
    ) -> Result<bool, Error> {
        let work = work.lend();
        work.dating = self.dating_of_table();
        self.insert_many_if(objects, work, ExistingKey::Refused)
    }

    /// Inserts all objects like [`insert_many`](Table::insert_many), or like
    /// [`insert_many_new`](Table::insert_many_new), for a time. Returns `true` if it did.
    ///
    /// # Errors
    /// [`Error::NoTtl`] if objects of the table do not [expire](Table::expiring); the errors of
    /// [`insert`](Table::insert).
    pub fn insert_many_for<'t>(
        &self,
        objects: impl Iterator<Item = H::Term<'t>>,
        lifetime: Lifetime,
        existing: ExistingKey,
        work: &mut Workspace<H>,
    ) -> Result<bool, Error> {
        let work = work.lend();
        work.dating = Some(self.dating(lifetime)?);
        self.insert_many_if(objects, work, existing)
    }

    fn insert_many_if<T: HostTerm<Host = H>>(
        &self,
        terms: impl Iterator<Item = T>,
        work: &mut Room<T>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        let mut many = std::mem::replace(&mut work.many, SortedBatch::new());
        // The limit is for all objects together, so `prepare` counts down.
        let limit = work.words_left;
        let prepared = self.prepare(terms, &mut many, work);
        work.limit(limit);
        let done = prepared.and_then(|()| self.write_many(&mut many, work, existing));
        // Objects that were not written own resources.
        many.clear();
        work.many = many;
        work.tidy();
        done
    }

    /// Encodes the objects and sorts them by key.
    fn prepare<T: HostTerm<Host = H>>(
        &self,
        terms: impl Iterator<Item = T>,
        many: &mut SortedBatch<H>,
        work: &mut Room<T>,
    ) -> Result<(), Error> {
        let mut guard = None;
        let mut words = 0;
        for (at, term) in terms.enumerate() {
            let is_piece = at % PIECE == 0 || words > PINNED_WORDS;
            if is_piece {
                // Objects that other threads have retired can be freed before the next piece.
                (guard, words) = (None, 0);
            }
            let pinned = guard.get_or_insert_with(ats_sync::pin);
            if let Encoded::Large = self.encode_pinned(term, pinned, work)? {
                guard = None;
                work.image.encode_object_within(term, work.words_left)?;
            }
            let steps = work.image.steps() + work.key.len() / size_of::<u64>();
            many.push(self.record_of(work));
            work.words_left = work.words_left.saturating_sub(steps);
            words += steps;
        }
        // Sorting a million keys takes long, and callers of `take_all` wait for guards.
        drop(guard);
        many.sort();
        Ok(())
    }

    /// Returns a record of the encoded object, with its key.
    fn record_of<T: HostTerm<Host = H>>(&self, work: &mut Room<T>) -> RecordBox<Values<H>> {
        let Room {
            key,
            image,
            packer,
            dating,
            ..
        } = work;
        self.record_dated(key, image.take(), packer, *dating)
    }

    /// Inserts the encoded object into a bag while only its key is held, because the change takes
    /// too long for a lock.
    #[cold]
    pub(crate) fn insert_slowly<T: HostTerm<Host = H>>(
        &self,
        work: &mut Room<T>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        let mut many = SortedBatch::new();
        many.push(self.record_of(work));
        many.sort();
        self.write_many(&mut many, work, existing)
    }

    fn write_many<T: HostTerm<Host = H>>(
        &self,
        many: &mut SortedBatch<H>,
        work: &mut Room<T>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        let is_long = many.objects.len() > PIECE;
        if self.has_byte_store && self.table_type.is_bag() {
            let store = self.store.reference();
            if let Some((records, bags)) = store.bags() {
                return self.add_many(records, bags, many, existing);
            }
        }
        let SortedBatch {
            keys,
            objects,
            groups,
        } = many;
        let key_of = |group: &Range<usize>| keys.get(objects[group.start].key);
        let (mut few, all): ([&[u8]; FEW], Vec<&[u8]>);
        let keys: &[&[u8]] = if groups.len() <= FEW {
            few = [&[]; FEW];
            for (key, group) in few.iter_mut().zip(&*groups) {
                *key = key_of(group);
            }
            &few[..groups.len()]
        } else {
            all = groups.iter().map(key_of).collect();
            &all
        };
        let mut writing = Writing {
            is_bag: self.table_type.is_bag(),
            rules: self.bag_rules(true),
            keys,
            objects,
            groups,
            dating: work.dating,
            buffers: &mut work.bag,
            existing,
        };
        if is_long {
            return self.store.long_batch()?.update(keys, &mut writing);
        }
        let guard = ats_sync::pin();
        let store = self.store(&guard);
        store.update_batch(keys, Some(&guard), &mut writing)
    }
}

impl<H: Host> Table<H> {
    /// Adds objects of a bag to a store that keeps each object of a key in its own record.
    fn add_many(
        &self,
        records: &ByteStore<H>,
        bags: &dyn Bags,
        many: &SortedBatch<H>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        let mut unpacked = UnpackBuffer::new();
        let mut values = Vec::with_capacity(many.objects.len());
        for object in &many.objects {
            let record = object.record.as_deref();
            let record = record.expect("what was gathered is written once");
            let object = unpacked.object(single(record));
            values.push(records.object_bytes(object)?);
        }
        let keys = many.objects.iter().map(|object| many.keys.get(object.key));
        let values: Vec<_> = keys.zip(values.iter().map(Vec::as_slice)).collect();
        let may_block = records.may_block();
        Ok(bags.add(may_block, &values, self.add_rule(existing))?)
    }
}

/// The batch that writes the objects.
struct Writing<'a, H: Host> {
    is_bag: bool,
    rules: Rules,
    keys: &'a [&'a [u8]],
    objects: &'a mut [One<H>],
    groups: &'a [Range<usize>],
    buffers: &'a mut Buffers<H>,
    dating: Option<Dating>,
    existing: ExistingKey,
}

impl<H: Host> Writing<'_, H> {
    /// Returns `true` if the objects of the group with this index can be added to a bag quickly
    /// enough for a lock.
    fn is_quick(&self, index: usize, current: Option<&Rec<H>>) -> bool {
        let group = &self.objects[self.groups[index].clone()];
        let added = group.iter().filter_map(|object| object.record.as_deref());
        is_quick(added.chain(current))
    }
}

impl<H: Host> BatchPlan<Rec<H>, RecordBox<Values<H>>> for Writing<'_, H> {
    fn decide(&mut self, index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        if self.existing == ExistingKey::Refused && current.is_some() {
            return Change::Abort;
        }
        if !self.is_bag {
            let group = &mut self.objects[self.groups[index].clone()];
            let last = group.last_mut().and_then(|object| object.record.take());
            return Change::Put(last.expect("each group is written once"));
        }
        if self.is_quick(index, current) {
            self.build(index, current)
        } else {
            Change::Later
        }
    }

    fn build(&mut self, index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        let group = &self.objects[self.groups[index].clone()];
        let added = group.iter().filter_map(|object| object.record.as_ref());
        let added = added.map(|record| single(record));
        // The change can be undone, so it takes over no nodes of the old version.
        let (change, _) = (self.rules).insert_many(self.keys[index], current, added, self.buffers);
        Dating::of_change(self.dating, change)
    }
}

/// Returns the only object of a newly made record, for a table of any type.
fn single<H: Host>(record: &Rec<H>) -> Stored<'_, H> {
    // SAFETY: the words were built for this host, and the record keeps their resources.
    unsafe { Stored::from_words(content(record)) }
}
