//! Short histories of a few threads, which tests check for linearizability.

use crate::checker::{Clock, Event};
use fastrand::Rng;
use std::sync::Barrier;

const THREADS: u64 = 3;
const CALLS: u64 = 6;

/// Returns the concurrent calls of several threads. `call` makes the call that a random number
/// selects, with a value that no other call of the history has.
pub(crate) fn history<O: Send>(
    round: u64,
    call: impl Fn(&Clock, u64, i64) -> Event<O> + Sync,
) -> Vec<Event<O>> {
    let (clock, start) = (Clock::default(), Barrier::new(THREADS as usize));
    let play = |thread: u64| {
        start.wait();
        let mut random = Rng::with_seed(round * THREADS + thread);
        let one = |at| call(&clock, random.u64(..1 << 24), (100 * thread + at) as i64);
        (0..CALLS).map(one).collect::<Vec<_>>()
    };
    let play = &play;
    std::thread::scope(|scope| {
        let players: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || play(thread)))
            .collect();
        let events = players.into_iter().map(|player| player.join());
        events
            .flat_map(|events| events.expect("a player"))
            .collect()
    })
}
