//! Pids, ports and references in any representation.

/// The identity of a pid, port or reference: the node that made it and its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ident<'a> {
    /// `true` for an identifier of the running node, regardless of the node's present name. `node`
    /// and `creation` are then those at the time the library was loaded, so that renaming the node
    /// changes no key.
    pub local: bool,
    /// Name of the node, UTF-8.
    pub node: &'a str,
    /// Creation (incarnation) of the node.
    pub creation: u32,
    /// Numbers, most significant in Erlang's order first:
    /// pid = `[serial, number]`; port = `[high 32 bits, low 32 bits]`;
    /// reference = its 32-bit words in the order Erlang compares them.
    pub numbers: &'a [u32],
}

impl<'a> Ident<'a> {
    /// Returns the numbers without leading zeros. Erlang treats a missing word of a reference as
    /// zero, so only these count in comparisons.
    pub(crate) fn significant(&self) -> &'a [u32] {
        let zeros = self
            .numbers
            .iter()
            .take_while(|&&number| number == 0)
            .count();
        &self.numbers[zeros..]
    }
}
