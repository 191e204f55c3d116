//! Merges by a program that the store cannot call: the store concatenates the values that are
//! written to a key, until the program has merged them.
//!
//! ```text
//!   value   = object, if there is one that all later ones are merged with | operand | operand | ...
//!   object  = length, 4 bytes | bytes
//!   operand = mark, 4 bytes | object                 lengths and marks: least significant byte first
//! ```
//!
//! The mark of an operand says whether the operand alone is an object. A value of one object, or of
//! one such operand, is *merged*, and all others are *pending*.
//!
//! # Long values
//! The store copies each written byte O(log n) times. The program merges the values of a key when
//! the key is read, and in the background after a compaction of its run, or when the value is
//! [hot](Length::Hot). The result replaces the merged values, so a value grows only by the writes
//! between two merges. If the program is slower than the writers, they learn that a value is
//! [long](Length::Long) and have it merged themselves.

use crate::terms::description::Description;
use ats_store::{Error, MergeOperator, Merged};
use ats_term::{Atom, Term, etf};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, TryLockError};

/// The prefix of the names of such operators.
pub(crate) const PREFIX: &str = "erlang.";
/// The first element of the merge in a [`Description`].
const KIND: &str = "module";

const LENGTH_BYTES: usize = size_of::<u32>();
/// The mark of an operand that may count as missing. Lengths are smaller than marks.
const UNKNOWN: u32 = u32::MAX;
/// The mark of an operand that is an object if it is alone.
const PRESENT: u32 = u32::MAX - 1;

/// The kinds of values that are written to a key whose values a program merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// An object that replaces all older values.
    Object,
    /// An operand that is an object if it is alone.
    Present,
    /// An operand that is an object, or a missing one, if it is alone: the merge decides.
    Unknown,
}

/// Encodes an object as a value of the store. `None` if it has about 4 GiB or more.
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

/// Returns the value with the only object of a merged value; `None` if the value is pending.
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

/// Splits a value into its first object and the rest.
fn split(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let (mut len, mut rest) = number(value)?;
    if len >= PRESENT {
        (len, rest) = number(rest)?;
    }
    rest.split_at_checked(len as usize)
}

/// Returns the bytes of the objects of a value, in the order of their writes.
///
/// # Errors
/// [`Error::Corrupt`] if the bytes are not a value.
pub fn objects(mut value: &[u8]) -> Result<Vec<&[u8]>, Error> {
    let mut objects = Vec::new();
    while !value.is_empty() {
        let (object, behind) = split(value).ok_or(Error::Corrupt)?;
        objects.push(object);
        value = behind;
    }
    Ok(objects)
}

/// A callback that tells a program about keys to merge. It returns `false` if the calling thread
/// cannot tell it.
type Tell = Box<dyn Fn() -> bool + Send + Sync>;

/// The program that merges the values of a table, and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of the program: an atom, which names a module, or a term of atoms and tuples.
    pub name: Term,
    /// The version of its functions. Only this version merges the values.
    pub version: u32,
}

/// The length class of the longest value that writes have made since the last query for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Length {
    /// The value needs no merge yet.
    Short,
    /// The value should be merged soon: it has some hundreds of objects, or many bytes.
    Hot,
    /// The value should be merged before more is written.
    Long,
}

/// Number of objects, and of bytes, that make a value hot.
const HOT_OBJECTS: usize = 256;
const HOT_BYTES: usize = 64 << 10;
/// Minimum number of bytes of a value with as many objects as a hot one.
const LEAST_HOT_BYTES: usize = 4 << 10;
/// Number of bytes that make a value long.
const LONG_BYTES: usize = 16 << 20;

/// Returns the length class of a concatenated value. O(objects), up to the number that makes it
/// hot.
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
    if objects < HOT_OBJECTS {
        Length::Short
    } else {
        Length::Hot
    }
}

/// The merge of a program, as an operator on the values of tables.
///
/// The store concatenates operands, and notes the keys with pending values. The program takes some
/// of these keys at a time, and [replaces](crate::terms::Store::update) their values by merged
/// ones.
pub struct ProgramMerge {
    /// The program with which the table was made. The store is marked with its name, as text, and
    /// its version. They stay when the program changes, because the store concatenates values for
    /// every program.
    first: Program,
    name: String,
    /// A number that no other table of the process has.
    id: u64,
    program: RwLock<Gate>,
    /// The longest value since the last call of `take_longest`, as a [`Length`].
    longest: AtomicU8,
    noted: Mutex<Noted>,
}

/// The program, and the gate that admits writes of values for it.
struct Gate {
    program: Program,
    is_closed: bool,
}

