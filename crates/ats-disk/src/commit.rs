//! Group commit: many writers, one write of the journal, and one sync.
//!
//! A writer adds its batch to the group that is being gathered. The first writer of a group leads it: it waits until
//! the group before is done, closes its own group, writes it to the journal, syncs it if a writer of it wants that,
//! makes the changes in the memtable, and wakes the others. So while one group is being synced the next is
//! gathered, and the lock under which writers gather is held for a copy of a batch only.
//!
//! **W1** Groups are written, applied and published one after the other, each under `writing`. **W2** What is
//! published was written to the journal before, and, if its writer wants that, synced. **W3** After an
//! error nothing of the group is applied.

use crate::batch::{Batch, BatchItem, BatchItems, Numbered};
use crate::core::Core;
use crate::entry::Kind;
use crate::error::Error;
use crate::journal::Journal;
use crate::memory;
use crate::memtable::{Keep, Memtable, Write};
use crate::options::Durability;
use crate::planted::{Fault, is_planted};
use crate::pressure::Pressure;
use crate::record_count::{CountChange, RecordCount};
use crate::state::{Sealed, State};
use crate::waiting;
use ats_store::MergeOperator;
use parking_lot::{Condvar, Mutex};
use std::iter;
use std::mem;
use std::sync::Arc;

/// More bytes than this are not copied into a group: a batch that is larger is a group of its own.
const GROUP_BYTES: usize = 1 << 20;
/// A batch that is larger than this takes too long for callers that do not wait.
const AT_ONCE_BYTES: usize = 16 << 10;

/// What is being gathered.
#[derive(Default)]
pub(crate) struct Queue {
    gathering: Option<Arc<Group>>,
    /// A group that no writer waits for any more, for its memory.
    spare: Option<Arc<Group>>,
}

/// Batches that are written as one.
#[derive(Default)]
struct Group {
    batches: Mutex<Batches>,
    outcome: Mutex<Option<Result<(), Error>>>,
    done: Condvar,
}

#[derive(Default)]
struct Batches {
    bytes: Vec<u8>,
    /// Of each batch: where it ends, and how many changes it has.
    ends: Vec<(usize, u32)>,
    /// Keys that end with the number of their change, of all batches.
    numbered: Vec<Numbered>,
    /// What they make of the number of records.
    records: CountChange,
    sync: bool,
    /// `true` if nothing else is done but to delete.
    only_deletes: bool,
}

impl Batches {
    fn add(&mut self, batch: &Batch, sync: bool) {
        let is_first = self.ends.is_empty();
        self.records = match is_first {
            true => batch.records(),
            false => self.records.then(batch.records()),
        };
        self.only_deletes = batch.only_deletes() && (is_first || self.only_deletes);
        if !batch.numbered().is_empty() {
            let (start, before) = (self.bytes.len(), self.changes() as u32);
            let numbered = batch.numbered().iter().map(|numbered| Numbered {
                at: start + numbered.at,
                change: before + numbered.change,
            });
            self.numbered.extend(numbered);
        }
        self.bytes.extend_from_slice(batch.encoded());
        self.ends.push((self.bytes.len(), batch.len() as u32));
        self.sync |= sync;
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(GROUP_BYTES);
        self.ends.clear();
        self.numbered.clear();
        self.sync = false;
    }

    /// Number of changes.
    fn changes(&self) -> u64 {
        self.ends
            .iter()
            .map(|(_, changes)| u64::from(*changes))
            .sum()
    }

    /// Writes into keys the numbers of their changes, of which the first has this one.
    fn number(&mut self, first_seq: u64) {
        for numbered in &self.numbered {
            numbered.write(&mut self.bytes, first_seq);
        }
    }

    /// The batches with the numbers of their changes.
    fn each(&self) -> impl Iterator<Item = (&[u8], u32)> {
        let mut start = 0;
        self.ends.iter().map(move |(end, changes)| {
            let batch = &self.bytes[start..*end];
            start = *end;
            (batch, *changes)
        })
    }
}

/// What only the leader of a group touches.
pub(crate) struct Writing {
    pub(crate) journal: Journal,
    /// The sequence number of the last change.
    pub(crate) last_seq: u64,
    /// That of the last change before those in the active memtable.
    pub(crate) sealed_seq: u64,
    pub(crate) records: RecordCount,
    /// `true` if a turn is going to find out when there are no more writes.
    pub(crate) is_watched: bool,
    /// `true` if the journal is going to be synced after an interval.
    pub(crate) is_sync_due: bool,
    /// The memory of groups of callers that do not wait.
    at_once: Batches,
}

