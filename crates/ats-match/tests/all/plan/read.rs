//! A reader of terms from text, which keeps tests readable.

use crate::common::{atom, float, map, tuple};
use ats_term::Term;

/// Reads a term in Erlang's syntax. Binaries are written `<<"text">>`.
pub(crate) fn term(text: &str) -> Term {
    let mut reader = Reader { rest: text };
    let term = reader.term();
    assert_eq!(reader.rest.trim(), "", "{text}");
    term
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn skip(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        let stripped = self.rest.strip_prefix(text);
        self.rest = stripped.unwrap_or(self.rest);
        stripped.is_some()
    }

    fn expect(&mut self, text: &str) {
        assert!(self.skip(text), "{text} expected at {}", self.rest);
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn take_quoted(&mut self, quote: &str) -> &'t str {
        let taken = self.take(|c| !quote.contains(c));
        self.expect(quote);
        taken
    }

    fn until(&mut self, close: &str) -> Vec<Term> {
        let mut parts = Vec::new();
        while !self.skip(close) {
            parts.push(self.term());
            self.skip(",");
        }
        parts
    }

    fn term(&mut self) -> Term {
        if self.skip("{") {
            return tuple(self.until("}"));
        }
        if self.skip("[") {
            return self.list();
        }
        if self.skip("#{") {
            let mut pairs = Vec::new();
            while !self.skip("}") {
                let key = self.term();
                self.expect("=>");
                pairs.push((key, self.term()));
                self.skip(",");
            }
            return map(pairs);
        }
        if self.skip("<<\"") {
            let text = self.take_quoted("\"");
            self.expect(">>");
            return Term::from(text);
        }
        if self.skip("'") {
            return atom(self.take_quoted("'"));
        }
        let word = self.take(|c| c.is_alphanumeric() || "_.-".contains(c));
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return match word.parse::<i128>() {
                Ok(integer) => Term::from(integer),
                Err(_) => float(word.parse().expect("a number")),
            };
        }
        assert!(!word.is_empty(), "a term expected at {}", self.rest);
        atom(word)
    }

    fn list(&mut self) -> Term {
        let mut parts = Vec::new();
        loop {
            if self.skip("]") {
                return Term::from(parts);
            }
            if self.skip("|") {
                let tail = self.term();
                self.expect("]");
                return Term::list_with_tail(parts, tail);
            }
            parts.push(self.term());
            self.skip(",");
        }
    }
}
