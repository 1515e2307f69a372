//! Byte ranges of HTTP (RFC 9110, section 14).

use std::ops::Range;

/// The part of `length` bytes that a `Range` header names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestedRange {
    /// All bytes: there is no header, or one that may be ignored (several ranges, other units).
    All,
    /// One range.
    Part(Range<u64>),
    /// No byte of the range exists.
    Nothing,
}

/// Parses a header.
pub(crate) fn requested_range(header: Option<&str>, length: u64) -> RequestedRange {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return RequestedRange::All;
    };
    let Some((first, last)) = spec.split_once('-') else { return RequestedRange::All };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let range = match (first.trim().is_empty(), number(first), last.trim().is_empty(), number(last)) {
        (true, _, _, Some(suffix)) => length.saturating_sub(suffix)..length,
        (_, Some(first), true, _) => first..length,
        (_, Some(first), _, Some(last)) if first <= last => first..last.saturating_add(1).min(length),
        _ => return RequestedRange::All,
    };
    if range.start >= range.end { RequestedRange::Nothing } else { RequestedRange::Part(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_has_them() {
        assert_eq!(requested_range(None, 10), RequestedRange::All);
        assert_eq!(requested_range(Some("bytes=0-0"), 10), RequestedRange::Part(0..1));
        assert_eq!(requested_range(Some("bytes=2-"), 10), RequestedRange::Part(2..10));
        assert_eq!(requested_range(Some("bytes=2-99"), 10), RequestedRange::Part(2..10));
        assert_eq!(requested_range(Some("bytes=-3"), 10), RequestedRange::Part(7..10));
        assert_eq!(requested_range(Some("bytes=-99"), 10), RequestedRange::Part(0..10));
        assert_eq!(requested_range(Some("bytes=10-"), 10), RequestedRange::Nothing);
        assert_eq!(requested_range(Some("bytes=-0"), 10), RequestedRange::Nothing);
        assert_eq!(requested_range(Some("bytes=0-18446744073709551615"), 10), RequestedRange::Part(0..10));
        for ignored in ["bytes=5-2", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b", "bytes=", "bytes=-"] {
            assert_eq!(requested_range(Some(ignored), 10), RequestedRange::All, "{ignored}");
        }
    }
}
