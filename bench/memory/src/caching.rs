//! The workloads of caches: their hits, and their rates. Keys are drawn in the loop, by Zipf's law
//! or evenly, in the same order for all.

use crate::caches::{Bounded, Cache, Lru, Moka, Quick};
use crate::crew::rate_over_time;
use crate::operations::value_of;
use crate::options::Options;
use crate::results::Results;
use fastrand::Rng;
use std::hint::black_box;

const THREADS: [usize; 2] = [1, 2];
/// The pairs for which caches have room whose rate is measured.
const ROOMS: [usize; 2] = [1_000, 1_000_000];
/// The number of keys for each pair that a cache has room for.
const KEYS_OF_ROOM: usize = 100;
/// Operations between two looks at the clock.
const CHUNK: u64 = 64;
/// The keys, the room and the look-ups of a measurement of hits.
const HIT_KEYS: usize = 100_000;
const HIT_ROOM: usize = 1_000;
const HIT_LOOKUPS: usize = 400_000;

/// The order of the table.
pub const NAMES: [&str; 4] = [Bounded::NAME, Moka::NAME, Quick::NAME, Lru::NAME];

/// Measures the rates of the caches, which take turns; another one begins in each round.
pub fn measure(options: &Options, round: usize, results: &mut Results) {
    let sides: [fn(&Options, &mut Results); 3] = [rates::<Bounded>, rates::<Moka>, rates::<Quick>];
    for at in 0..sides.len() {
        sides[(at + round) % sides.len()](options, results);
    }
}

/// Measures the hits, which do not depend on the machine.
pub fn measure_hits(options: &Options, results: &mut Results) {
    hits::<Bounded>(options, results);
    hits::<Moka>(options, results);
    hits::<Quick>(options, results);
    hits::<Lru>(options, results);
}

fn hits<C: Cache>(options: &Options, results: &mut Results) {
    for exponent in [0.9, 1.0] {
        let name = format!("caches: hits of 100, Zipf {exponent:.1}");
        if options.wants(&name) {
            results.add(&name, 1, C::NAME, hits_of_100::<C>(exponent));
        }
    }
}

/// Returns how many of 100 look-ups find a pair, where a missing one is inserted.
fn hits_of_100<C: Cache>(exponent: f64) -> f64 {
    let (mut sums, mut sum) = (Vec::with_capacity(HIT_KEYS), 0.0);
    for rank in 1..=HIT_KEYS {
        sum += (rank as f64).powf(-exponent);
        sums.push(sum);
    }
    let (cache, mut random) = (C::with_room(HIT_ROOM), Rng::with_seed(11));
    let mut hits = 0;
    for _ in 0..HIT_LOOKUPS {
        let wanted = random.f64() * sum;
        let key = sums.partition_point(|sum| *sum < wanted) as u64;
        if cache.get(key).is_some() {
            hits += 1;
        } else {
            cache.put(key, key);
            cache.settle();
        }
    }
    f64::from(hits) * 100.0 / HIT_LOOKUPS as f64
}

/// Draws a key by Zipf's law with the exponent 1: the key below `e^span` whose logarithm is even.
#[inline]
fn zipf(random: &mut Rng, span: f64) -> u64 {
    (random.f64() * span).exp() as u64
}

fn rates<C: Cache>(options: &Options, results: &mut Results) {
    for room in ROOMS {
        let reads = format!("caches: reads, room for {room}");
        let mix = format!("caches: mix, room for {room}");
        if options.wants(&reads) {
            let cache = C::with_room(room);
            // Half full, so that none of them has evicted anything.
            let keys = room as u64 / 2;
            for key in 0..keys {
                cache.put(key, value_of(key as u32));
            }
            cache.settle();
            let kept = (0..keys).filter(|key| cache.get(*key).is_some()).count();
            assert_eq!(kept as u64, keys, "{} has all", C::NAME);
            for threads in THREADS {
                let rate = rate_over_time(threads, options.time, |thread| {
                    let (mut random, cache) = (Rng::with_seed(thread as u64), &cache);
                    move || {
                        for _ in 0..CHUNK {
                            black_box(cache.get(random.u64(..keys)));
                        }
                        CHUNK
                    }
                });
                results.add(&reads, threads, C::NAME, rate);
            }
        }
        if options.wants(&mix) {
            let (cache, span) = (C::with_room(room), ((KEYS_OF_ROOM * room) as f64).ln());
            let call = |random: &mut Rng| {
                let key = zipf(random, span);
                if cache.get(key).is_none() {
                    cache.put(key, value_of(key as u32));
                }
            };
            let mut random = Rng::with_seed(77);
            (0..8 * room).for_each(|_| call(&mut random));
            for threads in THREADS {
                let rate = rate_over_time(threads, options.time, |thread| {
                    let (mut random, call) = (Rng::with_seed(thread as u64), &call);
                    move || {
                        (0..CHUNK).for_each(|_| call(&mut random));
                        CHUNK
                    }
                });
                results.add(&mix, threads, C::NAME, rate);
            }
        }
    }
}
