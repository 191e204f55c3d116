use super::*;
use parking_lot::Mutex;
use std::sync::atomic::AtomicU32;
use std::thread::{self, sleep};

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(20);

/// A member that notes its turns, and does the work that a test gives it.
struct Noting {
    urgent: AtomicU32,
    long: AtomicU32,
    on_urgent: Box<dyn Fn(u32) -> Turn + Send + Sync>,
    on_long: Box<dyn Fn(u32) -> Turn + Send + Sync>,
}

impl Noting {
    fn new(
        on_urgent: impl Fn(u32) -> Turn + Send + Sync + 'static,
        on_long: impl Fn(u32) -> Turn + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Noting {
            urgent: AtomicU32::new(0),
            long: AtomicU32::new(0),
            on_urgent: Box::new(on_urgent),
            on_long: Box::new(on_long),
        })
    }

    fn turns(&self) -> (u32, u32) {
        let load = |turns: &AtomicU32| turns.load(Ordering::SeqCst);
        (load(&self.urgent), load(&self.long))
    }
}

impl Member for Noting {
    fn urgent_turn(&self) -> Turn {
        (self.on_urgent)(self.urgent.fetch_add(1, Ordering::SeqCst))
    }

    fn long_turn(&self) -> Turn {
        (self.on_long)(self.long.fetch_add(1, Ordering::SeqCst))
    }
}

fn pool(threads: usize) -> Arc<Pool> {
    Arc::new(Pool::new("a-pool", threads, false))
}

fn join(pool: &Arc<Pool>, member: &Arc<Noting>) -> Membership {
    let membership = pool.join(Arc::clone(member) as Arc<dyn Member>);
    membership.expect("there are threads")
}

/// Waits until this holds, for long.
fn wait_for(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "it never came to that");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_member_has_turns_as_long_as_it_has_work() {
    let pool = pool(2);
    let again = |done: u32| match done % 3 {
        2 => Turn::Long,
        _ => Turn::Again,
    };
    let member = Noting::new(again, |_| Turn::Idle);
    let membership = join(&pool, &member);
    sleep(SHORT);
    assert_eq!(member.turns(), (0, 0));
    for times in 1..50 {
        membership.wake();
        wait_for(|| member.turns() == (3 * times, times));
        membership.begin_turn();
    }
    membership.leave();
    assert_eq!(Arc::strong_count(&member), 1);
}

#[test]
fn a_member_is_woken_once_until_its_turn_begins() {
    let pool = pool(2);
    let member = Noting::new(|_| Turn::Idle, |_| Turn::Idle);
    let membership = join(&pool, &member);
    membership.wake();
    wait_for(|| member.turns() == (1, 0));
    // The member has not said that its turn has begun.
    membership.wake();
    sleep(SHORT);
    assert_eq!(member.turns(), (1, 0));
    membership.begin_turn();
    membership.wake();
    wait_for(|| member.turns() == (2, 0));
    membership.leave();
}

#[test]
fn urgent_turns_do_not_wait_for_long_ones() {
    let pool = pool(3);
    let is_over = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&is_over);
    let until_over = move |_| {
        while !over.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(1));
        }
        Turn::Idle
    };
    let slow = [(); 4].map(|()| Noting::new(|_| Turn::Long, until_over.clone()));
    let memberships = slow.each_ref().map(|member| join(&pool, member));
    memberships.iter().for_each(Membership::wake);
    let in_long = || slow.iter().map(|member| member.turns().1).sum::<u32>();
    wait_for(|| in_long() == 2 && slow.iter().all(|member| member.turns().0 == 1));
    let quick = Noting::new(|_| Turn::Idle, |_| Turn::Idle);
    let membership = join(&pool, &quick);
    membership.wake();
    wait_for(|| quick.turns() == (1, 0));
    assert_eq!(in_long(), 2);
    wait_for(|| pool.waiting.load(Ordering::SeqCst) == 2);
    assert!(!memberships[0].is_waited_for(), "this thread takes no turn");
    is_over.store(true, Ordering::SeqCst);
    wait_for(|| in_long() == 4);
    memberships.iter().for_each(Membership::leave);
    membership.leave();
}

#[test]
fn long_turns_that_give_way_let_all_members_go_on() {
    let pool = pool(2);
    let memberships: Arc<Mutex<Vec<Arc<Membership>>>> = Arc::default();
    let is_over = Arc::new(AtomicBool::new(false));
    let members = [(); 3].map(|()| {
        let (memberships, is_over) = (Arc::clone(&memberships), Arc::clone(&is_over));
        let give_way = move |_| {
            let membership = Arc::clone(&memberships.lock()[0]);
            sleep(Duration::from_millis(1));
            while !membership.is_waited_for() && !is_over.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(1));
            }
            Turn::Again
        };
        Noting::new(|_| Turn::Long, give_way)
    });
    for member in &members {
        memberships.lock().push(Arc::new(join(&pool, member)));
    }
    let memberships = memberships.lock().clone();
    for membership in &memberships {
        membership.wake();
    }
    let turns = || members.each_ref().map(|member| member.turns().1);
    wait_for(|| turns().iter().all(|turns| *turns >= 50));
    let sum: u32 = turns().iter().sum();
    let (least, most) = (turns().into_iter().min(), turns().into_iter().max());
    assert!(most <= least.map(|least| least + sum / 6), "{:?}", turns());
    is_over.store(true, Ordering::SeqCst);
    for membership in &memberships {
        membership.leave();
    }
}

