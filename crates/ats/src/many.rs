//! Inserting several objects as one.

use crate::Error;
use crate::bag::{Buffers, Effect, Rules, is_quick};
use crate::store::Store;
use crate::table::Table;
use crate::value::{Rec, Values, record};
use crate::workspace::Workspace;
use crate::write::{Encoded, ExistingKey, PINNED_WORDS};
use ats_mem::{Change, Plan, RecordBox};
use ats_term::image::{Host, HostTerm, Stored};
use std::ops::Range;

/// The objects to insert, each in a record of its own, in the order of their keys; those with the same key
/// in the order they were given. Keeps its buffers.
pub(crate) struct Many<H: Host> {
    keys: Keys,
    objects: Vec<One<H>>,
    /// Which objects have the same key.
    groups: Vec<Range<usize>>,
}

struct One<H: Host> {
    /// Where its key is among the keys.
    key: usize,
    /// Until it is written.
    record: Option<RecordBox<Values<H>>>,
}

/// Keys one after the other, each behind its length: of an object only one number tells where its key is.
struct Keys(Vec<u8>);

const LENGTH_BYTES: usize = size_of::<u32>();

impl Keys {
    /// Appends a key. Returns where it is.
    fn push(&mut self, key: &[u8]) -> usize {
        let at = self.0.len();
        let len = u32::try_from(key.len()).expect("a key is shorter than 4 GiB");
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(key);
        at
    }

    fn get(&self, at: usize) -> &[u8] {
        let (len, rest) = self.0[at..].split_at(LENGTH_BYTES);
        let len = u32::from_ne_bytes(len.try_into().expect("so many bytes"));
        &rest[..len as usize]
    }
}

/// Buffers for more objects than this are given back.
const KEEP_OBJECTS: usize = 1 << 10;
/// A buffer for keys with more room than this is given back.
const KEEP_BYTES: usize = 1 << 16;
/// As many groups need no allocation.
const FEW: usize = 16;
/// Objects that are encoded under one guard, and records written under one.
const PIECE: usize = ats_mem::batch::PIECE;

impl<H: Host> Table<H> {
    /// Inserts all objects at one moment: every reader sees all of them or none. Of several objects
    /// with the same key a set keeps the last. Takes O(n log n) for n objects, and locks only the
    /// keys it changes.
    ///
    /// However long the list is, the thread is pinned for some hundred objects at a time, if it is not before
    /// the call; and what takes long for one key is done without a lock that other keys share.
    pub fn insert_many<T: HostTerm<Host = H>>(
        &self,
        objects: impl Iterator<Item = T>,
        work: &mut Workspace<T>,
    ) -> Result<(), Error> {
        self.insert_many_if(objects, work, ExistingKey::Accepted)
            .map(|_| ())
    }

    /// Inserts all objects at one moment, unless there is an object with the key of one of them; says
    /// whether it did. As [`insert_many`](Table::insert_many) otherwise.
    pub fn insert_many_new<T: HostTerm<Host = H>>(
        &self,
        objects: impl Iterator<Item = T>,
        work: &mut Workspace<T>,
    ) -> Result<bool, Error> {
        self.insert_many_if(objects, work, ExistingKey::Refused)
    }

    fn insert_many_if<T: HostTerm<Host = H>>(
        &self,
        terms: impl Iterator<Item = T>,
        work: &mut Workspace<T>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        let mut many = std::mem::replace(&mut work.many, Many::new());
        // Counts down, since the limit is for all objects together.
        let limit = work.words_left;
        let prepared = self.prepare(terms, &mut many, work);
        work.limit(limit);
        let done = prepared.and_then(|()| self.write_many(&mut many, &mut work.bag, existing));
        // What was not written owns resources.
        many.clear();
        work.many = many;
        work.tidy();
        done
    }

    /// Encodes the objects and sorts them by key.
    fn prepare<T: HostTerm<Host = H>>(
        &self,
        terms: impl Iterator<Item = T>,
        many: &mut Many<H>,
        work: &mut Workspace<T>,
    ) -> Result<(), Error> {
        let mut guard = None;
        let mut words = 0;
        for (at, term) in terms.enumerate() {
            let is_piece = at % PIECE == 0 || words > PINNED_WORDS;
            if is_piece {
                // What others have retired can be freed before the next piece.
                (guard, words) = (None, 0);
            }
            let pinned = guard.get_or_insert_with(ats_sync::pin);
            if let Encoded::Large = self.encode_pinned(term, pinned, work)? {
                guard = None;
                work.image.encode_object_within(term, work.words_left)?;
            }
            let steps = many.push(self, work);
            work.words_left = work.words_left.saturating_sub(steps);
            words += steps;
        }
        many.sort();
        Ok(())
    }

    /// Inserts the object that was just encoded into a bag, holding its key while that is done: for what takes
    /// too long to be done under a lock.
    #[cold]
    pub(crate) fn insert_slowly<T: HostTerm<Host = H>>(
        &self,
        work: &mut Workspace<T>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        let mut many = Many::new();
        many.push(self, work);
        many.sort();
        self.write_many(&mut many, &mut work.bag, existing)
    }

