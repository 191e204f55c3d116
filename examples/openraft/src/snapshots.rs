//! Files of snapshots.
//!
//! A file has records, each a key and a value behind their lengths, and an end, by which a file
//! that was cut is noticed. It is as long as the data, and never in memory as a whole.
//!
//! The store names the current file. A file is put in its place when it is complete and on disk,
//! and before the store names it; others are removed.

use crate::{LogId, Node, NodeId, calls, keys};
use ats_disk::{Batch, DiskStore, Error, Snapshot};
use ats_store::{Direction, SystemError};
use openraft::SnapshotMeta;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The description of a snapshot.
pub(crate) type Meta = SnapshotMeta<NodeId, Node>;

/// The place of the length of a key at the end of a file. No key is as long.
const END: u32 = u32::MAX;

/// The snapshots of a node, of which there is one at most, besides those that are being made.
#[derive(Clone)]
pub(crate) struct Snapshots {
    store: DiskStore,
    directory: PathBuf,
    current: Arc<Mutex<Option<Meta>>>,
}

impl Snapshots {
    /// Opens the snapshots in a directory, of which all but the one that the store names are
    /// removed.
    pub(crate) fn open(store: DiskStore, directory: PathBuf) -> Result<Self, Error> {
        let current: Option<Meta> = calls::get(&store, keys::SNAPSHOT)?;
        fs::create_dir_all(&directory).map_err(|error| io_error("making", &directory, &error))?;
        let snapshots = Snapshots {
            store,
            directory,
            current: Arc::new(Mutex::new(current.clone())),
        };
        snapshots.remove_others(current.as_ref())?;
        Ok(snapshots)
    }

    /// Returns the current snapshot, and its file.
    pub(crate) fn current(&self) -> Result<Option<(Meta, File)>, Error> {
        let current = self.current.lock().expect("nothing panics with this lock");
        let Some(meta) = current.as_ref() else {
            return Ok(None);
        };
        let path = self.path(meta);
        let file = File::open(&path).map_err(|error| io_error("opening", &path, &error))?;
        Ok(Some((meta.clone(), file)))
    }

    /// Makes a new file, which has no name, for a snapshot that another node sends.
    pub(crate) fn receive(&self) -> Result<File, Error> {
        let path = self.directory.join("received");
        let file = File::options();
        let file = { file }
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path);
        let unnamed = file.and_then(|file| fs::remove_file(&path).map(|()| file));
        unnamed.map_err(|error| io_error("making", &path, &error))
    }

    /// Makes a moment of the store the current snapshot, unless there is a later one. Returns the
    /// current one.
    pub(crate) fn build(&self, moment: &Snapshot, meta: Meta) -> Result<(Meta, File), Error> {
        let path = self.directory.join("built");
        let mut writer = Writer::create(&path)?;
        let mut scan = moment.scan_lending(keys::ALL_DATA, Direction::Up)?;
        while let Some((key, value)) = scan.next()? {
            writer.add(key, value)?;
        }
        writer.finish()?;
        self.publish(meta, &path, |meta| {
            self.store.put(keys::SNAPSHOT, &calls::to_bytes(meta))
        })?;
        self.current()
            .map(|current| current.expect("there is one since the last line"))
    }

    /// Makes a file that was received the current snapshot. Its records are added to a batch, which
    /// has the store name the snapshot; then `write` writes it.
    pub(crate) fn install(
        &self,
        meta: Meta,
        received: File,
        batch: &mut Batch,
        write: impl FnOnce(&Batch) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let path = self.directory.join("installed");
        let mut writer = Writer::create(&path)?;
        let mut reader = Reader::new(received)?;
        while let Some((key, value)) = reader.next()? {
            writer.add(&key, &value)?;
            batch.put(&key, &value)?;
        }
        writer.finish()?;
        self.publish(meta, &path, |_| write(batch))
    }

    /// Makes a file that is on disk the current snapshot, unless there is a later one: a snapshot
    /// may be received while one is built.
    fn publish(
        &self,
        meta: Meta,
        path: &Path,
        write: impl FnOnce(&Meta) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut current = self.current.lock().expect("nothing panics with this lock");
        if current
            .as_ref()
            .is_some_and(|current| current.last_log_id > meta.last_log_id)
        {
            return fs::remove_file(path).map_err(|error| io_error("removing", path, &error));
        }
        let published = fs::rename(path, self.path(&meta));
        let published = published.and_then(|()| File::open(&self.directory)?.sync_all());
        published.map_err(|error| io_error("renaming", path, &error))?;
        write(&meta)?;
        *current = Some(meta);
        self.remove_others(current.as_ref())
    }

    /// Removes all files but that of a snapshot, and those that are being made.
    fn remove_others(&self, current: Option<&Meta>) -> Result<(), Error> {
        let kept = current.map(|meta| self.path(meta));
        let removed = fs::read_dir(&self.directory).and_then(|mut files| {
            files.try_for_each(|file| {
                let path = file?.path();
                if path.extension().is_some() && Some(&path) != kept.as_ref() {
                    fs::remove_file(path)
                } else {
                    Ok(())
                }
            })
        });
        removed.map_err(|error| io_error("clearing", &self.directory, &error))
    }

    /// Returns the path of a snapshot. Its contents depend on the last entry alone.
    fn path(&self, meta: &Meta) -> PathBuf {
        self.directory
            .join(format!("{}.snapshot", name(meta.last_log_id.as_ref())))
    }
}

