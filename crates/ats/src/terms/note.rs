//! The note of a record: the deadline at which its objects expire, and how often they were read.
//!
//! The value of a record in a table with [limits](crate::terms::Limits) begins with a note. A
//! new record may bring a [`Dating`] in its place, which the
//! [store](crate::terms::store::limited) replaces by a deadline when it publishes the record.
//!
//! ```text
//!  note    12 bits: token | 1 bit: bytes | 2 bits: reads | 1 bit: fixed | 40 bits: deadline
//!  dating  duration | 1 bit: bytes | 2 bits: kind
//! ```
//!
//! The values of [maps](crate::HashMap) are *bytes*: the words behind the note are not an object,
//! but the record counts as one, and owns nothing.
//!
//! # Invariants
//! - NOTE-1. A published record of a store with limits has a note. A note is accessed
//!   atomically only. Its bits may change; that it is a note does not.

use crate::terms::value::{NOTE_OF_BYTES, Rec, Values, note_cell};
use ats_mem::{Change, RecordBox};
use ats_store::Lifetime;
use ats_sync::count::atomic::Ordering;
use ats_term::image::{Host, note_bits, note_word};
use std::time::Duration;

const TIME_BITS: u32 = 40;
const FIXED: usize = 1 << TIME_BITS;
const READS_SHIFT: u32 = TIME_BITS + 1;
const TOKEN_SHIFT: u32 = READS_SHIFT + 3;
const TOKEN_MASK: u16 = (1 << (u64::BITS - 8 - TOKEN_SHIFT)) - 1;

/// The deadline of objects that do not expire, and the longest duration, in milliseconds.
pub(crate) const NEVER: u64 = (1 << TIME_BITS) - 1;

const _: () = assert!(NOTE_OF_BYTES == 1 << (READS_SHIFT + 2));

/// The bits of a dating.
const KIND_MASK: usize = 0b11;
const DATING_OF_BYTES: usize = 1 << 2;
const DURATION_SHIFT: u32 = 3;

/// The most reads that are counted.
pub(crate) const READS_MOST: u8 = 3;

/// The deadline of a record, and the number of its reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The [time](crate::terms::store::limited) at which the objects expire, in milliseconds.
    pub(crate) deadline: u64,
    /// `true` if reading the objects does not put the deadline off.
    pub(crate) is_fixed: bool,
    /// The number of reads, [`READS_MOST`] at most, in a table with a bound.
    pub(crate) reads: u8,
    /// A number that the entries of the record in lists and queues have, too.
    pub(crate) token: u16,
}

impl Note {
    /// Returns the note of a record, if it has one.
    #[inline]
    pub(crate) fn of<H: Host>(record: &Rec<H>) -> Option<Self> {
        let word = note_cell(record)?.load(Ordering::Relaxed);
        note_bits(word).map(|bits| Note {
            deadline: bits as u64 & NEVER,
            is_fixed: bits & FIXED != 0,
            reads: (bits >> READS_SHIFT) as u8 & READS_MOST,
            token: (bits >> TOKEN_SHIFT) as u16,
        })
    }

    fn word(self) -> u64 {
        let fixed = if self.is_fixed { FIXED } else { 0 };
        let token = usize::from(self.token & TOKEN_MASK) << TOKEN_SHIFT;
        let reads = usize::from(self.reads.min(READS_MOST)) << READS_SHIFT;
        note_word(self.deadline.min(NEVER) as usize | fixed | reads | token)
    }

    /// Returns the token that follows on this one.
    pub(crate) fn next_token(token: u16) -> u16 {
        token.wrapping_add(1) & TOKEN_MASK
    }

    /// Sets the note of a record that has one. Other threads may read it meanwhile.
    pub(crate) fn set<H: Host>(self, record: &Rec<H>) {
        if let Some(cell) = note_cell(record) {
            let of_bytes = of_bytes(cell.load(Ordering::Relaxed));
            cell.store(self.word() | of_bytes, Ordering::Relaxed);
        }
    }

    /// Replaces this note by another one. Returns `false` if another thread has changed it
    /// meanwhile; then it is left as it is.
    pub(crate) fn exchange<H: Host>(self, new: Note, record: &Rec<H>) -> bool {
        note_cell(record).is_some_and(|cell| {
            let of_bytes = of_bytes(cell.load(Ordering::Relaxed));
            let (old, new) = (self.word() | of_bytes, new.word() | of_bytes);
            let relaxed = Ordering::Relaxed;
            cell.compare_exchange(old, new, relaxed, relaxed).is_ok()
        })
    }

    /// Returns the note of a record that was read once more.
    #[must_use]
    pub(crate) fn read_again(self) -> Self {
        let reads = (self.reads + 1).min(READS_MOST);
        Note { reads, ..self }
    }

