//! The mark of a store and its files: the name and the version of the merge operator.
//!
//! Values that were merged by one operator mean something else to another. So a store is opened
//! with the operator that it was made with, or not at all.

use crate::coding::{Damaged, Decoder, put_bytes, put_varint};
use ats_store::MergeOperator;

/// The name and the version of a merge operator.
pub(crate) type OperatorId = (String, u32);

/// Returns the name and the version of an operator.
pub(crate) fn of(operator: &dyn MergeOperator) -> OperatorId {
    (operator.name().to_owned(), operator.version())
}

/// Appends the operator of a store, or its absence.
pub(crate) fn encode(operator: Option<&OperatorId>, out: &mut Vec<u8>) {
    match operator {
        None => out.push(0),
        Some((name, version)) => {
            out.push(1);
            put_bytes(out, name.as_bytes());
            put_varint(out, u64::from(*version));
        }
    }
}

/// Reads the output of [`encode`].
pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<Option<OperatorId>, Damaged> {
    const STRANGE: Damaged = Damaged("has a strange operator");
    match decoder.byte()? {
        0 => Ok(None),
        1 => {
            let name = String::from_utf8(decoder.bytes()?.to_vec());
            let version = u32::try_from(decoder.varint()?);
            let operator = name.ok().zip(version.ok());
            operator.ok_or(STRANGE).map(Some)
        }
        _ => Err(STRANGE),
    }
}
