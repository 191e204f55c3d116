//! Lifetimes of records, as bytes before their values.
//!
//! ```text
//!   time in milliseconds, 46 bits | kind, 2 bits        6 bytes, least significant first
//! ```

use std::time::Duration;

/// Bytes of a lifetime before a value.
pub const LIFETIME_BYTES: usize = 6;

const TIME_BITS: u32 = 46;
const TIME: u64 = (1 << TIME_BITS) - 1;
/// The deadline of records that do not expire, and a bound of all times, in milliseconds.
pub const NEVER_MS: u64 = TIME;
const UNTIL: u64 = 0;
const FOR: u64 = 1;
const KEPT: u64 = 2;
const OF_STORE: u64 = 3;

/// The name of the operator of a store whose records expire, or its beginning.
const MARK: &str = "deadlines";

/// Returns the name by which the files of a store whose records expire tell an operator, or its
/// absence: so no store without deadlines is read as one that has some, or the other way round.
#[must_use]
pub fn mark_operator(name: Option<&str>) -> String {
    name.map_or_else(|| MARK.to_owned(), |name| format!("{MARK} {name}"))
}

/// Returns the name in a name that [`mark_operator`] has made, empty if it stands for no operator;
/// `None` if another name is given.
///
/// ```
/// # use ats_store::lifetime::{mark_operator, unmark_operator};
/// assert_eq!(unmark_operator(&mark_operator(Some("sum"))), Some("sum"));
/// assert_eq!(unmark_operator(&mark_operator(None)), Some(""));
/// assert_eq!(unmark_operator("sum"), None);
/// ```
#[must_use]
pub fn unmark_operator(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(MARK)?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix(' ')
    }
}

/// The time for which a record is there that is written to a store whose records expire.
///
/// ```
/// # use ats_store::Lifetime;
/// # use std::time::Duration;
/// let value = Lifetime::For(Duration::from_secs(60)).before(b"pear");
/// assert_eq!(value.len(), ats_store::lifetime::LIFETIME_BYTES + 4);
/// let read = Lifetime::split(&value);
/// assert_eq!(read, Some((Lifetime::For(Duration::from_secs(60)), &b"pear"[..])));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The time of the store.
    OfStore,
    /// The deadline of the record that is replaced, or the time of the store if there is none.
    Kept,
    /// A time from now on; at least a millisecond.
    For(Duration),
    /// A time until a deadline: the time since 1970 at which the record expires.
    Until(Duration),
    /// No end.
    Forever,
}

/// Returns a time in milliseconds, rounded up, [`NEVER_MS`] at most.
#[must_use]
pub fn milliseconds(time: Duration) -> u64 {
    let ms = time.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).unwrap_or(NEVER_MS).min(NEVER_MS)
}

impl Lifetime {
    /// Returns the bytes with which a value begins.
    #[must_use]
    pub fn to_bytes(self) -> [u8; LIFETIME_BYTES] {
        let (kind, time) = match self {
            Lifetime::OfStore => (OF_STORE, 0),
            Lifetime::Kept => (KEPT, 0),
            Lifetime::For(time) => (FOR, milliseconds(time).max(1)),
            Lifetime::Until(time) => (UNTIL, milliseconds(time)),
            Lifetime::Forever => (UNTIL, NEVER_MS),
        };
        let bytes = (kind << TIME_BITS | time).to_le_bytes();
        [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]]
    }

    /// Returns a value as it is written with this lifetime.
    #[must_use]
    pub fn before(self, value: &[u8]) -> Vec<u8> {
        [&self.to_bytes()[..], value].concat()
    }

    /// Puts the lifetime before a value.
    pub fn put_before(self, value: &mut Vec<u8>) {
        value.splice(..0, self.to_bytes());
    }

    /// Takes the lifetime off a value that has one.
    #[must_use]
    pub fn split(value: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, rest) = value.split_first_chunk::<LIFETIME_BYTES>()?;
        let mut word = [0; 8];
        word[..LIFETIME_BYTES].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        let time = Duration::from_millis(word & TIME);
        let lifetime = match word >> TIME_BITS {
            UNTIL if word & TIME == NEVER_MS => Lifetime::Forever,
            UNTIL => Lifetime::Until(time),
            FOR => Lifetime::For(time),
            KEPT => Lifetime::Kept,
            _ => Lifetime::OfStore,
        };
        Some((lifetime, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_read_as_they_were_written() {
        let ms = Duration::from_millis;
        let all = [
            Lifetime::OfStore,
            Lifetime::Kept,
            Lifetime::For(ms(1)),
            Lifetime::For(ms(NEVER_MS)),
            Lifetime::Until(ms(0)),
            Lifetime::Until(ms(NEVER_MS - 1)),
            Lifetime::Forever,
        ];
        for lifetime in all {
            let mut value = b"value".to_vec();
            lifetime.put_before(&mut value);
            assert_eq!(value, lifetime.before(b"value"));
            assert_eq!(Lifetime::split(&value), Some((lifetime, &b"value"[..])));
        }
        assert_eq!(Lifetime::split(&[0; 5]), None);
        assert_eq!(
            Lifetime::For(Duration::ZERO).to_bytes(),
            Lifetime::For(ms(1)).to_bytes()
        );
    }
}
