//! Atoms: words of the atoms that this library needs, and texts of any atom.
//!
//! The VM never forgets an atom, so the word of an atom is valid for the life of the VM, and the
//! text of a word never changes. Both are therefore cached for ever.

use crate::env::{Env, VmWord};
use crate::etf::{self, Etf};
use crate::sys::{self, Word};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

macro_rules! known_atoms {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// An atom that this library names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum KnownAtom { $($(#[$doc])* $variant,)* }

        const KNOWN_TEXTS: &[&str] = &[$($text,)*];

        /// Words of the known atoms, set by [`load`] before any other function can run. Relaxed
        /// access is enough: making the functions callable orders it.
        static KNOWN_WORDS: [AtomicU64; KNOWN_TEXTS.len()] =
            [const { AtomicU64::new(0) }; KNOWN_TEXTS.len()];
    };
}

known_atoms! {
    /// `true`
    True = "true",
    /// `false`
    False = "false",
    /// `ok`
    Ok = "ok",
    /// `undefined`
    Undefined = "undefined",
    /// `none`: a cause without further explanation.
    None = "none",
    /// `'$end_of_table'`
    EndOfTable = "$end_of_table",
    /// `ats_error`: the first element of every exception raised here.
    AtsError = "ats_error",
    /// `panic`: cause of an exception that is a defect of this library.
    Panic = "panic",
    /// `type`: no table identifier.
    Type = "type",
    /// `id`: no such table.
    Id = "id",
    /// `access`: not allowed for this process.
    Access = "access",
    /// `table_type`: not possible with a table of this type.
    TableType = "table_type",
    /// `badkey`: no such key.
    BadKey = "badkey",
    /// `keypos`: the position is that of the key.
    KeyPos = "keypos",
    /// `position`: the position is outside of the object.
    Position = "position",
    /// `owner`: the process is the owner already.
    Owner = "owner",
    /// `not_owner`: the process is not the owner.
    NotOwner = "not_owner",
    /// `already_exists`: the name is taken.
    AlreadyExists = "already_exists",
    /// `system_limit`: too large for this system.
    SystemLimit = "system_limit",
    /// `snapshot_expired`: a snapshot was not read for too long.
    SnapshotExpired = "snapshot_expired",
    /// `too_long`: longer than a table on disk can keep.
    TooLong = "too_long",
    /// `set`
    Set = "set",
    /// `ordered_set`
    OrderedSet = "ordered_set",
    /// `bag`
    Bag = "bag",
    /// `duplicate_bag`
    DuplicateBag = "duplicate_bag",
    /// `ordered_bag`
    OrderedBag = "ordered_bag",
    /// `ordered_duplicate_bag`
    OrderedDuplicateBag = "ordered_duplicate_bag",
    /// `private`
    Private = "private",
    /// `protected`
    Protected = "protected",
    /// `public`
    Public = "public",
    /// `auto`
    Auto = "auto",
    /// `debug_hash_fixed_number_of_locks`
    DebugHashFixedNumberOfLocks = "debug_hash_fixed_number_of_locks",
    /// `'ETS-TRANSFER'`: tag of the message to an heir.
    EtsTransfer = "ETS-TRANSFER",
    /// `start`
    Start = "start",
    /// `done`
    Done = "done",
    /// `after_key`
    AfterKey = "after_key",
    /// `within`
    Within = "within",
    /// `more`
    More = "more",
    /// `part`
    Part = "part",
    /// `create`
    Create = "create",
    /// `temporary`
    Temporary = "temporary",
    /// `read`
    Read = "read",
    /// `read_write`
    ReadWrite = "read_write",
    /// `formats`
    Formats = "formats",
    /// `durability`
    Durability = "durability",
    /// `block_size`
    BlockSize = "block_size",
    /// `memory`
    Memory = "memory",
    /// `memtable_keys`
    MemtableKeys = "memtable_keys",
    /// `compressed`
    Compressed = "compressed",
    /// `continuation_age`
    ContinuationAge = "continuation_age",
    /// `snapshot_memory`
    SnapshotMemory = "snapshot_memory",
    /// `snapshot`: the table is a snapshot, which cannot be changed.
    Snapshot = "snapshot",
    /// `no_snapshot`: the term is no snapshot.
    NoSnapshot = "no_snapshot",
    /// `snapshot_ended`: the snapshot has ended.
    SnapshotEnded = "snapshot_ended",
    /// `disk`: a word of options; the table is on disk, which has no transactions.
    Disk = "disk",
    /// `query`
    Query = "query",
    /// `released`: a snapshot was released.
    Released = "released",
    /// `owner_ended`: the owner of a snapshot has ended.
    OwnerEnded = "owner_ended",
    /// `max_age`: a snapshot has reached its maximum age.
    MaxAge = "max_age",
    /// `other_table`: two snapshots are not of the same table.
    OtherTable = "other_table",
    /// `infinity`
    Infinity = "infinity",
    /// `idle`: objects expire that are not read.
    Idle = "idle",
    /// `spread`: objects that are written together expire one after the other.
    Spread = "spread",
    /// `ats_evicted`: the process that tells of objects that are gone.
    AtsEvicted = "ats_evicted",
    /// `gone`
    Gone = "gone",
    /// `expired`: the time of objects has passed.
    Expired = "expired",
    /// `max_objects`: there were too many objects.
    MaxObjects = "max_objects",
    /// `keep`: objects keep their deadline.
    Keep = "keep",
    /// `max_memory`: the objects of a key are larger than the bound of the table.
    MaxMemory = "max_memory",
    /// `ttl`: the objects of the table do not expire.
    Ttl = "ttl",
    /// `interval`
    Interval = "interval",
    /// `beginning`
    Beginning = "beginning",
    /// `open`
    Open = "open",
    /// `closed`
    Closed = "closed",
    /// `all`
    All = "all",
    /// `objects`
    Objects = "objects",
    /// `count`
    Count = "count",
    /// `delete`
    Delete = "delete",
    /// `take`
    Take = "take",
    /// `wait`
    Wait = "wait",
    /// `operand`: the operand does not fit this merge.
    Operand = "operand",
    /// `value`: the stored value does not fit this merge.
    Value = "value",
    /// `merge`: no merge has this name.
    Merge = "merge",
    /// `default`: the default object does not fit this table.
    Default = "default",
    /// `storage`: the store of the table failed.
    Storage = "storage",
    /// `error`
    Error = "error",
    /// `sync`
    Sync = "sync",
    /// `system`
    System = "system",
    /// `dats`: the name of tables in directories.
    Dats = "dats",
    /// `source`: the existing directory.
    Source = "source",
    /// `target`: the directory to be made.
    Target = "target",
    /// `earlier`: the directory of an earlier checkpoint.
    Earlier = "earlier",
    /// `damaged`: the bytes read differ from those written.
    Damaged = "damaged",
    /// `in_use`: the directory is open elsewhere.
    InUse = "in_use",
    /// `newer_format`: the files are of a later version.
    NewerFormat = "newer_format",
    /// `not_a_dats_table`: the directory belongs to something else.
    NotADatsTable = "not_a_dats_table",
    /// `within_table`: a directory is below that of a table.
    WithinTable = "within_table",
    /// `type_mismatch`: the table is of another type.
    TypeMismatch = "type_mismatch",
    /// `keypos_mismatch`: the table has its keys elsewhere.
    KeyposMismatch = "keypos_mismatch",
    /// `format_mismatch`: the table has another format.
    FormatMismatch = "format_mismatch",
    /// `merge_mismatch`: the table has another merge.
    MergeMismatch = "merge_mismatch",
    /// `ttl_mismatch`: objects of the table expire, or do not.
    TtlMismatch = "ttl_mismatch",
    /// `merge_failed`: the values written to a key cannot be merged.
    MergeFailed = "merge_failed",
    /// `object`
    Object = "object",
    /// `present`: an operand that is an object by itself.
    Present = "present",
    /// `pending`: values wait for a program to merge them.
    Pending = "pending",
    /// `written`
    Written = "written",
    /// `hot`: a key has many unmerged operands.
    Hot = "hot",
    /// `long`: a key has so many operands that they should be merged before further writes.
    Long = "long",
    /// `ask`: a program must be asked before a write.
    Ask = "ask",
    /// `module`
    Module = "module",
    /// `missing`: a key that has no value.
    Missing = "missing",
    /// `other_version`: the program is of another version than the table.
    OtherVersion = "other_version",
    /// `read_only`: the store refuses writes.
    ReadOnly = "read_only",
    /// `enoent`
    Enoent = "enoent",
    /// `eacces`
    Eacces = "eacces",
    /// `enospc`
    Enospc = "enospc",
    /// `enotdir`
    Enotdir = "enotdir",
    /// `eio`
    Eio = "eio",
    /// `exdev`: the two are on different file systems.
    Exdev = "exdev",
    /// `eagain`
    Eagain = "eagain",
    /// `ebadf`
    Ebadf = "ebadf",
    /// `ebusy`
    Ebusy = "ebusy",
    /// `edquot`
    Edquot = "edquot",
    /// `eexist`
    Eexist = "eexist",
    /// `efbig`
    Efbig = "efbig",
    /// `einval`
    Einval = "einval",
    /// `eisdir`
    Eisdir = "eisdir",
    /// `eloop`
    Eloop = "eloop",
    /// `emfile`
    Emfile = "emfile",
    /// `enametoolong`
    Enametoolong = "enametoolong",
    /// `enfile`
    Enfile = "enfile",
    /// `enodev`
    Enodev = "enodev",
    /// `enolck`
    Enolck = "enolck",
    /// `enomem`
    Enomem = "enomem",
    /// `enotempty`
    Enotempty = "enotempty",
    /// `enxio`
    Enxio = "enxio",
    /// `eopnotsupp`
    Eopnotsupp = "eopnotsupp",
    /// `eperm`
    Eperm = "eperm",
    /// `erofs`
    Erofs = "erofs",
    /// `estale`
    Estale = "estale",
    /// `etimedout`
    Etimedout = "etimedout",
    /// `etxtbsy`
    Etxtbsy = "etxtbsy",
    /// `btree`
    Btree = "btree",
    /// `backend`: no store of this build has this name.
    Backend = "backend",
    /// `replace`
    Replace = "replace",
    /// `full_scan`
    FullScan = "full_scan",
    /// `allow`
    Allow = "allow",
    /// `warn`
    Warn = "warn",
    /// `refuse`
    Refuse = "refuse",
    /// `refused`: tag of the cause why a call was refused.
    Refused = "refused",
    /// `prefix`
    Prefix = "prefix",
    /// `behind`
    Behind = "behind",
    /// `bytes`
    Bytes = "bytes",
    /// `'_'`
    Underscore = "_",
    /// `'$_'`: the object, in specifications.
    WholeObject = "$_",
    /// `element`
    Element = "element",
    /// `keys`
    Keys = "keys",
    /// `rows`
    Rows = "rows",
    /// `nothing`
    Nothing = "nothing",
    /// `points`
    Points = "points",
    /// `ranges`
    Ranges = "ranges",
    /// `everything`
    Everything = "everything",
    /// `up`
    Up = "up",
    /// `down`
    Down = "down",
    /// `'EXIT'`: the result of a failed body of a match specification.
    Exit = "EXIT",
    /// `route_nodes`
    RouteNodes = "route_nodes",
    /// `base_nodes`
    BaseNodes = "base_nodes",
    /// `depth`
    Depth = "depth",
    /// `splits`
    Splits = "splits",
    /// `joins`
    Joins = "joins",
    /// `contended`
    Contended = "contended",
    /// `uncontended`
    Uncontended = "uncontended",
    /// `retries`
    Retries = "retries",
    /// `buckets`
    Buckets = "buckets",
    /// `lines`
    Lines = "lines",
    /// `locks`
    Locks = "locks",
    /// `doublings`
    Doublings = "doublings",
    /// `halvings`
    Halvings = "halvings",
    /// `condition`: a part of a transaction.
    Condition = "condition",
    /// `then`: the steps of a transaction whose conditions hold.
    Then = "then",
    /// `else`: the other steps of a transaction.
    Else = "else",
    /// `steps`: a transaction has too many steps.
    Steps = "steps",
    /// `tables`: a transaction has too many tables.
    Tables = "tables",
    /// `table`: an element of the list of a transaction over several tables.
    Table = "table",
    /// `no_such_part`: neither a condition nor a step.
    NoSuchPart = "no_such_part",
    /// `pattern`: not a pattern with guards.
    Pattern = "pattern",
    /// `absent`
    Absent = "absent",
    /// `equals`
    Equals = "equals",
    /// `match`
    Match = "match",
    /// `insert`
    Insert = "insert",
    /// `insert_new`
    InsertNew = "insert_new",
    /// `delete_object`
    DeleteObject = "delete_object",
    /// `update_element`
    UpdateElement = "update_element",
    /// `update_counter`
    UpdateCounter = "update_counter",
    /// `lookup`
    Lookup = "lookup",
}

