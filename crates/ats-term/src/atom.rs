//! Atoms: interned text, alive as long as the process.
//!
//! An [`Atom`] is a pointer to its text, so reading the text costs no look-up. Interning takes a
//! lock on one of several shards; turning an [id](Atom::id) back into an atom takes none. As in the
//! Erlang VM, atoms are never freed, so untrusted text must not become atoms without a limit; see
//! [`etf::Atoms`](crate::etf::Atoms).

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

/// Longest text of an atom, in characters.
pub const MAX_CHARACTERS: usize = 255;

/// Largest number of atoms of a process.
pub const MAX_ATOMS: u32 = 1 << 24;

/// An atom: interned text. Comparing two atoms for equality compares pointers.
#[derive(Clone, Copy)]
pub struct Atom(&'static Entry);

struct Entry {
    id: u32,
    text: Box<str>,
}

/// The reason why text cannot become an atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomError {
    /// The text has more than [`MAX_CHARACTERS`] characters.
    TooLong,
    /// The process has [`MAX_ATOMS`] atoms already.
    TableFull,
}

impl fmt::Display for AtomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AtomError::TooLong => "an atom has at most 255 characters",
            AtomError::TableFull => "the atom table is full",
        })
    }
}

impl std::error::Error for AtomError {}

impl Atom {
    /// Interns a text. Expected O(length).
    ///
    /// # Errors
    /// Returns [`AtomError::TooLong`] above 255 characters, [`AtomError::TableFull`] when no more
    /// atoms can be made.
    pub fn new(text: &str) -> Result<Atom, AtomError> {
        match Atom::existing(text) {
            Some(atom) => Ok(atom),
            None if text.chars().count() > MAX_CHARACTERS => Err(AtomError::TooLong),
            None => TABLE.intern(text),
        }
    }

    /// Returns the atom with this text if the program has made it before.
    #[must_use]
    pub fn existing(text: &str) -> Option<Atom> {
        let shard = TABLE.shard(text);
        let atoms = shard.read().unwrap_or_else(PoisonError::into_inner);
        atoms.get(text).copied()
    }

    /// Returns the atom with this [id](Atom::id). Takes no lock.
    #[must_use]
    pub fn from_id(id: u64) -> Option<Atom> {
        TABLE.by_id(u32::try_from(id).ok()?)
    }

    /// Returns the text of the atom.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        &self.0.text
    }

    /// Returns the number of this atom, which is fixed for the life of the process and less than
    /// [`MAX_ATOMS`]. Another run of the program may number its atoms differently.
    #[must_use]
    pub fn id(self) -> u64 {
        u64::from(self.0.id)
    }
}

impl PartialEq for Atom {
    fn eq(&self, other: &Atom) -> bool {
        // Every text has exactly one entry.
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Atom {}

impl Hash for Atom {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

/// Atoms are ordered by their text, as in Erlang.
impl Ord for Atom {
    fn cmp(&self, other: &Atom) -> std::cmp::Ordering {
        // Byte order of UTF-8 is the order of code points.
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Atom) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Debug for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The atom in Erlang syntax, quoted where necessary.
impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.as_str();
        if needs_no_quotes(text) {
            return f.write_str(text);
        }
        f.write_str("'")?;
        for c in text.chars() {
            match c {
                '\'' => f.write_str("\\'")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                c if c.is_control() => write!(f, "\\x{{{:x}}}", u32::from(c))?,
                c => write!(f, "{c}")?,
            }
        }
        f.write_str("'")
    }
}

const RESERVED_WORDS: [&str; 28] = [
    "after", "and", "andalso", "band", "begin", "bnot", "bor", "bsl", "bsr", "bxor", "case",
    "catch", "cond", "div", "end", "fun", "if", "let", "maybe", "not", "of", "or", "orelse",
    "receive", "rem", "try", "when", "xor",
];

fn needs_no_quotes(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '@')
        && !RESERVED_WORDS.contains(&text)
}

/// Number of shards of the table, selected by text, so that threads that intern at once rarely
/// meet.
const SHARDS: usize = 32;

/// Chunk `c` of the id index holds `FIRST_CHUNK << c` entries. Chunks never move, so reads need no
/// lock.
const FIRST_CHUNK: u32 = 1 << 10;
const CHUNKS: usize = (MAX_ATOMS / FIRST_CHUNK).ilog2() as usize + 1;

type Shard = RwLock<HashMap<&'static str, Atom>>;
type Chunk = Box<[OnceLock<Atom>]>;

struct Table {
    hasher: RandomState,
    shards: [Shard; SHARDS],
    chunks: [OnceLock<Chunk>; CHUNKS],
    next_id: AtomicU32,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| Table {
    hasher: RandomState::new(),
    shards: std::array::from_fn(|_| Shard::default()),
    chunks: std::array::from_fn(|_| OnceLock::new()),
    next_id: AtomicU32::new(0),
});

impl Table {
    fn shard(&self, text: &str) -> &Shard {
        &self.shards[self.hasher.hash_one(text) as usize % SHARDS]
    }