    fn write_many(
        &self,
        many: &mut Many<H>,
        buffers: &mut Buffers<H>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        let is_long = many.objects.len() > PIECE;
        let Many {
            keys,
            objects,
            groups,
        } = many;
        let key_of = |group: &Range<usize>| keys.get(objects[group.start].key);
        let (mut few, all): ([&[u8]; FEW], Vec<&[u8]>);
        let keys: &[&[u8]] = if groups.len() <= FEW {
            few = [&[]; FEW];
            for (place, group) in few.iter_mut().zip(&*groups) {
                *place = key_of(group);
            }
            &few[..groups.len()]
        } else {
            all = groups.iter().map(key_of).collect();
            &all
        };
        let mut writing = Writing {
            is_bag: self.table_type.is_bag(),
            rules: self.bag_rules(),
            keys,
            objects,
            groups,
            buffers,
            existing,
            effect: Effect::none(),
        };
        if is_long {
            let visit = self.visit();
            let done = visit.update_long_batch(keys, &mut writing)?;
            return Ok(writing.ended(&visit, done));
        }
        let guard = ats_sync::pin();
        let store = self.store(&guard);
        let done = store.update_batch(keys, &guard, &mut writing)?;
        Ok(writing.ended(store, done))
    }
}

/// The writing of the objects.
struct Writing<'a, H: Host> {
    is_bag: bool,
    rules: Rules,
    keys: &'a [&'a [u8]],
    objects: &'a mut [One<H>],
    groups: &'a [Range<usize>],
    buffers: &'a mut Buffers<H>,
    existing: ExistingKey,
    effect: Effect<H>,
}

impl<H: Host> Writing<'_, H> {
    /// To be called when the batch has ended; says whether it was done.
    fn ended(self, store: &Store<H>, done: bool) -> bool {
        if done {
            store.count(&self.effect);
        }
        done
    }

    /// Whether the objects of a bag with this index are added so quickly that it may be done under a lock.
    fn is_quick(&self, index: usize, current: Option<&Rec<H>>) -> bool {
        let group = &self.objects[self.groups[index].clone()];
        let added = group.iter().filter_map(|object| object.record.as_deref());
        is_quick(added.chain(current))
    }
}

impl<H: Host> Plan<Values<H>> for Writing<'_, H> {
    fn decide(&mut self, index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        if self.existing == ExistingKey::Refused && current.is_some() {
            return Change::Abort;
        }
        if !self.is_bag {
            let group = &mut self.objects[self.groups[index].clone()];
            let last = group.last_mut().and_then(|object| object.record.take());
            return Change::Put(last.expect("each group is written once"));
        }
        match self.is_quick(index, current) {
            true => self.build(index, current),
            false => Change::Later,
        }
    }

    fn build(&mut self, index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        let group = &self.objects[self.groups[index].clone()];
        let added = group.iter().filter_map(|object| object.record.as_ref());
        let added = added.map(|record| single(record));
        let (change, of_key) =
            (self.rules).insert_many(self.keys[index], current, added, self.buffers);
        self.effect.add(of_key);
        change
    }
}

impl<H: Host> Many<H> {
    /// Nothing yet; does not allocate.
    pub(crate) const fn new() -> Self {
        Many {
            keys: Keys(Vec::new()),
            objects: Vec::new(),
            groups: Vec::new(),
        }
    }

    /// Appends the object that was just encoded. Returns how much work that was, in words.
    fn push<T: HostTerm<Host = H>>(&mut self, table: &Table<H>, work: &mut Workspace<T>) -> usize {
        let steps = work.image.steps() + work.key.len() / size_of::<u64>();
        let image = work.image.take();
        let built = table.stored(image, &mut work.packer);
        let record = record(&work.key, built);
        self.objects.push(One {
            key: self.keys.push(&work.key),
            record: Some(record),
        });
        steps
    }

    fn sort(&mut self) {
        let Many {
            keys,
            objects,
            groups,
        } = self;
        let key = |object: &One<H>| keys.get(object.key);
        // Stable, so that objects with the same key stay in their order.
        objects.sort_by(|a, b| key(a).cmp(key(b)));
        let mut start = 0;
        for run in objects.chunk_by(|a, b| key(a) == key(b)) {
            groups.push(start..start + run.len());
            start += run.len();
        }
    }

    fn clear(&mut self) {
        self.keys.0.clear();
        self.objects.clear();
        self.groups.clear();
        let objects = self.objects.capacity().max(self.groups.capacity());
        if objects > KEEP_OBJECTS || self.keys.0.capacity() > KEEP_BYTES {
            *self = Many::new();
        }
    }
}

/// The object of a record that was made of one, whatever the type of its table.
fn single<H: Host>(record: &Rec<H>) -> Stored<'_, H> {
    // SAFETY: what was built for this host, and the record keeps what it owns.
    unsafe { Stored::from_words(record.value()) }
}
