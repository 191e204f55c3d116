//! Values as the words of a record.
//!
//! The words are the bytes of a value, padded with zeros to whole words. If the type does not
//! determine the length, the last byte of the last word does: it is the number of padding bytes,
//! including itself. A record has at least one word, because a record without a value stands for no
//! key.

use smallvec::SmallVec;

const WORD: usize = size_of::<u64>();

/// The words of a value.
pub(super) type Words = SmallVec<[u64; 9]>;

/// Returns the words of a value with these bytes. `len` is their number, if the type determines it.
pub(super) fn pack(bytes: &[u8], len: Option<usize>) -> Words {
    let count = match len {
        Some(_) => bytes.len().div_ceil(WORD).max(1),
        None => bytes.len() / WORD + 1,
    };
    let (whole, rest) = bytes.as_chunks::<WORD>();
    let mut words: Words = whole.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    if words.len() < count {
        let mut last = [0; WORD];
        last[..rest.len()].copy_from_slice(rest);
        if len.is_none() {
            last[WORD - 1] = (WORD - rest.len()) as u8;
        }
        words.push(u64::from_ne_bytes(last));
    }
    words
}

/// Returns the bytes of the value with these words.
pub(super) fn unpack(words: &[u64], len: Option<usize>) -> &[u8] {
    // SAFETY: the bytes of initialized words are initialized, a byte can have any address, and
    // their borrow is that of the words.
    let all =
        unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) };
    let padding = || all.last().map_or(0, |padding| usize::from(*padding));
    &all[..len.unwrap_or_else(|| all.len() - padding())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_come_back() {
        for len in 0..100 {
            let bytes: Vec<u8> = (0..len).map(|at| at as u8 ^ 0xA5).collect();
            for known in [None, Some(bytes.len())] {
                let words = pack(&bytes, known);
                assert!(!words.is_empty());
                assert_eq!(unpack(&words, known), bytes, "{len} bytes, {known:?}");
            }
        }
    }

    #[test]
    fn a_number_whose_length_is_known_takes_one_word() {
        assert_eq!(pack(&[1; 8], Some(8)).len(), 1);
        assert_eq!(pack(&[], Some(0)).len(), 1);
        assert_eq!(pack(&[1; 8], None).len(), 2);
        assert_eq!(pack(&[1; 7], None).len(), 1);
    }
}
