//! The environment in which a program runs.

/// Facts that a program may ask its environment for.
///
/// # Safety
/// The words must be those of immediates of the objects' host, because results are built from them.
pub unsafe trait Environment {
    /// Returns the word of the process that runs the program. Without one, `self/0` fails.
    fn self_word(&self) -> Option<u64>;

    /// Returns the word of the atom that is the name of this node.
    fn node_word(&self) -> u64;

    /// Returns the word of an atom, or `None` if no such atom can exist.
    fn atom_word(&self, text: &str) -> Option<u64>;
}
