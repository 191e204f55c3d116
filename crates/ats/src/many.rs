//! Inserting several objects as one.

use crate::Error;
use crate::table::{Table, TableType};
use crate::value::{Rec, Values, list as list_of};
use crate::workspace::Workspace;
use crate::write::record;
use ats_mem::{Change, RecordBox};
use ats_term::image::{Host, HostTerm, Object, ObjectListBuilder, image_eq};

/// Records of the objects to insert, each with a single object, in the order of their keys; those
/// with the same key in the order they were given.
struct Sorted<H: Host>(Vec<Option<RecordBox<Values<H>>>>);

impl<H: Host> Table<H> {
    /// Inserts all objects at one moment: every reader sees all of them or none. Of several objects
    /// with the same key a set keeps the last. Takes O(n log n) for n objects, and locks only the
    /// keys it changes.
    pub fn insert_many<T: HostTerm<Host = H>>(
        &self,
        objects: impl Iterator<Item = T>,
        work: &mut Workspace<T>,
    ) -> Result<(), Error> {
        self.insert_many_if(objects, work, false).map(|_| ())
    }

    /// Inserts all objects at one moment, unless there is an object with the key of one of them; says
    /// whether it did.
    pub fn insert_many_new<T: HostTerm<Host = H>>(
        &self,
        objects: impl Iterator<Item = T>,
        work: &mut Workspace<T>,
    ) -> Result<bool, Error> {
        self.insert_many_if(objects, work, true)
    }

    fn insert_many_if<T: HostTerm<Host = H>>(
        &self,
        terms: impl Iterator<Item = T>,
        work: &mut Workspace<T>,
        new_only: bool,
    ) -> Result<bool, Error> {
        let mut sorted = self.sorted(terms, work)?;
        let groups = sorted.groups();
        let keys: Vec<Vec<u8>> = groups.iter().map(|group| sorted.key(group.start)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let guard = ats_sync::pin();
        let store = self.store(&guard);
        let mut extra = 0;
        let done = store.update_many(&keys, &guard, &mut |index, current| {
            if new_only && current.is_some() {
                return Change::Abort;
            }
            let group = groups[index].clone();
            if !self.table_type.is_bag() {
                let last = sorted.0[group.end - 1].take();
                return Change::Put(last.expect("each group is written once"));
            }
            let (record, added) = self.merged(current, &sorted, group, &mut work.list);
            extra += added;
            record.map_or(Change::Keep, Change::Put)
        })?;
        if done {
            store.extra_objects.add(extra);
        }
        Ok(done)
    }

    /// Encodes the objects and sorts them by key.
    fn sorted<T: HostTerm<Host = H>>(
        &self,
        terms: impl Iterator<Item = T>,
        work: &mut Workspace<T>,
    ) -> Result<Sorted<H>, Error> {
        let mut records = Vec::with_capacity(terms.size_hint().0);
        for term in terms {
            self.encode(term, work)?;
            records.push(Some(record(&work.key, work.image.take())));
        }
        // Stable, so that objects with the same key stay in their order.
        records.sort_by(|a, b| key_of(a).cmp(key_of(b)));
        Ok(Sorted(records))
    }

    /// The objects of a bag's key with those of a group appended, and how many more there are than one
    /// per record; nothing if all of them were there.
    fn merged(
        &self,
        current: Option<&Rec<H>>,
        sorted: &Sorted<H>,
        group: std::ops::Range<usize>,
        list: &mut ObjectListBuilder<H>,
    ) -> (Option<RecordBox<Values<H>>>, i64) {
        list.start();
        if let Some(current) = current {
            list.push_all(list_of(current));
        }
        let mut added = 0;
        let key = sorted.key(group.start);
        for record in sorted.0[group].iter().flatten() {
            let object = single(record);
            let known = self.table_type == TableType::Bag
                && list
                    .list()
                    .iter()
                    .any(|other| image_eq(other, object, self.zeros));
            if !known {
                list.push_copy(object);
                added += 1;
            }
        }
        if added == 0 {
            return (None, 0);
        }
        let extra = added - i64::from(current.is_none());
        (Some(record(&key, list.take())), extra)
    }
}

impl<H: Host> Sorted<H> {
    /// The ranges of records with the same key.
    fn groups(&self) -> Vec<std::ops::Range<usize>> {
        let mut start = 0;
        let runs = self.0.chunk_by(|a, b| key_of(a) == key_of(b));
        runs.map(|run| {
            let range = start..start + run.len();
            start = range.end;
            range
        })
        .collect()
    }

    fn key(&self, at: usize) -> Vec<u8> {
        key_of(&self.0[at]).to_vec()
    }
}

fn key_of<H: Host>(record: &Option<RecordBox<Values<H>>>) -> &[u8] {
    record.as_ref().map_or(&[], |record| record.key())
}

/// The object of a record that was made of one, whatever the type of its table.
fn single<H: Host>(record: &Rec<H>) -> Object<'_, H> {
    // SAFETY: what was built for this host, and the record keeps what it owns.
    unsafe { Object::from_words(record.value()) }
}
