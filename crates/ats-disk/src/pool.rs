//! Threads that the stores of a process share.
//!
//! A *member* of a pool, which is a store, has threads only while it has something to do. It is
//! woken, or its time has come: then it gets *turns*, each of which does one piece of work. Turns
//! are urgent or long: an urgent one is waited for by others, a long one may take minutes. All
//! threads but one take long turns, so urgent ones do not wait for them. Members take turns in the
//! order in which they came. A long turn that is broken off when
//! [others wait](Membership::is_waited_for) lets small members go on beside large ones.
//!
//! - **POOL-1** An urgent turn that begins after a member was woken looks for the work that it was
//!   woken for.
//! - **POOL-2** Once a member has [left](Membership::leave) it gets no turn, none is under way, and
//!   the pool has let go of it.
//! - **POOL-3** A time that has passed is taken out of the row of times before its member is
//!   called, and a member that leaves has none. So a thread never looks at the same time again.
//! - **POOL-4** Work that may begin is never left to itself: a thread that takes a turn while there
//!   is more work, or a time to wait for, wakes another one.
//!
//! Threads begin with the first member and end with the last. A copy of the process by
//! [`fork`](crate::fork_detection) has none of them; it makes pools of its own.

use crate::fork_detection;
use arc_swap::ArcSwapOption;
use ats_sync::thread;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::{JoinHandle, ThreadId};
use std::time::{Duration, Instant};

/// Threads for syncs at intervals, which wait for devices: file systems make several of them one.
const SYNC_THREADS: usize = 4;
/// Added to the nice value of threads that write memtables and compact runs.
#[cfg(target_os = "linux")]
const NICE: i32 = 5;

thread_local! {
    /// The ticket of the member whose turn this thread takes; 0 is none. All pools draw from the
    /// same tickets.
    static TURN_OF: Cell<u64> = const { Cell::new(0) };
}

/// Makes this thread give way to those that read and write, where processors are scarce. It still
/// gets a quarter of a processor, so that its work is done.
fn lower_priority() {
    // Elsewhere the whole process would be meant.
    #[cfg(target_os = "linux")]
    let _denied = rustix::process::nice(NICE);
}

/// One that takes turns.
pub(crate) trait Member: Send + Sync {
    /// Does one piece of urgent work, or finds that there is none.
    fn urgent_turn(&self) -> Turn;

    /// Does one piece of long work, or finds that there is none.
    fn long_turn(&self) -> Turn {
        Turn::Idle
    }
}

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// More may be left to do: an urgent turn follows.
    Again,
    /// Nothing is urgent: a long turn follows.
    Long,
    /// Nothing is left to do until this time has passed.
    After(Duration),
    /// Nothing is left to do until the member is woken.
    Idle,
}

/// Threads, and the members that they serve.
pub(crate) struct Pool {
    /// The name of the threads.
    name: &'static str,
    threads: usize,
    is_nice: bool,
    state: Mutex<State>,
    /// Signalled when there is work for a thread.
    called: Condvar,
    /// Signalled when a turn of a member that leaves has ended.
    left: Condvar,
    /// Members that wait for a long turn. Stored to by the holder of the lock.
    waiting: AtomicUsize,
    /// See [`fork_detection`].
    fork_count: u64,
}

#[derive(Default)]
struct State {
    members: HashMap<u64, Entry>,
    /// Tickets of members that wait for an urgent turn, each once. Some may have left.
    urgent: VecDeque<u64>,
    /// The same for long turns.
    long: VecDeque<u64>,
    /// Times at which members want an urgent turn.
    times: BTreeSet<(Instant, u64)>,
    /// Threads that take a long turn.
    long_turns: usize,
    threads: Vec<JoinHandle<()>>,
    /// Counts how often the threads were ended.
    generation: u64,
}

/// A member in its pool.
struct Entry {
    member: Arc<dyn Member>,
    /// `true` if the ticket is in `urgent`.
    is_urgent: bool,
    /// `true` if the ticket is in `long`.
    is_long: bool,
    /// The time under which the ticket is in `times`.
    time: Option<Instant>,
    /// Turns that are under way.
    turns: usize,
    leaves: bool,
}

/// The membership of a member in a pool.
pub(crate) struct Membership {
    pool: Arc<Pool>,
    ticket: u64,
    /// `true` from when the member is woken until its turn begins.
    is_woken: AtomicBool,
}

impl State {
    fn call(&mut self, ticket: u64) {
        if let Some(entry) = self.members.get_mut(&ticket)
            && !entry.leaves
            && !mem::replace(&mut entry.is_urgent, true)
        {
            self.urgent.push_back(ticket);
            self.forget_time(ticket);
        }
    }

