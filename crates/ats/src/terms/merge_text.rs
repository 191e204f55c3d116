//! Merges as text: `sum`, `{prune, sum}`, `{module, highest_bid, 1}` as in Erlang, and
//! `prune(sum)`, `vector(sum,max)` as in the names of merge operators.

use ats_term::term::Tuple;
use ats_term::{Atom, Term};

/// Maximum nesting of a merge.
const MOST_DEPTH: usize = 16;

/// Returns the term that names a merge in Erlang. `None` if the text has neither form; the merge
/// need not exist.
pub(crate) fn parse(text: &str) -> Option<Term> {
    let mut reader = Reader { rest: text };
    let term = reader.term(MOST_DEPTH)?;
    reader.rest.trim().is_empty().then_some(term)
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn term(&mut self, depth: usize) -> Option<Term> {
        let depth = depth.checked_sub(1)?;
        if self.takes('{') {
            return Some(Term::Tuple(Tuple::new(self.terms('}', depth)?)));
        }
        if self.takes('[') {
            return Some(Term::list_with_tail(self.terms(']', depth)?, Term::Nil));
        }
        if self.takes('\'') {
            let (name, rest) = self.rest.split_once('\'')?;
            self.rest = rest;
            return atom(name);
        }
        let word = self.word();
        if let Ok(number) = word.parse::<i64>() {
            return Some(number.into());
        }
        let name = word.starts_with(|first: char| first.is_ascii_lowercase());
        let name = name.then(|| atom(word))??;
        if !self.takes('(') {
            return Some(name);
        }
        let arguments = self.terms(')', depth)?;
        let arguments = match word {
            "vector" => vec![Term::list_with_tail(arguments, Term::Nil)],
            _ => arguments,
        };
        let elements = [name].into_iter().chain(arguments);
        Some(Term::Tuple(Tuple::new(elements.collect())))
    }

    /// Reads terms between commas, up to and including the character that ends them.
    fn terms(&mut self, end: char, depth: usize) -> Option<Vec<Term>> {
        let mut terms = Vec::new();
        if self.takes(end) {
            return Some(terms);
        }
        loop {
            terms.push(self.term(depth)?);
            if self.takes(end) {
                return Some(terms);
            }
            self.takes(',').then_some(())?;
        }
    }

    /// Skips a character if it is the next one. Returns `true` if it was.
    fn takes(&mut self, character: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(character);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn word(&mut self) -> &'t str {
        let text = self.rest.trim_start();
        let is_end = |character: char| !character.is_alphanumeric() && !"_@-".contains(character);
        let (word, rest) = text.split_at(text.find(is_end).unwrap_or(text.len()));
        self.rest = rest;
        word
    }
}

fn atom(text: &str) -> Option<Term> {
    Atom::new(text).ok().map(Term::Atom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_name_the_same() {
        for (text, other, shown) in [
            ("sum", " sum ", "sum"),
            ("last(2)", "{last, 2}", "{last,2}"),
            ("prune(sum)", "{prune,sum}", "{prune,sum}"),
            (
                "vector(sum,prune(append),last(3))",
                "{vector, [sum, {prune, append}, {last, 3}]}",
                "{vector,[sum,{prune,append},{last,3}]}",
            ),
            ("vector()", "{vector,[]}", "{vector,[]}"),
            ("module(m,7)", "{module, 'm', 7}", "{module,m,7}"),
        ] {
            let terms = [text, other].map(|text| parse(text).map(|term| term.to_string()));
            assert_eq!(terms, [Some(shown.to_owned()), Some(shown.to_owned())]);
        }
    }

    #[test]
    fn other_text_names_nothing() {
        let deep = "prune(".repeat(1000);
        for text in [
            "",
            "Sum",
            "sum,",
            "sum(",
            "{prune sum}",
            "[sum",
            "'sum",
            "sum)",
            &deep,
        ] {
            assert_eq!(parse(text).map(|term| term.to_string()), None, "{text}");
        }
    }
}
