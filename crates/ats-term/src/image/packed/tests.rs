//! Unit tests of packed words; packed objects have integration tests in `tests/packed.rs`.

use super::super::draft::Built;
use super::super::host::HostTag;
use super::super::layout::{
    FLOAT, LIST, PACKED_WITH, TUPLE, box_slot, boxes, header, header_n, header_tag,
};
use super::super::term_host::TermHost;
use super::code::{LONG, TAG_IS_FIRST};
use super::{Packed, Packer};
use crate::immediate::{NIL, SMALL_MAX, SMALL_MIN, atom_word, small_word};

/// Returns the number of bytes that the elements of an object take in its stream.
fn stream_len(image: &[u64]) -> usize {
    let mut packer = Packer::new();
    let _ = packer.pack(Built::<TermHost>::object(image, false));
    // The tag, and the code of the tuple.
    packer.bytes.len() - 2
}

/// Packs an image, unpacks it after other words, and compares. Returns the packed words if they are
/// fewer.
fn round_trip(image: &[u64]) -> Option<Vec<u64>> {
    let mut packer = Packer::new();
    let built = packer.pack(Built::<TermHost>::object(image, false));
    if built.words().len() == image.len() {
        assert_eq!(built.words(), image);
        return None;
    }
    assert!(built.words().len() < image.len());
    let packed = built.words().to_vec();
    let mut room = vec![7; 3];
    let unpacked = Packed::<TermHost>::new(&packed).unpack(&mut room);
    assert_eq!(unpacked.words(), image);
    assert_eq!(room[..3], [7; 3]);
    Some(packed)
}

#[test]
fn the_first_elements_can_be_unpacked_alone() {
    let small = |value| small_word(value).expect("small");
    let image = [
        small(1),
        box_slot(4),
        box_slot(12),
        small(4),
        header(TUPLE, 3),
        box_slot(8),
        small(5),
        small(6),
        header(LIST, 2),
        NIL,
        NIL,
        small(7),
        header(FLOAT, 1),
        1.5f64.to_bits(),
    ];
    let packed = round_trip(&image).expect("it pays");
    for count in 0..6 {
        let mut room = Vec::new();
        let first = Packed::<TermHost>::new(&packed).unpack_first(count, &mut room);
        let boxes_end = [4, 4, 12, 14, 14, 14][count];
        let mut expected = image[..boxes_end].to_vec();
        expected[count.min(4)..4].fill(NIL);
        assert_eq!(first.words(), expected);
        assert_eq!(first.arity(), 4);
    }
}

/// Returns an object of the immediate and four nils, which is always worth packing.
fn with_nils(word: u64) -> [u64; 5] {
    [NIL, word, NIL, NIL, NIL]
}

#[test]
fn the_borders_of_immediates() {
    let small = |value: i64| small_word(value).expect("a small integer");
    let mut words: Vec<(u64, usize)> = vec![
        (small(0), 1),
        (small(127), 1),
        (small(128), 2),
        (small(-1), 2),
        (small(4095), 2),
        (small(-4096), 2),
        (small(4096), 3),
        (small(-4097), 3),
        (small((1 << 20) - 1), 3),
        (small(-(1 << 20)), 3),
        (small(1 << 20), 4),
        (small(-(1 << 20) - 1), 4),
        (small(SMALL_MAX), 9),
        (small(SMALL_MIN), 9),
        (NIL, 1),
        (atom_word(0), 2),
        (atom_word((1 << 11) - 1), 2),
        (atom_word(1 << 11), 3),
        (atom_word((1 << 19) - 1), 3),
        (atom_word(1 << 19), 5),
        (atom_word((1 << 58) - 1), 9),
        // A local pid and a local port.
        (0x3, 2),
        (0xFFF_FFFF << 4 | 0x3, 5),
        (u64::MAX << 4 | 0x7, 9),
    ];
    for bits in 22..59 {
        let bytes = 1 + (bits + 2usize).div_ceil(8);
        words.push((small((1 << bits) + 1), bytes));
        words.push((small(-(1 << bits) - 1), bytes));
    }
    for (word, bytes) in words {
        let object = with_nils(word);
        assert_eq!(stream_len(&object), 4 + bytes, "{word:#x}");
        assert!(round_trip(&object).is_some(), "{word:#x}");
    }
}

