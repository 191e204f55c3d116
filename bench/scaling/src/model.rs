//! The model: the throughput of threads that work alone for a while, fetch cache lines from each
//! other, and queue at locks and at lines that all of them write.
//!
//! An operation takes the time that it takes alone, and in addition
//! - for each line that another core has, the time to transfer the line;
//! - for each call of `membarrier`, the call, and an interrupt of every other core;
//! - the time in queues. A *station* is a lock or a hot line, of which there are several copies. A
//!   thread that visits one waits for the threads that came before.
//!
//! The queue at one copy is the machine-repairman model: threads, each of which comes back after a
//! time of exponential distribution that it spends elsewhere, and one server. The time that threads
//! spend elsewhere depends on the time that they wait at other stations, so the times are iterated
//! until they agree.

/// Seconds in a nanosecond and in a microsecond.
pub const NS: f64 = 1e-9;
/// See [`NS`].
pub const US: f64 = 1e-6;

/// A machine as the model knows it. All times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Sockets.
    pub sockets: usize,
    /// Cores of a socket.
    pub cores: usize,
    /// Throughput of a core with two threads, if that of one is 1.
    pub two_threads: f64,
    /// Fetch of a line from another core of the socket.
    pub within: f64,
    /// Fetch of a line from another socket.
    pub between: f64,
    /// A call of the system, for the thread that makes it.
    pub call: f64,
    /// The time that a core loses by an interrupt from another.
    pub interrupt: f64,
    /// Time between the handing of a lock to a sleeping thread and the run of that thread.
    pub wake: f64,
    /// The time for which a thread looks at a lock before it sleeps.
    pub patience: f64,
}

impl Machine {
    /// Returns the time to fetch a line from one of the other threads, any of them as likely.
    /// Threads are spread evenly over the sockets, as a system spreads them that balances their
    /// load.
    pub fn transfer(&self, threads: usize) -> f64 {
        let near = (threads as f64 / self.sockets as f64 - 1.0).max(0.0);
        let near = match threads {
            1 => 1.0,
            _ => near / (threads - 1) as f64,
        };
        near * self.within + (1.0 - near) * self.between
    }

    /// Returns the factor by which a thread is slower at its own work since it shares its core.
    pub fn slowdown(&self, threads: usize) -> f64 {
        let cores = (self.sockets * self.cores) as f64;
        let threads = threads as f64;
        let shared = (threads - cores).clamp(0.0, cores);
        threads / (threads.min(cores) + shared * (self.two_threads - 1.0))
    }
}

/// The work of an operation at a station while it holds the station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Service {
    /// Writes a line, for which the line is fetched from the thread before.
    Line,
    /// Holds a lock that any thread can take when it is free, so that no thread waits for another
    /// to wake up.
    Lock {
        /// Time that the lock is held, without fetches.
        hold: f64,
    },
    /// Holds a lock that is handed to the thread that has waited longest, which may be asleep.
    Queue {
        /// Time that the lock is held, without fetches.
        hold: f64,
        /// The number of times that the line of the lock is fetched.
        lines: f64,
        /// The number of times that the lock is handed over for an operation.
        handovers: f64,
        /// Calls of the system under the lock, to wake others.
        wakes: f64,
    },
}

/// Locks or lines of one kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// The number of stations; which of them an operation visits is chance.
    pub copies: f64,
    /// Visits of an operation.
    pub visits: f64,
    /// The work that is done there.
    pub service: Service,
    /// `true` if the visit takes place while the operation is at the station before.
    pub nested: bool,
}

/// The work of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// Seconds that it takes if there is no other thread.
    pub alone: f64,
    /// Lines that it fetches from other cores, apart from those at stations.
    pub fetched: f64,
    /// Calls of `membarrier`.
    pub calls: f64,
    /// The stations at which it queues.
    pub stations: Vec<Station>,
}

impl Operation {
    /// Returns the operations a second of `threads` threads together.
    pub fn throughput(&self, machine: &Machine, threads: usize) -> f64 {
        let times: f64 = self.parts(machine, threads).iter().sum();
        threads as f64 / times
    }