#[test]
fn times_are_kept_beside_long_turns() {
    let pool = pool(2);
    let ticking = Noting::new(|_| Turn::After(Duration::from_millis(5)), |_| Turn::Idle);
    let slow = Noting::new(
        |_| Turn::Long,
        |done| {
            sleep(Duration::from_millis(30));
            if done < 10 { Turn::Again } else { Turn::Idle }
        },
    );
    let memberships = [join(&pool, &ticking), join(&pool, &slow)];
    memberships[1].wake();
    wait_for(|| slow.turns().1 == 1);
    memberships[0].wake_after(Duration::from_millis(1));
    // An earlier time counts, a later one does not.
    memberships[0].wake_after(LONG);
    wait_for(|| slow.turns().1 == 11);
    sleep(Duration::from_millis(40));
    let ticks = ticking.turns().0;
    // A tick takes 5 ms at least, and the slow one 300 ms.
    assert!((10..=200).contains(&ticks), "{ticks}");
    let never = Noting::new(|_| Turn::After(Duration::MAX), |_| Turn::Idle);
    let membership = join(&pool, &never);
    membership.wake();
    wait_for(|| never.turns().0 == 1);
    memberships
        .iter()
        .chain([&membership])
        .for_each(Membership::leave);
    let ticks = ticking.turns().0;
    sleep(SHORT);
    assert_eq!(ticking.turns().0, ticks, "it has left");
}

#[test]
fn leaving_waits_for_turns_and_not_for_its_own() {
    let pool = pool(2);
    let is_in = Arc::new(AtomicBool::new(false));
    let (began, ended) = (Arc::clone(&is_in), Arc::new(AtomicBool::new(false)));
    let end = Arc::clone(&ended);
    let member = Noting::new(
        move |_| {
            began.store(true, Ordering::SeqCst);
            sleep(SHORT);
            end.store(true, Ordering::SeqCst);
            Turn::Again
        },
        |_| Turn::Idle,
    );
    let membership = join(&pool, &member);
    membership.wake();
    wait_for(|| is_in.load(Ordering::SeqCst));
    membership.leave();
    membership.leave();
    assert!(ended.load(Ordering::SeqCst));
    assert_eq!(member.turns(), (1, 0));
    assert_eq!(Arc::strong_count(&member), 1);
    assert_eq!(pool.state.lock().threads.len(), 0);

    let own: Arc<Mutex<Option<Arc<Membership>>>> = Arc::default();
    let leaving = Arc::clone(&own);
    let member = Noting::new(
        move |_| {
            let membership = leaving.lock().clone();
            membership.expect("it has joined").leave();
            Turn::Again
        },
        |_| Turn::Idle,
    );
    let membership = Arc::new(join(&pool, &member));
    *own.lock() = Some(Arc::clone(&membership));
    membership.wake();
    wait_for(|| pool.state.lock().members.is_empty());
    wait_for(|| Arc::strong_count(&member) == 1);
    membership.wake();
    assert_eq!(member.turns(), (1, 0));
}

/// The time of a member comes while it leaves and one of its turns is under way.
#[test]
fn a_member_that_leaves_has_no_time() {
    let pool = pool(3);
    let is_in = Arc::new(AtomicBool::new(false));
    let began = Arc::clone(&is_in);
    let member = Noting::new(
        |_| Turn::Long,
        move |_| {
            began.store(true, Ordering::SeqCst);
            sleep(Duration::from_millis(100));
            Turn::After(Duration::from_millis(1))
        },
    );
    let others = [(); 2].map(|()| Noting::new(|_| Turn::After(SHORT), |_| Turn::Idle));
    let memberships = others.each_ref().map(|other| join(&pool, other));
    memberships.iter().for_each(Membership::wake);
    let membership = join(&pool, &member);
    membership.wake();
    wait_for(|| is_in.load(Ordering::SeqCst));
    membership.wake_after(SHORT);
    membership.leave();
    assert_eq!(member.turns(), (1, 1));
    let ticks = others[0].turns().0;
    wait_for(|| others[0].turns().0 > ticks + 2);
    memberships.iter().for_each(Membership::leave);
    assert!(pool.state.lock().times.is_empty());
}

/// Members come, are woken by several threads, and leave; none misses work that it was woken for.
#[test]
fn nothing_that_a_member_was_woken_for_is_missed() {
    let pool = pool(3);
    thread::scope(|scope| {
        for number in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..50 {
                    let asked = Arc::new(AtomicU32::new(0));
                    let membership: Arc<Mutex<Option<Arc<Membership>>>> = Arc::default();
                    let done = Arc::new(AtomicU32::new(0));
                    let (of_turn, to_do, is_done) =
                        (membership.clone(), asked.clone(), done.clone());
                    let look = move |turn: u32| {
                        if let Some(membership) = &*of_turn.lock() {
                            membership.begin_turn();
                        }
                        is_done.store(to_do.load(Ordering::SeqCst), Ordering::SeqCst);
                        match (turn + number) % 3 {
                            0 => Turn::Idle,
                            1 => Turn::Long,
                            _ => Turn::After(Duration::from_micros(u64::from(turn % 500))),
                        }
                    };
                    let wait = |turn| Turn::After(Duration::from_micros(u64::from(turn % 100)));
                    let member = Noting::new(look, wait);
                    let joined = Arc::new(join(pool, &member));
                    *membership.lock() = Some(Arc::clone(&joined));
                    for times in 1..=20 {
                        asked.store(times, Ordering::SeqCst);
                        joined.wake();
                        if (times + round) % 7 == 0 {
                            wait_for(|| done.load(Ordering::SeqCst) == times);
                        }
                    }
                    wait_for(|| done.load(Ordering::SeqCst) == 20);
                    joined.leave();
                    *membership.lock() = None;
                }
            });
        }
    });
    assert_eq!(pool.state.lock().threads.len(), 0);
}
