//! A clock that does not go back: milliseconds since some moment before the process began.
//!
//! The precise time takes some 40 ns to read where the processor's counter is that of a virtual
//! machine. Who only wants to know that a deadline is far away asks for the recent time instead,
//! which the system writes down some hundred times a second.

/// The time by which [`recent`] may be late, in milliseconds: much longer than the system lets it
/// be, since a hypervisor can stop the processor that keeps the time.
pub const LATE: u64 = 1000;

#[cfg(all(target_os = "linux", not(miri)))]
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call fills the struct, which lives long enough; both clocks exist since Linux
    // 2.6.32.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Returns the time in milliseconds.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn now() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Returns a time that was [`now`] less than [`LATE`] milliseconds ago.
#[cfg(all(target_os = "linux", not(miri)))]
#[inline]
pub fn recent() -> u64 {
    read(libc::CLOCK_MONOTONIC_COARSE)
}

/// Returns the time in milliseconds.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn now() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;

    static BEGIN: OnceLock<Instant> = OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed().as_millis() as u64 + LATE
}

/// Returns a time that was [`now`] less than [`LATE`] milliseconds ago.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn recent() -> u64 {
    now()
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use std::thread;
    use std::time::{Duration, Instant};

    #[test]
    fn times_agree() {
        let outer = Instant::now();
        let first = now();
        let begin = Instant::now();
        let mut last = first;
        while begin.elapsed() < Duration::from_millis(200) {
            let (late, time) = (recent(), now());
            assert!(late <= time && time < late + LATE, "{late}, {time}");
            assert!(time >= last);
            last = time;
            thread::yield_now();
        }
        // The thread may stand still between any two lines, so each bound is the time between two
        // readings that lie inside or outside those of the clock.
        let least = begin.elapsed().as_millis() as u64;
        let passed = now() - first;
        let most = outer.elapsed().as_millis() as u64;
        assert!(
            least <= passed + 1 && passed <= most + 1,
            "{least}, {passed}, {most}"
        );
    }
}
