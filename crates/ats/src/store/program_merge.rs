//! Merges that a program has, which the store cannot call: what was written to a key is kept, one
//! behind the other, until the program has merged it.
//!
//! ```text
//!   value   = object, if there is one that all later ones are merged with | operand | operand | ...
//!   object  = length, 4 bytes | bytes
//!   operand = mark, 4 bytes | object                 lengths and marks: least significant byte first
//! ```
//!
//! The mark of an operand says whether it stands for an object when it is alone. A value of one
//! object, or of one such operand, is *merged*, and all others are *pending*.
//!
//! # Long values
//! Each byte of what is written to a key is copied O(log n) times, as the store says. The program
//! merges the values of a key when it is read, and in the background when its run is merged, or
//! when it is [hot](Length::Hot). The result replaces the values it was made of, so a value grows
//! by what is written between two of these times. If the program is slower than those who write,
//! they are told that a value is [long](Length::Long) and have it merged themselves.

use crate::description::Description;
use ats_store::{Error, MergeOperator, Merged};
use ats_term::{Atom, Term, etf};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, TryLockError};

/// The text with which the names of such operators begin.
pub(crate) const PREFIX: &str = "erlang.";
/// The first element of what a [`Description`] has of such a merge.
const KIND: &str = "module";

const LENGTH_BYTES: usize = size_of::<u32>();
/// In the place of a length, which is smaller: an operand of which it is not known whether it
/// counts as missing.
const UNKNOWN: u32 = u32::MAX;
/// An operand that is an object if it is alone.
const PRESENT: u32 = u32::MAX - 1;

/// The kinds of values that are written to a key that is merged by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// An object with which nothing older is merged.
    Object,
    /// An operand that is an object if it is alone.
    Present,
    /// An operand that may count as missing if it is alone.
    Unknown,
}

/// Encodes an object as the value that a store has of it. `None` if it takes 4 GiB.
#[must_use]
pub fn encode_value(object: &[u8], how: Written) -> Option<Vec<u8>> {
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
pub fn merged_value(value: &[u8]) -> Option<&[u8]> {
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

/// The first object of a value, and what is behind it.
fn split(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut len, mut rest) = number(value)?;
    if len >= PRESENT {
        (len, rest) = number(rest)?;
    }
    rest.split_at_checked(len as usize)
}

/// The bytes of the objects of a value, from the first to the last that was written.
///
/// # Errors
/// [`Error::Corrupt`] if these bytes are no value.
pub fn objects(mut value: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let mut objects = Vec::new();
    while !value.is_empty() {
        let (object, behind) = split(value).ok_or(Error::Corrupt)?;
        objects.push(object);
        value = behind;
    }
    Ok(objects)
}

/// Tells a program that there is something to be merged; false if the calling thread cannot.
type Tell = Box<dyn Fn() -> bool + Send + Sync>;

/// The program that merges the values of a table, and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name by which the program is called: an atom, which is that of a module, or any other
    /// term of atoms and tuples.
    pub name: Term,
    /// The version of its functions. Values are merged by no other.
    pub version: u32,
}

/// The length of the longest value that was made by writes since it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Length {
    /// Nothing has to be done about it.
    Short,
    /// It should be merged soon: it has some hundreds of objects, or as many bytes.
    Hot,
    /// It should be merged before more is written.
    Long,
}

/// A value is hot if it has so many objects, or bytes.
const HOT_OBJECTS: usize = 256;
const HOT_BYTES: usize = 64 << 10;
/// A value of fewer bytes has fewer objects than a hot one.
const LEAST_HOT_BYTES: usize = 4 << 10;
/// A value is long if it has so many bytes.
const LONG_BYTES: usize = 16 << 20;

/// Returns `true` if a value that was put together has many objects, or bytes. O(objects), up to
/// those of a hot one.
fn length(mut value: &[u8]) -> Length {
    match value.len() {
        ..LEAST_HOT_BYTES => return Length::Short,
        LEAST_HOT_BYTES..HOT_BYTES => {}
        HOT_BYTES..LONG_BYTES => return Length::Hot,
        LONG_BYTES.. => return Length::Long,
    }
    let mut objects = 0;
    while let Some((_, behind)) = split(value)
        && objects < HOT_OBJECTS
    {
        objects += 1;
        value = behind;
    }
    match objects < HOT_OBJECTS {
        true => Length::Short,
        false => Length::Hot,
    }
}

