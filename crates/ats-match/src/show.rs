//! A term as text, for errors.

use ats_term::{Kind, Opaque, TermRef};
use std::fmt::Write;

/// Length in bytes at which the text is truncated.
const MOST: usize = 400;

/// Parts still to be written, kept on a stack.
enum Part<T> {
    Term(T),
    Text(&'static str),
    /// The rest of a list after an element.
    Tail(T),
}

/// Renders a term in Erlang's syntax, truncated if it is long. Not recursive.
pub(crate) fn show<T: TermRef>(term: T) -> String {
    let mut out = String::new();
    let mut parts = vec![Part::Term(term)];
    while let Some(part) = parts.pop() {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Term(term) => show_term(term, &mut out, &mut parts),
            Part::Tail(tail) => show_tail(tail, &mut out, &mut parts),
        }
        if out.len() > MOST {
            out.push_str("...");
            break;
        }
    }
    out
}

fn show_term<T: TermRef>(term: T, out: &mut String, parts: &mut Vec<Part<T>>) {
    match term.kind() {
        Kind::Int(value) => append(out, format_args!("{value}")),
        Kind::Float(value) => append(out, format_args!("{value:?}")),
        Kind::Big => term.with_big(|negative, magnitude| show_big(negative, magnitude, out)),
        Kind::Atom => term.with_atom(|text| show_atom(text, out)),
        Kind::Nil => out.push_str("[]"),
        Kind::Cons(head, tail) => {
            out.push('[');
            parts.extend([Part::Text("]"), Part::Tail(tail), Part::Term(head)]);
        }
        Kind::Tuple(arity) => {
            out.push('{');
            parts.push(Part::Text("}"));
            for i in (0..arity.min(MOST)).rev() {
                parts.push(Part::Term(term.element(i)));
                parts.extend((i > 0).then_some(Part::Text(",")));
            }
        }
        Kind::Map(_) => show_map(term, out, parts),
        Kind::Bits(bits) => term.with_bits(|bytes| show_bits(bytes, bits, out)),
        Kind::Pid => out.push_str("#Pid<>"),
        Kind::Port => out.push_str("#Port<>"),
        Kind::Ref => out.push_str("#Ref<>"),
        Kind::LocalFun | Kind::ExternalFun => out.push_str("#Fun<>"),
        Kind::Opaque => show_opaque(term, out),
    }
}

fn show_opaque<T: TermRef>(term: T, out: &mut String) {
    term.with_opaque(|opaque| match opaque {
        Opaque::Record { module, name, .. } => {
            out.push('#');
            show_atom(module, out);
            out.push(':');
            show_atom(name, out);
            out.push_str("{...}");
        }
        Opaque::Unknown(_) => out.push_str("#Unknown<>"),
    });
}

fn show_tail<T: TermRef>(tail: T, out: &mut String, parts: &mut Vec<Part<T>>) {
    match tail.kind() {
        Kind::Nil => {}
        Kind::Cons(head, rest) => {
            out.push(',');
            parts.extend([Part::Tail(rest), Part::Term(head)]);
        }
        _ => {
            out.push('|');
            parts.push(Part::Term(tail));
        }
    }
}

fn show_map<T: TermRef>(map: T, out: &mut String, parts: &mut Vec<Part<T>>) {
    let mut pairs = Vec::new();
    map.map_pairs(&mut pairs);
    pairs.truncate(MOST);
    out.push_str("#{");
    parts.push(Part::Text("}"));
    for (i, (key, value)) in pairs.into_iter().enumerate().rev() {
        parts.extend([Part::Term(value), Part::Text("=>"), Part::Term(key)]);
        parts.extend((i > 0).then_some(Part::Text(",")));
    }
}

fn show_big(negative: bool, magnitude: &[u8], out: &mut String) {
    out.push_str(if negative { "-16#" } else { "16#" });
    let digits = magnitude.iter().rev().take(MOST);
    digits.for_each(|byte| append(out, format_args!("{byte:02X}")));
}

fn show_bits(bytes: &[u8], bits: usize, out: &mut String) {
    out.push_str("<<");
    for (i, byte) in bytes.iter().take(MOST).enumerate() {
        let comma = if i > 0 { "," } else { "" };
        let used = bits - 8 * i;
        if used >= 8 {
            append(out, format_args!("{comma}{byte}"));
        } else {
            append(out, format_args!("{comma}{}:{used}", byte >> (8 - used)));
        }
    }
    out.push_str(">>");
}

/// Writes an atom, with quotes if it needs them.
fn show_atom(text: &str, out: &mut String) {
    let plain = text.starts_with(|c: char| c.is_lowercase())
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '@');
    if plain {
        out.push_str(text);
    } else {
        append(
            out,
            format_args!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")),
        );
    }
}

fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes any text");
}
