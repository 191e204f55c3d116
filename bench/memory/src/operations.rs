//! The operations on the maps, drawn beforehand so that no random number is part of a figure.

use fastrand::Rng;

/// Returns the value that goes with a key.
pub fn value_of(key: u32) -> u64 {
    u64::from(key).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// One operation of a mix: the kind in the low bits, the key above.
#[derive(Clone, Copy)]
pub struct Operation(u32);

/// The kinds of operations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Looks a key up.
    Lookup,
    /// Gives a key a value.
    Insert,
    /// Removes a key.
    Remove,
}

impl Operation {
    fn new(kind: Kind, key: u32) -> Self {
        Operation(key << 2 | kind as u32)
    }

    /// Returns the kind of the operation.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.0 & 3 {
            0 => Kind::Lookup,
            1 => Kind::Insert,
            _ => Kind::Remove,
        }
    }

    /// Returns the key of the operation.
    #[inline]
    pub fn key(self) -> u32 {
        self.0 >> 2
    }
}

/// Returns, for each thread, `count` operations on keys below `range`, of which `percent` are
/// updates: inserts and removals in equal parts.
pub fn mix(threads: usize, count: usize, range: u32, percent: u32) -> Vec<Vec<Operation>> {
    each_thread(threads, count, u64::from(percent) + 1, |random| {
        let key = random.u32(..range);
        let kind = if random.u32(..100) >= percent {
            Kind::Lookup
        } else if random.u32(..2) == 0 {
            Kind::Insert
        } else {
            Kind::Remove
        };
        Operation::new(kind, key)
    })
}

/// Returns, for each thread, `count` keys below `range`.
pub fn keys(threads: usize, count: usize, range: u32) -> Vec<Vec<u32>> {
    each_thread(threads, count, 0, |random| random.u32(..range))
}

/// `count` ascending numbers, a contiguous part for each thread.
pub fn disjoint(threads: usize, count: u32) -> Vec<Vec<u32>> {
    let share = count / threads as u32;
    let parts = (0..threads as u32).map(|thread| (thread * share..(thread + 1) * share).collect());
    parts.collect()
}

/// `count` ascending numbers, dealt to the threads one by one.
pub fn deal_in_turn(threads: usize, count: u32) -> Vec<Vec<u32>> {
    let deal = |thread| (thread..count).step_by(threads).collect();
    (0..threads as u32).map(deal).collect()
}

/// Returns, for each thread, `count` items, drawn with random numbers of its own.
fn each_thread<T>(
    threads: usize,
    count: usize,
    seed: u64,
    draw: impl Fn(&mut Rng) -> T,
) -> Vec<Vec<T>> {
    let of_thread = |thread: usize| {
        let mut random = Rng::with_seed(seed << 32 | thread as u64);
        (0..count).map(|_| draw(&mut random)).collect()
    };
    (0..threads).map(of_thread).collect()
}