/// The merge of a program, as an operator over the values of tables.
///
/// The store puts operands one behind the other. It notes the keys that this happens to, of which
/// the program merges a part at a time, and [replaces](crate::Store::update) what it has merged.
pub struct ProgramMerge {
    /// The program that the table was made with. The store is marked with its name, as text, and
    /// its version. They stay when the program changes: the store itself puts values one behind the
    /// other whatever the program is.
    first: Program,
    name: String,
    /// Tells this table from all others of the process.
    id: u64,
    program: RwLock<Gate>,
    /// A [`Length`].
    longest: AtomicU8,
    noted: Mutex<Noted>,
}

/// The program, and whether values may be written that are merged by it.
struct Gate {
    program: Program,
    is_closed: bool,
}

/// The most keys that are noted, and the most bytes of them. Others are noted when they are met
/// again.
const MOST_KEYS: usize = 4096;
const MOST_BYTES: usize = 1 << 20;

#[derive(Default)]
struct Noted {
    keys: BTreeSet<Vec<u8>>,
    bytes: usize,
    tell: Option<Tell>,
    /// `true` if the program was told since keys were taken.
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
    /// The merge of a table, if it is one of a program, which is written `{module, Name, Version}`.
    /// If it was another one when the table was made, `{module, Name, Version, {FirstName,
    /// FirstVersion}}`.
    #[must_use]
    pub fn of(description: &Description) -> Option<Self> {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let (program, first) = programs(&description.merge)?;
        Some(ProgramMerge {
            name: match first.name.as_atom() {
                Some(module) => format!("{PREFIX}{}", module.as_str()),
                None => format!("{PREFIX}{}", first.name),
            },
            first,
            id: IDS.fetch_add(1, Ordering::Relaxed),
            program: RwLock::new(Gate {
                program,
                is_closed: false,
            }),
            longest: AtomicU8::new(0),
            noted: Mutex::default(),
        })
    }

    /// Returns the merge, as a description has it, of a table whose values this program has merged,
    /// and another one will merge from now on. `None` if the name of that is too long.
    #[must_use]
    pub fn describe_successor(&self, program: &Program) -> Option<Vec<u8>> {
        let first: Term = (self.first.name.clone(), i64::from(self.first.version)).into();
        let kind = Term::Atom(Atom::new(KIND).ok()?);
        let version = i64::from(program.version);
        etf::encode(&(kind, program.name.clone(), version, first).into()).ok()
    }

    /// A number that no other table of the process has, also when this one is open no more.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The program that merges now.
    #[must_use]
    pub fn program(&self) -> Program {
        let gate = self.program.read().unwrap_or_else(PoisonError::into_inner);
        gate.program.clone()
    }

    /// Does `write`, which writes what this version of the program makes sense of, unless the table
    /// has another one, or is about to get another one: then it returns `None`.
    ///
    /// # Errors
    /// [`Error::Busy`] if the program is being changed at this moment, and those of `write`.
    pub fn with_version<R>(
        &self,
        version: u32,
        write: impl FnOnce() -> Result<R, Error>,
    ) -> Result<Option<R>, Error> {
        let gate = match self.program.try_read() {
            Ok(gate) => gate,
            Err(TryLockError::Poisoned(gate)) => gate.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(Error::Busy),
        };
        match gate.program.version == version && !gate.is_closed {
            true => write().map(Some),
            false => Ok(None),
        }
    }

    /// Refuses [writes](ProgramMerge::with_version) from now on, or allows them again. None is
    /// under way when this returns.
    pub fn close_gate(&self, is_closed: bool) {
        let gate = self.program.write();
        gate.unwrap_or_else(PoisonError::into_inner).is_closed = is_closed;
    }

    /// Has another program merge from now on. All that was written must have been merged.
    pub fn set_program(&self, program: Program) {
        let gate = self.program.write();
        let mut gate = gate.unwrap_or_else(PoisonError::into_inner);
        (gate.program, gate.is_closed) = (program, false);
    }

    /// The length of the longest value that was put together since this was called before.
    #[must_use]
    pub fn take_longest(&self) -> Length {
        // Mostly there was none: then nothing is written that others share.
        match self.longest.load(Ordering::Relaxed) {
            0 => return Length::Short,
            _ => self.longest.swap(0, Ordering::Relaxed),
        }
        .into()
    }