#[test]
fn the_borders_of_floats() {
    let floats = [
        (0.0, 1),
        (-0.0, 1),
        (1.0, 2),
        (-1.5, 2),
        (3.0, 2),
        (1.0 + 1.0 / 256.0, 3),
        (f64::from(1 << 20) + 0.5, 5),
        (0.1, 8),
        (f64::from_bits(1), 8),
        (f64::MAX, 8),
    ];
    for (float, bytes) in floats {
        let object = [box_slot(1), header(FLOAT, 1), float.to_bits()];
        assert_eq!(stream_len(&object), 1 + bytes, "{float}");
        assert!(round_trip(&object).is_some());
    }
    for shift in 0..64 {
        round_trip(&[box_slot(1), header(FLOAT, 1), 1 << shift]);
        round_trip(&[box_slot(1), header(FLOAT, 1), u64::MAX << shift]);
    }
}

#[test]
fn the_borders_of_counts() {
    for n in (0..=LONG + 2).chain([
        127 + LONG,
        128 + LONG,
        127,
        128,
        129,
        1 << 14,
        (1 << 14) + 7,
    ]) {
        let tuple: Vec<u64> = vec![NIL; n];
        round_trip(&tuple);
        let mut nested = vec![box_slot(1), header(TUPLE, n)];
        nested.extend(&tuple);
        round_trip(&nested);
        for element in [NIL, small_word(200).expect("small")] {
            for tail in [NIL, atom_word(1)] {
                let mut list = vec![box_slot(1), header(LIST, n.max(1))];
                list.extend(std::iter::repeat_n(element, n.max(1)));
                list.push(tail);
                round_trip(&list);
            }
        }
    }
}

#[test]
fn it_is_smaller_or_left_as_it_is() {
    // Tag, arity and two integers of three bytes each.
    let small = |value| small_word(value).expect("small");
    let pays = [small(1 << 20) - 16, small(-(1 << 20))];
    assert_eq!(round_trip(&pays).map(|words| words.len()), Some(1));
    assert_eq!(round_trip(&[small(1 << 20), small(1 << 19)]), None);
    assert_eq!(round_trip(&[small(5)]), None);
    assert_eq!(round_trip(&[]), None);
}

#[test]
fn host_boxes_stay_where_a_scan_finds_them() {
    let plain = header(HostTag::plain(5).byte(), 2);
    let owning = header(HostTag::owning(5).byte(), 1);
    let image = [
        box_slot(4),
        small_word(5).expect("small"),
        box_slot(7),
        box_slot(12),
        plain,
        // Words that would be a host box and an owning one if they were headers.
        header(0x85, 1),
        owning,
        header(LIST, 3),
        box_slot(9 + 3),
        NIL,
        NIL,
        NIL,
        owning,
        !0,
    ];
    // The box in the list follows the list itself, so the missing box is that of the last element.
    let image = {
        let mut image = image.to_vec();
        image[3] = box_slot(14);
        image.extend([owning, 42]);
        image
    };
    let packed = round_trip(&image).expect("it pays");
    assert_eq!(header_tag(packed[0]), PACKED_WITH);
    let begin = 1 + header_n(packed[0]);
    let found: Vec<usize> = boxes(&packed).collect();
    assert_eq!(found, [0, begin, begin + 3, begin + 5]);
    assert_eq!(packed[begin..begin + 3], image[4..7]);
    assert_eq!(packed[begin + 3..], image[12..]);
}

#[test]
fn a_stream_begins_in_the_first_word() {
    let object = with_nils(NIL);
    let packed = round_trip(&object).expect("it pays");
    assert_eq!(packed.len(), if TAG_IS_FIRST { 1 } else { 2 });
    assert_eq!(boxes(&packed).count(), usize::from(!TAG_IS_FIRST));
}
