//! The content of a file: pages, which copies of it share until one is changed.

use std::sync::Arc;

/// Bytes of a page, and the unit in which room on the disk is counted.
pub(crate) const PAGE: usize = 1024;

#[derive(Clone)]
enum Page {
    /// Reads as zeros, and takes no room.
    Hole,
    /// Reads as zeros, and has room.
    Reserved,
    Data(Arc<[u8; PAGE]>),
}

/// The content of a file.
#[derive(Clone, Default)]
pub(crate) struct Content {
    len: u64,
    pages: Vec<Page>,
}

impl Content {
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Pages that take room.
    pub(crate) fn pages(&self) -> u64 {
        let taken = self.pages.iter().filter(|page| !matches!(page, Page::Hole));
        taken.count() as u64
    }

    /// Pages that would take room in addition if these bytes were written.
    pub(crate) fn missing(&self, offset: u64, bytes: u64) -> u64 {
        if bytes == 0 {
            return 0;
        }
        let (first, end) = (offset / PAGE as u64, (offset + bytes).div_ceil(PAGE as u64));
        let hole = |page: &u64| matches!(self.pages.get(*page as usize), None | Some(Page::Hole));
        (first..end).filter(hole).count() as u64
    }

    pub(crate) fn read(&self, buffer: &mut [u8], offset: u64) -> usize {
        let count = self.len.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut done = 0;
        while done < count {
            let at = offset as usize + done;
            let part = (PAGE - at % PAGE).min(count - done);
            match &self.pages[at / PAGE] {
                Page::Data(page) => {
                    buffer[done..done + part].copy_from_slice(&page[at % PAGE..][..part]);
                }
                Page::Hole | Page::Reserved => buffer[done..done + part].fill(0),
            }
            done += part;
        }
        count
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len as usize];
        self.read(&mut bytes, 0);
        bytes
    }

    pub(crate) fn write(&mut self, bytes: &[u8], offset: u64) {
        if bytes.is_empty() {
            return;
        }
        self.grow(offset + bytes.len() as u64);
        let mut done = 0;
        while done < bytes.len() {
            let at = offset as usize + done;
            let part = (PAGE - at % PAGE).min(bytes.len() - done);
            self.page(at / PAGE)[at % PAGE..][..part].copy_from_slice(&bytes[done..done + part]);
            done += part;
        }
    }

    /// Makes the file at least this long, with zeros.
    pub(crate) fn grow(&mut self, bytes: u64) {
        if bytes > self.len {
            self.set_len(bytes);
        }
    }

    pub(crate) fn set_len(&mut self, bytes: u64) {
        let pages = (bytes as usize).div_ceil(PAGE);
        self.pages.resize(pages, Page::Hole);
        let rest = bytes as usize % PAGE;
        if bytes < self.len && rest > 0 && matches!(self.pages[pages - 1], Page::Data(_)) {
            // A part that is truncated reads as zeros if the file becomes longer again.
            self.page(pages - 1)[rest..].fill(0);
        }
        self.len = bytes;
    }

    pub(crate) fn reserve(&mut self, bytes: u64) {
        self.grow(bytes);
        for page in &mut self.pages[..(bytes as usize).div_ceil(PAGE)] {
            if matches!(page, Page::Hole) {
                *page = Page::Reserved;
            }
        }
    }

    /// Flips a bit, which the file has.
    pub(crate) fn flip(&mut self, bit: u64) {
        let at = (bit / 8) as usize;
        assert!((at as u64) < self.len, "there is no such bit");
        self.page(at / PAGE)[at % PAGE] ^= 1 << (bit % 8);
    }

    fn page(&mut self, page: usize) -> &mut [u8; PAGE] {
        let page = &mut self.pages[page];
        if !matches!(page, Page::Data(_)) {
            *page = Page::Data(Arc::new([0; PAGE]));
        }
        match page {
            Page::Data(data) => Arc::make_mut(data),
            Page::Hole | Page::Reserved => unreachable!("it was made a page with data"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    #[test]
    fn contents_equal_a_vector() {
        let mut random = Random::new(1);
        for _ in 0..200 {
            let (mut content, mut expected) = (Content::default(), Vec::new());
            for _ in 0..20 {
                let (at, len) = (random.below(3 * PAGE), random.below(2 * PAGE));
                match random.below(4) {
                    0 => {
                        content.set_len(at as u64);
                        expected.resize(at, 0);
                    }
                    1 => {
                        content.reserve(at as u64);
                        expected.resize(at.max(expected.len()), 0);
                    }
                    _ if len > 0 => {
                        let bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
                        content.write(&bytes, at as u64);
                        expected.resize((at + len).max(expected.len()), 0);
                        expected[at..at + len].copy_from_slice(&bytes);
                    }
                    _ => {}
                }
                assert_eq!(content.bytes(), expected);
            }
            let mut part = vec![1; PAGE];
            let read = content.read(&mut part, 700);
            assert_eq!(part[..read], expected[expected.len().min(700)..][..read]);
            assert_eq!(read, expected.len().saturating_sub(700).min(PAGE));
        }
    }
}