impl KnownAtom {
    /// Returns the atom's word. One load.
    #[inline]
    pub fn word(self) -> VmWord<'static> {
        let word = KNOWN_WORDS[self as usize].load(Ordering::Relaxed);
        // SAFETY: `load` stores the word of an atom before any function can run, and atoms are
        // never freed.
        unsafe { VmWord::new(word) }
    }

    /// Returns `true` if `word` is this atom.
    #[inline]
    pub fn is(self, word: VmWord<'_>) -> bool {
        self.word().raw() == word.raw()
    }
}

/// Returns the atom `true` or `false`.
#[inline]
pub fn boolean(value: bool) -> VmWord<'static> {
    if value {
        KnownAtom::True.word()
    } else {
        KnownAtom::False.word()
    }
}

/// Creates the known atoms when the library is loaded.
pub fn load(env: Env<'_>) {
    for (text, slot) in KNOWN_TEXTS.iter().zip(&KNOWN_WORDS) {
        // SAFETY: the text is ASCII and readable, the environment valid.
        let word = unsafe { sys::enif_make_atom_len(env.raw(), text.as_ptr().cast(), text.len()) };
        slot.store(word, Ordering::Relaxed);
    }
}

/// Low six bits of the word of an atom; the rest is its index in the atom table of the VM.
pub const ATOM_TAG: Word = 0x0B;
const ATOM_TAG_BITS: u32 = 6;

