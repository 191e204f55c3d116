//! A cache that threads share: a table of pages, and a table of how often each was asked for.
//!
//! Readers take no lock. Of several threads that miss the same page one stores it, and none of the
//! counts is lost.

use ats::terms::{CounterOp, Error, Table, TableType, Term, TermHost, Workspace};
use std::thread;

const THREADS: usize = 4;
const PAGES: i64 = 10;
const ROUNDS: i64 = 1000;

struct Cache {
    pages: Table<TermHost>,
    requests: Table<TermHost>,
}

impl Cache {
    fn new() -> Self {
        Cache {
            pages: Table::new(TableType::Set, 1),
            requests: Table::new(TableType::Set, 1),
        }
    }

    /// Returns a page, which is made if it is not in the cache.
    fn get(&self, number: i64, work: &mut Workspace<TermHost>) -> Result<Term, Error> {
        let key = Term::from(number);
        self.count(&key, work)?;
        if let Some(page) = self.find(&key, work)? {
            return Ok(page);
        }
        let page = Term::from((number, format!("page {number}")));
        if self.pages.insert_new(&page, work)? {
            return Ok(page);
        }
        // Another thread was faster, and nothing is ever removed.
        Ok(self.find(&key, work)?.expect("the page is there"))
    }

    fn find(&self, key: &Term, work: &mut Workspace<TermHost>) -> Result<Option<Term>, Error> {
        let guard = ats::terms::pin();
        let found = self.pages.lookup(key, work, &guard)?;
        Ok(found.and_then(|found| found.to_terms().pop()))
    }

    /// Counts a request. The first one inserts the counter.
    fn count(&self, key: &Term, work: &mut Workspace<TermHost>) -> Result<(), Error> {
        let one_more = CounterOp {
            position: 2,
            increment: 1.into(),
            wrap: None,
        };
        let default = Term::from((key.clone(), 0));
        self.requests
            .update_one_counter(key, &one_more, Some(&default), work)?;
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let cache = Cache::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let mut work = Workspace::new(); // one per thread, for all calls
                    for round in 0..ROUNDS {
                        let number = round % PAGES;
                        let page = cache.get(number, &mut work)?;
                        assert_eq!(page, Term::from((number, format!("page {number}"))));
                    }
                    Ok::<_, Error>(())
                })
            })
            .collect();
        let mut results = threads.into_iter().map(|thread| thread.join());
        results.try_for_each(|result| result.expect("no thread panics"))
    })?;

    let requests = THREADS as i64 * ROUNDS / PAGES;
    let (guard, mut work) = (ats::terms::pin(), Workspace::new());
    for number in 0..PAGES {
        let found = cache
            .requests
            .lookup(&Term::from(number), &mut work, &guard)?;
        let count = found.map(|found| found.to_terms());
        assert_eq!(count, Some(vec![Term::from((number, requests))]));
    }
    assert_eq!(cache.pages.len()?, PAGES as usize);
    println!("{PAGES} pages, each asked for {requests} times");
    Ok(())
}