    fn forget_time(&mut self, ticket: u64) {
        let entry = self.members.get_mut(&ticket);
        if let Some(time) = entry.and_then(|entry| entry.time.take()) {
            self.times.remove(&(time, ticket));
        }
    }

    /// Calls a member at a time, unless it is called before.
    fn call_at(&mut self, ticket: u64, time: Instant) {
        let Some(entry) = self.members.get_mut(&ticket) else {
            return;
        };
        if entry.leaves || entry.is_urgent || entry.time.is_some_and(|earlier| earlier <= time) {
            return;
        }
        if let Some(later) = entry.time.replace(time) {
            self.times.remove(&(later, ticket));
        }
        self.times.insert((time, ticket));
    }

    /// Calls the members whose time has come.
    fn call_due(&mut self) {
        let now = (!self.times.is_empty()).then(Instant::now);
        while let Some(&(time, ticket)) = self.times.first()
            && now.is_some_and(|now| time <= now)
        {
            self.times.pop_first();
            if let Some(entry) = self.members.get_mut(&ticket) {
                entry.time = None;
            }
            self.call(ticket);
        }
    }

    /// Returns the member that takes the next turn, if there is one, and `true` if it is a long
    /// one.
    fn next(&mut self, most_long: usize) -> Option<(u64, Arc<dyn Member>, bool)> {
        while let Some(ticket) = self.urgent.pop_front() {
            if let Some(entry) = self.members.get_mut(&ticket)
                && !entry.leaves
            {
                entry.is_urgent = false;
                entry.turns += 1;
                return Some((ticket, Arc::clone(&entry.member), false));
            }
        }
        while self.long_turns < most_long
            && let Some(ticket) = self.long.pop_front()
        {
            if let Some(entry) = self.members.get_mut(&ticket)
                && !entry.leaves
            {
                entry.is_long = false;
                entry.turns += 1;
                self.long_turns += 1;
                return Some((ticket, Arc::clone(&entry.member), true));
            }
        }
        None
    }

    /// Notes that a member has taken a turn. Returns `true` if it is to leave.
    fn end(&mut self, ticket: u64, is_long: bool, turn: Turn) -> bool {
        self.long_turns -= usize::from(is_long);
        let Some(entry) = self.members.get_mut(&ticket) else {
            return false;
        };
        entry.turns -= 1;
        if entry.leaves {
            return true;
        }
        match turn {
            Turn::Again => self.call(ticket),
            Turn::Long if mem::replace(&mut entry.is_long, true) => {}
            Turn::Long => self.long.push_back(ticket),
            Turn::After(time) => {
                // Otherwise it is later than clocks can tell.
                if let Some(time) = Instant::now().checked_add(time) {
                    self.call_at(ticket, time);
                }
            }
            Turn::Idle => {}
        }
        false
    }
}

impl Pool {
    /// Makes a pool without threads, which begin with the first member.
    fn new(name: &'static str, threads: usize, is_nice: bool) -> Self {
        Pool {
            name,
            threads,
            is_nice,
            state: Mutex::default(),
            called: Condvar::new(),
            left: Condvar::new(),
            waiting: AtomicUsize::new(0),
            fork_count: fork_detection::fork_count(),
        }
    }

    /// Returns the threads that write memtables and compact runs: one more than there are
    /// processors.
    pub(crate) fn of_work() -> Arc<Self> {
        static POOL: ArcSwapOption<Pool> = ArcSwapOption::const_empty();
        Pool::of_process(&POOL, || {
            Pool::new("ats-disk", thread::processors() + 1, true)
        })
    }

    /// Returns the threads that sync at intervals.
    pub(crate) fn of_syncs() -> Arc<Self> {
        static POOL: ArcSwapOption<Pool> = ArcSwapOption::const_empty();
        Pool::of_process(&POOL, || Pool::new("ats-disk-sync", SYNC_THREADS, false))
    }

    /// Returns the pool of this process and of no copy.
    fn of_process(pool: &ArcSwapOption<Pool>, make: impl Fn() -> Pool) -> Arc<Self> {
        loop {
            let found = pool.load_full();
            match &found {
                Some(pool) if !fork_detection::is_forked_since(pool.fork_count) => {
                    return Arc::clone(pool);
                }
                // A thread of the other process may have held its locks.
                other => mem::forget(other.clone()),
            }
            pool.compare_and_swap(&found, Some(Arc::new(make())));
        }
    }

