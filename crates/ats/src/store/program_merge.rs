//! Merges that a program has, which the store cannot call: what was written to a key is kept, one behind the other,
//! until the program has merged it.
//!
//! ```text
//!   value   = object, if there is one that all later ones are merged with | operand | operand | ...
//!   object  = length, 4 bytes | bytes
//!   operand = mark, 4 bytes | object                 lengths and marks: least significant byte first
//! ```
//!
//! The mark of an operand says whether it stands for an object when it is alone. What is one object, or one such operand,
//! is *merged*, and all else is *pending*.

use crate::description::Description;
use ats_store::{Error, MergeOperator, Merged};
use ats_term::etf;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the names of such operators begin with.
pub(crate) const PREFIX: &str = "erlang.";

const LENGTH_BYTES: usize = size_of::<u32>();
/// In the place of a length, which is smaller: an operand of which it is not known whether it counts as missing.
const UNKNOWN: u32 = u32::MAX;
/// An operand that is an object if it is alone.
const PRESENT: u32 = u32::MAX - 1;

/// What is written to a key that is merged by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// An object with which nothing older is merged.
    Object,
    /// An operand that is an object if it is alone.
    Present,
    /// An operand that may count as missing if it is alone.
    Unknown,
}

/// The value that an object is in a store, written in such a way. `None` if it takes 4 GiB.
#[must_use]
pub fn written(object: &[u8], how: Written) -> Option<Vec<u8>> {
    let len = u32::try_from(object.len())
        .ok()
        .filter(|len| *len < PRESENT)?;
    let mark = match how {
        Written::Object => None,
        Written::Present => Some(PRESENT),
        Written::Unknown => Some(UNKNOWN),
    };
    let mut value = Vec::with_capacity(2 * LENGTH_BYTES + object.len());
    value.extend(mark.into_iter().flat_map(u32::to_le_bytes));
    value.extend_from_slice(&len.to_le_bytes());
    value.extend_from_slice(object);
    Some(value)
}

fn number(value: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = value.split_first_chunk::<LENGTH_BYTES>()?;
    Some((u32::from_le_bytes(*number), rest))
}

/// The value with the one object that a merged value is; `None` if it is pending.
#[must_use]
pub fn merged(value: &[u8]) -> Option<&[u8]> {
    let (first, rest) = number(value)?;
    let (len, object, record) = match first {
        UNKNOWN => return None,
        PRESENT => {
            let (len, object) = number(rest)?;
            (len, object, rest)
        }
        len => (len, rest, value),
    };
    (object.len() == len as usize).then_some(record)
}

/// The bytes of the objects of a value, from the first to the last that was written.
///
/// # Errors
/// [`Error::Corrupt`] if these bytes are no value.
pub fn objects(mut value: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let mut objects = Vec::new();
    while !value.is_empty() {
        let (mut len, mut rest) = number(value).ok_or(Error::Corrupt)?;
        if len >= PRESENT {
            (len, rest) = number(rest).ok_or(Error::Corrupt)?;
        }
        let split = rest.split_at_checked(len as usize);
        let (object, behind) = split.ok_or(Error::Corrupt)?;
        objects.push(object);
        value = behind;
    }
    Ok(objects)
}

/// Tells a program that there is something to be merged; false if the calling thread cannot.
type Tell = Box<dyn Fn() -> bool + Send + Sync>;

/// The merge of a program, as an operator over the values of tables.
///
/// The store puts operands one behind the other. It notes the keys that this happens to, of which the program merges a
/// part at a time, and [replaces](crate::Store::update) what it has merged.
pub struct ProgramMerge {
    name: String,
    version: u32,
    noted: Mutex<Noted>,
}

/// So many keys are noted at most, and so many bytes of them. Others are noted when they are met again.
const MOST_KEYS: usize = 4096;
const MOST_BYTES: usize = 1 << 20;

#[derive(Default)]
struct Noted {
    keys: BTreeSet<Vec<u8>>,
    bytes: usize,
    tell: Option<Tell>,
    /// Whether the program was told since keys were taken.
    is_told: bool,
}

impl Noted {
    fn wake(&mut self) {
        if !self.is_told && !self.keys.is_empty() {
            self.is_told = self.tell.as_ref().is_some_and(|tell| tell());
        }
    }
}

impl ProgramMerge {
    /// That of a table, if its merge is one of a program, which is written `{module, Module, Version}`.
    #[must_use]
    pub fn of(description: &Description) -> Option<Self> {
        let options = etf::Options {
            atoms: etf::Atoms::New { limit: usize::MAX },
        };
        let term = etf::decode(&description.merge, options).ok()?;
        let [kind, name, version] = term.as_tuple()? else {
            return None;
        };
        let (kind, name) = (kind.as_atom()?, name.as_atom()?);
        let version = u32::try_from(version.as_int()?).ok()?;
        (kind.as_str() == "module").then(|| ProgramMerge {
            name: format!("{PREFIX}{}", name.as_str()),
            version,
            noted: Mutex::default(),
        })
    }