    /// Returns the parts of an operation in seconds: its own work, lines that it fetches, calls and
    /// interrupts, and waiting in queues and for the lines of stations.
    pub fn parts(&self, machine: &Machine, threads: usize) -> [f64; 4] {
        let others = (threads - 1) as f64;
        let lines = self.fetched * machine.transfer(threads);
        let calls = match threads {
            1 => 0.0,
            _ => self.calls * (machine.call + others * machine.interrupt),
        };
        let outside = self.private() * machine.slowdown(threads) + lines + calls;
        let queued = self.queueing_time(&self.responses(machine, threads, outside));
        let own = self.alone * machine.slowdown(threads);
        [own, lines, calls, outside + queued - own - lines - calls]
    }

    /// Returns the time alone, without that in which the operation holds a station.
    fn private(&self) -> f64 {
        let held = self.stations.iter().map(|station| match station.service {
            Service::Line => 0.0,
            Service::Lock { hold } | Service::Queue { hold, .. } => station.visits * hold,
        });
        (self.alone - held.sum::<f64>()).max(self.alone * 0.01)
    }

    /// Returns the time of a visit to each station, if the operation spends the time `outside`
    /// outside of stations.
    fn responses(&self, machine: &Machine, threads: usize, outside: f64) -> Vec<f64> {
        let mut responses = vec![0.0; self.stations.len()];
        // Begins with no thread asleep: a queue of sleepers that would keep itself alive, but that
        // threads without sleepers do not get into, is not found.
        let mut asleep = vec![0.0; self.stations.len()];
        for _ in 0..ROUNDS {
            let cycle = outside + self.queueing_time(&responses);
            for place in (0..self.stations.len()).rev() {
                let station = &self.stations[place];
                let inner = self.inner(place, &responses);
                let time = machine.service(station.service, inner, asleep[place], threads);
                let between_visits = cycle * station.copies / station.visits;
                let away = (between_visits - responses[place]).max(outside * 1e-3);
                let response = response(threads, away, time);
                // Small steps, or two stations would push the queue to each other for ever.
                responses[place] += STEP * (response - responses[place]);
                asleep[place] += STEP * (machine.asleep(response - time) - asleep[place]);
            }
        }
        responses
    }

    /// Returns the time at stations, those within others not counted twice.
    fn queueing_time(&self, responses: &[f64]) -> f64 {
        let all = self.stations.iter().zip(responses);
        let outer = all.filter(|(station, _)| !station.nested);
        outer
            .map(|(station, response)| station.visits * response)
            .sum()
    }

    /// Returns the time that one visit to a station spends at the station nested in it.
    fn inner(&self, place: usize, responses: &[f64]) -> f64 {
        match self.stations.get(place + 1) {
            Some(inner) if inner.nested => {
                inner.visits / self.stations[place].visits * responses[place + 1]
            }
            _ => 0.0,
        }
    }
}

/// Iterations until times agree, and how much of the difference each takes.
const ROUNDS: usize = 2000;
const STEP: f64 = 0.02;

impl Machine {
    /// Returns the time for which a station is busy with one visit. `inner` is the time that the
    /// visit spends at the station within, and `asleep` the part of the threads that are asleep
    /// when the lock is handed to them.
    fn service(&self, service: Service, inner: f64, asleep: f64, threads: usize) -> f64 {
        let transfer = match threads {
            1 => 0.0,
            _ => self.transfer(threads),
        };
        let slowdown = self.slowdown(threads);
        match service {
            Service::Line => transfer,
            Service::Lock { hold } => hold * slowdown + transfer + inner,
            Service::Queue {
                hold,
                lines,
                handovers,
                wakes,
            } => {
                let hold = hold * slowdown + lines * transfer + inner;
                hold + asleep * (handovers * self.wake + wakes * self.call)
            }
        }
    }

    /// Returns the part of threads that sleep when their average wait is `wait`. Waits differ, so
    /// it does not change at one moment: from half of the patience on some sleep, and from one and
    /// a half on all.
    fn asleep(&self, wait: f64) -> f64 {
        (wait / self.patience - 0.5).clamp(0.0, 1.0)
    }
}

