//! Edits of the manifest, and the bytes they are written as.

use super::meta::{CompactionMeta, RunMeta};
use crate::coding::{Damaged, Decoder, put_bytes, put_varint};
use crate::error::Error;
use crate::ids::{JournalNumber, RunId, Seq};
use crate::operator_id::{self, OperatorId};
use crate::run_file::FileMeta;

/// The bytes that the parts of an edit begin with.
const STORE: u8 = 1;
const REMOVED: u8 = 2;
const ADDED: u8 = 3;
const COMPACTING: u8 = 4;
const FLUSHED: u8 = 5;
const NEXT_NUMBER: u8 = 6;
const CLOCK: u8 = 7;

/// Changes that take effect as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Edit {
    /// The identity of the store and its merge operator: in the first edit only.
    pub(crate) store: Option<(u128, Option<OperatorId>)>,
    /// Runs that are there no more, and with them the compactions that read them.
    pub(crate) removed: Vec<RunId>,
    /// Runs that are there, after those were removed.
    pub(crate) added: Vec<RunMeta>,
    /// The progress of compactions, which replaces the earlier one.
    pub(crate) compactions: Vec<CompactionMeta>,
    /// Up to which sequence number changes are in the runs, and the first journal that is needed.
    pub(crate) flushed: Option<(Seq, JournalNumber)>,
    /// The next number for a file or a run.
    pub(crate) next_number: Option<u64>,
    /// The time, in milliseconds since 1970, in a store whose records expire.
    pub(crate) clock: Option<u64>,
}

impl Edit {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        if let Some((store, operator)) = &self.store {
            to.push(STORE);
            to.extend_from_slice(&store.to_le_bytes());
            operator_id::encode(operator.as_ref(), &mut to);
        }
        for id in &self.removed {
            to.push(REMOVED);
            put_varint(&mut to, id.get());
        }
        for run in &self.added {
            to.push(ADDED);
            for number in [run.id.get(), run.first_seq.get(), run.last_seq.get()] {
                put_varint(&mut to, number);
            }
            put_files(&mut to, &run.files);
        }
        for compaction in &self.compactions {
            to.push(COMPACTING);
            put_varint(&mut to, compaction.id.get());
            put_varint(&mut to, compaction.inputs.len() as u64);
            for input in &compaction.inputs {
                put_varint(&mut to, input.get());
            }
            put_files(&mut to, &compaction.files);
            put_bytes(&mut to, compaction.resume.as_deref().unwrap_or_default());
        }
        if let Some((flushed, first_journal)) = self.flushed {
            to.push(FLUSHED);
            put_varint(&mut to, flushed.get());
            put_varint(&mut to, first_journal.get());
        }
        if let Some(next) = self.next_number {
            to.push(NEXT_NUMBER);
            put_varint(&mut to, next);
        }
        if let Some(clock) = self.clock {
            to.push(CLOCK);
            put_varint(&mut to, clock);
        }
        to
    }

    /// # Errors
    /// [`Error::Corrupt`] if these are not the bytes of an edit.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut edit = Edit::default();
        let mut decoder = Decoder::new(bytes);
        while !decoder.is_empty() {
            edit.take_part(&mut decoder)
                .map_err(|why| Error::corrupt(format_args!("manifest: an edit {why}")))?;
        }
        Ok(edit)
    }

    fn take_part(&mut self, from: &mut Decoder<'_>) -> Result<(), Damaged> {
        match from.byte()? {
            STORE => {
                let store = u128::from_le_bytes(from.array()?);
                self.store = Some((store, operator_id::decode(from)?));
            }
            REMOVED => self.removed.push(RunId::new(from.varint()?)),
            ADDED => self.added.push(RunMeta {
                id: RunId::new(from.varint()?),
                first_seq: Seq::new(from.varint()?),
                last_seq: Seq::new(from.varint()?),
                files: take_files(from)?,
            }),
            COMPACTING => self.compactions.push(CompactionMeta {
                id: RunId::new(from.varint()?),
                inputs: take_ids(from)?,
                files: take_files(from)?,
                resume: Some(from.bytes()?.to_vec()),
            }),
            FLUSHED => {
                let flushed = Seq::new(from.varint()?);
                self.flushed = Some((flushed, JournalNumber::new(from.varint()?)));
            }
            NEXT_NUMBER => self.next_number = Some(from.varint()?),
            CLOCK => self.clock = Some(from.varint()?),
            _ => return Err(Damaged("has an unknown part")),
        }
        Ok(())
    }
}

fn put_files(to: &mut Vec<u8>, files: &[FileMeta]) {
    put_varint(to, files.len() as u64);
    for file in files {
        file.encode(to);
    }
}

fn take_files(from: &mut Decoder<'_>) -> Result<Vec<FileMeta>, Damaged> {
    let count = from.count()?;
    (0..count).map(|_| FileMeta::decode(from)).collect()
}

fn take_ids(from: &mut Decoder<'_>) -> Result<Vec<RunId>, Damaged> {
    let count = from.count()?;
    (0..count).map(|_| from.varint().map(RunId::new)).collect()
}