    /// The name of the module.
    #[must_use]
    pub fn module(&self) -> &str {
        self.name.strip_prefix(PREFIX).unwrap_or_default()
    }

    fn notes(&self) -> MutexGuard<'_, Noted> {
        // Complete at every moment, so a panic of the program's teller does not spoil them.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a key that is pending.
    pub fn note(&self, key: &[u8]) {
        // A key that is not noted now may not be met for long, so it is waited for others, which are as short.
        let mut noted = self.notes();
        let has_room = noted.keys.len() < MOST_KEYS && noted.bytes + key.len() <= MOST_BYTES;
        if has_room && !noted.keys.contains(key) {
            noted.bytes += key.len();
            noted.keys.insert(key.to_vec());
        }
        noted.wake();
    }

    /// Has `tell` called from now on when keys were noted: once until keys are taken.
    pub fn watch(&self, tell: Tell) {
        let mut noted = self.notes();
        (noted.tell, noted.is_told) = (Some(tell), false);
    }

    /// Takes some of the keys that were noted.
    pub fn take_noted(&self, most: usize) -> Vec<Vec<u8>> {
        let mut noted = self.notes();
        noted.is_told = false;
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some(key) = noted.keys.pop_first()
        {
            noted.bytes -= key.len();
            taken.push(key);
        }
        taken
    }
}

impl MergeOperator for ProgramMerge {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn merge(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        self.note(key);
        Ok(Merged::New([earlier, later].concat()))
    }

    fn merge_all(&self, key: &[u8], values: &[&[u8]]) -> Result<Option<Vec<u8>>, Error> {
        self.note(key);
        Ok(Some(values.concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableType;
    use ats_term::{Atom, Term, Zeros};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn program(merge: &Term) -> Option<ProgramMerge> {
        ProgramMerge::of(&Description {
            table_type: TableType::Set,
            key_position: 1,
            zeros: Zeros::Distinct,
            merge: etf::encode(merge).expect("a short term"),
        })
    }

    fn atom(text: &str) -> Term {
        Term::Atom(Atom::new(text).expect("a short text"))
    }

    #[test]
    fn what_was_written_is_told_apart() {
        let all = [Written::Object, Written::Present, Written::Unknown];
        let [object, present, unknown] =
            all.map(|how| written(b"object", how).expect("a few bytes"));
        assert_eq!(merged(&object), Some(&object[..]));
        assert_eq!(merged(&present), Some(&object[..]));
        assert_eq!(merged(&unknown), None);
        for first in [&object, &present, &unknown] {
            for second in [&present, &unknown] {
                let both = [&first[..], second].concat();
                assert_eq!(merged(&both), None);
                assert_eq!(objects(&both), Ok(vec![&b"object"[..]; 2]));
            }
            assert_eq!(objects(first), Ok(vec![&b"object"[..]]));
            for len in 1..first.len() {
                assert_eq!(merged(&first[..len]), None);
                assert_eq!(objects(&first[..len]), Err(Error::Corrupt), "{len}");
            }
        }
        assert_eq!(objects(b""), Ok(vec![]));
        assert_eq!(merged(b""), None);
    }

    #[test]
    fn a_program_is_named_with_its_version() {
        let merge = program(&(atom("module"), atom("highest_bid"), 7).into());
        let merge = merge.expect("a merge of a program");
        assert_eq!((merge.name(), merge.version()), ("erlang.highest_bid", 7));
        for other in [
            (atom("module"), atom("highest_bid"), -1).into(),
            (atom("module"), atom("highest_bid"), 1_i64 << 32).into(),
            (atom("modul"), atom("highest_bid"), 7).into(),
            (atom("module"), 7, 7).into(),
            atom("sum"),
        ] {
            assert!(program(&other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn keys_are_noted_and_told_of_once() {
        let merge = program(&(atom("module"), atom("m"), 1).into()).expect("a program");
        let told = Arc::new(AtomicUsize::new(0));
        let merged = merge.merge(b"before", b"1", b"2");
        assert_eq!(merged, Ok(Merged::New(b"12".to_vec())));
        let counter = Arc::clone(&told);
        merge.watch(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            true
        }));
        for _ in 0..3 {
            let merged = merge.merge_all(b"key", &[b"1", b"2", b"3"]);
            assert_eq!(merged, Ok(Some(b"123".to_vec())));
        }
        assert_eq!(told.load(Ordering::Relaxed), 1);
        assert_eq!(merge.take_noted(1), [b"before"]);
        assert_eq!(merge.take_noted(9), [b"key"]);
        assert_eq!(merge.take_noted(9), Vec::<Vec<u8>>::new());
        merge.note(b"again");
        assert_eq!(told.load(Ordering::Relaxed), 2);
        for key in 0..2 * MOST_KEYS {
            merge.note(&key.to_be_bytes());
        }
        merge.note(&vec![0; MOST_BYTES]);
        assert_eq!(merge.take_noted(usize::MAX).len(), MOST_KEYS);
    }
}
