//! The record of the maps that a walk has sorted, for other code that needs the order of their
//! keys.

/// Is told of the maps of a term while their keys are sorted.
pub(crate) trait MapRecorder<T> {
    /// A place in the term.
    type Mark: Copy;

    /// The place where the walk is: how many maps have begun.
    fn mark(&self) -> Self::Mark;
    /// A map that is not empty begins; the marks of its keys are asked for after that.
    fn begin(&mut self, map: T);
    /// A map ends: its pairs in the order of the keys, and for each the marks before key and value.
    fn end(&mut self, begun: Self::Mark, pairs: &[(T, T)], marks: &[(Self::Mark, Self::Mark)]);
}

/// Remembers nothing, at no cost.
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