impl Writing {
    /// Nothing was written to the journal yet; the last change had this sequence number.
    pub(crate) fn new(journal: Journal, last_seq: u64) -> Self {
        Writing {
            journal,
            last_seq,
            sealed_seq: last_seq,
            records: RecordCount::default(),
            is_watched: true,
            is_sync_due: false,
            at_once: Batches::default(),
        }
    }
}

impl Core {
    /// Makes the changes of a batch. If there is no room the reserve is given back, and a batch
    /// that only deletes is tried again; so are others in a store without threads, where nobody
    /// else makes room.
    pub(crate) fn commit(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        let mut gave_back = false;
        loop {
            let error = match self.commit_once(batch, durability) {
                // After a sync that has failed it is unknown whether the batch is there.
                Err(error) if error.is_full() && self.check_writable().is_ok() => error,
                done => return done,
            };
            let gives_back = self.reserve.give_back(&*self.directory);
            self.background.wake();
            let tries = batch.only_deletes() || !self.options.background;
            if !tries || gives_back && gave_back {
                return Err(error);
            }
            gave_back |= gives_back;
            if !gives_back && !matches!(self.work_when_short(), Ok(true)) {
                return Err(error);
            }
        }
    }

    fn commit_once(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        self.check_writable()?;
        self.check_open()?;
        self.check_operands(batch)?;
        let sync = durability == Durability::Always;
        if !waiting::is_allowed() {
            return self.commit_at_once(batch, sync);
        }
        for pressure in self.pressures() {
            pressure.wait(batch.bytes(), &self.stats);
        }
        // A delete that is taken although the disk is full does not go with writes that are not.
        let is_alone = self.reserve.is_short() && batch.only_deletes();
        if batch.bytes() > GROUP_BYTES || is_alone {
            let mut batches = Batches::default();
            batches.add(batch, sync);
            return self.write_group(&mut self.writing.lock(), &mut batches);
        }
        let (group, leads) = self.join_group(batch, sync);
        if !leads {
            let mut outcome = group.outcome.lock();
            while outcome.is_none() {
                group.done.wait(&mut outcome);
            }
            return outcome.clone().expect("it was just there");
        }
        let mut writing = self.writing.lock();
        // From now on, writers begin the next group.
        self.queue.lock().gathering = None;
        let result = self.write_group(&mut writing, &mut group.batches.lock());
        drop(writing);
        *group.outcome.lock() = Some(result.clone());
        group.done.notify_all();
        self.keep_group(group);
        result
    }

    /// As [`commit`](Core::commit), without waiting.
    fn commit_at_once(&self, batch: &Batch, sync: bool) -> Result<(), Error> {
        if sync || batch.bytes() > AT_ONCE_BYTES {
            return Err(Error::WouldWait);
        }
        // A group of its own: the leader of another one may have to wait.
        let mut writing = waiting::lock(&self.writing)?;
        let goes_on = match self.is_full() || !writing.journal.is_begun() {
            true => self.next_journal.is_begun(),
            false => writing.journal.is_open(),
        };
        let goes_on = goes_on && self.is_write_covered(batch.bytes());
        let lets_through = |pressure: &Pressure| pressure.lets_through(batch.bytes());
        if !goes_on || !self.pressures().all(lets_through) {
            return Err(Error::WouldWait);
        }
        let mut batches = mem::take(&mut writing.at_once);
        batches.clear();
        batches.add(batch, false);
        let result = self.write_group(&mut writing, &mut batches);
        writing.at_once = batches;
        match result {
            // To make room for it takes long.
            Err(error) if error.is_full() && batch.only_deletes() => Err(Error::WouldWait),
            result => result,
        }
    }

    /// The back-pressure on writes: that of the store, and that of all stores that share memory.
    pub(crate) fn pressures(&self) -> impl Iterator<Item = &Pressure> {
        let shared = self.share.as_ref().map(|_| memory::pressure());
        iter::once(&self.pressure).chain(shared)
    }

    /// Adapts the delay of writes to the state. Where nothing works in the background, nothing would
    /// be gained by waiting.
    pub(crate) fn update_pressure(&self) {
        if self.options.background {
            let sealed = self.state.load().sealed.len();
            self.pressure.set(sealed.saturating_sub(1), self.debt());
        }
    }

