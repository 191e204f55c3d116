//! A web server's cache of pages, and its requests by minute and path, with `scc`.

use scc::{Guard, HashMap, TreeIndex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const THREADS: u32 = 4;
const REQUESTS: u32 = 6_000;
const PATHS: [&str; 4] = ["/", "/news", "/search", "/status"];

#[derive(Default)]
struct Server {
    pages: HashMap<String, String>,
    hits: TreeIndex<(u32, String), Arc<AtomicU64>>,
}

impl Server {
    /// Returns the page of a path, from the cache if it is there.
    fn page(&self, path: &str) -> String {
        let page = self.pages.entry_sync(path.to_string());
        page.or_insert_with(|| format!("<h1>{path}</h1>")).clone()
    }

    /// Counts a request.
    fn count(&self, minute: u32, path: &str) {
        let key = (minute, path.to_string());
        loop {
            let count = self.hits.peek_with(&key, |_, count| Arc::clone(count));
            if let Some(count) = count {
                count.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let first = Arc::new(AtomicU64::new(1));
            if self.hits.insert_sync(key.clone(), first).is_ok() {
                return;
            }
        }
    }

    fn serve(&self, minute: u32, path: &str) -> String {
        self.count(minute, path);
        self.page(path)
    }

    /// Returns the requests of some minutes, and the path that most of them were for.
    fn report(&self, from: u32, to: u32) -> (u64, Option<String>) {
        let guard = Guard::new();
        let totals = TreeIndex::<String, u64>::new();
        let mut sum = 0;
        let range = (from, String::new())..(to, String::new());
        for ((_, path), count) in self.hits.range(range, &guard) {
            let count = count.load(Ordering::Relaxed);
            let earlier = totals.peek_with(path, |_, total| *total).unwrap_or(0);
            totals.upsert_sync(path.clone(), earlier + count);
            sum += count;
        }
        let totals = totals.iter(&guard);
        let most = totals.max_by_key(|(_, total)| **total);
        (sum, most.map(|(path, _)| path.clone()))
    }

    /// Forgets the requests before a minute.
    fn forget(&self, minute: u32) {
        self.hits.remove_range_sync(..(minute, String::new()));
    }
}

fn main() {
    let server = Server::default();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let server = &server;
            scope.spawn(move || {
                for request in 0..REQUESTS {
                    let path = PATHS[((request * request + thread) % 4) as usize];
                    let page = server.serve(request / 100, path);
                    assert!(page.contains(path));
                }
            });
        }
    });
    println!("{} pages", server.pages.len());
    println!("minutes 10 to 19: {:?}", server.report(10, 20));
    server.forget(50);
    println!("since minute 50: {:?}", server.report(0, u32::MAX));
    let guard = Guard::new();
    for ((minute, path), count) in server.hits.iter(&guard).take(3) {
        println!("{minute} {path}: {}", count.load(Ordering::Relaxed));
    }
    println!("{} counters", server.hits.len());
}
