//! Counting the units of ownership that the words of an image stand for (IMAGE-5).
//!
//! All of this takes the words of one object as well as those of an object list, since a scan
//! passes from one object of a list to the next.

use super::host::{Host, HostBox, HostTag};
use super::layout::{boxes, content_words, header_tag};
use std::collections::BTreeSet;

/// The box at `at`, if it owns a resource.
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
/// As for [`Object::from_words`](super::Object::from_words).
pub unsafe fn for_each_owned<'a, H: Host>(words: &'a [u64], mut f: impl FnMut(HostBox<'a, H>)) {
    boxes(words)
        .filter_map(|at| owned_box(words, at))
        .for_each(&mut f);
}

/// Adds a unit of ownership to every resource of an image or object list, on behalf of a copy of
/// its words. Returns whether there was any. O(number of boxes).
///
/// # Safety
/// As for [`Object::from_words`](super::Object::from_words).
pub unsafe fn retain_all<H: Host>(words: &[u64]) -> bool {
    let mut owns = false;
    // SAFETY: what is asked of the words is asked of our caller.
    unsafe {
        for_each_owned::<H>(words, |host_box| {
            H::retain(host_box);
            owns = true;
        });
    }
    owns
}

/// About how many bytes the resources of an image or object list keep from being used. O(number of
/// boxes).
///
/// # Safety
/// As for [`Object::from_words`](super::Object::from_words).
pub unsafe fn kept_bytes<H: Host>(words: &[u64]) -> usize {
    let mut sum = 0usize;
    // SAFETY: what is asked of the words is asked of our caller.
    unsafe {
        for_each_owned::<H>(words, |host_box| {
            sum = sum.saturating_add(H::kept_bytes(host_box));
        });
    }
    sum
}

/// The number of resources up to which [`kept_bytes_beyond`] tells shared ones apart.
const MOST_TOLD_APART: usize = 1000;

/// Returns what [`kept_bytes`] does, of each resource once, and without those that `other` keeps as
/// well: words of the same kind. Beyond a thousand resources, those that are shared count too.
/// O(number of boxes).
///
/// # Safety
/// As for [`Object::from_words`](super::Object::from_words), for both.
pub unsafe fn kept_bytes_beyond<H: Host>(words: &[u64], other: &[u64]) -> usize {
    let mut known = BTreeSet::new();
    let mut sum = 0usize;
    let mut is_new =
        |host_box| known.len() >= MOST_TOLD_APART || known.insert(H::resource(host_box));
    // SAFETY: what is asked of the words is asked of our caller.
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

/// Gives back the units of ownership of an image or object list. O(number of boxes).
///
/// # Safety
/// As for [`Object::from_words`](super::Object::from_words). In addition, the caller holds these
/// units (IMAGE-5), and no code reads these words after the call.
pub unsafe fn release_all<H: Host>(words: &[u64]) {
    // SAFETY: what is asked of the words is asked of our caller, and a scan meets each box once.
    unsafe { for_each_owned::<H>(words, |host_box| H::release(host_box)) };
}