    /// The bytes of memory with which a memtable is full, where there is no lack of room.
    pub(crate) fn full_memtable_bytes(&self) -> usize {
        let own = self.options.memtable_bytes;
        own.unwrap_or_else(memory::memtable_bytes)
    }

    /// Tells how large the memtables are, if the store shares memory.
    pub(crate) fn tell_memory(&self, state: &State) {
        if let Some(share) = &self.share {
            share.tell(state.memtables().map(|memtable| memtable.bytes()).sum());
        }
    }

    /// Whether the active memtable is.
    fn is_full(&self) -> bool {
        let most_keys = self.options.memtable_keys;
        let active = &self.state.load().active;
        active.bytes() >= self.memtable_limit()
            || most_keys.is_some_and(|most| active.keys() >= most)
    }

    /// Adds a batch to the group that is being gathered, or to a new one. Whether it is new.
    fn join_group(&self, batch: &Batch, sync: bool) -> (Arc<Group>, bool) {
        let mut queue = self.queue.lock();
        if let Some(group) = &queue.gathering {
            let group = Arc::clone(group);
            let mut batches = group.batches.lock();
            if batches.bytes.len() + batch.bytes() <= GROUP_BYTES {
                batches.add(batch, sync);
                drop(batches);
                return (group, false);
            }
            drop(batches);
        }
        // A group that is full stays with its leader, which need not be asked: it closes what is gathered then, which
        // only means that the group after the next is begun earlier.
        let group = queue.spare.take().unwrap_or_default();
        group.batches.lock().add(batch, sync);
        queue.gathering = Some(Arc::clone(&group));
        (group, true)
    }

    /// Keeps the memory of a group for another, if no other writer looks at it any more.
    fn keep_group(&self, mut group: Arc<Group>) {
        if let Some(alone) = Arc::get_mut(&mut group) {
            alone.batches.get_mut().clear();
            *alone.outcome.get_mut() = None;
            self.queue.lock().spare = Some(group);
        }
    }

    fn check_operands(&self, batch: &Batch) -> Result<(), Error> {
        if self.options.operator.is_some() {
            return Ok(());
        }
        for item in BatchItems::new(batch.encoded()) {
            if let BatchItem::Write {
                kind: Kind::Operand,
                ..
            } = item?
            {
                return Err(Error::NoOperator);
            }
        }
        Ok(())
    }

    /// Writes, syncs, applies and publishes a group.
    fn write_group(&self, writing: &mut Writing, batches: &mut Batches) -> Result<(), Error> {
        self.check_writable()?;
        if self.is_full() {
            self.seal(writing);
        }
        self.cover_write(batches.bytes.len(), batches.only_deletes)?;
        if !writing.journal.is_begun() {
            self.renew_manifest()?;
        }
        let mut seq = writing.last_seq;
        batches.number(seq + 1);
        let numbered = batches.each().map(|(batch, changes)| {
            let first_seq = seq + 1;
            seq += u64::from(changes);
            (first_seq, changes, batch)
        });
        let (next, directory) = (&self.next_journal, &*self.directory);
        let goes_ahead = !self.reserve.is_short();
        let written = writing
            .journal
            .write(next, directory, self.store, goes_ahead, numbered);
        let written = match written {
            Ok(written) => written,
            Err(_) if is_planted(Fault::Unwritten) => return Ok(()),
            Err(error) => {
                // If it stays unknown what is there, nothing may follow it.
                let cut = writing.journal.cut();
                let _ = cut.map_err(|error| self.broken(error));
                return Err(error);
            }
        };
        if batches.sync {
            self.sync_journal(&mut writing.journal, seq + 1)?;
        }
        let first_seq = mem::replace(&mut writing.last_seq, seq) + 1;
        writing.records.change(batches.records);
        let state = self.state.load();
        self.apply(&state, first_seq, batches, &writing.records)?;
        self.stats
            .on_group(batches.ends.len(), batches.bytes.len(), written);
        self.tell_memory(&state);
        if self.options.background {
            self.call_background(writing, &state.active);
        }
        Ok(())
    }

    /// Wakes the background work that is due after a write.
    #[inline]
    fn call_background(&self, writing: &mut Writing, active: &Memtable) {
        let is_watched = mem::replace(&mut writing.is_watched, true);
        if !is_watched || self.spare.is_short() || self.needs_journal(active) {
            self.background.wake();
        }
        if let Durability::Interval(interval) = self.options.durability
            && !mem::replace(&mut writing.is_sync_due, true)
        {
            self.background.sync_after(interval);
        }
    }

