//! The enumeration: every call of a history at which the machine may stop, and the images that may
//! survive then.

use super::action::Fate;
use super::disk::Disk;
use super::fault::{Point, Window};
use super::fs::SimFs;
use super::history::{self, Operation};
use super::model::{State, Timeline};
use super::random::Random;
use super::subject::{Setup, Subject};
use super::survival::Survival;
use super::world::{Failure, World};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::fmt::{self, Write};
use std::hash::{BuildHasher, Hasher};
use std::marker::PhantomData;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::time::{Duration, Instant};

/// A history to enumerate.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) setup: Setup,
    pub(crate) history: Vec<Operation>,
    /// The most survivals of each kind that has many.
    pub(crate) each: usize,
    /// About so many images are written to and stopped again.
    pub(crate) again: usize,
}

impl Case {
    pub(crate) fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let setup = Setup::random(&mut random);
        let operations = 5 + random.below(36);
        let history = history::random(&mut random, &State::default(), operations, 0);
        Case {
            seed,
            setup,
            history,
            each: 8,
            again: 12,
        }
    }

    /// Histories with other seeds each time, for so many seconds as the environment says; with
    /// these, if it does not.
    pub(crate) fn seeds(default: Range<u64>) -> impl Iterator<Item = u64> {
        let seconds = std::env::var("ATS_DISK_CRASH_SECONDS").ok();
        let seconds = seconds.and_then(|seconds| seconds.parse().ok());
        let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let first = match end {
            Some(_) => RandomState::new().build_hasher().finish() >> 1,
            None => default.start,
        };
        (first..).take_while(move |seed| match end {
            Some(end) => Instant::now() < end,
            None => *seed < default.end,
        })
    }

    /// Visits the points, until one fails. Returns their number, and the failure.
    pub(crate) fn explore<S: Subject>(&self) -> (u64, Result<(), String>) {
        let mut explorer = Explorer {
            case: self,
            random: Random::new(self.seed ^ 0x5eed),
            visited: 0,
            again_one_in: usize::MAX,
            subject: PhantomData::<S>,
        };
        let explored = guard(|| explorer.explore());
        (explorer.visited, explored)
    }

    /// Returns a part of the history that still fails, and its failure.
    fn shrink<S: Subject>(mut self, mut wrong: String) -> (Self, String) {
        let end = Instant::now() + Duration::from_secs(60);
        let mut part = self.history.len() / 2;
        while part > 0 {
            let mut at = 0;
            while at < self.history.len() && Instant::now() < end {
                let mut less = self.clone();
                less.history.drain(at..(at + part).min(self.history.len()));
                match less.explore::<S>().1 {
                    Ok(()) => at += part,
                    Err(still) => (self, wrong) = (less, still),
                }
            }
            part /= 2;
        }
        (self, wrong)
    }

    /// Visits all points. Returns their number.
    ///
    /// # Panics
    /// If something is wrong, with a short history.
    pub(crate) fn check<S: Subject>(&self) -> u64 {
        let (visited, explored) = self.explore::<S>();
        if let Err(wrong) = explored {
            let (case, wrong) = self.clone().shrink::<S>(wrong);
            panic!("{wrong}\n{case}");
        }
        visited
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, {:?}", self.seed, self.setup)?;
        for (index, operation) in self.history.iter().enumerate() {
            write!(f, "\n  {index}: {operation:?}")?;
        }
        Ok(())
    }
}

thread_local! {
    /// The number of guards of this thread, and the last panic below one.
    static GUARDED: (Cell<usize>, RefCell<String>) = const {
        (Cell::new(0), RefCell::new(String::new()))
    };
}

/// Does something; a panic is wrong. It is not reported besides.
pub(crate) fn guard<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            GUARDED.with(|(depth, last)| match depth.get() {
                0 => report(panic),
                _ => *last.borrow_mut() = panic.to_string(),
            });
        }));
    });
    GUARDED.with(|(depth, _)| depth.set(depth.get() + 1));
    let result = catch_unwind(AssertUnwindSafe(run));
    GUARDED.with(|(depth, last)| {
        depth.set(depth.get() - 1);
        result.unwrap_or_else(|_| Err(last.take()))
    })
}