/// Returns the name of the snapshot up to an entry. A committed entry is known by its index.
pub(crate) fn name(last: Option<&LogId>) -> String {
    last.map_or_else(|| "none".into(), |last| last.index.to_string())
}

/// Writes a file.
struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Writer {
    fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|error| io_error("making", path, &error))?;
        Ok(Writer {
            path: path.to_owned(),
            file: BufWriter::new(file),
        })
    }

    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let lens = [key.len(), value.len()].map(|len| {
            let len = u32::try_from(len).expect("keys and values have less than 2 GiB");
            len.to_le_bytes()
        });
        let parts = [&lens[0][..], &lens[1], key, value];
        let written = parts.iter().try_for_each(|part| self.file.write_all(part));
        written.map_err(|error| io_error("writing", &self.path, &error))
    }

    /// Ends the file, which is on disk then.
    fn finish(mut self) -> Result<(), Error> {
        let written = self
            .file
            .write_all(&END.to_le_bytes())
            .and_then(|()| self.file.flush());
        let written = written.and_then(|()| self.file.get_ref().sync_all());
        written.map_err(|error| io_error("writing", &self.path, &error))
    }
}

/// A key and its value.
type Pair = (Vec<u8>, Vec<u8>);

/// Reads a file.
struct Reader(BufReader<File>);

impl Reader {
    fn new(mut file: File) -> Result<Self, Error> {
        let begin = file.rewind();
        begin.map_err(|error| io_error("reading", Path::new("a snapshot"), &error))?;
        Ok(Reader(BufReader::new(file)))
    }

    fn next(&mut self) -> Result<Option<Pair>, Error> {
        let record = self.record();
        record.map_err(|error| io_error("reading", Path::new("a snapshot"), &error))
    }

    fn record(&mut self) -> io::Result<Option<Pair>> {
        let key = self.len()?;
        if key == END {
            return Ok(None);
        }
        let value = self.len()?;
        Ok(Some((self.bytes(key)?, self.bytes(value)?)))
    }

    fn len(&mut self) -> io::Result<u32> {
        let mut len = [0; 4];
        self.0.read_exact(&mut len)?;
        Ok(u32::from_le_bytes(len))
    }

    /// Reads the next bytes, for which room is made as they come: their number is that of another
    /// node.
    fn bytes(&mut self, len: u32) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&mut self.0).take(len.into()).read_to_end(&mut bytes)?;
        if bytes.len() == len as usize {
            Ok(bytes)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

fn io_error(doing: &str, path: &Path, error: &io::Error) -> Error {
    Error::Io {
        error: SystemError::of(error),
        what: format!("{doing} {}: {error}", path.display()),
    }
}
