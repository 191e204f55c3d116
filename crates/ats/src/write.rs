//! Operations that change the objects of one key. Each is atomic.

use crate::bag::{Buffers, Effect, NewObject, Rules, TooMany};
use crate::counted;
use crate::short::{self, SHORT_WORDS, is_long_change, is_long_to_compare};
use crate::table::{Table, TableType};
use crate::value::{Found, Rec, UnpackBuffer, Values, record};
use crate::workspace::Workspace;
use crate::{Error, Guard};
use ats_mem::{Change, End, Plan};
use ats_term::image::{
    Host, HostTerm, ImageBuilder, ImageRef, NewValue, Object, Scratch, TermHost, decode_object,
    image_eq,
};
use ats_term::term::TermBuilder;
use ats_term::{Term, TermRef};

/// An object of more words is not encoded while the thread is pinned, since nothing is freed meanwhile: so
/// many take a few hundred microseconds. Smaller ones are, so that the place of the key can be fetched from memory
/// at the same time.
pub(crate) const PINNED_WORDS: usize = 1 << 14;

/// What came of an attempt to encode an object.
pub(crate) enum Encoded {
    /// Key and image are made.
    Small,
    /// Only the key is.
    Large,
}

/// What becomes of an insert if the key is in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExistingKey {
    /// The object is written: in the place of the old one, or, in a bag, beside it.
    Accepted,
    /// Nothing is written.
    Refused,
}