    fn notes(&self) -> MutexGuard<'_, Noted> {
        // Complete at every moment, so a panic of the program's teller does not spoil them.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a key that is pending.
    pub fn note(&self, key: &[u8]) {
        // A key that is not noted now may not be met for long, so it is waited for others, which
        // are as short.
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

    /// Takes a key that was noted because it was read by the one who merges it.
    pub fn forget(&self, key: &[u8]) {
        let mut noted = self.notes();
        if noted.keys.remove(key) {
            noted.bytes -= key.len();
        }
    }

    /// Notes that a key has this value, which the program is to merge. Returns the value.
    fn note_pending(&self, key: &[u8], value: Vec<u8>) -> Vec<u8> {
        self.note(key);
        let length = length(&value);
        if length > Length::Short {
            self.longest.fetch_max(length as u8, Ordering::Relaxed);
        }
        value
    }
}

/// Returns `true` if a table whose description has `stored` has the merge that is `wanted`: the
/// same program now, whichever it was at first.
#[must_use]
pub fn is_same(wanted: &[u8], stored: &[u8]) -> bool {
    let now = |merge| programs(merge).map(|(program, _)| program);
    wanted == stored || now(wanted).is_some_and(|wanted| Some(wanted) == now(stored))
}

/// The program that a merge is, and the one that it was at first.
fn programs(merge: &[u8]) -> Option<(Program, Program)> {
    let term = etf::decode(merge, etf::Options::TRUSTED).ok()?;
    let [kind, name, version, first @ ..] = term.as_tuple()? else {
        return None;
    };
    if kind.as_atom()?.as_str() != KIND {
        return None;
    }
    let program = Program::of(name, version)?;
    let first = match first {
        [] => program.clone(),
        [first] => match first.as_tuple()? {
            [name, version] => Program::of(name, version)?,
            _ => return None,
        },
        _ => return None,
    };
    Some((program, first))
}

/// Returns the merge of a table by a program, as a [`Description`] has it. `None` if the name is
/// too long.
pub(crate) fn describe(name: Term, version: u32) -> Option<Vec<u8>> {
    let kind = Term::Atom(Atom::new(KIND).ok()?);
    etf::encode(&(kind, name, i64::from(version)).into()).ok()
}

/// Returns `true` for an atom, and for a tuple of atoms and of tuples of atoms.
fn is_name(term: &Term) -> bool {
    let is_atom = |term: &Term| term.as_atom().is_some();
    let is_short = |term: &Term| {
        let atoms = term.as_tuple();
        is_atom(term) || atoms.is_some_and(|atoms| atoms.iter().all(is_atom))
    };
    let names = term.as_tuple();
    is_atom(term) || names.is_some_and(|names| names.iter().all(is_short))
}

impl From<u8> for Length {
    fn from(number: u8) -> Self {
        match number {
            0 => Length::Short,
            1 => Length::Hot,
            _ => Length::Long,
        }
    }
}

impl Program {
    fn of(name: &Term, version: &Term) -> Option<Self> {
        is_name(name).then_some(())?;
        Some(Program {
            name: name.clone(),
            version: u32::try_from(version.as_int()?).ok()?,
        })
    }
}

impl MergeOperator for ProgramMerge {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        self.first.version
    }

    fn merge(&self, key: &[u8], earlier: &[u8], later: &[u8]) -> Result<Merged, Error> {
        let joined = [earlier, later].concat();
        Ok(Merged::New(self.note_pending(key, joined)))
    }

