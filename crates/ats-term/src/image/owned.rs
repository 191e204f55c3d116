//! Units of ownership that the words of an image hold (IMAGE-5).
//!
//! The functions accept the words of an object as well as those of an object list, because a scan
//! passes from one object of a list to the next.

use super::host::{Host, HostBox, HostTag};
use super::layout::{boxes, content_words, header_tag};
use std::collections::BTreeSet;

/// Returns the box at `at`, if it owns a resource.
pub(super) fn owned_box<H: Host>(words: &[u64], at: usize) -> Option<HostBox<'_, H>> {
    let header = words[at];
    let tag = HostTag::from_byte(header_tag(header)).filter(|tag| tag.owns())?;
    Some(HostBox::new(
        tag,
        &words[at + 1..at + 1 + content_words(header)],
    ))
}

/// Visits every host box of an image, or of an object list, that owns a resource.
/// O(number of boxes), no allocation, no recursion.
///
/// # Safety
/// Same as for [`Object::from_words`](super::Object::from_words).
pub unsafe fn for_each_owned<'a, H: Host>(words: &'a [u64], mut f: impl FnMut(HostBox<'a, H>)) {
    boxes(words)
        .filter_map(|at| owned_box(words, at))
        .for_each(&mut f);
}

/// Adds a unit of ownership to every resource of an image or object list, for a copy of its words.
/// Returns `true` if there was any. O(number of boxes).
///
/// # Safety
/// Same as for [`Object::from_words`](super::Object::from_words).
pub unsafe fn retain_all<H: Host>(words: &[u64]) -> bool {
    let mut owns = false;
    // SAFETY: our caller gives the promise that `for_each_owned` demands.
    unsafe {
        for_each_owned::<H>(words, |host_box| {
            H::retain(host_box);
            owns = true;
        });
    }
    owns
}

/// Returns the approximate number of bytes that the resources of an image or object list keep
/// allocated. O(number of boxes).
///
/// # Safety
/// Same as for [`Object::from_words`](super::Object::from_words).
pub unsafe fn kept_bytes<H: Host>(words: &[u64]) -> usize {
    let mut sum = 0usize;
    // SAFETY: our caller gives the promise that `for_each_owned` demands.
    unsafe {
        for_each_owned::<H>(words, |host_box| {
            sum = sum.saturating_add(H::kept_bytes(host_box));
        });
    }
    sum
}

/// Number of resources up to which [`kept_bytes_beyond`] recognizes shared ones.
const MOST_TOLD_APART: usize = 1000;

/// Returns the bytes like [`kept_bytes`], but counts each resource once, and none that `other`,
/// words of the same kind, keeps as well. Beyond a thousand resources, shared ones are counted,
/// too. O(number of boxes).
///
/// # Safety
/// Same as for [`Object::from_words`](super::Object::from_words), for both.
pub unsafe fn kept_bytes_beyond<H: Host>(words: &[u64], other: &[u64]) -> usize {
    let mut known = BTreeSet::new();
    let mut sum = 0usize;
    let mut is_new =
        |host_box| known.len() >= MOST_TOLD_APART || known.insert(H::resource(host_box));
    // SAFETY: our caller gives the promise that `for_each_owned` demands.
    unsafe {
        for_each_owned::<H>(other, |host_box| {
            is_new(host_box);
        });
        for_each_owned::<H>(words, |host_box| {
            if is_new(host_box) {
                sum = sum.saturating_add(H::kept_bytes(host_box));
            }
        });
    }
    sum
}

/// Gives up the units of ownership of an image or object list. O(number of boxes).
///
/// # Safety
/// Same as for [`Object::from_words`](super::Object::from_words). In addition, the caller must hold
/// these units (IMAGE-5), and no code may read these words after the call.
pub unsafe fn release_all<H: Host>(words: &[u64]) {
    // SAFETY: our caller gives the promises that `for_each_owned` and `release` demand, and a scan
    // meets each box once.
    unsafe { for_each_owned::<H>(words, |host_box| H::release(host_box)) };
}