impl<H: Host> Table<H> {
    /// Inserts an object. In sets it replaces the one with the same key; a bag that has an equal object
    /// stays as it is.
    pub fn insert<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Workspace<T>,
    ) -> Result<(), Error> {
        let done = self.insert_if(object, work, ExistingKey::Accepted);
        done.map(|_| ())
    }

    /// Inserts an object unless there is one with the same key; says whether it did.
    pub fn insert_new<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Workspace<T>,
    ) -> Result<bool, Error> {
        self.insert_if(object, work, ExistingKey::Refused)
    }

    fn insert_if<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Workspace<T>,
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
        work: &mut Workspace<T>,
        existing: ExistingKey,
        guard: &Guard,
    ) -> Result<bool, Error> {
        let Workspace {
            key, image, packer, ..
        } = work;
        let store = self.store(guard);
        if existing == ExistingKey::Accepted {
            // Made before the lock is taken.
            let mut new = Some(record(key, self.stored(image.take(), packer)));
            store.update(key, guard, &mut |_| {
                Change::Put(new.take().expect("decided once"))
            })?;
            return Ok(true);
        }
        let mut made = None;
        if image.object().len_words() > SHORT_WORDS || is_long_change(0, key) {
            if store.get(key, guard).is_some() {
                return Ok(false);
            }
            made = Some(record(key, self.stored(image.take(), packer)));
        }
        let mut done = true;
        store.update(key, guard, &mut |current| {
            if current.is_some() {
                done = false;
                return Change::Keep;
            }
            let made = made.take();
            Change::Put(made.unwrap_or_else(|| record(key, self.stored(image.take(), packer))))
        })?;
        Ok(done)
    }

    /// Inserts the object that was encoded, in a bag.
    fn put_in_bag<T: HostTerm<Host = H>>(
        &self,
        work: &mut Workspace<T>,
        existing: ExistingKey,
        guard: Guard,
    ) -> Result<bool, Error> {
        let Workspace {
            key,
            image,
            packer,
            bag,
            ..
        } = work;
        let mut done = true;
        let mut object = NewObject {
            table: self,
            image,
            packer,
        };
        // More is not copied under a lock.
        let Some(most) = SHORT_WORDS.checked_sub(object.object().len_words()) else {
            drop(guard);
            return self.insert_slowly(work, existing);
        };
        let mut is_quick = true;
        self.store(&guard).update_bag(key, &guard, &mut |current| {
            if existing == ExistingKey::Refused && current.is_some() {
                done = false;
                return (Change::Keep, Effect::none());
            }
            if current.is_some_and(|current| current.value_words().1 > most) {
                is_quick = false;
                return (Change::Keep, Effect::none());
            }
            // SAFETY: this is the decision of `update_bag`.
            unsafe { (self.bag_rules()).insert(key, current, &mut object, bag) }
        })?;
        if !is_quick {
            drop(guard);
            return self.insert_slowly(work, existing);
        }
        Ok(done)
    }

    /// Inserts a large object, of which the key has been encoded: image and record are made while the thread
    /// is not pinned, unless the caller is.
    #[cold]
    fn insert_large<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Workspace<T>,
        existing: ExistingKey,
    ) -> Result<bool, Error> {
        work.image.encode_object_within(object, work.words_left)?;
        if self.table_type.is_bag() {
            return self.put_in_bag(work, existing, ats_sync::pin());
        }
        let Workspace {
            key, image, packer, ..
        } = work;
        let mut new = Some(record(key, self.stored(image.take(), packer)));
        let guard = ats_sync::pin();
        self.store(&guard)
            .update(key, &guard, &mut |current| match current {
                Some(_) if existing == ExistingKey::Refused => Change::Keep,
                _ => Change::Put(new.take().expect("decided once")),
            })?;
        Ok(new.is_none())
    }

    /// How bags of this table treat equal objects.
    pub(crate) fn bag_rules(&self) -> Rules {
        Rules {
            distinct: self.table_type == TableType::Bag,
            zeros: self.zeros,
        }
    }

    /// Makes the key of an object that is on its way to a store, and the image unless the object is so large that
    /// the thread must not be pinned meanwhile.
    #[inline]
    pub(crate) fn encode_pinned<T: HostTerm<Host = H>>(
        &self,
        object: T,
        guard: &Guard,
        work: &mut Workspace<T>,
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

    /// Whether a term can be an object of this table.
    pub fn check_object<T: TermRef>(&self, object: T) -> Result<(), Error> {
        match object.kind() {
            ats_term::Kind::Tuple(arity) if arity > self.key_index => Ok(()),
            ats_term::Kind::Tuple(_) => Err(Error::NoKey),
            _ => Err(Error::NotATuple),
        }
    }

    /// Removes all objects of a key.
    pub fn delete<T: HostTerm<Host = H>>(
        &self,
        key: T,
        work: &mut Workspace<T>,
    ) -> Result<(), Error> {
        self.take(key, work, &ats_sync::pin()).map(|_| ())
    }

    /// Removes all objects of a key and returns them, unless they are larger than the workspace's
    /// [limit](Workspace::limit) says. Those of a key that has very many are not counted in words.
    pub fn take<'g, T: HostTerm<Host = H>>(
        &'g self,
        key: T,
        work: &mut Workspace<T>,
        guard: &'g Guard,
    ) -> Result<Option<Found<'g, H>>, Error> {
        self.make_key(key, work)?;
        let store = self.store(guard);
        let mut taken = Ok(None);
        store.update_bag(&work.key, guard, &mut |current| {
            let Some(record) = current else {
                return (Change::Keep, Effect::none());
            };
            let found = Found::new(record);
            if found.len_words() > work.words_left {
                taken = Err(Error::TooLarge);
                return (Change::Keep, Effect::none());
            }
            // What is returned must be what was there at the end.
            counted::stop(record).for_ever();
            taken = Ok(Some(found));
            (Change::Remove, Effect::of_removal(record))
        })?;
        work.tidy_key();
        taken
    }

    /// Removes the object with the first or the last key of an `ordered_set`, if there is one, and returns it.
    /// At the moment of its removal no object has a key before it, or behind it. O(log n).
    ///
    /// Of other types it is some object, of a bag the oldest of some key; none only if no object was there
    /// throughout the call. O(1), amortised, besides what it costs to take one object of those of a key.
    ///
    /// Refuses to take one of objects that are larger than the workspace's [limit](Workspace::limit) says.
    pub fn take_end<'g, T: HostTerm<Host = H>>(
        &'g self,
        end: End,
        work: &mut Workspace<T>,
        guard: &'g Guard,
    ) -> Result<Option<Taken<'g, H>>, Error> {
        let mut taken = Ok(None);
        let is_bag = self.table_type.is_bag();
        self.store(guard).update_end(end, guard, &mut |current| {
            let Some(record) = current else {
                return (Change::Keep, Effect::none());
            };
            let found = Found::new(record);
            if found.len_words() > work.words_left {
                taken = Err(Error::TooLarge);
                return (Change::Keep, Effect::none());
            }
            // What is returned must be what was there at the end.
            counted::stop(record).for_ever();
            taken = Ok(Some(Taken(found)));
            match is_bag {
                // SAFETY: this is the decision of `update_end`, which is as that of `update_bag`.
                true => unsafe {
                    let rules = self.bag_rules();
                    rules.delete_oldest(record.key(), record, &mut work.bag)
                },
                false => (Change::Remove, Effect::none()),
            }
        })?;
        work.bag.tidy();
        taken
    }

    /// Removes the object that is equal (`=:=`) to this one; a `duplicate_bag` may hold several, which
    /// all go. O(log objects of the key) for each.
    pub fn delete_object<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Workspace<T>,
    ) -> Result<(), Error> {
        self.delete_object_if_few(object, usize::MAX, work)
            .map(|_| ())
    }

    /// As [`delete_object`](Table::delete_object), unless very many would go: false, if they are more than
    /// `most`, and nothing has changed. For callers that must return quickly.
    pub fn delete_object_if_few<T: HostTerm<Host = H>>(
        &self,
        object: T,
        most: usize,
        work: &mut Workspace<T>,
    ) -> Result<bool, Error> {
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

    /// Removes the object that was encoded, as [`delete_object_if_few`](Table::delete_object_if_few) says.
    fn delete_encoded<T: HostTerm<Host = H>>(
        &self,
        most: usize,
        work: &mut Workspace<T>,
        guard: Guard,
    ) -> Result<bool, Error> {
        let store = self.store(&guard);
        let Workspace {
            key,
            image,
            bag,
            room,
            ..
        } = work;
        let unwanted = image.object();
        if self.table_type.is_bag() {
            let mut is_quick = true;
            store.update_bag(key, &guard, &mut |current| {
                let Some(current) = current else {
                    return (Change::Keep, Effect::none());
                };
                // SAFETY: this is the decision of `update_bag`.
                let decided =
                    unsafe { (self.bag_rules()).delete_object(key, current, unwanted, bag) };
                decided.unwrap_or_else(|TooMany| {
                    is_quick = false;
                    (Change::Keep, Effect::none())
                })
            })?;
            if is_quick {
                return Ok(true);
            }
            drop(guard);
            let visit = self.visit();
            let mut deleting = Deleting {
                rules: self.bag_rules(),
                key,
                unwanted,
                most,
                buffers: bag,
                done: true,
                effect: Effect::none(),
            };
            visit.update_long_batch(&[&key[..]], &mut deleting)?;
            visit.count(&deleting.effect);
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
            let stopped = counted::stop(current);
            if !image_eq(Found::new(current).first(room), unwanted, self.zeros) {
                return Some(Change::Keep);
            }
            stopped.for_ever();
            Some(Change::Remove)
        })?;
        Ok(true)
    }

    /// Replaces elements of the object of a key, in order, so that of several values for a position the
    /// last counts. If the key is missing, `default` is inserted first, with the key in the place of
    /// its own. Says whether there was something to change. Positions count from 1.
    pub fn update_element<T: HostTerm<Host = H>>(
        &self,
        key: T,
        values: &[(usize, T)],
        default: Option<T>,
        work: &mut Workspace<T>,
    ) -> Result<bool, Error> {
        if self.table_type.is_bag() {
            return Err(Error::TableType);
        }
        let mut changes = Vec::with_capacity(values.len());
        let mut last = 0;
        for (position, value) in values {
            let index = self.index_to_change(*position)?;
            last = last.max(index);
            changes.push((index, NewValue::Term(*value)));
        }
        let (mut found, parts) = (false, values.len());
        self.update_object(key, default, parts, work, |object, image, most| {
            found = true;
            if !changes.is_empty() && last >= object.arity() {
                return Err(Error::Position);
            }
            if changes.is_empty() {
                return Ok(Changed::No);
            }
            image.replace_elements_within(object, &changes, most)?;
            Ok(Changed::To { counter: None })
        })?;
        Ok(found)
    }

    /// The index of a position that may be changed.
    pub(crate) fn index_to_change(&self, position: usize) -> Result<usize, Error> {
        match position.checked_sub(1) {
            None => Err(Error::Position),
            Some(index) if index == self.key_index => Err(Error::KeyPosition),
            Some(index) => Ok(index),
        }
    }

    /// Changes the object of a key, or a default object. `change` builds the new object in the builder
    /// it is given and says which of its elements is a counter, or leaves the old one. Not called if there
    /// is no object and no default, or if the object is larger than the workspace's limit says.
    ///
    /// `change` is called under the lock of the key if it has few `parts`, and else, or if it returns
    /// [`Error::TooLarge`] because the new object has more words than it is told, while the key alone is held.
    /// Then, and while the default object is encoded, the thread is not pinned, unless the caller is.
    pub(crate) fn update_object<T: HostTerm<Host = H>>(
        &self,
        key: T,
        default: Option<T>,
        parts: usize,
        work: &mut Workspace<T>,
        change: impl FnMut(Object<'_, H>, &mut ImageBuilder<T>, usize) -> Result<Changed, Error>,
    ) -> Result<(), Error> {
        let done = self.update_with(key, default, parts, work, change);
        work.tidy();
        done
    }

    /// As [`update_short`](crate::store::Store::update_short), but pins by itself, and not while the key alone
    /// is held.
    pub(crate) fn update_pinned_shortly(
        &self,
        key: &[u8],
        begins_alone: bool,
        decide: &mut DecidePinnedShortly<'_, H>,
    ) -> Result<(), Error> {
        let mut is_long = begins_alone;
        if !begins_alone {
            let guard = ats_sync::pin();
            self.store(&guard).update(key, &guard, &mut |current| {
                decide(current, false).unwrap_or_else(|| {
                    is_long = true;
                    Change::Keep
                })
            })?;
        }
        if is_long {
            self.visit().update_long_batch(&[key], &mut Alone(decide))?;
        }
        Ok(())
    }

    fn update_with<T: HostTerm<Host = H>>(
        &self,
        key: T,
        default: Option<T>,
        parts: usize,
        work: &mut Workspace<T>,
        mut change: impl FnMut(Object<'_, H>, &mut ImageBuilder<T>, usize) -> Result<Changed, Error>,
    ) -> Result<(), Error> {
        if let Some(default) = default {
            self.check_object(default)?;
            work.image.encode_object_within(default, work.words_left)?;
            // The default object may bring any key; the one it is inserted under counts.
            let own_key = [(self.key_index, NewValue::Term(key))];
            let (image, most) = (work.image.object(), work.words_left);
            work.second.replace_elements_within(image, &own_key, most)?;
        }
        self.make_key(key, work)?;
        let Workspace {
            key,
            image,
            second,
            packer,
            room,
            words_left,
            ..
        } = work;
        let mut result = Ok(());
        let begins_alone = is_long_change(parts, key);
        let limit = *words_left;
        self.update_pinned_shortly(key, begins_alone, &mut |current, alone| {
            let most = if alone { limit } else { SHORT_WORDS.min(limit) };
            if current.is_some_and(|current| Found::new(current).len_words() > limit) {
                result = Err(Error::TooLarge);
                return Some(Change::Keep);
            }
            let is_long = match current {
                Some(current) => short::is_long(current),
                None => default.is_some() && second.object().len_words() > most,
            };
            if is_long && !alone {
                return None;
            }
            // Goes on if the object stays.
            let stopped = current.map(counted::stop);
            let changed = match current {
                Some(current) => change(Found::new(current).first(room), image, most),
                None if default.is_some() => {
                    change(second.object(), image, most).map(|changed| match changed {
                        Changed::No => {
                            std::mem::swap(image, second);
                            Changed::To { counter: None }
                        }
                        changed => changed,
                    })
                }
                None => Ok(Changed::No),
            };
            match changed {
                Ok(Changed::To { counter }) => {
                    let built = image.take();
                    let new = match counter {
                        Some(index) => counted::record(key, built, index),
                        None => record(key, self.stored(built, packer)),
                    };
                    if let Some(stopped) = stopped {
                        stopped.for_ever();
                    }
                    Some(Change::Put(new))
                }
                Ok(Changed::No) => Some(Change::Keep),
                Err(Error::TooLarge) if most < limit => None,
                Err(error) => {
                    result = Err(error);
                    Some(Change::Keep)
                }
            }
        })?;
        result
    }
}

/// A change of one key that is made while the key alone is held.
struct Alone<'a, 'd, H: Host>(&'a mut DecidePinnedShortly<'d, H>);

pub(crate) type DecidePinnedShortly<'d, H> =
    dyn FnMut(Option<&Rec<H>>, bool) -> Option<Change<Values<H>>> + 'd;

impl<H: Host> Plan<Values<H>> for Alone<'_, '_, H> {
    fn decide(&mut self, _index: usize, _current: Option<&Rec<H>>) -> Change<Values<H>> {
        Change::Later
    }

    fn build(&mut self, _index: usize, current: Option<&Rec<H>>) -> Change<Values<H>> {
        (self.0)(current, true).expect("a key that is held alone can be changed")
    }
}

/// The deletion of equal objects of a key of a bag that takes long, while the key is held.
struct Deleting<'a, H: Host> {
    rules: Rules,
    key: &'a [u8],
    unwanted: Object<'a, H>,
    most: usize,
    buffers: &'a mut Buffers<H>,
    /// Whether there were not too many.
    done: bool,
    effect: Effect<H>,
}

