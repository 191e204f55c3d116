//! A web server's cache of pages, and its requests by minute and path, with `ats`.

use ats::{HashMap, OrderedMap};
use std::thread;

const THREADS: u32 = 4;
const REQUESTS: u32 = 6_000;
const PATHS: [&str; 4] = ["/", "/news", "/search", "/status"];

#[derive(Default)]
struct Server {
    pages: HashMap<String, String>,
    hits: OrderedMap<(u32, String), u64>,
}

impl Server {
    /// Returns the page of a path, from the cache if it is there.
    fn page(&self, path: &str) -> String {
        let make = || format!("<h1>{path}</h1>");
        self.pages.get_or_insert_with(path, make)
    }

    /// Counts a request.
    fn count(&self, minute: u32, path: &str) {
        self.hits
            .merge((minute, path), 1, |count, more| count + more);
    }

    fn serve(&self, minute: u32, path: &str) -> String {
        self.count(minute, path);
        self.page(path)
    }

    /// Returns the requests of some minutes, and the path that most of them were for.
    fn report(&self, from: u32, to: u32) -> (u64, Option<String>) {
        let totals = OrderedMap::<String, u64>::new();
        let mut sum = 0;
        for ((_, path), count) in self.hits.range((from, "")..(to, "")) {
            totals.merge(path, count, |total, more| total + more);
            sum += count;
        }
        let most = totals.iter().max_by_key(|(_, total)| *total);
        (sum, most.map(|(path, _)| path))
    }

    /// Forgets the requests before a minute.
    fn forget(&self, minute: u32) {
        self.hits.remove_range(..(minute, ""));
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
    for ((minute, path), count) in server.hits.iter().take(3) {
        println!("{minute} {path}: {count}");
    }
    println!("{} counters", server.hits.len());
}