    /// Returns a new record with this note in the place of its [`Dating`], if it has one.
    pub(crate) fn put_before<H: Host>(self, record: RecordBox<Values<H>>) -> RecordBox<Values<H>> {
        match note_cell(&record) {
            None => return record.behind(self.word()),
            Some(cell) => {
                let dating = note_bits(cell.load(Ordering::Relaxed)).unwrap_or(0);
                let of_bytes = if dating & DATING_OF_BYTES != 0 {
                    note_word(NOTE_OF_BYTES)
                } else {
                    0
                };
                cell.store(self.word() | of_bytes, Ordering::Relaxed);
            }
        }
        record
    }
}

/// Returns the bit of a note that says that bytes follow.
fn of_bytes(note: u64) -> u64 {
    note & note_word(NOTE_OF_BYTES)
}

/// The way in which a new record gets its deadline. Without one, it keeps the deadline of the
/// objects that it replaces, or gets that of the table if there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dating {
    /// The option of the table.
    OfTable,
    /// The deadline of the objects that are replaced.
    Kept,
    /// A time that begins with the change, in milliseconds.
    After(u64),
}

impl Dating {
    /// Returns the dating of a new record, if it brings one.
    pub(crate) fn of<H: Host>(record: &RecordBox<Values<H>>) -> Option<Self> {
        let word = note_cell(record)?.load(Ordering::Relaxed);
        let bits = note_bits(word)?;
        Some(match bits & KIND_MASK {
            0 => Dating::OfTable,
            1 => Dating::Kept,
            _ => Dating::After(bits as u64 >> DURATION_SHIFT),
        })
    }

    /// Returns the change of a key in which a new record brings a dating, if there is one.
    pub(crate) fn of_change<H: Host>(
        dating: Option<Self>,
        change: Change<Values<H>>,
    ) -> Change<Values<H>> {
        match (dating, change) {
            (Some(dating), Change::Put(record)) if note_cell(&record).is_none() => {
                Change::Put(record.behind(dating.word()))
            }
            (_, change) => change,
        }
    }

    /// Returns the first word of the value of a new record.
    pub(crate) fn word(self) -> u64 {
        note_word(self.bits())
    }

    /// Returns the first word of the value of a new record in which bytes follow.
    pub(crate) fn word_of_bytes(self) -> u64 {
        note_word(self.bits() | DATING_OF_BYTES)
    }

    fn bits(self) -> usize {
        match self {
            Dating::OfTable => 0,
            Dating::Kept => 1,
            Dating::After(time) => (time.min(NEVER) as usize) << DURATION_SHIFT | 2,
        }
    }
}

impl From<Dating> for Lifetime {
    fn from(dating: Dating) -> Self {
        match dating {
            Dating::OfTable => Lifetime::OfStore,
            Dating::Kept => Lifetime::Kept,
            Dating::After(NEVER) => Lifetime::Forever,
            Dating::After(time) => Lifetime::For(Duration::from_millis(time)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ats_term::image::TermHost;

    fn made(first: u64) -> RecordBox<Values<TermHost>> {
        RecordBox::new(b"key", &[first, ats_term::image::LARGE_WORD], false)
    }

    #[test]
    fn notes_and_datings_are_read_as_they_were_written() {
        for deadline in [0, 1, NEVER - 1, NEVER] {
            for (is_fixed, reads, token) in [(false, 0, 0), (true, 3, TOKEN_MASK), (false, 2, 1)] {
                let note = Note {
                    deadline,
                    is_fixed,
                    reads,
                    token,
                };
                assert_eq!(Note::of(&made(note.word())), Some(note));
                let dated = note.put_before(made(Dating::Kept.word()));
                assert_eq!(Note::of(&dated), Some(note));
            }
            let dating = Dating::After(deadline);
            assert_eq!(Dating::of(&made(dating.word())), Some(dating));
        }
        assert_eq!(
            Dating::of(&made(Dating::OfTable.word())),
            Some(Dating::OfTable)
        );
        assert_eq!(Note::next_token(TOKEN_MASK), 0);
    }

    #[test]
    fn bytes_stay_bytes() {
        let note = Note {
            deadline: NEVER,
            is_fixed: false,
            reads: 0,
            token: TOKEN_MASK,
        };
        let made = made(Dating::After(NEVER).word_of_bytes());
        assert_eq!(Dating::of(&made), Some(Dating::After(NEVER)));
        let record = note.put_before(made);
        assert!(crate::terms::value::is_bytes(&record));
        assert_eq!(Note::of(&record), Some(note));
        note.exchange(note.read_again(), &record);
        assert_eq!(Note::of(&record), Some(note.read_again()));
        note.set(&record);
        assert!(crate::terms::value::is_bytes(&record));
        assert_eq!(Note::of(&record), Some(note));
    }

    #[test]
    fn a_note_is_put_before_any_value() {
        let note = Note {
            deadline: 7,
            is_fixed: true,
            reads: 1,
            token: 3,
        };
        for value in [&[ats_term::image::LARGE_WORD, 1][..], &[u64::MAX; 20]] {
            let record = RecordBox::<Values<TermHost>>::new(b"a key", value, false);
            let dated = note.put_before(record);
            assert_eq!((dated.key(), Note::of(&dated)), (&b"a key"[..], Some(note)));
            assert_eq!(crate::terms::value::content(&dated), value);
        }
    }
}
