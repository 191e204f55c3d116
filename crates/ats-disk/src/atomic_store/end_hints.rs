//! The approximate first and last record of a store.
//!
//! A queue takes its records from one end. The deletes stay there until runs are compacted, and a
//! search for the next record walks over all of them: without help, n of them cost O(n²). So it is
//! remembered up to which key nothing is left.
//!
//! **END_HINTS-1** No record that readers can see lies beyond an end, nor one that is being
//! written: a writer moves the ends before it writes a record. **END_HINTS-2** An end is moved
//! inwards only to a key that a walk has found, and not past a key that was being written at any
//! time since the walk began, which the walk may not have seen.
//!
//! The record at an end can be changed as such: a thread that has locked its key
//! [claims](EndHints::claim) the end. **END_HINTS-3** While an end is claimed at a key, no record
//! is written beyond that key: the claim waits for those that are being written, and writers that
//! come later wait for its end. So if the key is found to be the outermost under the claim, it
//! stays that until the change is visible. A writer that waits has locked its keys, and the
//! claiming thread locks none any more; so they cannot wait in a circle.
//!
//! It costs a load for each write until an end is asked for the first time; from then on, a lock
//! that is held for some comparisons of keys.

use crate::blocking;
use crate::error::Error;
use ats_store::{End, KeyRange, MayBlock, successor};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cmp::Ordering as Order;
use std::sync::atomic::{AtomicBool, Ordering};

/// See the [module](self).
#[derive(Default)]
pub(crate) struct EndHints {
    /// `true` if writers register the keys that they write.
    is_active: AtomicBool,
    /// `true` if all writers under way tell.
    is_ready: AtomicBool,
    known: Mutex<Known>,
    /// Notified when a claim ends, and when registered keys are written.
    changed: Condvar,
}

#[derive(Default)]
struct Known {
    /// The outermost key of each end at which a record may be; `None` if nothing is known.
    ends: [Option<Vec<u8>>; 2],
    /// The outermost key of each end that was being written since a walk began to look for that
    /// end.
    watched: [Option<Watched>; 2],
    /// The keys that are being written.
    written: Vec<Vec<u8>>,
    /// The claimed ends, each at a key. Few, as each has locked its key.
    claimed: Vec<(End, Vec<u8>)>,
}

impl Known {
    /// Returns `true` if a claim keeps a key from being written.
    fn keeps(&self, key: &[u8]) -> bool {
        let mut claims = self.claimed.iter();
        claims.any(|(end, at)| is_beyond(*end, key, at))
    }
}

#[derive(Default)]
struct Watched(Option<Vec<u8>>);

/// Returns the key that is farther out.
fn outer<'k>(end: End, one: &'k [u8], other: &'k [u8]) -> &'k [u8] {
    let order = match end {
        End::First => one.cmp(other),
        End::Last => other.cmp(one),
    };
    if order == Order::Less { one } else { other }
}

/// Returns `true` if a key is farther out than another.
fn is_beyond(end: End, key: &[u8], other: &[u8]) -> bool {
    key != other && outer(end, key, other) == key
}

fn index(end: End) -> usize {
    match end {
        End::First => 0,
        End::Last => 1,
    }
}

/// Moves a key outwards, if this one is farther out.
fn move_out(end: End, moved: &mut Vec<u8>, key: &[u8]) {
    if is_beyond(end, key, moved) {
        moved.clear();
        moved.extend_from_slice(key);
    }
}

/// Registration of keys that are being written, until it is dropped.
pub(crate) struct Written<'e> {
    hints: &'e EndHints,
    keys: Vec<Vec<u8>>,
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        if self.keys.is_empty() {
            return;
        }
        let mut known = self.hints.known.lock();
        for key in &self.keys {
            if let Some(index) = known.written.iter().position(|written| written == key) {
                known.written.swap_remove(index);
            }
        }
        if !known.claimed.is_empty() {
            self.hints.changed.notify_all();
        }
    }
}

/// Claim of an end: until it is dropped, no record is written beyond its key.
pub(crate) struct Claim<'e> {
    hints: &'e EndHints,
    end: End,
    key: Vec<u8>,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut known = self.hints.known.lock();
        let mut claims = known.claimed.iter();
        if let Some(index) = claims.position(|(end, key)| (end, key) == (&self.end, &self.key)) {
            known.claimed.swap_remove(index);
        }
        self.hints.changed.notify_all();
    }
}

