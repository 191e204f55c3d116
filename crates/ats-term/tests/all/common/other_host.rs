//! A term as shown by another host.

use ats_term::image::{HostKind, HostTag, HostTerm, TermHost};
use ats_term::{FunIdent, Ident, Kind, Opaque, Term, TermRef};

/// A term that shows the pairs of its maps in another order, and whose captured values cannot be
/// walked in place.
#[derive(Clone, Copy)]
pub(crate) struct OtherHostTerm<'a>(pub(crate) &'a Term);

impl TermRef for OtherHostTerm<'_> {
    fn kind(self) -> Kind<Self> {
        self.0.kind().map(OtherHostTerm)
    }

    fn immediate(self) -> Option<u64> {
        self.0.immediate()
    }

    fn with_big<R>(self, f: impl FnOnce(bool, &[u8]) -> R) -> R {
        self.0.with_big(f)
    }

    fn with_atom<R>(self, f: impl FnOnce(&str) -> R) -> R {
        self.0.with_atom(f)
    }

    fn element(self, i: usize) -> Self {
        OtherHostTerm(self.0.element(i))
    }

    fn map_pairs(self, out: &mut Vec<(Self, Self)>) {
        let mut pairs = Vec::new();
        self.0.map_pairs(&mut pairs);
        pairs.reverse();
        let middle = pairs.len() / 3;
        pairs.rotate_left(middle);
        out.extend(
            pairs
                .into_iter()
                .map(|(key, value)| (OtherHostTerm(key), OtherHostTerm(value))),
        );
    }

    fn with_bits<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        self.0.with_bits(f)
    }

    fn with_ident<R>(self, f: impl FnOnce(Ident<'_>) -> R) -> R {
        self.0.with_ident(f)
    }

    fn with_fun<R>(self, f: impl FnOnce(FunIdent<'_>) -> R) -> R {
        self.0.with_fun(f)
    }

    fn with_opaque<R>(self, f: impl FnOnce(Opaque<'_>) -> R) -> R {
        self.0.with_opaque(f)
    }
}

// SAFETY: `OtherHostTerm` wraps a `&Term` and changes only the order of the pairs of a map, and
// `&Term` keeps the contract of `HostTerm`.
unsafe impl HostTerm for OtherHostTerm<'_> {
    type Host = TermHost;

    fn write_identity(self, kind: HostKind, out: &mut Vec<u64>) -> HostTag {
        self.0.write_identity(kind, out)
    }

    fn write_large_bits(self, bits: usize, out: &mut Vec<u64>) -> Option<HostTag> {
        self.0.write_large_bits(bits, out)
    }
}
