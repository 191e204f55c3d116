//! Values that are times, and identifiers of other crates.

use super::{AsValue, Value, ValueBytes};
#[cfg(feature = "chrono")]
use chrono::{DateTime, Utc};
use std::time::{Duration, SystemTime};
#[cfg(feature = "uuid")]
use uuid::Uuid;

/// Encodes values as the bytes of another value, which each of them has.
macro_rules! by {
    ($($(#[$condition:meta])* $type:ty, $other:ty, $to:expr, $from:expr;)*) => {$(
        $(#[$condition])*
        impl AsValue<$type> for $type {
            fn encode(&self, bytes: &mut ValueBytes) {
                let to: fn($type) -> $other = $to;
                AsValue::<$other>::encode(&to(*self), bytes);
            }

            fn is_proven(&self) -> bool {
                true
            }
        }

        $(#[$condition])*
        impl Value for $type {
            const LEN: Option<usize> = <$other>::LEN;

            fn decode(bytes: &[u8]) -> Option<Self> {
                let from: fn($other) -> Option<$type> = $from;
                from(<$other>::decode(bytes)?)
            }
        }
    )*};
}

by! {
    Duration, (u64, u32), |it| (it.as_secs(), it.subsec_nanos()),
        |(seconds, nanos)| (nanos < SECOND).then(|| Duration::new(seconds, nanos));
    SystemTime, (i64, u32), since_epoch, |(seconds, nanos)| {
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let begun = if seconds < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(whole)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(whole)
        };
        begun?.checked_add(Duration::from_nanos(nanos.into())).filter(|_| nanos < SECOND)
    };
    #[cfg(feature = "uuid")]
    Uuid, [u8; 16], |it| *it.as_bytes(), |bytes| Some(Uuid::from_bytes(bytes));
    #[cfg(feature = "chrono")]
    DateTime<Utc>, (i64, u32), |it| (it.timestamp(), it.timestamp_subsec_nanos()),
        |(seconds, nanos)| DateTime::from_timestamp(seconds, nanos);
}

/// Nanoseconds of a second.
const SECOND: u32 = 1_000_000_000;

/// Returns the whole seconds since the beginning of 1970, rounded down, and the nanoseconds.
fn since_epoch(time: SystemTime) -> (i64, u32) {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => (after.as_secs() as i64, after.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            let (seconds, nanos) = (before.as_secs() as i64, before.subsec_nanos());
            match nanos {
                0 => (-seconds, 0),
                _ => (-seconds - 1, SECOND - nanos),
            }
        }
    }
}
