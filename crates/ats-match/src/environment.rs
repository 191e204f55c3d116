//! The place where a program runs.

/// The facts about the place where a program runs, for which it can ask.
///
/// # Safety
/// The words that it gives are those of immediates of the host of the objects, since results are
/// made of them.
pub unsafe trait Environment {
    /// The word of the process that runs the program. Without one, asking for it fails.
    fn self_word(&self) -> Option<u64>;

    /// The word of the atom that is the name of this node.
    fn node_word(&self) -> u64;

    /// The word of an atom, or nothing if there can be no such atom.
    fn atom_word(&self, text: &str) -> Option<u64>;
}
