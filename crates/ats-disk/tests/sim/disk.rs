//! The content of a disk: its durable state, its shown state, and the actions that lie between
//! them.
//!
//! # Invariants
//! - DISK-1. The shown state is the durable one with all pending actions applied in their order,
//!   and with actions that a failed sync has lost, which are shown all the same.
//! - DISK-2. A file is known as long as a durable name, a shown name, a pending action or an open
//!   handle leads to it.

use super::action::{Action, Fate, FileId, Pending, apply_content, apply_name};
use super::content::{Content, PAGE};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

type Names = Arc<BTreeMap<Arc<str>, FileId>>;

#[derive(Clone, Default)]
struct Directory {
    durable: Names,
    shown: Names,
}

#[derive(Clone, Default)]
struct FileState {
    durable: Arc<Content>,
    shown: Arc<Content>,
}

/// A disk.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    directories: BTreeMap<Arc<Path>, Directory>,
    files: BTreeMap<FileId, FileState>,
    pending: Vec<Pending>,
    /// The next number of an action or a file.
    next: u64,
    /// The number of changes of the durable state.
    age: u64,
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Disk {
    pub(crate) fn pending(&self) -> &[Pending] {
        &self.pending
    }

    pub(crate) fn create_dir(&mut self, path: &Path) {
        if !self.directories.contains_key(path) {
            self.age += 1;
            self.directories.insert(path.into(), Directory::default());
        }
    }

    /// Returns the names that are shown, with their files.
    pub(crate) fn names(&self, directory: &Path) -> io::Result<&BTreeMap<Arc<str>, FileId>> {
        Ok(&self.directories.get(directory).ok_or_else(not_found)?.shown)
    }

    fn split(path: &Path) -> io::Result<(&Path, &str)> {
        let name = path.file_name().and_then(|name| name.to_str());
        path.parent().zip(name).ok_or_else(not_found)
    }

    /// Returns the directory of a path, its last part, and the file to which it leads.
    fn resolve(&self, path: &Path) -> io::Result<(Arc<Path>, Arc<str>, Option<FileId>)> {
        let (directory, name) = Disk::split(path)?;
        let found = self.directories.get_key_value(directory);
        let (directory, names) = found.ok_or_else(not_found)?;
        Ok((
            directory.clone(),
            name.into(),
            names.shown.get(name).copied(),
        ))
    }

    pub(crate) fn find(&self, path: &Path) -> io::Result<FileId> {
        let (directory, name) = Disk::split(path)?;
        self.names(directory)?
            .get(name)
            .copied()
            .ok_or_else(not_found)
    }

    /// Returns the content of a known file that is shown.
    pub(crate) fn content(&self, file: FileId) -> &Content {
        &self.files[&file].shown
    }

    /// Returns all files that are shown, with their names.
    pub(crate) fn files(&self) -> Vec<(Arc<str>, FileId)> {
        let names = self
            .directories
            .values()
            .flat_map(|names| names.shown.iter());
        names.map(|(name, file)| (name.clone(), *file)).collect()
    }

    /// Returns a name that is shown or durable and leads to a file.
    pub(crate) fn name(&self, file: FileId) -> Option<&str> {
        let names = self.directories.values();
        let mut names = names.flat_map(|names| names.shown.iter().chain(names.durable.iter()));
        names.find_map(|(name, found)| (*found == file).then_some(&**name))
    }

    fn act(&mut self, action: Action) {
        self.show(&action);
        let id = self.next;
        self.next += 1;
        self.pending.push(Pending { id, action });
    }

    fn show(&mut self, action: &Action) {
        match action.directory() {
            Some(directory) => {
                let directory = self
                    .directories
                    .get_mut(directory)
                    .expect("it was resolved");
                apply_name(Arc::make_mut(&mut directory.shown), action, Fate::Kept);
            }
            None => {
                let file = self.files.get_mut(&action.file()).expect("DISK-2");
                apply_content(Arc::make_mut(&mut file.shown), action, Fate::Kept);
            }
        }
    }

    pub(crate) fn create(&mut self, path: &Path) -> io::Result<FileId> {
        let (directory, name, found) = self.resolve(path)?;
        if found.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = FileId(self.next);
        self.files.insert(file, FileState::default());
        self.act(Action::Create {
            directory,
            name,
            file,
        });
        Ok(file)
    }

    /// Gives a file a second name, maybe in another directory.
    pub(crate) fn link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.find(from)?;
        let (directory, name, found) = self.resolve(to)?;
        if found.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.act(Action::Create {
            directory,
            name,
            file,
        });
        Ok(())
    }

    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (directory, from, file) = self.resolve(from)?;
        let (other, to, _) = self.resolve(to)?;
        assert_eq!(directory, other, "a file gets a name in the same directory");
        let file = file.ok_or_else(not_found)?;
        self.act(Action::Rename {
            directory,
            from,
            to,
            file,
        });
        Ok(())
    }

    pub(crate) fn remove(&mut self, path: &Path) -> io::Result<()> {
        let (directory, name, file) = self.resolve(path)?;
        let file = file.ok_or_else(not_found)?;
        self.act(Action::Remove {
            directory,
            name,
            file,
        });
        Ok(())
    }

    pub(crate) fn write(&mut self, file: FileId, bytes: &[u8], offset: u64) {
        if !bytes.is_empty() {
            let bytes = bytes.into();
            self.act(Action::Write {
                file,
                offset,
                bytes,
            });
        }
    }

    pub(crate) fn set_len(&mut self, file: FileId, bytes: u64) {
        if bytes != self.content(file).len() {
            self.act(Action::SetLen { file, bytes });
        }
    }

    pub(crate) fn reserve(&mut self, file: FileId, bytes: u64) {
        self.act(Action::Reserve { file, bytes });
    }

    /// Returns `true` if a sync of this file would do something.
    pub(crate) fn is_dirty(&self, file: FileId) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| !pending.action.is_name() && pending.action.file() == file)
    }

    /// Returns `true` if a sync of this directory would do something.
    pub(crate) fn is_dirty_dir(&self, directory: &Path) -> bool {
        let mut pending = self.pending.iter();
        pending.any(|pending| pending.action.directory() == Some(directory))
    }

    /// Removes the pending actions of a file from the list. An action becomes durable if `kept`
    /// returns `true` for the number of earlier actions of the file.
    pub(crate) fn sync(&mut self, file: FileId, kept: impl Fn(usize) -> bool) {
        self.settle(|action| !action.is_name() && action.file() == file, kept);
    }

    /// Like [`sync`](Disk::sync), for the names of a directory.
    pub(crate) fn sync_dir(&mut self, directory: &Path, kept: impl Fn(usize) -> bool) {
        self.settle(|action| action.directory() == Some(directory), kept);
    }

    fn settle(&mut self, of: impl Fn(&Action) -> bool, kept: impl Fn(usize) -> bool) {
        let pending = std::mem::take(&mut self.pending);
        let (mut settled, mut left) = (0, Vec::with_capacity(pending.len()));
        for pending in pending {
            if !of(&pending.action) {
                left.push(pending);
                continue;
            }
            if kept(settled) {
                self.persist(&pending.action, Fate::Kept);
            }
            settled += 1;
        }
        self.pending = left;
        self.age += 1;
    }

    fn persist(&mut self, action: &Action, fate: Fate) {
        match action.directory() {
            _ if fate == Fate::Lost => {}
            Some(directory) => {
                let directory = self
                    .directories
                    .get_mut(directory)
                    .expect("it was resolved");
                apply_name(Arc::make_mut(&mut directory.durable), action, fate);
            }
            None => {
                let file = self.files.get_mut(&action.file()).expect("DISK-2");
                apply_content(Arc::make_mut(&mut file.durable), action, fate);
            }
        }
    }

    /// Returns the disk that a start of the machine finds after a stop, with the fate of each
    /// pending action.
    pub(crate) fn image(&self, fates: &[Fate]) -> Disk {
        let mut image = Disk {
            directories: self.directories.clone(),
            files: self.files.clone(),
            pending: Vec::new(),
            next: self.next,
            age: 0,
        };
        for (pending, fate) in self.pending.iter().zip(fates) {
            image.persist(&pending.action, fate.canonical(&pending.action));
        }
        for directory in image.directories.values_mut() {
            directory.shown = directory.durable.clone();
        }
        for file in image.files.values_mut() {
            file.shown = file.durable.clone();
        }
        image.forget(|_| false);
        image
    }

    /// Returns a key that tells the image of these fates from other images of disks that were once
    /// the same.
    pub(crate) fn key(&self, fates: &[Fate]) -> Vec<(u64, Fate)> {
        let fates = self.pending.iter().zip(fates);
        let fates = fates.map(|(pending, fate)| (pending.id, fate.canonical(&pending.action)));
        let kept = fates.filter(|(_, fate)| *fate != Fate::Lost);
        std::iter::once((self.age, Fate::Lost))
            .chain(kept)
            .collect()
    }

    /// Forgets the files to which nothing leads, DISK-2.
    pub(crate) fn forget(&mut self, is_open: impl Fn(FileId) -> bool) {
        let mut led: BTreeSet<FileId> = self.pending.iter().map(|p| p.action.file()).collect();
        for names in self.directories.values() {
            led.extend(names.shown.values());
            led.extend(names.durable.values());
        }
        self.files
            .retain(|file, _| led.contains(file) || is_open(*file));
    }

    /// Returns the bytes of room that shown and open files take.
    pub(crate) fn used_bytes(&self, is_open: impl Fn(FileId) -> bool) -> u64 {
        let names = self
            .directories
            .values()
            .flat_map(|names| names.shown.values());
        let named: BTreeSet<FileId> = names.copied().collect();
        let files = self.files.iter();
        let files = files.filter(|(file, _)| named.contains(file) || is_open(**file));
        files
            .map(|(_, file)| (1 + file.shown.pages()) * PAGE as u64)
            .sum()
    }

    /// Flips a bit of a file, for good.
    pub(crate) fn flip(&mut self, file: FileId, bit: u64) {
        let file = self.files.get_mut(&file).expect("DISK-2");
        Arc::make_mut(&mut file.shown).flip(bit);
        if bit / 8 < file.durable.len() {
            Arc::make_mut(&mut file.durable).flip(bit);
        }
        self.age += 1;
    }
}