/// Returns the mean time that a visit takes at one server, waiting included. Each of `threads`
/// threads comes back `away` seconds after it has left; the server takes `service` seconds for a
/// visit.
fn response(threads: usize, away: f64, service: f64) -> f64 {
    // Mean value analysis: a thread that comes meets the queue of one thread less.
    let (mut queue, mut response) = (0.0, service);
    for present in 1..=threads {
        response = service * (1.0 + queue);
        queue = present as f64 * response / (away + response);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine = Machine {
        sockets: 2,
        cores: 16,
        two_threads: 1.3,
        within: 50.0 * NS,
        between: 150.0 * NS,
        call: US,
        interrupt: US,
        wake: 40.0 * US,
        patience: 10.0 * US,
    };

    fn operation(fetched: f64, stations: Vec<Station>) -> Operation {
        Operation {
            alone: US,
            fetched,
            calls: 0.0,
            stations,
        }
    }

    fn station(copies: f64, service: Service) -> Station {
        Station {
            copies,
            visits: 1.0,
            service,
            nested: false,
        }
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 0.01
    }

    #[test]
    fn one_core_does_what_it_is_calibrated_to() {
        let hold = 0.4 * US;
        let queue = Service::Queue {
            hold,
            lines: 1.0,
            handovers: 1.0,
            wakes: 1.0,
        };
        for service in [Service::Line, Service::Lock { hold }, queue] {
            let operation = operation(0.0, vec![station(1.0, service)]);
            let rate = operation.throughput(&MACHINE, 1);
            assert!(near(rate, 1e6), "{service:?}: {rate}");
        }
    }

    #[test]
    fn without_shared_lines_cores_add_up() {
        let alone = operation(0.0, Vec::new());
        for threads in 1..=32 {
            assert!(near(
                alone.throughput(&MACHINE, threads),
                threads as f64 * 1e6
            ));
        }
        assert!(near(alone.throughput(&MACHINE, 64), 32.0 * 1.3 * 1e6));
    }

    #[test]
    fn more_shared_lines_are_never_faster() {
        for threads in [2, 8, 32, 64] {
            let rates = [0.0, 0.5, 1.0, 4.0, 16.0]
                .map(|lines| operation(lines, Vec::new()).throughput(&MACHINE, threads));
            assert!(rates.is_sorted_by(|more, less| more > less), "{rates:?}");
        }
    }

    #[test]
    fn a_hot_line_serves_one_thread_at_a_time() {
        let hot = operation(0.0, vec![station(1.0, Service::Line)]);
        let most = 1.0 / MACHINE.transfer(64);
        let rate = hot.throughput(&MACHINE, 64);
        assert!(
            rate <= most * 1.001 && rate > most * 0.95,
            "{rate} of {most}"
        );
    }

    #[test]
    fn more_locks_are_never_slower() {
        let hold = 0.5 * US;
        let rates = [1.0, 4.0, 16.0, 64.0, 1024.0].map(|copies| {
            let lock = station(copies, Service::Lock { hold });
            operation(0.0, vec![lock]).throughput(&MACHINE, 32)
        });
        assert!(rates.is_sorted(), "{rates:?}");
        // One lock that is held for half of the time: not more than twice as fast as one thread.
        assert!(rates[0] <= 2e6);
    }

    #[test]
    fn a_lock_that_is_handed_to_sleepers_collapses() {
        let queue = Service::Queue {
            hold: US,
            lines: 1.0,
            handovers: 1.0,
            wakes: 0.0,
        };
        let one_lock = operation(0.0, vec![station(1.0, queue)]);
        let rates = [1, 64].map(|threads| one_lock.throughput(&MACHINE, threads));
        assert!(rates[1] < rates[0] / 20.0, "{rates:?}");
    }

    #[test]
    fn a_station_within_another_is_counted_once() {
        let hold = 0.2 * US;
        let mut inner = station(1.0, Service::Line);
        inner.nested = true;
        let outer = station(64.0, Service::Lock { hold });
        let both = operation(0.0, vec![outer, inner]);
        let most = 1.0 / MACHINE.transfer(32);
        for threads in [1, 8, 32] {
            let rate = both.throughput(&MACHINE, threads);
            assert!(rate <= most * 1.001, "{rate} of {most}");
        }
        assert!(near(both.throughput(&MACHINE, 1), 1e6));
    }
}
