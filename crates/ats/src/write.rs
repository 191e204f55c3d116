//! Operations that change the objects of one key. Each is atomic.

use crate::counted;
use crate::table::{Table, TableType};
use crate::value::{Found, Values, list as list_of};
use crate::workspace::Workspace;
use crate::{Error, Guard};
use ats_mem::{Change, RecordBox};
use ats_term::TermRef;
use ats_term::image::{
    Built, Host, HostTerm, ImageBuilder, ImageRef, NewValue, Object, Stored, image_eq,
};

impl<H: Host> Table<H> {
    /// Inserts an object. In sets it replaces the one with the same key; a bag that has an equal object
    /// stays as it is.
    pub fn insert<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Workspace<T>,
    ) -> Result<(), Error> {
        self.insert_if(object, work, false).map(|_| ())
    }

    /// Inserts an object unless there is one with the same key; says whether it did.
    pub fn insert_new<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Workspace<T>,
    ) -> Result<bool, Error> {
        self.insert_if(object, work, true)
    }

    fn insert_if<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Workspace<T>,
        new_only: bool,
    ) -> Result<bool, Error> {
        self.encode(object, work)?;
        let guard = ats_sync::pin();
        let store = self.store(&guard);
        let Workspace {
            key,
            image,
            list,
            packer,
            room,
            ..
        } = work;
        let mut done = true;
        if !self.table_type.is_bag() {
            store.update(key, &guard, &mut |current| {
                if new_only && current.is_some() {
                    done = false;
                    return Change::Keep;
                }
                Change::Put(record(key, self.stored(image.take(), packer)))
            })?;
            return Ok(done);
        }
        let mut added = 0;
        store.update(key, &guard, &mut |current| {
            let Some(current) = current else {
                list.start();
                list.push(self.stored(image.take(), packer));
                return Change::Put(record(key, list.take()));
            };
            if new_only {
                done = false;
                return Change::Keep;
            }
            let others = list_of(current);
            if self.table_type == TableType::Bag
                && others
                    .iter()
                    .any(|other| image_eq(room.object(other), image.object(), self.zeros))
            {
                return Change::Keep;
            }
            list.start();
            list.push_all(others);
            list.push(self.stored(image.take(), packer));
            added = 1;
            Change::Put(record(key, list.take()))
        })?;
        store.extra_objects.add(added);
        Ok(done)
    }

    /// Makes the key and the image of an object.
    pub(crate) fn encode<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Workspace<T>,
    ) -> Result<(), Error> {
        self.check_object(object)?;
        work.start_key();
        self.key_bytes(object.element(self.key_index), &mut work.key);
        work.image.encode_object(object)?;
        Ok(())
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

    /// Removes all objects of a key and returns them.
    pub fn take<'g, T: HostTerm<Host = H>>(
        &'g self,
        key: T,
        work: &mut Workspace<T>,
        guard: &'g Guard,
    ) -> Result<Option<Found<'g, H>>, Error> {
        work.start_key();
        self.key_bytes(key, &mut work.key);
        let store = self.store(guard);
        let mut taken = None;
        store.update(&work.key, guard, &mut |current| {
            if let Some(record) = current {
                // What is returned must be what was there at the end.
                counted::stop(record).for_ever();
                taken = Some(Found::new(record));
            }
            Change::Remove
        })?;
        if let (true, Some(found)) = (self.table_type.is_bag(), &taken) {
            store.extra_objects.add(1 - found.count() as i64);
        }
        Ok(taken)
    }

    /// Removes the object that is equal (`=:=`) to this one; a `duplicate_bag` may hold several, which
    /// all go.
    pub fn delete_object<T: HostTerm<Host = H>>(
        &self,
        object: T,
        work: &mut Workspace<T>,
    ) -> Result<(), Error> {
        self.encode(object, work)?;
        let guard = ats_sync::pin();
        let store = self.store(&guard);
        let Workspace {
            key,
            image,
            list,
            room,
            ..
        } = work;
        let unwanted = image.object();
        let is_unwanted = |other: Object<'_, H>| image_eq(other, unwanted, self.zeros);
        let mut removed_extra = 0;
        store.update(key, &guard, &mut |current| {
            let Some(current) = current else {
                return Change::Keep;
            };
            if !self.table_type.is_bag() {
                let stopped = counted::stop(current);
                if !is_unwanted(Found::new(current).first(room)) {
                    return Change::Keep;
                }
                stopped.for_ever();
                return Change::Remove;
            }
            let objects = list_of(current);
            let count = objects.iter().count();
            let mut is_kept = |other: &Stored<'_, H>| !is_unwanted(room.object(*other));
            let kept = objects.iter().filter(&mut is_kept).count();
            if kept == count {
                return Change::Keep;
            }
            removed_extra = count as i64 - kept.max(1) as i64;
            if kept == 0 {
                return Change::Remove;
            }
            list.start();
            for other in objects.iter().filter(is_kept) {
                list.push_copy(other);
            }
            Change::Put(record(key, list.take()))
        })?;
        store.extra_objects.add(-removed_extra);
        Ok(())
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
        for (position, value) in values {
            let index = self.index_to_change(*position)?;
            changes.push((index, NewValue::Term(*value)));
        }
        let guard = ats_sync::pin();
        let mut found = false;
        self.update_object(key, default, work, &guard, |object, image| {
            found = true;
            if changes.iter().any(|(index, _)| *index >= object.arity()) {
                return Err(Error::Position);
            }
            if changes.is_empty() {
                return Ok(Changed::No);
            }
            image.replace_elements(object, &changes);
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
    /// is no object and no default.
    pub(crate) fn update_object<'g, T: HostTerm<Host = H>>(
        &'g self,
        key: T,
        default: Option<T>,
        work: &mut Workspace<T>,
        guard: &'g Guard,
        mut change: impl FnMut(Object<'_, H>, &mut ImageBuilder<T>) -> Result<Changed, Error>,
    ) -> Result<(), Error> {
        if let Some(default) = default {
            self.check_object(default)?;
            work.image.encode_object(default)?;
            // The default object may bring any key; the one it is inserted under counts.
            let own_key = [(self.key_index, NewValue::Term(key))];
            work.second.replace_elements(work.image.object(), &own_key);
        }
        work.start_key();
        self.key_bytes(key, &mut work.key);
        let Workspace {
            key,
            image,
            second,
            packer,
            room,
            ..
        } = work;
        let mut result = Ok(());
        self.store(guard).update(key, guard, &mut |current| {
            // Goes on if the object stays.
            let stopped = current.map(counted::stop);
            let changed = match current {
                Some(current) => change(Found::new(current).first(room), image),
                None if default.is_some() => {
                    change(second.object(), image).map(|changed| match changed {
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
                    Change::Put(new)
                }
                Ok(Changed::No) => Change::Keep,
                Err(error) => {
                    result = Err(error);
                    Change::Keep
                }
            }
        })?;
        result
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

/// A record of what was just built.
pub(crate) fn record<H: Host>(key: &[u8], built: Built<'_, H>) -> RecordBox<Values<H>> {
    RecordBox::new(key, built.words(), built.owns())
}

/// An element that must be there.
pub(crate) fn element<H: Host>(
    object: Object<'_, H>,
    index: usize,
) -> Result<ImageRef<'_, H>, Error> {
    object.get(index).ok_or(Error::Position)
}