    fn intern(&self, text: &str) -> Result<Atom, AtomError> {
        let mut atoms = self
            .shard(text)
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(&atom) = atoms.get(text) {
            return Ok(atom);
        }
        // Relaxed: the id is only a unique number. The `OnceLock` below and the lock of the shard
        // publish the entry.
        let id = self
            .next_id
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < MAX_ATOMS).then_some(n + 1)
            })
            .map_err(|_| AtomError::TableFull)?;
        let atom = Atom(Box::leak(Box::new(Entry {
            id,
            text: text.into(),
        })));
        let (chunk, offset) = locate(id);
        let chunk = self.chunks[chunk].get_or_init(|| new_chunk(chunk));
        // The slot is empty, because no other call got this id.
        let _ = chunk[offset].set(atom);
        atoms.insert(atom.as_str(), atom);
        Ok(atom)
    }

    fn by_id(&self, id: u32) -> Option<Atom> {
        let (chunk, offset) = locate(id);
        self.chunks.get(chunk)?.get()?.get(offset)?.get().copied()
    }
}

fn new_chunk(chunk: usize) -> Chunk {
    let entries = (FIRST_CHUNK as usize) << chunk;
    std::iter::repeat_with(OnceLock::new)
        .take(entries)
        .collect()
}

/// Returns chunk and offset of an id: chunk `c` begins at id `FIRST_CHUNK * (2^c - 1)`.
fn locate(id: u32) -> (usize, usize) {
    let biased = u64::from(id) + u64::from(FIRST_CHUNK);
    let chunk = biased.ilog2() - FIRST_CHUNK.ilog2();
    let offset = biased - (u64::from(FIRST_CHUNK) << chunk);
    (chunk as usize, offset as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_text_is_the_same_atom_from_many_threads() {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    (0..3000)
                        .map(|i| Atom::new(&format!("thread_atom_{i}")).unwrap())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        let atoms: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        for per_thread in &atoms {
            assert_eq!(per_thread, &atoms[0]);
        }
        for (i, atom) in atoms[0].iter().enumerate() {
            assert_eq!(atom.as_str(), format!("thread_atom_{i}"));
            assert_eq!(Atom::from_id(atom.id()), Some(*atom));
        }
    }

    #[test]
    fn length_is_counted_in_characters() {
        assert!(Atom::new(&"ж".repeat(255)).is_ok());
        assert_eq!(Atom::new(&"ж".repeat(256)), Err(AtomError::TooLong));
    }

    #[test]
    fn looking_does_not_make() {
        assert_eq!(Atom::existing("an atom nobody has made"), None);
        assert_eq!(Atom::existing("an atom nobody has made"), None);
        assert_eq!(Atom::from_id(u64::MAX), None);
        assert_eq!(Atom::from_id(u64::from(MAX_ATOMS) - 1), None);
    }

    #[test]
    fn ids_are_located_without_gaps() {
        let mut expected = (0, 0);
        for id in 0..(FIRST_CHUNK * 40) {
            assert_eq!(locate(id), expected);
            expected.1 += 1;
            if expected.1 == (FIRST_CHUNK as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert_eq!(locate(MAX_ATOMS).0, CHUNKS - 1);
    }

    #[test]
    fn text_is_quoted_as_in_erlang() {
        let shown = |text: &str| Atom::new(text).unwrap().to_string();
        assert_eq!(shown("node@host_1"), "node@host_1");
        assert_eq!(shown("Upper"), "'Upper'");
        assert_eq!(shown(""), "''");
        assert_eq!(shown("end"), "'end'");
        assert_eq!(shown("it's\\"), "'it\\'s\\\\'");
        assert_eq!(shown("a\0b"), "'a\\x{0}b'");
    }
}
