//! Texts as keys.

use super::bytes::{KeyBytes, KeyReader};
use super::{AsKey, Key};
use std::borrow::Cow;

impl AsKey<String> for str {
    #[inline]
    fn encode(&self, bytes: &mut KeyBytes) {
        bytes.push_text(self.as_bytes());
    }

    fn is_proven(&self) -> bool {
        true
    }
}

impl AsKey<String> for String {
    #[inline]
    fn encode(&self, bytes: &mut KeyBytes) {
        self.as_str().encode(bytes);
    }

    fn is_proven(&self) -> bool {
        true
    }
}

impl Key for String {
    fn decode(reader: &mut KeyReader<'_>) -> Option<Self> {
        String::from_utf8(reader.take_text()?).ok()
    }
}

impl<K, Q: AsKey<K> + ToOwned + ?Sized> AsKey<K> for Cow<'_, Q> {
    fn encode(&self, bytes: &mut KeyBytes) {
        self.as_ref().encode(bytes);
    }

    fn is_proven(&self) -> bool {
        self.as_ref().is_proven()
    }
}
