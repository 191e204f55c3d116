//! Group commit: many writers, one write of the journal, and one sync.
//!
//! A writer adds its batch to the group that is being gathered. The first writer of a group leads
//! it: it waits until the group before is done, closes its own group, writes it to the journal,
//! syncs it if a writer of it wants that, makes the changes in the memtable, and wakes the others.
//! So while one group is being synced the next is gathered, and the lock under which writers gather
//! is held for a copy of a batch only.
//!
//! **WRITE-1** Groups are written, applied and published one after the other, each under
//! `write_state`. **WRITE-2** A published change was written to the journal before, and, if its
//! writer wants that, synced. **WRITE-3** After an error nothing of the group is applied.

mod memtable_pool;

use crate::batch::{Batch, BatchItem, BatchItems};
use crate::blocking;
use crate::entry::Kind;
use crate::error::Error;
use crate::fault_injection::{InjectedFault, is_injected};
use crate::files::Files;
use crate::ids::Seq;
use crate::journal::{Journal, NextJournal, ToSync};
use crate::lifetime::{self, Lifetimes};
use crate::log::Ahead;
use crate::memtable::{Memtable, Retention, Write};
use crate::options::Durability;
use crate::record_count::{CountChange, RecordCount};
use crate::state::back_pressure::BackPressure;
use crate::state::group::{Batches, GROUP_BYTES, Group, Queue};
use crate::state::memory;
use crate::state::write_state::WriteState;
use crate::state::{Sealed, State, Version};
use ats_store::MayBlock;
use memtable_pool::MemtablePool;
use parking_lot::Mutex;
use std::mem;
use std::sync::Arc;

/// A batch that is larger than this takes too long for callers that do not wait.
const AT_ONCE_BYTES: usize = 16 << 10;

/// The part of a store that writes.
pub(crate) struct Writer {
    pub(crate) state: Arc<State>,
    files: Arc<Files>,
    queue: Mutex<Queue>,
    pub(crate) next_journal: NextJournal,
    pub(crate) memtable_pool: MemtablePool,
}

impl Writer {
    pub(crate) fn new(files: Arc<Files>) -> Self {
        let state = Arc::clone(&files.state);
        let next_journal = NextJournal::new(state.write_state.lock().journal.number());
        Writer {
            state,
            files,
            queue: Mutex::default(),
            next_journal,
            memtable_pool: MemtablePool::default(),
        }
    }

    /// Makes the changes of a batch, if there is room.
    pub(crate) fn commit_once(
        &self,
        may_block: Option<MayBlock>,
        batch: &Batch,
        durability: Durability,
    ) -> Result<(), Error> {
        if batch.is_empty() {
            return Ok(());
        }
        self.state.status.check_writable()?;
        self.state.status.check_open()?;
        self.check_operands(batch)?;
        let sync = durability == Durability::Always;
        if may_block.is_none() {
            return self.commit_at_once(batch, sync);
        }
        for back_pressure in self.state.back_pressures() {
            back_pressure.wait(batch.bytes(), &self.state.stats);
        }
        // A delete that is taken although the disk is full does not go with writes that are not.
        let is_alone = self.files.reserve.is_short() && batch.only_deletes();
        if batch.bytes() > GROUP_BYTES || is_alone {
            let mut batches = Batches::default();
            batches.add(batch, sync);
            return self.write_group(&mut self.state.write_state.lock(), &mut batches);
        }
        let (group, leads) = self.join_group(batch, sync);
        if !leads {
            let mut outcome = group.outcome.lock();
            while outcome.is_none() {
                group.done.wait(&mut outcome);
            }
            return outcome.clone().expect("it was just there");
        }
        let mut write_state = self.state.write_state.lock();
        // Writers begin the next group from now on.
        self.queue.lock().gathering = None;
        let result = self.write_group(&mut write_state, &mut group.batches.lock());
        drop(write_state);
        *group.outcome.lock() = Some(result.clone());
        group.done.notify_all();
        self.keep_group(group);
        result
    }