const SEGMENT_LEN: usize = 1 << 12;
const SEGMENTS: usize = 1 << 19;

/// The texts of 4096 atoms with consecutive indices; null until first use.
type Segment = [AtomicPtr<Text>; SEGMENT_LEN];

/// Text of one atom, never freed.
struct Text(Box<str>);

/// Texts by atom index: 2^31 atoms, which is as many as a VM can be told to allow. The directory
/// takes only address space until its pages are used.
static TEXTS: [AtomicPtr<Segment>; SEGMENTS] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENTS];

/// Returns the text of an atom: two loads and no lock. The first use of an atom asks the VM and
/// allocates.
///
/// Readers and fillers race without harm: a text is complete before its pointer is published with
/// release. A filler that loses a race drops its own copy, which no other thread has seen.
pub fn text(atom: VmWord<'_>) -> &'static str {
    let word = atom.raw();
    debug_assert_eq!(word & 0x3F, ATOM_TAG);
    let index = (word >> ATOM_TAG_BITS) as usize;
    let slot = &segment(index / SEGMENT_LEN)[index % SEGMENT_LEN];
    let mut found = slot.load(Ordering::Acquire);
    if found.is_null() {
        found = publish(slot, || Text(text_from_vm(atom)));
    }
    // SAFETY: published pointers are valid and never freed.
    unsafe { &(*found).0 }
}

/// Returns the segment with this number, which is allocated on first use.
#[inline]
#[expect(clippy::large_stack_arrays, reason = "few are made, and each once")]
fn segment(number: usize) -> &'static Segment {
    let slot = &TEXTS[number];
    let mut found = slot.load(Ordering::Acquire);
    if found.is_null() {
        found = publish(slot, || {
            [const { AtomicPtr::new(std::ptr::null_mut()) }; SEGMENT_LEN]
        });
    }
    // SAFETY: published pointers are valid and never freed.
    unsafe { &*found }
}

