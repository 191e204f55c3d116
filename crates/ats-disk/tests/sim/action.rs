//! Actions on files and directories, and their fates if they are not durable when the machine
//! stops.

use super::content::Content;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Bytes that a disk writes as one, unless it tears even these.
pub(crate) const SECTOR: u64 = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(pub(crate) u64);

/// An action on a file or a directory.
#[derive(Clone)]
pub(crate) enum Action {
    Write {
        file: FileId,
        offset: u64,
        bytes: Arc<[u8]>,
    },
    SetLen {
        file: FileId,
        bytes: u64,
    },
    Reserve {
        file: FileId,
        bytes: u64,
    },
    Create {
        directory: Arc<Path>,
        name: Arc<str>,
        file: FileId,
    },
    Rename {
        directory: Arc<Path>,
        from: Arc<str>,
        to: Arc<str>,
        file: FileId,
    },
    Remove {
        directory: Arc<Path>,
        name: Arc<str>,
        file: FileId,
    },
}

impl Action {
    pub(crate) fn file(&self) -> FileId {
        match self {
            Action::Write { file, .. }
            | Action::SetLen { file, .. }
            | Action::Reserve { file, .. }
            | Action::Create { file, .. }
            | Action::Rename { file, .. }
            | Action::Remove { file, .. } => *file,
        }
    }

    /// Returns the directory whose names it changes, if it does not change a content.
    pub(crate) fn directory(&self) -> Option<&Path> {
        match self {
            Action::Write { .. } | Action::SetLen { .. } | Action::Reserve { .. } => None,
            Action::Create { directory, .. }
            | Action::Rename { directory, .. }
            | Action::Remove { directory, .. } => Some(directory),
        }
    }

    pub(crate) fn is_name(&self) -> bool {
        self.directory().is_some()
    }

    /// Returns the bytes written, if it is a write.
    pub(crate) fn bytes_written(&self) -> Option<usize> {
        match self {
            Action::Write { bytes, .. } => Some(bytes.len()),
            _ => None,
        }
    }
}

impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Write { offset, bytes, .. } => write!(f, "write {} at {offset}", bytes.len()),
            Action::SetLen { bytes, .. } => write!(f, "set length {bytes}"),
            Action::Reserve { bytes, .. } => write!(f, "reserve {bytes}"),
            Action::Create { name, .. } => write!(f, "create {name}"),
            Action::Rename { from, to, .. } => write!(f, "rename {from} to {to}"),
            Action::Remove { name, .. } => write!(f, "remove {name}"),
        }
    }
}

/// An action that is not durable.
#[derive(Clone)]
pub(crate) struct Pending {
    /// The number of the action, which no other action of this disk, or of its copies, has.
    pub(crate) id: u64,
    pub(crate) action: Action,
}

/// The fate of a pending action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Lost,
    Kept,
    /// The first bytes of a write only. If it has `grown`, the file is nevertheless as long as if
    /// all were kept, and the missing bytes read as before, or as zeros. A rename leaves both
    /// names.
    Torn {
        bytes: u32,
        grown: bool,
    },
    /// The sectors of a write whose bit is set; the file is as long as if all were kept.
    Sectors(u64),
}

impl Fate {
    /// Returns the same, written in one way only.
    #[expect(
        clippy::match_same_arms,
        reason = "the order of the cases decides which one a fate is"
    )]
    pub(crate) fn canonical(self, action: &Action) -> Fate {
        match (self, action) {
            (Fate::Lost | Fate::Kept, _) | (Fate::Torn { .. }, Action::Rename { .. }) => self,
            (Fate::Torn { bytes, .. }, Action::Write { bytes: all, .. })
                if bytes as usize >= all.len() =>
            {
                Fate::Kept
            }
            (
                Fate::Torn {
                    bytes: 0,
                    grown: false,
                },
                Action::Write { .. },
            ) => Fate::Lost,
            (_, Action::Write { .. }) => self,
            (Fate::Torn { .. } | Fate::Sectors(_), _) => Fate::Kept,
        }
    }
}

/// Does an action to a content, as far as its fate says.
pub(crate) fn apply_content(content: &mut Content, action: &Action, fate: Fate) {
    match action {
        Action::Write { offset, bytes, .. } => match fate {
            Fate::Lost => {}
            Fate::Kept => content.write(bytes, *offset),
            Fate::Torn { bytes: kept, grown } => {
                content.write(&bytes[..kept as usize], *offset);
                if grown {
                    content.grow(offset + bytes.len() as u64);
                }
            }
            Fate::Sectors(mask) => {
                let end = offset + bytes.len() as u64;
                let mut at = *offset;
                while at < end {
                    let next = ((at / SECTOR + 1) * SECTOR).min(end);
                    let sector = (at / SECTOR - offset / SECTOR) % 64;
                    if mask >> sector & 1 == 1 {
                        content.write(&bytes[(at - offset) as usize..(next - offset) as usize], at);
                    }
                    at = next;
                }
                content.grow(end);
            }
        },
        Action::SetLen { bytes, .. } => content.set_len(*bytes),
        Action::Reserve { bytes, .. } => content.reserve(*bytes),
        Action::Create { .. } | Action::Rename { .. } | Action::Remove { .. } => {}
    }
}

/// Does an action to the names of a directory, as far as its fate says.
pub(crate) fn apply_name(names: &mut BTreeMap<Arc<str>, FileId>, action: &Action, fate: Fate) {
    match action {
        Action::Create { name, file, .. } => {
            names.insert(name.clone(), *file);
        }
        Action::Rename { from, to, file, .. } => {
            if fate == Fate::Kept && names.get(from) == Some(file) {
                names.remove(from);
            }
            names.insert(to.clone(), *file);
        }
        Action::Remove { name, file, .. } => {
            if names.get(name) == Some(file) {
                names.remove(name);
            }
        }
        Action::Write { .. } | Action::SetLen { .. } | Action::Reserve { .. } => {}
    }
}
