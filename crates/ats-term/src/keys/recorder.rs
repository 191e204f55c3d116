//! The record of the maps that a walk has sorted, for other code that needs the order of their
//! keys.

/// A listener that is told of the maps of a term while their keys are sorted.
pub(crate) trait MapRecorder<T> {
    /// A position in the term.
    type Mark: Copy;

    /// Returns the position of the walk: the number of maps begun.
    fn mark(&self) -> Self::Mark;
    /// Begins a map that is not empty; the marks of its keys are requested after that.
    fn begin(&mut self, map: T);
    /// Ends a map: its pairs in the order of the keys, and for each the marks before key and value.
    fn end(&mut self, begun: Self::Mark, pairs: &[(T, T)], marks: &[(Self::Mark, Self::Mark)]);
}

/// A listener that records nothing, at no cost.
pub(crate) struct NoRecorder;

impl<T> MapRecorder<T> for NoRecorder {
    type Mark = ();

    #[inline]
    fn mark(&self) {}
    #[inline]
    fn begin(&mut self, _: T) {}
    #[inline]
    fn end(&mut self, (): (), _: &[(T, T)], _: &[((), ())]) {}
}
