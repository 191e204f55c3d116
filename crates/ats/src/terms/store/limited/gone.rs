//! Objects that are gone because of a limit, and their collectors.

use crate::terms::lookup_result::LookupResult;
use ats_term::image::Host;

/// The limit because of which objects are gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gone {
    /// The time of the objects.
    Expired,
    /// The bound of the number of objects.
    Objects,
    /// The bound of the bytes of memory.
    Bytes,
}

/// A collector of the objects that are gone from a table: see
/// [`Table::telling`](crate::terms::Table::telling).
pub trait OnGone<H: Host>: Send + Sync {
    /// Notes the objects of a key, which no reader finds any more. The store may call this under
    /// the lock of the key, in any thread, so it must be short, and must not call the table.
    ///
    /// The store calls this once for the objects of a key that an operation of the table finds
    /// expired or that the background removes, and never for those that a program deletes or
    /// replaces in time.
    fn note(&self, why: Gone, objects: LookupResult<'_, H>);

    /// Tells of the objects that were noted. A background thread calls this, about ten times a
    /// second while the table has objects that may go.
    fn tell(&self);
}
