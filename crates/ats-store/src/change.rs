//! The change of one key, and the plan of a change of several keys.

/// The decision of an update about a key. `V` is the type of new values.
pub enum Change<V> {
    /// Keep the key as it is.
    Keep,
    /// Give the key this value, whether it has one or not. If `V` is a whole record, its key equals
    /// that of the update, byte for byte.
    Put(V),
    /// Remove the record.
    Remove,
    /// Undo the whole batch. Allowed only in a batch.
    Abort,
    /// Hold the key, and have the change [built](BatchPlan::build) when no lock is held. Allowed
    /// only as a decision of a [`BatchPlan`], and meant for changes that take longer than a few
    /// microseconds.
    Later,
}

/// The decisions of a batch about its keys. `C` is the type of current records or values, `V` that
/// of new ones.
pub trait BatchPlan<C: ?Sized, V> {
    /// Decides about the key with this index; `current` is `None` if the key is absent. The store
    /// calls this once for each key, in order, under a lock that the key may share with others. So
    /// it must be short, and must not call the store.
    fn decide(&mut self, index: usize, current: Option<&C>) -> Change<V>;

    /// Makes the change of a key for which [`decide`](BatchPlan::decide) has answered
    /// [`Later`](Change::Later). `current` is the record that `decide` has seen. The answer is
    /// [`Keep`](Change::Keep), [`Put`](Change::Put), [`Abort`](Change::Abort) or, if the batch has
    /// only this key, [`Remove`](Change::Remove). In a [store of bytes](crate::Store::update) it is
    /// any change.
    ///
    /// A store in memory calls this right after the decision, and without any other lock than that
    /// of the key if it can. A store of bytes calls it for one key after the other, in order, when
    /// all keys are decided: so a plan that defers all keys has seen all of them before it changes
    /// one.
    fn build(&mut self, index: usize, current: Option<&C>) -> Change<V> {
        let _ = (index, current);
        unreachable!("this plan puts nothing off")
    }

    /// Decides about a key, and builds a deferred change at once. It is for records in memory that
    /// no lock protects.
    fn decide_and_build(&mut self, index: usize, current: Option<&C>) -> Change<V> {
        match self.decide(index, current) {
            Change::Later => self.build(index, current),
            change => change,
        }
    }
}

/// A [`BatchPlan`] that defers nothing.
impl<C: ?Sized, V, F: FnMut(usize, Option<&C>) -> Change<V>> BatchPlan<C, V> for F {
    fn decide(&mut self, index: usize, current: Option<&C>) -> Change<V> {
        self(index, current)
    }
}
