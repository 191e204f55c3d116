//! Edits of the manifest, and the bytes they are written as.

use super::contents::{MergeMeta, OperatorId, RunMeta};
use crate::batch::{put_bytes, put_number, take_byte, take_bytes, take_number};
use crate::error::Error;
use crate::file::FileMeta;
use crate::file::coding::Decoder;

/// The bytes that the parts of an edit begin with.
const STORE: u8 = 1;
const REMOVED: u8 = 2;
const ADDED: u8 = 3;
const MERGING: u8 = 4;
const FLUSHED: u8 = 5;
const NEXT_NUMBER: u8 = 6;

/// What changes as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Edit {
    /// Which store it is, and how it merges: in the first edit only.
    pub(crate) store: Option<(u128, OperatorId)>,
    /// Runs that are there no more, and with them the merges that read them.
    pub(crate) removed: Vec<u64>,
    /// Runs that are there, after those were removed.
    pub(crate) added: Vec<RunMeta>,
    /// How far merges are, in place of what was said of them.
    pub(crate) merging: Vec<MergeMeta>,
    /// Up to which sequence number changes are in the runs, and the first journal that is needed.
    pub(crate) flushed: Option<(u64, u64)>,
    /// The next number for a file or a run.
    pub(crate) next_number: Option<u64>,
}

impl Edit {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::new();
        if let Some((store, operator)) = &self.store {
            to.push(STORE);
            to.extend_from_slice(&store.to_le_bytes());
            match operator {
                None => to.push(0),
                Some((name, version)) => {
                    to.push(1);
                    put_bytes(&mut to, name.as_bytes());
                    put_number(&mut to, u64::from(*version));
                }
            }
        }
        for id in &self.removed {
            to.push(REMOVED);
            put_number(&mut to, *id);
        }
        for run in &self.added {
            to.push(ADDED);
            for number in [run.id, run.first_seq, run.last_seq] {
                put_number(&mut to, number);
            }
            put_files(&mut to, &run.files);
        }
        for merge in &self.merging {
            to.push(MERGING);
            put_number(&mut to, merge.id);
            put_number(&mut to, merge.inputs.len() as u64);
            for input in &merge.inputs {
                put_number(&mut to, *input);
            }
            put_files(&mut to, &merge.files);
            put_bytes(&mut to, merge.resume.as_deref().unwrap_or_default());
        }
        if let Some((flushed, first_journal)) = self.flushed {
            to.push(FLUSHED);
            put_number(&mut to, flushed);
            put_number(&mut to, first_journal);
        }
        if let Some(next) = self.next_number {
            to.push(NEXT_NUMBER);
            put_number(&mut to, next);
        }
        to
    }

    /// # Errors
    /// [`Error::Corrupt`] if these are not the bytes of an edit.
    pub(crate) fn decode(mut bytes: &[u8]) -> Result<Self, Error> {
        let mut edit = Edit::default();
        while !bytes.is_empty() {
            edit.take_part(&mut bytes)
                .ok_or_else(|| Error::corrupt("manifest: an edit is not well-formed"))?;
        }
        Ok(edit)
    }

    fn take_part(&mut self, from: &mut &[u8]) -> Option<()> {
        match take_byte(from)? {
            STORE => {
                let mut store = [0; 16];
                store.copy_from_slice(from.split_off(..16)?);
                let operator = match take_byte(from)? {
                    0 => None,
                    _ => {
                        let name = String::from_utf8(take_bytes(from)?.to_vec()).ok()?;
                        Some((name, u32::try_from(take_number(from)?).ok()?))
                    }
                };
                self.store = Some((u128::from_le_bytes(store), operator));
            }
            REMOVED => self.removed.push(take_number(from)?),
            ADDED => self.added.push(RunMeta {
                id: take_number(from)?,
                first_seq: take_number(from)?,
                last_seq: take_number(from)?,
                files: take_files(from)?,
            }),
            MERGING => {
                let id = take_number(from)?;
                let inputs = take_number(from)?;
                let inputs = (0..inputs)
                    .map(|_| take_number(from))
                    .collect::<Option<_>>()?;
                self.merging.push(MergeMeta {
                    id,
                    inputs,
                    files: take_files(from)?,
                    resume: Some(take_bytes(from)?.to_vec()),
                });
            }
            FLUSHED => self.flushed = Some((take_number(from)?, take_number(from)?)),
            NEXT_NUMBER => self.next_number = Some(take_number(from)?),
            _ => return None,
        }
        Some(())
    }
}

fn put_files(to: &mut Vec<u8>, files: &[FileMeta]) {
    put_number(to, files.len() as u64);
    for file in files {
        file.encode(to);
    }
}

fn take_files(from: &mut &[u8]) -> Option<Vec<FileMeta>> {
    let count = take_number(from)?;
    let mut decoder = Decoder::new(from);
    let files = (0..count)
        .map(|_| FileMeta::decode(&mut decoder).ok())
        .collect();
    *from = decoder.rest();
    files
}
