//! Byte sizes as text: what a person writes in a configuration and reads in a table.
//!
//! Cold path only (configuration, tables, errors): it may allocate. Parsing and printing are the `bytesize` crate's.
use bytesize::ByteSize;
use std::fmt;

/// Reads a size such as `"256 MiB"`, `"1.5 GiB"`, `"64MB"` or `"1048576"` (bytes).
///
/// `KiB`, `MiB`, `GiB`, `TiB` count in 1,024s; `KB`, `MB`, `GB`, `TB` in 1,000s. The error is the reason, in words.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    text.trim().parse::<ByteSize>().map(|size| size.as_u64())
}

/// A number of bytes that displays as `"64.0 MiB"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Bytes(pub(crate) u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Through a string, so that a table's width applies to number and unit together.
        f.pad(&ByteSize::b(self.0).display().iec().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_binary_and_decimal_units() {
        assert_eq!(parse_bytes("256 MiB"), Ok(268_435_456));
        assert_eq!(parse_bytes(" 8MiB "), Ok(8_388_608));
        assert_eq!(parse_bytes("1.5 GiB"), Ok(1_610_612_736));
        assert_eq!(parse_bytes("64MB"), Ok(64_000_000));
        assert_eq!(parse_bytes("4096"), Ok(4_096));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "MiB", "-1", "12 bananas", "1,5 GiB", "NaN"] {
            assert!(parse_bytes(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn sizes_are_shown_in_binary_units_and_keep_a_tables_width() {
        assert_eq!(Bytes(64 << 20).to_string(), "64.0 MiB");
        assert_eq!(format!("{:>10}|", Bytes(34 << 10)), "  34.0 KiB|");
        assert_eq!(Bytes(17).to_string(), "17 B");
    }
}