/// Publishes a new value in an empty slot. Returns the value then in the slot: that of another
/// thread if it came first.
#[cold]
fn publish<T>(slot: &AtomicPtr<T>, make: impl FnOnce() -> T) -> *mut T {
    let fresh = Box::into_raw(Box::new(make()));
    match slot.compare_exchange(
        std::ptr::null_mut(),
        fresh,
        Ordering::AcqRel,
        Ordering::Acquire,
    ) {
        Ok(_) => fresh,
        Err(theirs) => {
            // SAFETY: `fresh` came from a box just now and was not published.
            drop(unsafe { Box::from_raw(fresh) });
            theirs
        }
    }
}

/// Asks the VM for the text of an atom, through the external term format: the NIF function for atom
/// texts knows only Latin-1 before OTP 26.
fn text_from_vm(atom: VmWord<'_>) -> Box<str> {
    let etf = Etf::of(atom);
    let (text, _) = etf::atom(&etf.bytes()[1..]).expect("the VM encodes an atom as an atom");
    text.into_boxed_str()
}

/// Returns the atom with this text, or `None` if no such atom can exist.
pub fn of_text<'e>(env: Env<'e>, text: &str) -> Option<VmWord<'e>> {
    env.from_etf(&etf::encode_atom(text)?)
}