    /// Like [`commit_once`](Writer::commit_once), but does not wait.
    fn commit_at_once(&self, batch: &Batch, sync: bool) -> Result<(), Error> {
        if sync || batch.bytes() > AT_ONCE_BYTES {
            return Err(Error::WouldBlock);
        }
        // A group of its own: the leader of another one may have to wait.
        let mut write_state = blocking::lock(None, &self.state.write_state)?;
        let goes_on = if self.is_full() || !write_state.journal.is_begun() {
            self.next_journal.is_begun()
        } else {
            write_state.journal.is_open()
        };
        let goes_on = goes_on && self.files.reserve.is_write_covered(batch.bytes());
        let lets_through = |back_pressure: &BackPressure| back_pressure.lets_through(batch.bytes());
        if !goes_on || !self.state.back_pressures().all(lets_through) {
            return Err(Error::WouldBlock);
        }
        let mut batches = mem::take(&mut write_state.at_once);
        batches.clear();
        batches.add(batch, false);
        let result = self.write_group(&mut write_state, &mut batches);
        write_state.at_once = batches;
        result
    }

    /// `true` if the active memtable is full.
    fn is_full(&self) -> bool {
        let most_keys = self.state.options.memtable_keys;
        let active = &self.state.versions.current().active;
        active.bytes() >= self.files.reserve.memtable_limit()
            || most_keys.is_some_and(|most| active.len() >= most)
    }