impl<H: Host> Plan<Values<H>> for Deleting<'_, H> {
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
            Ok((change, effect)) => {
                self.effect = effect;
                change
            }
            Err(TooMany) => {
                self.done = false;
                Change::Keep
            }
        }
    }
}

/// An object that was [taken](Table::take_end).
#[derive(Clone, Copy)]
pub struct Taken<'g, H: Host>(Found<'g, H>);

impl<'g, H: Host> Taken<'g, H> {
    /// The object, as it was when it was removed.
    pub fn object<'b>(&self, room: &'b mut UnpackBuffer) -> Object<'b, H>
    where
        'g: 'b,
    {
        // The oldest of those that the key had.
        self.0.first(room)
    }
}

impl Taken<'_, TermHost> {
    /// The object as an owned term. O(its size).
    pub fn to_term(&self) -> Term {
        let (mut builder, mut scratch, mut room) =
            (TermBuilder::new(), Scratch::new(), UnpackBuffer::new());
        let built = decode_object(self.object(&mut room), &mut builder, &mut scratch);
        let term = builder.finish(built);
        term.expect("what was a term can be built again")
    }
}

/// What becomes of an object.
pub(crate) enum Changed {
    /// It stays as it is.
    No,
    /// It is replaced.
    To {
        /// The element of the new one that shall be a counter which changes in place: a small integer.
        counter: Option<usize>,
    },
}

/// An element that must be there.
pub(crate) fn element<H: Host>(
    object: Object<'_, H>,
    index: usize,
) -> Result<ImageRef<'_, H>, Error> {
    object.get(index).ok_or(Error::Position)
}
