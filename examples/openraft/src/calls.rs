//! Calls of the store that do not block the threads of tokio, and the encoding of values.

use ats_disk::{Batch, DiskStore, Durability, Error};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Makes a call that may block, on a thread that may.
pub(crate) async fn blocking<T: Send + 'static, E: Send + 'static>(
    call: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match tokio::task::spawn_blocking(call).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and with it the caller.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Makes the changes of a batch. They are on disk when later ones are that were synced.
pub(crate) async fn write(store: &DiskStore, batch: Batch) -> Result<(), Error> {
    match store.try_write(&batch, Durability::System) {
        Err(Error::WouldBlock) => {
            let store = store.clone();
            blocking(move || store.write_with(&batch, Durability::System)).await
        }
        written => written,
    }
}

/// Makes the changes of a batch, which are on disk when this returns.
pub(crate) async fn write_durably(store: &DiskStore, batch: Batch) -> Result<(), Error> {
    let store = store.clone();
    blocking(move || store.write_with(&batch, Durability::Always)).await
}

/// Returns a batch that gives one key a value.
pub(crate) fn put(key: &[u8], value: &impl Serialize) -> Result<Batch, Error> {
    let mut batch = Batch::new();
    batch.put(key, &to_bytes(value))?;
    Ok(batch)
}

/// Returns the value of a key.
pub(crate) fn get<T: DeserializeOwned>(store: &DiskStore, key: &[u8]) -> Result<Option<T>, Error> {
    store.get(key)?.map(|bytes| from_bytes(&bytes)).transpose()
}

/// Returns a value as bytes.
pub(crate) fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(value).expect("values of this storage have a form in bytes")
}

/// Decodes a value that [`to_bytes`] has made.
pub(crate) fn from_bytes<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    postcard::from_bytes(bytes).map_err(|error| Error::Corrupt(format!("a value: {error}")))
}
