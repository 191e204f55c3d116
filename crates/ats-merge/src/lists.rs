//! Lists and binaries, one behind the other.

use crate::merge_error::MergeError;
use crate::merged::Merged;
use ats_term::image::{Host, ImageRef};
use ats_term::{Kind, TermRef};

/// Returns the elements of a proper list.
pub(crate) fn elements<H: Host>(list: ImageRef<'_, H>) -> Option<Vec<ImageRef<'_, H>>> {
    let mut elements = Vec::new();
    let mut rest = list;
    loop {
        match rest.kind() {
            Kind::Nil => return Some(elements),
            Kind::Cons(head, tail) => {
                elements.push(head);
                rest = tail;
            }
            _ => return None,
        }
    }
}

/// Returns `true` if a term is a proper list.
fn is_list<H: Host>(list: ImageRef<'_, H>) -> bool {
    let mut rest = list;
    loop {
        match rest.kind() {
            Kind::Nil => return true,
            Kind::Cons(_, tail) => rest = tail,
            _ => return false,
        }
    }
}

/// Returns `true` if a term can be put behind another one.
pub(crate) fn accepts<H: Host>(term: ImageRef<'_, H>) -> bool {
    is_binary(term) || is_list(term)
}

fn is_binary<T: TermRef>(term: T) -> bool {
    matches!(term.kind(), Kind::Bits(bits) if bits.is_multiple_of(8))
}

/// Returns the earlier one with the later one behind it.
pub(crate) fn append<'m, H: Host>(
    earlier: ImageRef<'m, H>,
    later: ImageRef<'m, H>,
) -> Result<Merged<'m, H>, MergeError> {
    if let Kind::Bits(earlier_bits) = earlier.kind() {
        if !is_binary(earlier) {
            return Err(MergeError::Earlier);
        }
        return match later.kind() {
            Kind::Bits(_) if !is_binary(later) => Err(MergeError::Later),
            Kind::Bits(0) => Ok(Merged::Earlier(earlier)),
            Kind::Bits(_) if earlier_bits == 0 => Ok(Merged::Later(later)),
            Kind::Bits(later_bits) => {
                let mut bytes = Vec::with_capacity((earlier_bits + later_bits) / 8);
                for (term, bits) in [(earlier, earlier_bits), (later, later_bits)] {
                    term.with_bits(|all| bytes.extend_from_slice(&all[..bits / 8]));
                }
                Ok(Merged::Bytes(bytes))
            }
            _ => Err(MergeError::Later),
        };
    }
    let mut elements = elements(earlier).ok_or(MergeError::Earlier)?;
    if elements.is_empty() && is_list(later) {
        return Ok(Merged::Later(later));
    }
    let before = elements.len();
    let behind = self::elements(later).ok_or(MergeError::Later)?;
    elements.extend(behind);
    if elements.len() == before {
        Ok(Merged::Earlier(earlier))
    } else {
        Ok(Merged::List(elements))
    }
}
