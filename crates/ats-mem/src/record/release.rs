//! Callbacks by which the owners of values describe them.

use super::published::Record;
use super::weight::Weight;

/// The release of resources that values hold (shared binaries, references into a virtual
/// machine...). Implemented by the code that knows the meaning of value words.
pub trait Release: Send + Sync + 'static {
    /// Releases the resources that the words own. Called once for each owning record, when no
    /// reader can access it any more, on any thread.
    ///
    /// # Safety
    /// `value` must be the value of a record that was created with `owns`, and must not be used
    /// afterwards.
    unsafe fn release(value: &[u64]);

    /// Returns the approximate number of bytes that the owned resources keep allocated, besides the
    /// words. Called when an owning value is retired, while readers may still access it. Returns 0
    /// by default.
    ///
    /// # Safety
    /// `value` and `words` must be those that [`value_words`](super::Record::value_words) returns
    /// for an owning value.
    unsafe fn kept_bytes(value: *const u64, words: usize) -> usize {
        let _ = (value, words);
        0
    }

    /// Returns the approximate number of bytes that the owned resources keep allocated, and those
    /// of the `later` value of the same key do not, besides the words. The same as
    /// [`kept_bytes`](Self::kept_bytes) by default.
    ///
    /// # Safety
    /// Both must be those of owning values, as for `kept_bytes`.
    unsafe fn held_bytes(value: (*const u64, usize), later: Option<(*const u64, usize)>) -> usize {
        let _ = later;
        // SAFETY: our caller gives the promise that `kept_bytes` demands.
        unsafe { Self::kept_bytes(value.0, value.1) }
    }

    /// Returns the weight of a record: one object and its own bytes by default. The result must not
    /// change from before the record is put into a store until it is retired. Called under locks,
    /// so it must be quick.
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
    /// Returns the change of weight when a record replaces another one, or none.
    pub fn of_put<R: Release>(new: &Record<R>, old: Option<&Record<R>>) -> Self {
        new.weight() - old.map_or(Weight::NONE, Record::weight)
    }
}

impl<R: Release> Record<R> {
    /// Returns the [weight](Release::weight) of the record; none if it has no value.
    #[inline]
    pub(crate) fn weight(&self) -> Weight {
        if self.is_empty() {
            Weight::NONE
        } else {
            R::weight(self)
        }
    }

    /// Returns the approximate number of bytes held back by this record, and not by a later one of
    /// its key.
    pub(crate) fn held_bytes(&self, later: Option<&Self>) -> usize {
        if !self.owns() {
            return self.bytes();
        }
        let later = later.filter(|later| later.owns());
        // SAFETY: the values belong to records whose headers mark them as owning.
        let held = unsafe { R::held_bytes(self.value_words(), later.map(Self::value_words)) };
        self.bytes().saturating_add(held)
    }

    /// Returns the number of objects that the record counts as in its slot. A record that only
    /// holds its key counts as the record before. The caller holds the lock of the key.
    pub(crate) fn objects_in_slot(&self) -> u64 {
        let objects = |record: &Self| u64::try_from(record.weight().objects).unwrap_or(0);
        if !self.is_empty() {
            return objects(self);
        }
        // SAFETY: the caller's lock keeps the record in the store; as long as it is there without a
        // value, it is stamped, and its entry lives (BATCH-4). So does the record before (BATCH-3).
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
