//! How long single calls took: a histogram with buckets that grow with the time, and the longest exactly.

/// Buckets for each doubling of the time, so that a quantile is at most a 64th too large.
const FINE: u32 = 64;

/// Times in nanoseconds.
pub struct Latencies {
    counts: Vec<u64>,
    longest: u64,
}

impl Latencies {
    /// None yet.
    pub fn new() -> Self {
        Latencies {
            counts: vec![0; bucket(u64::MAX) + 1],
            longest: 0,
        }
    }

    /// Counts a time.
    pub fn add(&mut self, nanoseconds: u64) {
        self.counts[bucket(nanoseconds)] += 1;
        self.longest = self.longest.max(nanoseconds);
    }

    /// The longest, in microseconds.
    pub fn longest_us(&self) -> f64 {
        self.longest as f64 / 1e3
    }

    /// The time that this part of the calls did not exceed, in microseconds.
    pub fn quantile_us(&self, part: f64) -> f64 {
        let total: u64 = self.counts.iter().sum();
        let rank = (total as f64 * part).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank && seen > 0 {
                return upper(bucket).min(self.longest) as f64 / 1e3;
            }
        }
        0.0
    }
}

/// The bucket of a time: exact below `FINE`, then `FINE` of them for each doubling.
fn bucket(time: u64) -> usize {
    let shift = (time | 1).ilog2().saturating_sub(FINE.ilog2());
    (u64::from(shift * FINE) + (time >> shift)) as usize
}

/// The longest time of a bucket.
fn upper(bucket: usize) -> u64 {
    let (fine, bucket) = (u64::from(FINE), bucket as u64);
    let shift = (bucket / fine).saturating_sub(1);
    let first = (bucket - shift * fine) << shift;
    first + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other() {
        let mut next = 0;
        for at in 0..=bucket(u64::MAX) {
            assert_eq!(bucket(next), at);
            assert_eq!(bucket(upper(at)), at);
            assert!(upper(at) - next <= next / u64::from(FINE));
            next = upper(at).wrapping_add(1);
        }
        assert_eq!(
            next, 0,
            "the last bucket ends with the longest time there is"
        );
    }

    #[test]
    fn quantiles_are_those_of_the_times() {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|time| latencies.add(time * 1000));
        let near = |found: f64, wanted: f64| (wanted..=wanted * 1.016).contains(&found);
        assert!(near(latencies.quantile_us(0.5), 500.0));
        assert!(near(latencies.quantile_us(0.99), 990.0));
        assert_eq!(latencies.quantile_us(1.0), 1000.0);
        assert_eq!(latencies.longest_us(), 1000.0);
        assert_eq!(Latencies::new().quantile_us(0.5), 0.0);
    }
}
