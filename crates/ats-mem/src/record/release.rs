//! The facts about values that their owners tell.

use super::published::Record;
use super::weight::Weight;

/// The release of resources that values hold (shared binaries, references into a virtual
/// machine...). Implemented by the code that knows what the value words mean.
pub trait Release: Send + Sync + 'static {
    /// Gives back what the words own. Called once for each owning record, when no reader can see it
    /// any more, from any thread.
    ///
    /// # Safety
    /// `value` must be the value of a record that was created with `owns`, and must not be used
    /// afterwards.
    unsafe fn release(value: &[u64]);

    /// About how many bytes of memory what the words own keeps from being used, besides the words.
    /// Called when an owning value is retired, while readers may still be looking at it. Nothing,
    /// unless the owner of the values says more.
    ///
    /// # Safety
    /// `value` and `words` are those of an owning value, as
    /// [`value_words`](super::Record::value_words) tells them.
    unsafe fn kept_bytes(value: *const u64, words: usize) -> usize {
        let _ = (value, words);
        0
    }

    /// About how many bytes of memory what the words own keeps from being used, besides the words,
    /// and the words of the `later` value of the same key do not. As much as
    /// [`kept_bytes`](Self::kept_bytes) says, unless the owner of the values tells them apart.
    ///
    /// # Safety
    /// Both are those of owning values, as for `kept_bytes`.
    unsafe fn held_bytes(value: (*const u64, usize), later: Option<(*const u64, usize)>) -> usize {
        let _ = later;
        // SAFETY: what is asked of the words is asked of our caller.
        unsafe { Self::kept_bytes(value.0, value.1) }
    }

    /// The weight of a record: one object and its own bytes, unless the owner of the values says
    /// otherwise. The same from before it is put into a store until it is retired. Called under
    /// locks, so it must be quick.
    #[inline]
    fn weight(record: &Record<Self>) -> Weight
    where
        Self: Sized,
    {
        Weight {
            objects: 1,
            bytes: record.bytes() as i64,
        }
    }
}

impl Weight {
    /// The change when a record comes in the place of another or of nothing.
    pub fn of_put<R: Release>(new: &Record<R>, old: Option<&Record<R>>) -> Self {
        new.weight() - old.map_or(Weight::NONE, Record::weight)
    }
}

impl<R: Release> Record<R> {
    /// The [weight](Release::weight) of the record; none if it has no value.
    #[inline]
    pub(crate) fn weight(&self) -> Weight {
        match self.is_empty() {
            true => Weight::NONE,
            false => R::weight(self),
        }
    }

    /// About how many bytes of memory are held back by this record, and not by a later one of its
    /// key.
    pub(crate) fn held_bytes(&self, later: Option<&Self>) -> usize {
        if !self.owns() {
            return self.bytes();
        }
        let later = later.filter(|later| later.owns());
        // SAFETY: the values are those of records that own, as their headers say.
        let held = unsafe { R::held_bytes(self.value_words(), later.map(Self::value_words)) };
        self.bytes().saturating_add(held)
    }

    /// The number of objects that it stands for in its place. One that only holds its key stands
    /// for those that were there before. For a record in a store of which the caller has the lock.
    pub(crate) fn objects_in_place(&self) -> u64 {
        let objects = |record: &Self| u64::try_from(record.weight().objects).unwrap_or(0);
        if !self.is_empty() {
            return objects(self);
        }
        // SAFETY: a record without a value is stamped as long as it is in the store, and the entry
        // lives as long (BATCH-4), which the caller's lock ensures. So does the record before
        // (BATCH-3).
        let before = unsafe {
            self.header
                .stamp()
                .as_ref()
                .and_then(|entry| entry.before())
        };
        before.map_or(0, objects)
    }
}

/// Values that own nothing.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

impl Release for Plain {
    unsafe fn release(_value: &[u64]) {}
}
