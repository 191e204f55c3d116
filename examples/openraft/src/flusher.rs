//! The thread that syncs entries.

use crate::TypeConfig;
use ats_disk::DiskStore;
use openraft::storage::LogFlushed;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

/// Calls callbacks when all earlier writes are on disk. Those that wait at the same time share one
/// sync.
pub(crate) struct Flusher {
    /// `None` when it ends.
    waiting: Option<Sender<LogFlushed<TypeConfig>>>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// Starts the thread.
    pub(crate) fn start(store: DiskStore) -> io::Result<Self> {
        let (waiting, callbacks) = mpsc::channel();
        let thread = thread::Builder::new().name("ats-openraft-sync".into());
        let thread = thread.spawn(move || flush(&store, &callbacks))?;
        Ok(Flusher {
            waiting: Some(waiting),
            thread: Some(thread),
        })
    }

    /// Calls the callback when all that was written before this call is on disk.
    pub(crate) fn flush(&self, callback: LogFlushed<TypeConfig>) {
        let waiting = self.waiting.as_ref().expect("the flusher is not dropped");
        // The thread ends after its sender is dropped, or by a panic in a callback; the error names
        // neither.
        if let Err(mpsc::SendError(callback)) = waiting.send(callback) {
            callback.log_io_completed(Err(io::Error::other("the thread that syncs has ended")));
        }
    }
}

impl Drop for Flusher {
    /// Waits for the last sync, so that nobody has the store open after this.
    fn drop(&mut self) {
        drop(self.waiting.take());
        if let Some(thread) = self.thread.take() {
            // A panic was printed.
            let _ = thread.join();
        }
    }
}

fn flush(store: &DiskStore, callbacks: &Receiver<LogFlushed<TypeConfig>>) {
    while let Ok(first) = callbacks.recv() {
        // Callbacks are taken before the sync, which then covers all of them.
        let taken: Vec<_> = [first].into_iter().chain(callbacks.try_iter()).collect();
        let synced = store.sync();
        for callback in taken {
            callback.log_io_completed(synced.clone().map_err(io::Error::other));
        }
    }
}
