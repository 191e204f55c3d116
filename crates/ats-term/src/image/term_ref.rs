//! Terms of an image as [`TermRef`], so that keys and other encodings are made from them directly.

use super::host::{Host, HostKind};
use super::layout::{LIST, MAP, is_immediate, slot_offset};
use super::view::{ImageRef, View, i64_of_big};
use crate::immediate::Immediate;
use crate::term_ref::{FunIdent, Ident, Kind, Opaque, TermRef};

impl<H: Host> ImageRef<'_, H> {
    fn wrong_kind(self, wanted: &str) -> ! {
        panic!("image: {wanted} asked of {:?}", self.view())
    }
}

impl<H: Host> TermRef for ImageRef<'_, H> {
    fn kind(self) -> Kind<Self> {
        match self.view() {
            View::Immediate(Immediate::Small(value)) => Kind::Int(value),
            View::Immediate(Immediate::Atom(_)) => Kind::Atom,
            View::Immediate(Immediate::Nil) => Kind::Nil,
            View::Immediate(Immediate::LocalPid) => Kind::Pid,
            View::Immediate(Immediate::LocalPort) => Kind::Port,
            View::Tuple(elements) => Kind::Tuple(elements.len()),
            View::List { elements, .. } => {
                let head = elements.get(0).expect("image: a list box without elements");
                Kind::Cons(head, self.list_tail(slot_offset(self.slot), self.from + 1))
            }
            View::Map { keys, .. } => Kind::Map(keys.len()),
            View::Float(value) => Kind::Float(value),
            View::Big {
                negative,
                magnitude,
            } => i64_of_big(negative, magnitude).map_or(Kind::Big, Kind::Int),
            View::Bits { bits, .. } => Kind::Bits(bits),
            View::Host(host_box) => match H::kind(host_box) {
                HostKind::Bits(bits) => Kind::Bits(bits),
                HostKind::Pid => Kind::Pid,
                HostKind::Port => Kind::Port,
                HostKind::Ref => Kind::Ref,
                HostKind::LocalFun => Kind::LocalFun,
                HostKind::ExternalFun => Kind::ExternalFun,
                HostKind::Opaque => Kind::Opaque,
            },
        }
    }

    fn immediate(self) -> Option<u64> {
        is_immediate(self.slot).then_some(self.slot)
    }

    fn with_big<R>(self, f: impl FnOnce(bool, &[u8]) -> R) -> R {
        match self.view() {
            View::Big {
                negative,
                magnitude,
            } => f(negative, magnitude),
            _ => self.wrong_kind("a big integer"),
        }
    }

    fn with_atom<R>(self, f: impl FnOnce(&str) -> R) -> R {
        H::with_atom(self.slot, f)
    }

    fn element(self, i: usize) -> Self {
        match self.view() {
            View::Tuple(elements) => elements.get(i).expect("image: no such element"),
            _ => self.wrong_kind("an element"),
        }
    }

    fn map_pairs(self, out: &mut Vec<(Self, Self)>) {
        match self.view() {
            View::Map { keys, values } => out.extend(keys.iter().zip(values)),
            _ => self.wrong_kind("the pairs of a map"),
        }
    }

    fn has_canonical_maps(self) -> bool {
        // The keys of a map in an image are in canonical order (IMAGE-3).
        true
    }

    fn map_pair(self, i: usize) -> (Self, Self) {
        let pair = match self.view() {
            View::Map { keys, values } => keys.get(i).zip(values.get(i)),
            _ => self.wrong_kind("a pair of a map"),
        };
        pair.expect("image: no such pair")
    }

    #[inline]
    fn same_immediates(self, other: Self, start: usize) -> usize {
        let (Some((tag, a)), Some((other_tag, b))) = (self.top_slots(), other.top_slots()) else {
            return 0;
        };
        if tag != other_tag || tag == MAP {
            return 0;
        }
        // The tail of a list is no head.
        let tails = usize::from(tag == LIST);
        let (a, b) = (&a[start..a.len() - tails], &b[start..b.len() - tails]);
        let pairs = a.iter().zip(b);
        pairs
            .take_while(|(a, b)| a == b && is_immediate(**a))
            .count()
    }

    #[inline]
    fn list_rest(self, skip: usize) -> Self {
        self.skip(skip).expect("image: a list with fewer elements")
    }

    fn with_bits<R>(self, f: impl FnOnce(&[u8]) -> R) -> R {
        match self.view() {
            View::Bits { bytes, .. } => f(bytes),
            View::Host(host_box) => H::with_bits(host_box, f),
            _ => self.wrong_kind("the bytes of a bitstring"),
        }
    }

    fn with_ident<R>(self, f: impl FnOnce(Ident<'_>) -> R) -> R {
        match self.view() {
            View::Immediate(_) => H::with_local(self.slot, f),
            View::Host(host_box) => H::with_ident(host_box, f),
            _ => self.wrong_kind("an identity"),
        }
    }

    fn with_fun<R>(self, f: impl FnOnce(FunIdent<'_>) -> R) -> R {
        match self.view() {
            View::Host(host_box) => H::with_fun(host_box, f),
            _ => self.wrong_kind("a fun"),
        }
    }

    fn with_opaque<R>(self, f: impl FnOnce(Opaque<'_>) -> R) -> R {
        match self.view() {
            View::Host(host_box) => H::with_opaque(host_box, f),
            _ => self.wrong_kind("an opaque term"),
        }
    }
}
