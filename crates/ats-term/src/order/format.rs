//! The format of order keys, as described in [`order`](super).

use crate::Zeros;
use crate::immediate::NIL as NIL_WORD;
use crate::keys::{Boundary, Format};
use crate::term_ref::{FunIdent, Ident, Kind, Opaque, TermRef};

/// The tag of zero; integers of `n` bytes have the tag `ZERO + n` or `ZERO - n`.
const ZERO: u8 = 0x10;
const POSITIVE_BIG: u8 = ZERO + 9;
const NEGATIVE_BIG: u8 = ZERO - 9;
const EXACT_FLOAT: u8 = 0x20;
pub(super) const ATOM: u8 = 0x28;
pub(super) const REF: u8 = 0x30;
pub(super) const LOCAL_FUN: u8 = 0x38;
const EXTERNAL_FUN: u8 = 0x39;
pub(super) const PORT: u8 = 0x40;
pub(super) const PID: u8 = 0x48;
pub(super) const TUPLE: u8 = 0x50;
pub(super) const RECORD: u8 = 0x54;
const UNKNOWN: u8 = 0x55;
pub(super) const MAP: u8 = 0x58;
pub(super) const NIL: u8 = 0x60;
pub(super) const CONS: u8 = 0x68;
pub(super) const BITS: u8 = 0x70;

/// Separator of the integer part and the fraction of a number. Greater than every tag.
pub(super) const FRACTION: u8 = 0xFE;

/// Largest number of bytes that [`order_key_int`] writes.
pub const MAX_INT_KEY: usize = 9;

/// Writes the order key of an integer to the front of `out` and returns its length. The fast path
/// for integer keys: no loop, no allocation.
#[inline]
pub fn order_key_int(value: i64, out: &mut [u8; MAX_INT_KEY]) -> usize {
    let magnitude = value.unsigned_abs();
    let length = 8 - magnitude.leading_zeros() / 8;
    // The shift wraps for zero, which has no bytes.
    let mut bytes = magnitude.wrapping_shl(64 - 8 * length).to_be_bytes();
    if value < 0 {
        bytes = bytes.map(|byte| !byte);
    }
    let length = length as u8;
    out[0] = if value < 0 {
        ZERO - length
    } else {
        ZERO + length
    };
    out[1..].copy_from_slice(&bytes);
    1 + usize::from(length)
}

