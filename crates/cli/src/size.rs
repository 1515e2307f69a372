//! Sizes in bytes as people write them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes: `80`, `64KiB`, `1MiB`, `2GiB`, `1TiB`, or decimal `kB MB GB TB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Size(pub u64);

const UNITS: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("PiB", 1 << 50),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("B", 1),
];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        let wrong = || format!("'{text}' is no size; write bytes as 4096, 64KiB, 1MiB or 2GiB");
        let (digits, unit) = UNITS
            .iter()
            .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
            .unwrap_or((text, 1));
        let digits = digits.trim_end();
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        number.checked_mul(unit).map(Size).ok_or_else(|| format!("'{text}' is 2^64 bytes or more"))
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Size, String> {
        text.parse()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A number of bytes for people: `1.50 GiB`.
pub fn readable(bytes: u64) -> String {
    const STEPS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut step = 0;
    while value >= 1024.0 && step + 1 < STEPS.len() {
        value /= 1024.0;
        step += 1;
    }
    if step == 0 { format!("{bytes} B") } else { format!("{value:.2} {}", STEPS[step]) }
}

/// `START:LENGTH` in bytes; the length may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    pub start: u64,
    pub length: Option<u64>,
}

impl FromStr for ByteRange {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteRange, String> {
        let (start, length) = text.split_once(':').ok_or_else(|| {
            format!("'{text}' is not a range; write START:LENGTH as 1GiB:512MiB, or START:")
        })?;
        let start = if start.is_empty() { Size(0) } else { start.parse::<Size>()? };
        let length = if length.is_empty() { None } else { Some(length.parse::<Size>()?.0) };
        Ok(ByteRange { start: start.0, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("0", 0), ("80", 80), ("13B", 13), ("64KiB", 65_536), ("1 MiB", 1 << 20), ("2GB", 2_000_000_000)]
        {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "KiB", "-1", "1.5MiB", "0x10", "1 kb", "+3", "99999999999999999999", "16777216TiB"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
        assert_eq!(readable(1536), "1.50 KiB");
        assert_eq!(readable(7), "7 B");
    }

    #[test]
    fn ranges() {
        assert_eq!("1KiB:2".parse(), Ok(ByteRange { start: 1024, length: Some(2) }));
        assert_eq!("5:".parse(), Ok(ByteRange { start: 5, length: None }));
        assert_eq!(":9".parse(), Ok(ByteRange { start: 0, length: Some(9) }));
        assert!("5".parse::<ByteRange>().is_err());
        assert!("a:b".parse::<ByteRange>().is_err());
    }
}
