//! Background threads of a process.
//!
//! A thread inherits the affinity of the one that starts it. A scheduler of the Erlang VM may be
//! bound to one processor (`erl +sbt`), and so may a thread of any program: threads that it starts
//! would then share that processor with it. So these threads get all processors that the process
//! may use.
//!
//! No system call returns these processors. The union of the affinities of its threads comes close:
//! if a user (`taskset`) or a container limits a process, all threads are inside the limit, and if
//! a program binds some of its threads, others fill the gap. Unlike the mask of all processors, the
//! union is never wider than the process was.

use std::io;
use std::sync::OnceLock;
use std::thread::{Builder, JoinHandle, available_parallelism};

/// Starts a thread with this name that may run on all processors of the process.
///
/// # Errors
/// Returns the error of the system if no thread can be started.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.into()).spawn(move || {
        #[cfg(all(target_os = "linux", not(miri)))]
        linux::allow_all_processors();
        work();
    })
}

/// Returns the number of processors that the process may use, also if the calling thread is bound
/// to fewer. The system is asked once, which takes a dozen calls of it.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(count_processors)
}

fn count_processors() -> usize {
    let count = || available_parallelism().map_or(1, usize::from);
    #[cfg(all(target_os = "linux", not(miri)))]
    if linux::is_thread_bound() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let asking = spawn("ats-processors", move || {
            let _ = sender.send(count());
        });
        if let Ok(processors) = asking.and_then(|_| receiver.recv().map_err(io::Error::other)) {
            return processors;
        }
    }
    count()
}

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use std::fs::read_dir;
    use std::process;

    /// A set of processors, as a mask; Linux supports up to 8192.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Processors([u64; 128]);

    impl Processors {
        pub(super) const NONE: Processors = Processors([0; 128]);

        /// Returns the processors that a thread may use; `None` if it has exited. 0 is the calling
        /// thread.
        pub(super) fn of(thread: i32) -> Option<Self> {
            let mut processors = Self::NONE;
            let mask = processors.0.as_mut_ptr().cast();
            // SAFETY: the mask has room for this many bytes, and any bits are valid in it.
            let result =
                unsafe { libc::sched_getaffinity(thread, size_of_val(&processors.0), mask) };
            (result == 0).then_some(processors)
        }

        /// Restricts the calling thread to these processors. Returns `true` if the system agrees.
        pub(super) fn allow(&self) -> bool {
            let mask = self.0.as_ptr().cast();
            // SAFETY: the mask has this many bytes, which are only read.
            unsafe { libc::sched_setaffinity(0, size_of_val(&self.0), mask) == 0 }
        }

        pub(super) fn add(&mut self, other: &Processors) {
            for (mine, others) in self.0.iter_mut().zip(&other.0) {
                *mine |= others;
            }
        }
    }

    /// Returns the processors that the process may use.
    pub(super) fn of_process() -> Processors {
        let mut all = Processors::NONE;
        let threads = read_dir("/proc/self/task").into_iter().flatten().flatten();
        let numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
        // The first thread has the number of the process, so it is included even without `/proc`.
        let first = i32::try_from(process::id()).ok();
        for thread in numbers.chain(first) {
            if let Some(processors) = Processors::of(thread) {
                all.add(&processors);
            }
        }
        all
    }

    /// Returns `true` if the calling thread may use fewer processors than the process.
    pub(super) fn is_thread_bound() -> bool {
        Processors::of(0).is_some_and(|processors| processors != of_process())
    }

    pub(super) fn allow_all_processors() {
        // A thread that the system refuses to move works where it was started.
        let _is_allowed = of_process().allow();
    }

    #[cfg(all(test, not(any(loom, shuttle))))]
    impl Processors {
        pub(super) fn count(&self) -> u32 {
            self.0.iter().map(|bits| bits.count_ones()).sum()
        }

        /// Returns the lowest of them.
        pub(super) fn first(&self) -> Self {
            let mut first = Self::NONE;
            if let Some(at) = self.0.iter().position(|bits| *bits != 0) {
                first.0[at] = 1 << self.0[at].trailing_zeros();
            }
            first
        }
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, loom, shuttle))))]
mod tests {
    use super::linux::{Processors, of_process};
    use super::{count_processors, spawn};
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn a_thread_that_is_bound_starts_threads_that_are_not_and_counts_all_processors() {
        let all = of_process();
        if all.count() < 2 {
            println!("NOT RUN: the process may use one processor only");
            return;
        }
        let binding = thread::spawn(move || {
            let one = all.first();
            assert!(one.allow());
            assert_eq!(Processors::of(0), Some(one));
            let (sender, receiver) = channel();
            let started = spawn("a-name", move || {
                let name = thread::current().name().map(String::from);
                sender.send((name, Processors::of(0))).expect("it listens");
            });
            started.expect("there is room").join().expect("it ends");
            let (name, processors) = receiver.recv().expect("it was sent");
            assert_eq!(name.as_deref(), Some("a-name"));
            assert_eq!(processors, Some(all));
            count_processors()
        });
        assert_eq!(binding.join().expect("it ends"), count_processors());
    }
}
