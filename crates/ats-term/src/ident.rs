//! Pids, ports and references, wherever they live.

/// The identity of a pid, port or reference: the node that made it and its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ident<'a> {
    /// True if this is an identifier of the running node, whatever that node is called at present.
    /// `node` and `creation` are then the name and creation the node had when the library was
    /// loaded, so that renaming the node changes no key.
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
    /// The numbers without leading zeros. Erlang takes a missing word of a reference for zero, so
    /// only these count in comparisons.
    pub(crate) fn significant(&self) -> &'a [u32] {
        let zeros = self
            .numbers
            .iter()
            .take_while(|&&number| number == 0)
            .count();
        &self.numbers[zeros..]
    }
}