    /// Adds a batch to the group that is being gathered, or to a new one. Returns `true` if it is
    /// new.
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
        // A group that is full stays with its leader, which need not be asked: it closes the
        // gathering group then, which only means that the group after the next is begun earlier.
        let group = queue.reusable.take().unwrap_or_default();
        group.batches.lock().add(batch, sync);
        queue.gathering = Some(Arc::clone(&group));
        (group, true)
    }

    /// Keeps the memory of a group for another, if no other writer looks at it any more.
    fn keep_group(&self, mut group: Arc<Group>) {
        if let Some(alone) = Arc::get_mut(&mut group) {
            alone.batches.get_mut().clear();
            *alone.outcome.get_mut() = None;
            self.queue.lock().reusable = Some(group);
        }
    }

    fn check_operands(&self, batch: &Batch) -> Result<(), Error> {
        if self.state.lifetimes.is_some() {
            return check_deadlines(batch);
        }
        if self.state.options.operator.is_some() {
            return Ok(());
        }
        for item in BatchItems::new(batch.encoding()) {
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
    fn write_group(
        &self,
        write_state: &mut WriteState,
        batches: &mut Batches,
    ) -> Result<(), Error> {
        self.state.status.check_writable()?;
        if self.is_full() {
            self.seal(write_state);
        }
        self.files
            .reserve
            .cover_write(batches.bytes.len(), batches.only_deletes)?;
        if !write_state.journal.is_begun() {
            self.files.renew_manifest()?;
        }
        let mut seq = write_state.last_seq;
        let lifetimes = self.state.lifetimes.as_ref();
        let clock = lifetimes.and_then(Lifetimes::time_to_note);
        let clock = clock.map(|time| (seq.next(), time));
        batches.number(seq.next());
        let numbered = batches.each().map(|(batch, changes)| {
            let first_seq = seq.next();
            seq += u64::from(changes);
            (first_seq, changes, batch)
        });
        let (next, directory) = (&self.next_journal, &*self.state.directory);
        let ahead = match (self.files.reserve.is_short(), batches.sync) {
            (true, _) => Ahead::Nothing,
            (false, true) => Ahead::Zeros,
            (false, false) => Ahead::Room,
        };
        let written =
            write_state
                .journal
                .write(next, directory, self.state.store, ahead, clock, numbered);
        let written = match written {
            Ok(written) => written,
            Err(_) if is_injected(InjectedFault::Unwritten) => return Ok(()),
            Err(error) => {
                // Nothing may follow remains that are unknown.
                let truncated = write_state.journal.truncate();
                let _ = truncated.map_err(|error| self.state.status.make_read_only(error));
                return Err(error);
            }
        };
        if let (Some(lifetimes), Some((_, time))) = (lifetimes, clock) {
            lifetimes.on_noted(time);
        }
        if batches.sync {
            self.sync_journal(&mut write_state.journal, seq.next())?;
        }
        let first_seq = mem::replace(&mut write_state.last_seq, seq).next();
        // Records that expire change the number without a write.
        write_state.count.change(match lifetimes {
            None => batches.count_change,
            Some(_) => CountChange::Unknown,
        });
        let version = self.state.versions.current();
        self.apply(&version, first_seq, batches, &write_state.count)?;
        self.state
            .stats
            .on_group(batches.ends.len(), batches.bytes.len(), written);
        self.state.tell_memory(&version);
        if self.state.options.background {
            self.call_background(write_state, &version.active);
        }
        Ok(())
    }

    /// Wakes the background work that is due after a write.
    #[inline]
    fn call_background(&self, write_state: &mut WriteState, active: &Memtable) {
        let is_watched = mem::replace(&mut write_state.is_watched, true);
        if !is_watched || self.memtable_pool.is_short() || self.needs_journal(active) {
            self.state.background.wake();
        }
        if let Durability::Interval(interval) = self.state.options.durability
            && !mem::replace(&mut write_state.is_sync_due, true)
        {
            self.state.background.sync_after(interval);
        }
    }

    /// Returns `true` if the threads are to be told, by a writer, that the memtable is half full,
    /// so that there will be another journal soon. They are told once for each.
    fn needs_journal(&self, active: &Memtable) -> bool {
        active.bytes() >= self.state.full_memtable_bytes() / 2 && self.next_journal.want()
    }

    /// Makes the whole journal durable. A failure is final: bytes that the system still has in
    /// memory may never be written, and another sync would not tell.
    fn sync_journal(&self, journal: &mut Journal, next_seq: Seq) -> Result<(), Error> {
        let to_sync = journal.to_sync();
        if !to_sync.is_empty() {
            to_sync
                .sync()
                .map_err(|error| self.state.status.make_read_only(error))?;
            self.state.stats.on_sync();
            journal.note_synced(&to_sync, next_seq);
        }
        Ok(())
    }

    /// Makes changes in the active memtable, and publishes them, and the number of records that
    /// there are then.
    fn apply(
        &self,
        version: &Version,
        first_seq: Seq,
        batches: &Batches,
        count: &RecordCount,
    ) -> Result<(), Error> {
        let operator = self.state.options.operator.as_deref();
        let last_seq = first_seq + batches.changes() - 1;
        if self.state.gaps.is_active() {
            self.note_records(first_seq, batches)?;
        }
        let live = self.state.snapshots.lock();
        let mut item = BatchItems::new(&batches.bytes);
        if last_seq == first_seq
            && let Some(Ok(BatchItem::Write { kind, key, value })) = item.next()
        {
            // Under the lock of the list of snapshots (SNAPSHOT_LIST-2).
            let retention = Retention {
                visible: self.state.snapshots.visible(),
                snapshots: &live,
                alone: true,
            };
            let write = Write {
                kind,
                key,
                value,
                seq: first_seq,
            };
            self.state.snapshots.publish(last_seq, count, || {
                self.count_refused(version.active.apply(write, &retention, operator));
            });
            return Ok(());
        }
        let snapshots = live.clone();
        drop(live);
        let retention = Retention {
            visible: self.state.snapshots.visible(),
            snapshots: &snapshots,
            alone: false,
        };
        for (seq, item) in first_seq.upwards().zip(BatchItems::new(&batches.bytes)) {
            self.count_refused(version.apply_item(seq, item?, &retention, operator));
        }
        self.state.snapshots.publish(last_seq, count, || {});
        Ok(())
    }

    /// Says which keys get records, before readers see them.
    #[cold]
    fn note_records(&self, first_seq: Seq, batches: &Batches) -> Result<(), Error> {
        self.state.gaps.begin_group(first_seq);
        for (seq, item) in first_seq.upwards().zip(BatchItems::new(&batches.bytes)) {
            if let BatchItem::Write { kind, key, .. } = item?
                && kind != Kind::Delete
                && !is_injected(InjectedFault::StaleGap)
            {
                self.state.gaps.note_record(seq, key);
            }
        }
        Ok(())
    }

    fn count_refused(&self, refused: usize) {
        if refused > 0 {
            self.state.stats.on_refused_merges(refused);
        }
    }

    /// Goes on with an empty memtable and a new journal. The caller holds `write_state`, of which
    /// it passes the content.
    pub(crate) fn seal(&self, write_state: &mut WriteState) {
        if !write_state.has_unsealed() {
            return;
        }
        write_state.journal.rotate(&self.next_journal);
        self.state.versions.exchange(|version| {
            let sealed = Arc::new(Sealed {
                memtable: Arc::clone(&version.active),
                first_seq: write_state.sealed_seq.next(),
                last_seq: write_state.last_seq,
                next_journal: write_state.journal.number(),
            });
            let mut all = vec![sealed];
            all.extend(version.sealed.iter().cloned());
            Version {
                active: Arc::new(Memtable::new()),
                sealed: all,
                runs: version.runs.clone(),
            }
        });
        write_state.sealed_seq = write_state.last_seq;
        self.state.update_back_pressure();
        self.state.background.wake();
    }

    /// Begins the next journal ahead, if it will be needed soon, so that no writer waits for that.
    /// Returns `true` if it was not begun yet.
    pub(crate) fn prepare_journal(&self) -> Result<bool, Error> {
        self.state.status.check_writable()?;
        if !self.state.options.background || self.files.reserve.is_short() {
            return Ok(false);
        }
        self.next_journal
            .prepare(&*self.state.directory, self.state.store)
    }

    /// Makes ready the journal and the memory that writers will need soon. Without it, the writer
    /// that needs them makes them.
    pub(crate) fn prepare(&self) {
        let _begun = self.prepare_journal();
        self.memtable_pool.prepare(self.state.full_memtable_bytes());
    }

    /// Seals the memtable, if all that share memory have too much and this one is among the
    /// largest.
    pub(crate) fn relieve_memory(&self) {
        if let Some(share) = &self.state.share {
            memory::relieve();
            if share.take_wanted() {
                self.seal(&mut self.state.write_state.lock());
            }
        }
    }

    /// Syncs the journal without keeping writers from it.
    pub(crate) fn sync(&self) -> Result<(), Error> {
        if self.state.status.is_opened_read_only() {
            return Ok(());
        }
        self.state.status.check_writable()?;
        let to_sync = self.state.write_state.lock().journal.to_sync();
        self.sync_files(&to_sync)
    }

    /// Syncs journals, also if they are not needed any more meanwhile.
    pub(crate) fn sync_files(&self, to_sync: &ToSync) -> Result<(), Error> {
        if !to_sync.is_empty() {
            to_sync
                .sync()
                .map_err(|error| self.state.status.make_read_only(error))?;
            self.state.stats.on_sync();
            let mut write_state = self.state.write_state.lock();
            let next_seq = write_state.last_seq.next();
            write_state.journal.note_synced(to_sync, next_seq);
        }
        Ok(())
    }

    /// Closes the file of the journal, which the next change opens again. Writes are synced before,
    /// because nobody would be told of an error that comes later. Returns `true` if it is closed,
    /// `false` if it is in use.
    pub(crate) fn close_logs(&self) -> Result<bool, Error> {
        self.sync()?;
        let is_closed =
            (self.state.write_state.try_lock()).is_some_and(|mut all| all.journal.close());
        if is_closed {
            self.next_journal.give_up();
        }
        Ok(is_closed)
    }
}

/// Checks that all values have deadlines, and that there are no operands.
fn check_deadlines(batch: &Batch) -> Result<(), Error> {
    for item in BatchItems::new(batch.encoding()) {
        match item? {
            BatchItem::Write {
                kind: Kind::Operand,
                ..
            } => return Err(Error::NoOperator),
            BatchItem::Write {
                kind: Kind::Put,
                value,
                ..
            } => lifetime::check(value)?,
            _ => {}
        }
    }
    Ok(())
}
