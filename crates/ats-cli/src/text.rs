//! Keys and values as text.

use crate::arguments::Format;
use std::fmt::Write;

/// Printable ASCII as it is, other bytes as in Rust.
pub(crate) fn escape(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // A string takes all that is written to it.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the bytes as a format shows them.
pub(crate) fn format_bytes(bytes: &[u8], format: Format) -> String {
    match format {
        // Bytes that are not those of objects.
        Format::Escaped | Format::Term => escape(bytes),
        Format::Hex => hex(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_in_one_line() {
        let bytes = b"a \"b\"\t\\\n\x00\xff";
        assert_eq!(
            format_bytes(bytes, Format::Escaped),
            r#"a \"b\"\t\\\n\x00\xff"#
        );
        assert_eq!(
            format_bytes(bytes, Format::Hex),
            "612022622209".to_owned() + "5c0a00ff"
        );
        assert_eq!(format_bytes(b"", Format::Escaped), "");
    }
}
