//! The limits of a table.

use super::random::random;
use crate::terms::note::NEVER;
use std::time::Duration;

/// The time after which the objects of a table expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// The time since the object was written.
    Written(Duration),
    /// The time since the object was written, less a random part of it that is up to this many
    /// percent, 99 at most: so objects that are written together do not expire together.
    Spread(Duration, u8),
    /// The time since the object was written or read by its key.
    Idle(Duration),
    /// Infinite: objects expire only if they are written with a time of their own.
    Never,
}

/// The time that is left to the objects of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeLeft {
    /// A time, in whole milliseconds.
    Time(Duration),
    /// No end.
    Forever,
}

/// Returns a duration in milliseconds, rounded up, from 1 to [`NEVER`].
pub(crate) fn milliseconds(time: Duration) -> u64 {
    let ms = time.as_nanos().div_ceil(1_000_000);
    u64::try_from(ms).unwrap_or(NEVER).clamp(1, NEVER)
}

/// The limits of a table: see [`Table::limited`](crate::terms::Table::limited).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The time after which objects expire.
    pub ttl: Ttl,
    /// The most objects. The objects of a key of a bag go together.
    pub objects: Option<usize>,
    /// The most bytes of memory, as [`Table::about_bytes`](crate::terms::Table::about_bytes)
    /// returns them.
    pub bytes: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            ttl: Ttl::Never,
            objects: None,
            bytes: None,
        }
    }
}

impl Limits {
    pub(super) fn has_bound(self) -> bool {
        self.objects.is_some() || self.bytes.is_some()
    }
}

impl Ttl {
    pub(super) fn milliseconds(self) -> u64 {
        match self {
            Ttl::Written(time) | Ttl::Spread(time, _) | Ttl::Idle(time) => milliseconds(time),
            Ttl::Never => NEVER,
        }
    }

    /// Returns the time of an object that is written now, in milliseconds.
    pub(super) fn of_object(self) -> u64 {
        let most = self.milliseconds();
        match self {
            Ttl::Spread(_, percent) => {
                let part = most * u64::from(percent.min(99)) / 100;
                most - random() % (part + 1)
            }
            _ => most,
        }
    }
}