/// Maximum number of noted keys, and of their bytes. Other keys are noted when they are met again.
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
    /// Returns the merge of a table, if it is one of a program, in the form `{module, Name,
    /// Version}`. If another program merged when the table was made, the form is `{module, Name,
    /// Version, {FirstName, FirstVersion}}`.
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

    /// Returns the merge, in the form of a description, of this table after `program` has become
    /// its program. `None` if the name is too long.
    #[must_use]
    pub fn describe_successor(&self, program: &Program) -> Option<Vec<u8>> {
        let first: Term = (self.first.name.clone(), i64::from(self.first.version)).into();
        let kind = Term::Atom(Atom::new(KIND).ok()?);
        let version = i64::from(program.version);
        etf::encode(&(kind, program.name.clone(), version, first).into()).ok()
    }

    /// Returns a number that no other table of the process has, even after this one is closed.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the current program.
    #[must_use]
    pub fn program(&self) -> Program {
        let gate = self.program.read().unwrap_or_else(PoisonError::into_inner);
        gate.program.clone()
    }

    /// Calls `write`, which writes values for this version of the program. Returns `None` instead
    /// if the table has another version, or is about to get another one.
    ///
    /// # Errors
    /// [`Error::Busy`] while the program is being changed, and the errors of `write`.
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
        if gate.program.version == version && !gate.is_closed {
            write().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Refuses [writes](ProgramMerge::with_version) from now on, or allows them again. No write is
    /// in progress when this returns.
    pub fn close_gate(&self, is_closed: bool) {
        let gate = self.program.write();
        gate.unwrap_or_else(PoisonError::into_inner).is_closed = is_closed;
    }

    /// Sets the program that merges from now on. All written values must have been merged.
    pub fn set_program(&self, program: Program) {
        let gate = self.program.write();
        let mut gate = gate.unwrap_or_else(PoisonError::into_inner);
        (gate.program, gate.is_closed) = (program, false);
    }

    /// Returns the length class of the longest value that was concatenated since the last call.
    #[must_use]
    pub fn take_longest(&self) -> Length {
        // The common case, in which no value is long, does not write to the shared cache line.
        match self.longest.load(Ordering::Relaxed) {
            0 => return Length::Short,
            _ => self.longest.swap(0, Ordering::Relaxed),
        }
        .into()
    }

    fn notes(&self) -> MutexGuard<'_, Noted> {
        // The notes are complete at every moment, so a panic in `tell` does not spoil them.
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a key with a pending value.
    pub fn note(&self, key: &[u8]) {
        // The key must be noted even if another thread holds the lock, since it may not be met
        // again for long. The lock is only held for short times.
        let mut noted = self.notes();
        let has_room = noted.keys.len() < MOST_KEYS && noted.bytes + key.len() <= MOST_BYTES;
        if has_room && !noted.keys.contains(key) {
            noted.bytes += key.len();
            noted.keys.insert(key.to_vec());
        }
        noted.wake();
    }

    /// Sets the callback that is called from now on when keys were noted: once until keys are
    /// taken.
    pub fn watch(&self, tell: Tell) {
        let mut noted = self.notes();
        (noted.tell, noted.is_told) = (Some(tell), false);
    }

    /// Takes up to `most` of the noted keys.
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

    /// Removes a key from the notes, because the caller has read it and merges it.
    pub fn forget(&self, key: &[u8]) {
        let mut noted = self.notes();
        if noted.keys.remove(key) {
            noted.bytes -= key.len();
        }
    }

    /// Notes a key with this value, which the program is to merge. Returns the value.
    fn note_pending(&self, key: &[u8], value: Vec<u8>) -> Vec<u8> {
        self.note(key);
        let length = length(&value);
        if length > Length::Short {
            self.longest.fetch_max(length as u8, Ordering::Relaxed);
        }
        value
    }
}

/// Returns `true` if the merges `wanted` and `stored` have the same current program. Their first
/// programs may differ.
#[must_use]
pub fn is_same(wanted: &[u8], stored: &[u8]) -> bool {
    let now = |merge| programs(merge).map(|(program, _)| program);
    wanted == stored || now(wanted).is_some_and(|wanted| Some(wanted) == now(stored))
}

/// Returns the current and the first program of a merge.
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
    use crate::terms::TableType;
    use crate::terms::salvage::merge_of_operator;
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
            lifetime: None,
        })
    }

    fn atom(text: &str) -> Term {
        Term::Atom(Atom::new(text).expect("a short text"))
    }

    #[test]
    fn kinds_of_written_values_are_told_apart() {
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