    /// Returns `true` if the threads are to be told, by a writer, that the memtable is half full,
    /// so that there will be another journal soon. They are told once for each.
    fn needs_journal(&self, active: &Memtable) -> bool {
        active.bytes() >= self.full_memtable_bytes() / 2 && self.next_journal.want()
    }

    /// Makes all durable that is in the journal. A failure is final: what the system still has in memory may never
    /// be written, and another sync would not tell.
    fn sync_journal(&self, journal: &mut Journal, next_seq: u64) -> Result<(), Error> {
        let to_sync = journal.to_sync();
        if !to_sync.is_empty() {
            to_sync.sync().map_err(|error| self.broken(error))?;
            self.stats.on_sync();
            journal.synced(&to_sync, next_seq);
        }
        Ok(())
    }

    /// Makes changes in the active memtable, and publishes them, and the number of records that there are then.
    fn apply(
        &self,
        state: &State,
        first_seq: u64,
        batches: &Batches,
        records: &RecordCount,
    ) -> Result<(), Error> {
        let operator = self.options.operator.as_deref();
        let last_seq = first_seq + batches.changes() - 1;
        if self.gaps.is_active() {
            self.tell_gaps(first_seq, batches)?;
        }
        let live = self.registry.lock();
        let mut item = BatchItems::new(&batches.bytes);
        if last_seq == first_seq
            && let Some(Ok(BatchItem::Write { kind, key, value })) = item.next()
        {
            // Under the lock of the registry (its R2).
            let keep = Keep {
                visible: self.registry.visible(),
                snapshots: &live,
                alone: true,
            };
            let write = Write {
                kind,
                key,
                value,
                seq: first_seq,
            };
            self.registry.publish(last_seq, records, || {
                self.count_refused(state.active.apply(write, &keep, operator));
            });
            return Ok(());
        }
        let snapshots = live.clone();
        drop(live);
        let keep = Keep {
            visible: self.registry.visible(),
            snapshots: &snapshots,
            alone: false,
        };
        for (seq, item) in (first_seq..).zip(BatchItems::new(&batches.bytes)) {
            self.count_refused(apply_item(state, seq, item?, &keep, operator));
        }
        self.registry.publish(last_seq, records, || {});
        Ok(())
    }

    /// Says which keys get records, before readers see them.
    #[cold]
    fn tell_gaps(&self, first_seq: u64, batches: &Batches) -> Result<(), Error> {
        self.gaps.begin_group(first_seq);
        for (seq, item) in (first_seq..).zip(BatchItems::new(&batches.bytes)) {
            if let BatchItem::Write { kind, key, .. } = item?
                && kind != Kind::Delete
                && !is_planted(Fault::StaleGap)
            {
                self.gaps.tell(seq, key);
            }
        }
        Ok(())
    }

    fn count_refused(&self, refused: usize) {
        if refused > 0 {
            self.stats.on_refused_merges(refused);
        }
    }

    /// Goes on with an empty memtable and a new journal. The caller holds `writing`, of which it passes the content.
    pub(crate) fn seal(&self, writing: &mut Writing) {
        if writing.last_seq == writing.sealed_seq {
            return;
        }
        writing.journal.rotate(&self.next_journal);
        let _swapping = self.swapping.lock();
        let state = self.state.load();
        let sealed = Arc::new(Sealed {
            memtable: Arc::clone(&state.active),
            first_seq: writing.sealed_seq + 1,
            last_seq: writing.last_seq,
            next_journal: writing.journal.number(),
        });
        writing.sealed_seq = writing.last_seq;
        let mut all = vec![sealed];
        all.extend(state.sealed.iter().cloned());
        self.state.store(Arc::new(State {
            active: Arc::new(Memtable::new()),
            sealed: all,
            runs: state.runs.clone(),
        }));
        self.update_pressure();
        self.background.wake();
    }
}

/// Makes a change in the active memtable. How often the operator has refused to merge.
pub(crate) fn apply_item(
    state: &State,
    seq: u64,
    item: BatchItem<'_>,
    keep: &Keep<'_>,
    operator: Option<&dyn MergeOperator>,
) -> usize {
    match item {
        BatchItem::Write { kind, key, value } => {
            let write = Write {
                kind,
                key,
                value,
                seq,
            };
            state.active.apply(write, keep, operator)
        }
        BatchItem::DeleteRange(key_range) => {
            state.active.delete_range(key_range, seq);
            0
        }
    }
}
