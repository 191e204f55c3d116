//! A queue with priorities: an ordered bag, from which threads take the first object.
//!
//! Jobs of the same priority are taken in the order in which they came, and each by one thread.

use ats::terms::{End, Error, Table, TableType, Term, TermHost, Workspace};
use std::thread;

const THREADS: usize = 3;
const JOBS: i64 = 300;

fn main() -> Result<(), Error> {
    let jobs = Table::<TermHost>::new(TableType::OrderedBag, 1);
    let mut work = Workspace::new();

    // The key is the priority, of which the least comes first.
    for (priority, name) in [(2, "write"), (1, "wake up"), (2, "test")] {
        jobs.insert(&Term::from((priority, name)), &mut work)?;
    }
    let order = take_all(&jobs)?;
    let expected = [(1, "wake up"), (2, "write"), (2, "test")];
    assert_eq!(order, expected.map(Term::from));
    println!("{} jobs in their order", order.len());

    // A list comes into the queue as one: no thread takes a job before the last one is there.
    let many: Vec<_> = (0..JOBS).map(|job| Term::from((job % 5, job))).collect();
    jobs.insert_many(many.iter(), &mut work)?;
    let mut taken = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| take_all(&jobs)))
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            let taken = thread.join().expect("no thread panics")?;
            // Each thread sees ascending priorities.
            assert!(taken.is_sorted_by(|one, next| priority(one) <= priority(next)));
            all.extend(taken);
        }
        Ok::<_, Error>(all)
    })?;
    taken.sort_by_key(|job| job.as_tuple().and_then(|job| job[1].as_int()));
    let all: Vec<_> = (0..JOBS).map(|job| Term::from((job % 5, job))).collect();
    assert_eq!(taken, all);
    println!("{JOBS} jobs, each taken once by one of {THREADS} threads");
    Ok(())
}

/// Takes jobs until there are none.
fn take_all(jobs: &Table<TermHost>) -> Result<Vec<Term>, Error> {
    let (mut work, mut taken) = (Workspace::new(), Vec::new());
    loop {
        // Each job gets its own guard, so that removed jobs can be freed.
        let guard = ats::terms::pin();
        match jobs.take_end(End::First, &mut work, &guard) {
            Ok(Some(job)) => taken.push(job.to_term()),
            Ok(None) => return Ok(taken),
            // A list holds the key.
            Err(Error::Busy) => thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
}

fn priority(job: &Term) -> Option<i64> {
    job.as_tuple()?[0].as_int()
}
