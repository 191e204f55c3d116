//! The changes in the journals, past damage.

use super::Fault;
use super::survey::Survey;
use crate::batch::BatchItems;
use crate::error::Error;
use crate::ids::{JournalNumber, Seq};
use crate::journal;
use crate::log::{self, LogIdentity, LogKind, LogReader, Next, Position};
use crate::memtable::{Memtable, Retention};
use crate::state::Version;
use std::sync::Arc;

/// Changes without a gap.
pub(super) struct Segment {
    pub(super) memtable: Arc<Memtable>,
    /// The sequence number of the first change.
    pub(super) first_seq: Seq,
    /// `true` if changes before the first are missing.
    pub(super) follows_gap: bool,
}

/// The changes of the journals that are not in runs.
#[derive(Default)]
pub(super) struct Journals {
    /// The segments, from the oldest to the newest.
    pub(super) segments: Vec<Segment>,
    pub(super) changes: u64,
    /// The sequence number of the last change that was read, there or in runs.
    pub(super) last_seq: Seq,
    /// The faults that were found.
    pub(super) faults: Vec<Fault>,
    /// The parts that are missing, but were perhaps never finished when the machine stopped.
    pub(super) unfinished: Vec<Fault>,
}

/// A gap in the changes.
struct Gap {
    at: Position,
    fault: Fault,
    /// `true` if a later record says that they were durable.
    was_durable: bool,
}

/// Reads the journals of a store.
struct Reading<'s> {
    survey: &'s Survey,
    store: u128,
    /// The sequence number of the last change so far.
    seq: Seq,
    version: Version,
    journals: Journals,
    gaps: Vec<Gap>,
    /// Up to where logs were read without a gap.
    at: Position,
}

impl Journals {
    /// Reads them. Changes up to `flushed` are in runs.
    pub(super) fn read(survey: &Survey, flushed: Seq) -> Self {
        let Some(store) = survey.store else {
            return Journals::default();
        };
        let first = survey
            .contents
            .as_ref()
            .map(|contents| contents.first_journal);
        let numbers = survey.journal_numbers().into_iter();
        let numbers: Vec<_> = numbers
            .filter(|number| *number >= first.unwrap_or_default())
            .collect();
        let number = first.or(numbers.first().copied()).unwrap_or_default();
        let mut reading = Reading {
            survey,
            store,
            seq: flushed,
            version: Version {
                active: Arc::new(Memtable::new()),
                sealed: Vec::new(),
                runs: Vec::new(),
            },
            journals: Journals::default(),
            gaps: Vec::new(),
            at: Position {
                number: number.get(),
                offset: 0,
            },
        };
        for number in numbers {
            let name = journal::name(number);
            if let Err(error) = reading.journal(&name, number) {
                reading.journals.faults.push(Fault::new(&name, None, error));
            }
        }
        let mut journals = reading.journals;
        journals.last_seq = reading.seq;
        for gap in reading.gaps {
            if gap.was_durable {
                journals.faults.push(gap.fault);
            } else {
                journals.unfinished.push(gap.fault);
            }
        }
        journals
    }
}

impl Reading<'_> {
    fn journal(&mut self, name: &str, number: JournalNumber) -> Result<(), Error> {
        let file = self.survey.open(name);
        let file = file.map_err(|error| Error::io(&error, format_args!("open of {name}")))?;
        let file = Arc::from(file);
        let expected = LogIdentity {
            store: self.store,
            kind: LogKind::Journal,
            format: log::PLAIN_FORMAT,
            number: number.get(),
        };
        let log = LogReader::open(Arc::clone(&file), name, LogKind::Journal)?;
        let (mut log, has_header) = match log {
            Some(log) => (log, true),
            None => (LogReader::without_header(file, name, expected)?, false),
        };
        if log.identity() != expected {
            return Err(Error::corrupt("it is another journal, or of another store"));
        }
        let mut has_records = false;
        loop {
            let at = log.position();
            match log.next()? {
                Next::Record(payload) => {
                    has_records = true;
                    let taken = self.record(name, payload, at);
                    self.confirm(log.durable());
                    taken?;
                    self.at = log.position();
                }
                Next::End => {
                    if !log.resync()? {
                        break;
                    }
                }
            }
        }
        if !has_header && has_records {
            let fault = Fault::new(name, Some(0), "the header is not readable");
            self.journals.faults.push(fault);
        }
        Ok(())
    }

    /// Notes that all before a position was durable.
    fn confirm(&mut self, durable: Position) {
        for gap in &mut self.gaps {
            gap.was_durable |= gap.at < durable;
        }
    }

    /// Takes the changes of a record.
    fn record(&mut self, name: &str, payload: &[u8], at: Position) -> Result<(), Error> {
        let (first, changes, encoded) = journal::parts(payload)?;
        let encoded = match journal::clock(changes, encoded) {
            Some(_time) => &[],
            None => encoded,
        };
        let behind = first.get().saturating_add(u64::from(changes));
        let behind = Seq::new(behind);
        if first > self.seq.next() {
            let what = if self.seq.next() == first - 1 {
                format!("change {} is missing before this offset", first - 1)
            } else {
                let (from, to) = (self.seq.next(), first - 1);
                format!("changes {from} to {to} are missing before this offset")
            };
            self.gaps.push(Gap {
                at: self.at,
                fault: Fault::new(name, Some(at.offset), what).with_keys(super::LostKeys::ALL),
                was_durable: false,
            });
            self.begin(first, true);
            self.seq = first - 1;
        }
        if behind <= self.seq.next() {
            return Ok(());
        }
        if self.journals.segments.is_empty() {
            self.begin(self.seq.next(), false);
        }
        let retention = Retention {
            visible: Seq::MAX,
            snapshots: &[],
            alone: true,
        };
        let seqs = first.upwards().take_while(|seq| *seq < behind);
        for (seq, item) in seqs.zip(BatchItems::new(encoded)) {
            let item = item?;
            if seq > self.seq {
                self.version.apply_item(seq, item, &retention, None);
                self.seq = seq;
                self.journals.changes += 1;
            }
        }
        self.seq = behind - 1;
        Ok(())
    }

    /// Begins a segment.
    fn begin(&mut self, first_seq: Seq, follows_gap: bool) {
        self.version.active = Arc::new(Memtable::new());
        self.journals.segments.push(Segment {
            memtable: Arc::clone(&self.version.active),
            first_seq,
            follows_gap,
        });
    }
}