/// A walk to an end, in the range in which the record there is.
pub(crate) struct Walk<'e> {
    hints: &'e EndHints,
    end: End,
    /// The bound at which the walk begins.
    from: Option<Vec<u8>>,
    /// `true` if it may move the end.
    watches: bool,
}

impl EndHints {
    /// Says that records with these keys are written from now on. The caller has locked the keys.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], without [`MayBlock`], if an end is claimed.
    #[inline]
    pub(crate) fn write<'k>(
        &self,
        may_block: Option<MayBlock>,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
    ) -> Result<Written<'_>, Error> {
        let mut written = Written {
            hints: self,
            keys: Vec::new(),
        };
        // A search for an end locks all keys after it has set this: so all that are locked later
        // see it.
        if self.is_active.load(Ordering::Relaxed) {
            self.tell(may_block, keys, &mut written)?;
        }
        Ok(written)
    }

    #[cold]
    fn tell<'k>(
        &self,
        may_block: Option<MayBlock>,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        written: &mut Written<'_>,
    ) -> Result<(), Error> {
        let mut known =
            self.wait_while(may_block, |known| keys.clone().any(|key| known.keeps(key)))?;
        let Known {
            ends,
            watched,
            written: all,
            ..
        } = &mut *known;
        for key in keys {
            written.keys.push(key.to_vec());
            all.push(key.to_vec());
            for end in [End::First, End::Last] {
                if let Some(at) = &mut ends[index(end)] {
                    move_out(end, at, key);
                }
                if let Some(Watched(outermost)) = &mut watched[index(end)] {
                    match outermost {
                        Some(outermost) => move_out(end, outermost, key),
                        None => *outermost = Some(key.to_vec()),
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits as long as something is so.
    fn wait_while(
        &self,
        may_block: Option<MayBlock>,
        is_so: impl Fn(&Known) -> bool,
    ) -> Result<MutexGuard<'_, Known>, Error> {
        let mut known = self.known.lock();
        while is_so(&known) {
            blocking::wait(may_block, &self.changed, &mut known)?;
        }
        Ok(known)
    }

    /// Claims an end at a key, which the caller has locked: until the claim is dropped, no record
    /// is written beyond it. The caller has [walked](EndHints::walk) to the end before.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], without [`MayBlock`], if a record is being written there.
    pub(crate) fn claim(
        &self,
        may_block: Option<MayBlock>,
        end: End,
        key: &[u8],
    ) -> Result<Claim<'_>, Error> {
        if !self.is_ready.load(Ordering::Acquire) {
            // Some writers do not register their keys yet, so the walk could not wait for them.
            return Err(Error::WouldBlock);
        }
        self.known.lock().claimed.push((end, key.to_vec()));
        let claim = Claim {
            hints: self,
            end,
            key: key.to_vec(),
        };
        let is_beyond = |written: &Vec<u8>| is_beyond(end, written, key);
        drop(self.wait_while(may_block, |known| known.written.iter().any(is_beyond))?);
        Ok(claim)
    }

    /// Begins a walk to the record at an end. `lock_all` waits for all writes that were under way
    /// when it was called; whether it could.
    pub(crate) fn walk(&self, end: End, lock_all: impl FnOnce() -> bool) -> Walk<'_> {
        if !self.is_ready.load(Ordering::Acquire) {
            self.is_active.store(true, Ordering::Relaxed);
            if lock_all() {
                self.is_ready.store(true, Ordering::Release);
            }
        }
        let mut walk = Walk {
            hints: self,
            end,
            from: None,
            watches: false,
        };
        if self.is_ready.load(Ordering::Acquire) {
            let mut known = self.known.lock();
            let number = index(end);
            walk.from.clone_from(&known.ends[number]);
            if known.watched[number].is_none() {
                let keys = known.written.iter().map(Vec::as_slice);
                let outermost = keys.reduce(|one, other| outer(end, one, other));
                let outermost = outermost.map(<[u8]>::to_vec);
                known.watched[number] = Some(Watched(outermost));
                walk.watches = true;
            }
        }
        // A key that a write adds after this is seen by the walk, or has moved the end, or is not
        // done yet.
        if let (End::Last, Some(last)) = (end, &mut walk.from) {
            *last = successor(last);
        }
        walk
    }
}

impl Walk<'_> {
    /// Returns the range in which the record is.
    pub(crate) fn key_range(&self) -> KeyRange<'_> {
        let from = self.from.as_deref();
        match self.end {
            End::First => KeyRange {
                low: from,
                high: None,
            },
            End::Last => KeyRange {
                low: None,
                high: from,
            },
        }
    }

    /// Says at which key the walk has found a record.
    pub(crate) fn note(&mut self, key: &[u8]) {
        if !std::mem::take(&mut self.watches) {
            return;
        }
        let mut known = self.hints.known.lock();
        let number = index(self.end);
        if let Some(Watched(outermost)) = known.watched[number].take() {
            let outermost = outermost.as_deref();
            let at = outermost.map_or(key, |outermost| outer(self.end, outermost, key));
            known.ends[number] = Some(at.to_vec());
        }
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        if self.watches {
            self.hints.known.lock().watched[index(self.end)] = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::BLOCK;
    use std::thread;
    use std::time::Duration;

    fn keys<'k>(keys: &'k [&'k str]) -> impl Iterator<Item = &'k [u8]> + Clone {
        keys.iter().map(|key| key.as_bytes())
    }

    /// Returns the bound at which a walk would begin now.
    fn from(hints: &EndHints, end: End) -> Option<String> {
        let walk = hints.walk(end, || true);
        let from = walk.from.clone();
        from.map(|from| String::from_utf8(from).expect("text"))
    }

    #[test]
    fn an_end_moves_to_found_keys_and_out_again() {
        let hints = EndHints::default();
        assert_eq!(from(&hints, End::First), None);
        hints.walk(End::First, || true).note(b"k");
        hints.walk(End::Last, || true).note(b"k");
        assert_eq!(from(&hints, End::First).as_deref(), Some("k"));
        assert_eq!(from(&hints, End::Last).as_deref(), Some("k\0"));
        drop(hints.write(BLOCK, keys(&["m", "i"])).unwrap());
        assert_eq!(from(&hints, End::First).as_deref(), Some("i"));
        assert_eq!(from(&hints, End::Last).as_deref(), Some("m\0"));
    }

    #[test]
    fn ends_do_not_pass_keys_a_walk_may_have_missed() {
        let hints = EndHints::default();
        drop(hints.walk(End::First, || true));
        // The key is being written when the walk begins,
        let written = hints.write(BLOCK, keys(&["c"])).unwrap();
        let mut walk = hints.walk(End::First, || true);
        drop(written);
        walk.note(b"k");
        assert_eq!(from(&hints, End::First).as_deref(), Some("c"));
        // or is written meanwhile.
        let mut walk = hints.walk(End::First, || true);
        drop(hints.write(BLOCK, keys(&["x", "e", "g"])).unwrap());
        walk.note(b"k");
        assert_eq!(from(&hints, End::First).as_deref(), Some("e"));
        // One of two walks moves the end.
        let mut one = hints.walk(End::First, || true);
        let mut other = hints.walk(End::First, || true);
        other.note(b"z");
        assert_eq!(from(&hints, End::First).as_deref(), Some("e"));
        one.note(b"f");
        assert_eq!(from(&hints, End::First).as_deref(), Some("f"));
    }

    #[test]
    fn nothing_is_written_beyond_a_claimed_key() {
        let hints = EndHints::default();
        assert!(hints.claim(BLOCK, End::First, b"k").is_err());
        drop(hints.walk(End::First, || true));
        let written = hints.write(BLOCK, keys(&["c"])).unwrap();
        {
            assert!(hints.claim(None, End::First, b"k").is_err());
            let _claimed = hints.claim(None, End::First, b"b").unwrap();
            let _other = hints.claim(None, End::Last, b"m").unwrap();
            assert!(hints.write(None, keys(&["a"])).is_err());
            assert!(hints.write(None, keys(&["c", "n"])).is_err());
            drop(hints.write(None, keys(&["b", "d", "m"])).unwrap());
        }
        thread::scope(|scope| {
            let claiming = scope.spawn(|| hints.claim(BLOCK, End::First, b"k").unwrap());
            thread::sleep(Duration::from_millis(2));
            drop(written);
            let claim = claiming.join().unwrap();
            let writing = scope.spawn(|| drop(hints.write(BLOCK, keys(&["a"])).unwrap()));
            thread::sleep(Duration::from_millis(2));
            assert!(!writing.is_finished());
            drop(claim);
        });
        assert!(hints.known.lock().claimed.is_empty());
        assert!(hints.known.lock().written.is_empty());
    }

    #[test]
    fn nothing_is_known_before_all_writers_tell() {
        let hints = EndHints::default();
        hints.walk(End::First, || false).note(b"k");
        assert_eq!(from(&hints, End::First), None);
        hints.walk(End::First, || true).note(b"k");
        assert_eq!(from(&hints, End::First).as_deref(), Some("k"));
    }
}
