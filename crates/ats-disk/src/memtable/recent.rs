//! The keys that were written last, for readers that compare two moments again and again.
//!
//! Such a reader wants the few keys that were written since its last question, and must not walk
//! over the millions that a memtable may have. So a memtable logs the keys of its writes from the
//! first question on. The log has a most length. When it is too long it begins anew, or ends if
//! nobody has read it since it began. A reader that asks for an earlier time, or for the first
//! time, walks over the memtable.

use crate::ids::Seq;
use ats_store::KeyRange;

/// Bounds of the most bytes of a log, and the part of its memtable that it may have between them.
/// Writers wait while a log is copied, so it is short.
const LEAST_BYTES: usize = 64 << 10;
const MOST_BYTES: usize = 1 << 20;
const PART: usize = 16;

/// The writes of a memtable as their log has them. The lock of writers guards it.
#[derive(Default)]
pub(super) struct RecentKeys {
    /// The number of the last write.
    last: Seq,
    log: Option<Box<Log>>,
}

struct Log {
    /// The keys of all later writes are in the log.
    since: Seq,
    /// The number of each write, ascending, and the end of its key.
    writes: Vec<(Seq, usize)>,
    keys: Vec<u8>,
    /// The length at which the log is too long.
    most: usize,
    /// `true` if it was read since it began.
    is_read: bool,
}

impl RecentKeys {
    /// Notes a write. Returns the bytes of memory that the log has got, and those it had before.
    #[inline]
    pub(super) fn note(
        &mut self,
        key: &[u8],
        seq: Seq,
        memtable_bytes: &dyn Fn() -> usize,
    ) -> (usize, usize) {
        let before = std::mem::replace(&mut self.last, seq);
        match &mut self.log {
            None => (0, 0),
            Some(log) => {
                let old_bytes = log.capacity();
                if log.make_room(before, memtable_bytes) {
                    log.keys.extend_from_slice(key);
                    log.writes.push((seq, log.keys.len()));
                    (log.capacity(), old_bytes)
                } else {
                    self.log = None;
                    (0, old_bytes)
                }
            }
        }
    }

    /// Returns the keys within a range that were written after `after` and up to `seq`, in any
    /// order, maybe several times; `None` if the log does not tell. It does from the first call on.
    pub(super) fn between(
        &mut self,
        [after, seq]: [Seq; 2],
        key_range: KeyRange<'_>,
    ) -> Option<Vec<Vec<u8>>> {
        let last = self.last;
        let log = self.log.get_or_insert_with(|| Box::new(Log::new(last)));
        log.is_read = true;
        if after < log.since {
            return None;
        }
        let [begin, end] =
            [after, seq].map(|seq| log.writes.partition_point(|(other, _)| *other <= seq));
        let mut start = begin.checked_sub(1).map_or(0, |index| log.writes[index].1);
        let mut keys = Vec::new();
        for (_, key_end) in &log.writes[begin..end.max(begin)] {
            let key = &log.keys[start..*key_end];
            if key_range.low.is_none_or(|low| key >= low)
                && key_range.high.is_none_or(|high| key < high)
            {
                keys.push(key.to_vec());
            }
            start = *key_end;
        }
        Some(keys)
    }
}

impl Log {
    fn new(since: Seq) -> Self {
        Log {
            since,
            writes: Vec::new(),
            keys: Vec::new(),
            most: LEAST_BYTES,
            is_read: false,
        }
    }

    fn capacity(&self) -> usize {
        self.keys.capacity() + self.writes.capacity() * size_of::<(Seq, usize)>()
    }

    /// Makes room for the write behind `last`. Returns `false` if the log is to end.
    fn make_room(&mut self, last: Seq, memtable_bytes: &dyn Fn() -> usize) -> bool {
        let bytes = self.keys.len() + self.writes.len() * size_of::<(Seq, usize)>();
        if bytes < self.most {
            return true;
        }
        self.most = (memtable_bytes() / PART).clamp(LEAST_BYTES, MOST_BYTES);
        if bytes >= self.most {
            if !self.is_read {
                return false;
            }
            *self = Log::new(last);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: KeyRange<'static> = KeyRange {
        low: None,
        high: None,
    };

    fn between(recent: &mut RecentKeys, after: u64, seq: u64) -> Option<Vec<Vec<u8>>> {
        recent.between([after, seq].map(Seq::new), ALL)
    }

    fn note(recent: &mut RecentKeys, seq: u64) -> (usize, usize) {
        recent.note(&seq.to_be_bytes(), Seq::new(seq), &|| 0)
    }

    #[test]
    fn the_log_tells_what_was_written_since_the_first_question() {
        let mut recent = RecentKeys::default();
        assert_eq!(note(&mut recent, 1), (0, 0));
        note(&mut recent, 2);
        assert_eq!(between(&mut recent, 0, 2), None);
        note(&mut recent, 3);
        note(&mut recent, 5);
        let keys = |seqs: &[u64]| Some(seqs.iter().map(|seq| seq.to_be_bytes().to_vec()).collect());
        assert_eq!(between(&mut recent, 1, 5), None);
        assert_eq!(between(&mut recent, 2, 5), keys(&[3, 5]));
        assert_eq!(between(&mut recent, 3, 9), keys(&[5]));
        assert_eq!(between(&mut recent, 2, 4), keys(&[3]));
        assert_eq!(between(&mut recent, 5, 5), keys(&[]));
        assert_eq!(between(&mut recent, 5, 4), keys(&[]));
        let (low, high) = (4_u64.to_be_bytes(), 5_u64.to_be_bytes());
        let within = |low, high| KeyRange { low, high };
        let mut within = |low, high| recent.between([Seq::new(2), Seq::new(9)], within(low, high));
        assert_eq!(within(Some(&low[..]), None), keys(&[5]));
        assert_eq!(within(None, Some(&high[..])), keys(&[3]));
    }

    #[test]
    fn a_log_that_is_too_long_begins_anew_and_ends_if_nobody_reads_it() {
        let mut recent = RecentKeys::default();
        assert_eq!(between(&mut recent, 0, 0), Some(Vec::new()));
        let mut held = 0;
        let mut most = 0;
        let mut ended = 0;
        for seq in 1..20_000 {
            let (now, before) = note(&mut recent, seq);
            assert_eq!(before, held);
            held = now;
            most = most.max(held);
            if held == 0 && ended == 0 {
                ended = seq;
            }
        }
        // Vectors have at most twice the room that they need.
        assert!((LEAST_BYTES..3 * LEAST_BYTES).contains(&most));
        // The log was read once, so it has begun anew once.
        let fit = (LEAST_BYTES / (8 + size_of::<(Seq, usize)>())) as u64;
        assert!((2 * fit..2 * fit + 9).contains(&ended), "{ended}");
        assert_eq!(between(&mut recent, 19_998, 20_000), None);
        assert_eq!(between(&mut recent, 19_999, 20_000), Some(Vec::new()));
    }
}