    /// Adds a member.
    ///
    /// # Errors
    /// That of the system, if there can be no threads.
    pub(crate) fn join(self: &Arc<Self>, member: Arc<dyn Member>) -> io::Result<Membership> {
        static LAST_TICKET: AtomicU64 = AtomicU64::new(0);
        let ticket = LAST_TICKET.fetch_add(1, Ordering::Relaxed) + 1;
        let entry = Entry {
            member,
            is_urgent: false,
            is_long: false,
            time: None,
            turns: 0,
            leaves: false,
        };
        let mut state = self.state.lock();
        state.members.insert(ticket, entry);
        let membership = Membership {
            pool: Arc::clone(self),
            ticket,
            is_woken: AtomicBool::new(false),
        };
        while state.threads.len() < self.threads {
            let (pool, generation) = (Arc::clone(self), state.generation);
            let started = thread::spawn(self.name, move || pool.run(generation));
            match started {
                Ok(thread) => state.threads.push(thread),
                Err(error) => {
                    drop(state);
                    membership.leave();
                    return Err(error);
                }
            }
        }
        Ok(membership)
    }

    /// Takes turns until the threads are ended.
    fn run(&self, generation: u64) {
        if self.is_nice {
            lower_priority();
        }
        let mut state = self.state.lock();
        while state.generation == generation {
            state.call_due();
            let next = state.next(self.most_long_turns());
            self.waiting.store(state.long.len(), Ordering::Relaxed);
            match (next, state.times.first()) {
                (Some((ticket, member, is_long)), _) => {
                    if self.has_more(&state) {
                        self.called.notify_one();
                    }
                    let turn = MutexGuard::unlocked(&mut state, || {
                        TURN_OF.set(ticket);
                        // A thread that ended would leave the turn under way for ever.
                        let turn = panic::catch_unwind(AssertUnwindSafe(|| {
                            if is_long {
                                member.long_turn()
                            } else {
                                member.urgent_turn()
                            }
                        }));
                        let turn = turn.unwrap_or(Turn::Idle);
                        // The reference may be the last one, and freeing takes long.
                        drop(member);
                        TURN_OF.set(0);
                        turn
                    });
                    if state.end(ticket, is_long, turn) {
                        self.left.notify_all();
                    }
                }
                (None, Some((time, _))) => {
                    let time = *time;
                    let _timed_out = self.called.wait_until(&mut state, time);
                }
                (None, None) => self.called.wait(&mut state),
            }
        }
    }

    fn most_long_turns(&self) -> usize {
        (self.threads - 1).max(1)
    }

    /// Returns `true` if another thread has something to do or to wait for.
    fn has_more(&self, state: &State) -> bool {
        let has_long = !state.long.is_empty() && state.long_turns < self.most_long_turns();
        has_long || !state.urgent.is_empty() || !state.times.is_empty()
    }
}

impl Membership {
    /// Has the member take an urgent turn as soon as possible. Costs a load if it is to take one.
    pub(crate) fn wake(&self) {
        // A forked process has no thread to wake: they are in the other one.
        if self.is_woken.swap(true, Ordering::AcqRel)
            || fork_detection::is_forked_since(self.pool.fork_count)
        {
            return;
        }
        self.pool.state.lock().call(self.ticket);
        self.pool.called.notify_one();
    }

    /// Has the member take an urgent turn after a time, if it takes none before.
    pub(crate) fn wake_after(&self, time: Duration) {
        if let Some(time) = Instant::now().checked_add(time)
            && !fork_detection::is_forked_since(self.pool.fork_count)
        {
            self.pool.state.lock().call_at(self.ticket, time);
            self.pool.called.notify_one();
        }
    }

    /// Notes that a turn of the member has begun, which sees all work that it was woken for before.
    pub(crate) fn begin_turn(&self) {
        self.is_woken.swap(false, Ordering::AcqRel);
    }

    /// Returns `true` if this thread takes a turn while other members wait for a long one.
    pub(crate) fn is_waited_for(&self) -> bool {
        TURN_OF.get() != 0 && self.pool.waiting.load(Ordering::Relaxed) > 0
    }

    /// Takes the member out of the pool, and waits for its turns to end, other than one that calls
    /// this. When it was the last member, ends the threads.
    pub(crate) fn leave(&self) {
        let mut state = self.pool.state.lock();
        let own = usize::from(TURN_OF.get() == self.ticket);
        state.forget_time(self.ticket);
        loop {
            let Some(entry) = state.members.get_mut(&self.ticket) else {
                return;
            };
            entry.leaves = true;
            if entry.turns <= own {
                break;
            }
            self.pool.left.wait(&mut state);
        }
        let entry = state.members.remove(&self.ticket);
        let mut threads = Vec::new();
        if state.members.is_empty() {
            state.generation += 1;
            threads = mem::take(&mut state.threads);
            state.urgent.clear();
            state.long.clear();
            self.pool.called.notify_all();
        }
        drop(state);
        drop(entry);
        for thread in threads {
            if !is_this(thread.thread().id()) {
                // The thread catches panics.
                let _ended = thread.join();
            }
        }
    }
}

fn is_this(thread: ThreadId) -> bool {
    thread == std::thread::current().id()
}

#[cfg(test)]
mod tests;