struct Explorer<'c, S> {
    case: &'c Case,
    random: Random,
    visited: u64,
    again_one_in: usize,
    subject: PhantomData<S>,
}

impl<S: Subject> Explorer<'_, S> {
    fn explore(&mut self) -> Result<(), String> {
        let fs = SimFs::new(Disk::default());
        fs.record();
        let live = |failure: Failure| format!("without a stop: {failure:?}");
        let mut world = World::<S>::new(fs, &self.case.setup).map_err(live)?;
        for operation in &self.case.history {
            world.step(operation).map_err(live)?;
        }
        world.check().map_err(live)?;
        let points = world.fs.points();
        // A point has about a dozen images that were not seen before.
        self.again_one_in = (12 * points.len()).div_ceil(self.case.again);
        self.stop(&points, world.timeline.states(), true)
    }

    /// Visits the images that may survive at these points.
    fn stop(&mut self, points: &[Point], states: &[State], first: bool) -> Result<(), String> {
        let mut seen = HashSet::new();
        for point in points {
            let survivals = if first {
                Survival::all(&point.disk, self.case.each, &mut self.random)
            } else {
                Survival::few(&point.disk, &mut self.random)
            };
            for survival in survivals {
                let fates = survival.fates(point.disk.pending());
                let is_process = survival == Survival::Process;
                let key = (is_process, low(point, survival), point.disk.key(&fates));
                if seen.insert(key) {
                    self.visited += 1;
                    let again = first && self.random.one_in(self.again_one_in);
                    let visited = guard(|| self.start(point, survival, states, again));
                    visited.map_err(|wrong| {
                        format!("{wrong}\n{}", describe(point, survival, &fates))
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Starts the machine again with a survived image, and checks it. Then may do more, and stop it
    /// again.
    fn start(
        &mut self,
        point: &Point,
        survival: Survival,
        states: &[State],
        again: bool,
    ) -> Result<(), String> {
        let low = low(point, survival);
        let synced = point.window.synced;
        let fs = SimFs::new(survival.image(&point.disk));
        if again {
            fs.record();
            fs.set_window(Window {
                synced,
                returned: low,
                begun: point.window.begun,
            });
        }
        let wrong = |failure: Failure| format!("after a start: {failure:?}");
        let part = &states[low..=point.window.begun];
        let setup = if self.random.one_in(4) {
            &self.case.setup.with_other_sizes(&mut self.random)
        } else {
            &self.case.setup
        };
        let opened = World::<S>::open(fs, setup, part);
        let (mut world, contained) = opened.map_err(wrong)?;
        let contained = low + contained;
        if !again {
            return Ok(());
        }
        let opening = world.fs.points();
        // All of an image is durable, but the shown state that survives the end of a process is
        // not.
        let durable = if survival == Survival::Process {
            synced
        } else {
            contained
        };
        world.timeline = Timeline::again(states, contained, durable);
        world.fs.set_window(world.timeline.window());
        let mut random = self.random.fork();
        let operations = 1 + random.below(6);
        let number = 1000 + self.visited;
        let more = history::random(&mut random, world.timeline.now(), operations, number);
        let told = |wrong: String| format!("{wrong}\n  after a start and {more:?}");
        self.stop(&opening, states, false)
            .map_err(|wrong| format!("{wrong}\n  in a start"))?;
        for operation in &more {
            world.step(operation).map_err(wrong).map_err(told)?;
        }
        world.check().map_err(wrong).map_err(told)?;
        let points = world.fs.points();
        let states = world.timeline.states().to_vec();
        self.stop(&points, &states, false).map_err(told)
    }
}

/// Returns the first write that must be there.
fn low(point: &Point, survival: Survival) -> usize {
    match survival {
        Survival::Process => point.window.returned,
        _ => point.window.synced,
    }
}

fn describe(point: &Point, survival: Survival, fates: &[Fate]) -> String {
    let mut text = format!(
        "  stopped at call {} ({:?}), {:?}, {survival:?}",
        point.call, point.name, point.window
    );
    for (pending, fate) in point.disk.pending().iter().zip(fates) {
        let name = point
            .disk
            .name(pending.action.file())
            .unwrap_or("a removed file");
        let _ = write!(text, "\n    {name}: {:?}: {fate:?}", pending.action);
    }
    text
}
