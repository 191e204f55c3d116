//! Durations of single calls.

use hdrhistogram::Histogram;

/// Times in nanoseconds, of which a quantile is at most a thousandth too large.
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Latencies(Histogram::new(3).expect("three digits are possible"))
    }
}

impl Latencies {
    /// Counts a time.
    pub fn add(&mut self, nanoseconds: u64) {
        self.0.record(nanoseconds).expect("the histogram grows");
    }

    /// Returns the longest, in microseconds.
    pub fn longest_us(&self) -> f64 {
        self.0.max() as f64 / 1e3
    }

    /// Returns the time that this part of the calls did not exceed, in microseconds.
    pub fn quantile_us(&self, part: f64) -> f64 {
        self.0.value_at_quantile(part) as f64 / 1e3
    }
}