    fn merge_all(&self, key: &[u8], values: &[&[u8]]) -> Result<Option<Vec<u8>>, Error> {
        Ok(Some(self.note_pending(key, values.concat())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableType;
    use crate::salvage::merge_of_operator;
    use ats_term::Zeros;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn program(merge: &Term) -> Option<ProgramMerge> {
        ProgramMerge::of(&Description {
            table_type: TableType::Set,
            key_position: 1,
            zeros: Zeros::Distinct,
            merge: etf::encode(merge).expect("a short term"),
            has_shared: false,
            format: Vec::new(),
        })
    }

    fn atom(text: &str) -> Term {
        Term::Atom(Atom::new(text).expect("a short text"))
    }

    #[test]
    fn what_was_written_is_told_apart() {
        let all = [Written::Object, Written::Present, Written::Unknown];
        let [object, present, unknown] =
            all.map(|how| encode_value(b"object", how).expect("a few bytes"));
        assert_eq!(merged_value(&object), Some(&object[..]));
        assert_eq!(merged_value(&present), Some(&object[..]));
        assert_eq!(merged_value(&unknown), None);
        for first in [&object, &present, &unknown] {
            for second in [&present, &unknown] {
                let both = [&first[..], second].concat();
                assert_eq!(merged_value(&both), None);
                assert_eq!(objects(&both), Ok(vec![&b"object"[..]; 2]));
            }
            assert_eq!(objects(first), Ok(vec![&b"object"[..]]));
            for len in 1..first.len() {
                assert_eq!(merged_value(&first[..len]), None);
                assert_eq!(objects(&first[..len]), Err(Error::Corrupt), "{len}");
            }
        }
        assert_eq!(objects(b""), Ok(vec![]));
        assert_eq!(merged_value(b""), None);
    }

    #[test]
    fn a_program_is_named_with_its_version() {
        let merge = program(&(atom("module"), atom("highest_bid"), 7).into());
        let merge = merge.expect("a merge of a program");
        assert_eq!((merge.name(), merge.version()), ("erlang.highest_bid", 7));
        let expected = Program {
            name: atom("highest_bid"),
            version: 7,
        };
        assert_eq!(merge.program(), expected);
        for other in [
            (atom("module"), atom("highest_bid"), -1).into(),
            (atom("module"), atom("highest_bid"), 1_i64 << 32).into(),
            (atom("modul"), atom("highest_bid"), 7).into(),
            (atom("module"), 7, 7).into(),
            (atom("module"), (atom("m"), 7), 7).into(),
            (atom("module"), (((atom("m"),),),), 7).into(),
            atom("sum"),
        ] {
            assert!(program(&other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn functions_name_a_program() {
        let function = |name| (atom("m"), atom(name));
        let name = (
            atom("functions"),
            function("add"),
            function("Always"),
            function("never"),
        );
        let merge = program(&(atom("module"), name.clone(), 0).into()).expect("a program");
        assert_eq!(merge.program().name, name.into());
        let text = "erlang.{functions,{m,add},{m,'Always'},{m,never}}";
        assert_eq!((merge.name(), merge.version()), (text, 0));
        let (told, _) = merge_of_operator(text, 0).expect("the name of a program");
        assert!(is_same(
            &told,
            &describe(merge.program().name, 0).expect("short")
        ));
    }

    #[test]
    fn the_store_keeps_the_name_of_the_first_program() {
        let first = etf::encode(&(atom("module"), atom("highest_bid"), 7).into()).expect("short");
        let merge = program(&(atom("module"), atom("highest_bid"), 7).into());
        let next = Program {
            name: atom("bids"),
            version: 8,
        };
        let merge = merge.expect("a merge of a program");
        let second = merge
            .describe_successor(&next)
            .expect("the name of an atom");
        let again = program(&etf::decode(&second, etf::Options::TRUSTED).expect("a term"));
        let again = again.expect("a merge of a program");
        assert_eq!((again.name(), again.version()), ("erlang.highest_bid", 7));
        assert_eq!(again.program(), next);
        let wanted = etf::encode(&(atom("module"), atom("bids"), 8).into()).expect("short");
        assert!(is_same(&wanted, &second) && is_same(&first, &first));
        assert!(!is_same(&first, &second) && !is_same(b"", &second));
    }

    #[test]
    fn nothing_is_written_for_another_version() {
        let merge = program(&(atom("module"), atom("m"), 1).into()).expect("a program");
        assert_eq!(merge.with_version(1, || Ok(7)), Ok(Some(7)));
        assert_eq!(merge.with_version(2, || Ok(7)), Ok(None));
        merge.close_gate(true);
        assert_eq!(merge.with_version(1, || Ok(7)), Ok(None));
        merge.set_program(Program {
            name: atom("m"),
            version: 2,
        });
        assert_eq!(merge.with_version(1, || Ok(7)), Ok(None));
        assert_eq!(merge.with_version(2, || Ok(7)), Ok(Some(7)));
    }

    #[test]
    fn many_values_of_a_key_are_told_of() {
        let merge = program(&(atom("module"), atom("m"), 1).into()).expect("a program");
        let operand = encode_value(&[0; 20], Written::Present).expect("a few bytes");
        let many = |count| operand.repeat(count);
        assert_eq!(merge.take_longest(), Length::Short);
        for (count, expected) in [
            (1, Length::Short),
            (254, Length::Short),
            (255, Length::Hot),
            (10_000, Length::Hot),
            (700_000, Length::Long),
        ] {
            let joined = merge.merge(b"key", &many(count), &operand);
            assert_eq!(joined, Ok(Merged::New(many(count + 1))));
            assert_eq!(merge.take_longest(), expected, "{count}");
            assert_eq!(merge.take_longest(), Length::Short);
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
        merge.forget(b"again");
        assert_eq!(merge.take_noted(9), Vec::<Vec<u8>>::new());
        merge.note(b"again");
        assert_eq!(told.load(Ordering::Relaxed), 3);
        for key in 0..2 * MOST_KEYS {
            merge.note(&key.to_be_bytes());
        }
        merge.note(&vec![0; MOST_BYTES]);
        assert_eq!(merge.take_noted(usize::MAX).len(), MOST_KEYS);
    }
}