/// Returns the number of an order key, if it is an integer of 64 bits. The key is the same for an
/// integer and a float of that value.
#[inline]
pub fn number_of_order_key(key: &[u8]) -> Option<i64> {
    let (tag, bytes) = key.split_first()?;
    if bytes.len() > 8 || tag.abs_diff(ZERO) as usize != bytes.len() {
        return None;
    }
    let is_negative = *tag < ZERO;
    let magnitude = bytes.iter().fold(0_u64, |magnitude, byte| {
        magnitude << 8 | u64::from(if is_negative { !byte } else { *byte })
    });
    if is_negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// The format of order keys.
pub(super) struct Order {
    zeros: Zeros,
    /// Number of map keys around the current term. Map keys are compared exactly.
    map_keys: usize,
}

impl Order {
    pub(super) fn new(zeros: Zeros) -> Order {
        Order { zeros, map_keys: 0 }
    }

    fn float(&self, value: f64, out: &mut Vec<u8>) {
        if self.map_keys > 0 {
            push_exact_float(value, self.zeros, out);
        } else {
            push_float(value, out);
        }
    }
}

impl Format for Order {
    #[inline]
    fn immediate<T: TermRef>(&mut self, term: T, word: u64, out: &mut Vec<u8>) {
        if word & 0xF == 0xF {
            // The arithmetic shift restores the sign.
            push_int(word as i64 >> 4, out);
        } else if word == NIL_WORD {
            out.push(NIL);
        } else {
            self.scalar(term, term.kind(), out);
        }
    }

    fn scalar<T: TermRef>(&mut self, term: T, kind: Kind<T>, out: &mut Vec<u8>) {
        match kind {
            Kind::Int(value) => push_int(value, out),
            Kind::Big => term.with_big(|negative, magnitude| push_big(negative, magnitude, out)),
            Kind::Float(value) => self.float(value, out),
            Kind::Atom => {
                out.push(ATOM);
                term.with_atom(|text| push_escaped(text.as_bytes(), out));
            }
            Kind::Nil => out.push(NIL),
            Kind::Bits(bits) => {
                out.push(BITS);
                term.with_bits(|bytes| push_escaped(bytes, out));
                out.push(if bits == 0 {
                    0
                } else {
                    ((bits - 1) % 8 + 1) as u8
                });
            }
            Kind::Ref => term.with_ident(|ident| push_numbers_last(REF, ident, out)),
            Kind::Port => term.with_ident(|ident| push_numbers_last(PORT, ident, out)),
            Kind::Pid => term.with_ident(|ident| push_numbers_first(PID, ident, out)),
            Kind::ExternalFun => term.with_fun(|fun| push_external_fun(&fun, out)),
            Kind::Tuple(_) | Kind::Cons(..) | Kind::Map(_) | Kind::LocalFun | Kind::Opaque => {
                debug_assert!(false, "the walk writes compound terms");
            }
        }
    }

    #[inline]
    fn tuple(&mut self, arity: usize, out: &mut Vec<u8>) {
        out.push(TUPLE);
        push_size(arity, out);
    }

    #[inline]
    fn cons(&mut self, out: &mut Vec<u8>) {
        out.push(CONS);
    }

    fn map(&mut self, pairs: usize, out: &mut Vec<u8>) {
        out.push(MAP);
        push_size(pairs, out);
    }

    fn local_fun(&mut self, fun: &FunIdent<'_>, out: &mut Vec<u8>) {
        let FunIdent::Local {
            module,
            index,
            old_uniq,
            free,
            ..
        } = fun
        else {
            return;
        };
        // The VM compares index and hash as signed numbers.
        let ordered = |number: u32| (number ^ 1 << 31).to_be_bytes();
        out.push(LOCAL_FUN);
        push_name(module, out);
        out.extend_from_slice(&ordered(*index));
        out.extend_from_slice(&ordered(*old_uniq));
        push_size(free.len(), out);
    }

    fn opaque(&mut self, opaque: &Opaque<'_>, out: &mut Vec<u8>) {
        match *opaque {
            Opaque::Record {
                module,
                name,
                exported,
                fields,
                ..
            } => {
                out.push(RECORD);
                push_name(module, out);
                push_name(name, out);
                out.push(u8::from(exported));
                push_size(fields.len(), out);
                for field in fields {
                    push_name(field.as_str(), out);
                }
            }
            Opaque::Unknown(etf) => {
                out.push(UNKNOWN);
                push_escaped(etf, out);
            }
        }
    }

    fn map_keys(&mut self, boundary: Boundary) {
        match boundary {
            Boundary::Enter => self.map_keys += 1,
            Boundary::Leave => self.map_keys -= 1,
        }
    }

    fn note_boundary(&mut self, _: Boundary) {}
}

#[inline]
pub(super) fn push_int(value: i64, out: &mut Vec<u8>) {
    let mut key = [0; MAX_INT_KEY];
    let length = order_key_int(value, &mut key);
    // A copy of constant length is quicker than one of a few bytes.
    let start = out.len();
    out.extend_from_slice(&key);
    out.truncate(start + length);
}

/// Writes an integer of at least 8 bytes from its little-endian magnitude.
fn push_big(negative: bool, magnitude: &[u8], out: &mut Vec<u8>) {
    let start = out.len() + 1;
    if magnitude.len() <= 8 {
        let length = magnitude.len() as u8;
        out.push(if negative {
            ZERO - length
        } else {
            ZERO + length
        });
    } else {
        out.push(if negative { NEGATIVE_BIG } else { POSITIVE_BIG });
        push_size(magnitude.len(), out);
    }
    out.extend(magnitude.iter().rev());
    if negative {
        complement(&mut out[start..]);
    }
}

/// Writes a float by its value, so that it equals the integer of the same value.
fn push_float(value: f64, out: &mut Vec<u8>) {
    // 2 to the power of 63, the first float above all i64. Such floats have no fraction.
    const I64_END: f64 = 9_223_372_036_854_775_808.0;
    if value.abs() >= I64_END {
        return push_huge_float(value, out);
    }
    let whole = value.trunc();
    // The difference is exact. Adding it to the integer below a negative number would not be.
    let fraction = (value - whole).abs();
    if fraction == 0.0 {
        push_int(whole as i64, out);
    } else if value > 0.0 {
        push_int(whole as i64, out);
        out.push(FRACTION);
        out.extend_from_slice(&fraction.to_bits().to_be_bytes());
    } else {
        push_int(whole as i64 - 1, out);
        out.push(FRACTION);
        out.extend_from_slice(&(!fraction.to_bits()).to_be_bytes());
    }
}

/// Writes a float of at least 2^63 as an integer.
fn push_huge_float(value: f64, out: &mut Vec<u8>) {
    const MAX_FLOAT_BYTES: usize = 1024 / 8;
    let bits = value.abs().to_bits();
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    // Exponent of the last bit of the mantissa, at least 11.
    let exponent = (bits >> 52) as usize - 1075;
    let mut magnitude = [0; MAX_FLOAT_BYTES];
    let shifted = u128::from(mantissa) << (exponent % 8);
    for (i, byte) in shifted.to_le_bytes().into_iter().take(8).enumerate() {
        // Bytes beyond the largest float are zero.
        if let Some(slot) = magnitude.get_mut(exponent / 8 + i) {
            *slot = byte;
        }
    }
    let length = magnitude
        .iter()
        .rposition(|&byte| byte != 0)
        .map_or(0, |last| last + 1);
    push_big(value < 0.0, &magnitude[..length], out);
}

/// Writes a float inside a map key: after all integers, ordered among floats.
fn push_exact_float(value: f64, zeros: Zeros, out: &mut Vec<u8>) {
    // Adding zero turns -0.0 into 0.0.
    let value = if zeros == Zeros::Same {
        value + 0.0
    } else {
        value
    };
    let bits = value.to_bits();
    let ordered = if value.is_sign_negative() {
        !bits
    } else {
        bits | 1 << 63
    };
    out.push(EXACT_FLOAT);
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn complement(bytes: &mut [u8]) {
    for byte in bytes.iter_mut() {
        *byte = !*byte;
    }
}

/// Writes a size so that larger ones are larger bytes.
#[inline]
fn push_size(size: usize, out: &mut Vec<u8>) {
    const SINGLE_BYTE_END: usize = 248;
    if size < SINGLE_BYTE_END {
        out.push(size as u8);
    } else {
        let bytes = (size as u64).to_be_bytes();
        let zeros = size.leading_zeros() as usize / 8;
        out.push((SINGLE_BYTE_END - 1 + bytes.len() - zeros) as u8);
        out.extend_from_slice(&bytes[zeros..]);
    }
}

/// Writes bytes of any length, with their end mark. The next byte must not be `FF`.
pub(super) fn push_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.contains(&0) {
        out.extend_from_slice(bytes);
        return out.push(0);
    }
    let mut parts = bytes.split(|&byte| byte == 0);
    if let Some(first) = parts.next() {
        out.extend_from_slice(first);
    }
    for part in parts {
        out.extend_from_slice(&[0, 0xFF]);
        out.extend_from_slice(part);
    }
    out.push(0);
}

/// Writes a name that may be followed by any byte.
fn push_name(name: &str, out: &mut Vec<u8>) {
    push_escaped(name.as_bytes(), out);
    out.push(0);
}

fn push_node(ident: &Ident<'_>, out: &mut Vec<u8>) {
    push_name(ident.node, out);
    out.extend_from_slice(&ident.creation.to_be_bytes());
}

fn push_numbers(ident: &Ident<'_>, out: &mut Vec<u8>) {
    let numbers = ident.significant();
    push_size(numbers.len(), out);
    for number in numbers {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn push_numbers_first(tag: u8, ident: Ident<'_>, out: &mut Vec<u8>) {
    out.push(tag);
    push_numbers(&ident, out);
    push_node(&ident, out);
    out.push(u8::from(ident.local));
}

fn push_numbers_last(tag: u8, ident: Ident<'_>, out: &mut Vec<u8>) {
    out.push(tag);
    push_node(&ident, out);
    push_numbers(&ident, out);
    out.push(u8::from(ident.local));
}

fn push_external_fun(fun: &FunIdent<'_>, out: &mut Vec<u8>) {
    let FunIdent::External {
        module,
        function,
        arity,
    } = fun
    else {
        return;
    };
    out.push(EXTERNAL_FUN);
    push_name(module, out);
    push_name(function, out);
    out.extend_from_slice(&arity.to_be_bytes());
}
