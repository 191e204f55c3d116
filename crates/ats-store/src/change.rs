//! Changing one key, and several as one.

/// The decision of an update about a key, where `V` is the type in which a new value is given.
pub enum Change<V> {
    /// Leave it as it is.
    Keep,
    /// Put this in the place of what is there. A record that is given as a whole has the key of the
    /// update, byte for byte.
    Put(V),
    /// Remove the record.
    Remove,
    /// Only in a batch: undo the whole batch.
    Abort,
    /// Only as a decision of a [`BatchPlan`]: hold the key, and have the change
    /// [built](BatchPlan::build) when no lock is held. For what takes longer than a few
    /// microseconds.
    Later,
}

/// The decisions of a batch about its keys. `C` is what is there now, `V` what a new value is given
/// as.
pub trait BatchPlan<C: ?Sized, V> {
    /// Decides about the key with this index, seeing what is there. Called once for each key, in
    /// order, under a lock that the key may share with others, so it must be short. It must not
    /// call the store.
    fn decide(&mut self, index: usize, current: Option<&C>) -> Change<V>;

    /// Makes the change of a key for which [`decide`](BatchPlan::decide) has answered
    /// [`Later`](Change::Later), of the same record: [`Keep`](Change::Keep) or [`Put`](Change::Put)
    /// or, if it is the only key of the batch, [`Remove`](Change::Remove). Called right after the
    /// decision, so far as the store can do that with no lock but that of the key.
    fn build(&mut self, index: usize, current: Option<&C>) -> Change<V> {
        let _ = (index, current);
        unreachable!("this plan puts nothing off")
    }

    /// Decides about a key, and builds at once what the decision puts off: for stores that have no
    /// way to do that under fewer locks.
    fn decide_and_build(&mut self, index: usize, current: Option<&C>) -> Change<V> {
        match self.decide(index, current) {
            Change::Later => self.build(index, current),
            change => change,
        }
    }
}

/// A [`BatchPlan`] that puts nothing off.
impl<C: ?Sized, V, F: FnMut(usize, Option<&C>) -> Change<V>> BatchPlan<C, V> for F {
    fn decide(&mut self, index: usize, current: Option<&C>) -> Change<V> {
        self(index, current)
    }
}
