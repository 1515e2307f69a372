//! Unique names of puts and targets.

use std::fmt;
use std::str::FromStr;

use crate::NamespaceError;

const DIGITS: usize = 32;

fn check(text: &str, kind: &str) -> Result<String, NamespaceError> {
    if text.len() == DIGITS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Ok(text.into());
    }
    Err(NamespaceError::invalid(
        format!("{:?} is not the id of a {kind}", crate::error::shorten(text)),
        "give its 32 lower-case hexadecimal digits",
    ))
}

/// Id of one put of a file: 32 random lower-case hexadecimal digits. Its objects on the targets have this name, so a
/// file that replaces another one has its own objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(String);

/// Id of a storage target: 32 lower-case hexadecimal digits. Its storage node chose it when the target was made.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetId(String);

impl FileId {
    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TargetId {
    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for FileId {
    type Err = NamespaceError;

    fn from_str(text: &str) -> Result<Self, NamespaceError> {
        check(text, "file").map(Self)
    }
}

impl FromStr for TargetId {
    type Err = NamespaceError;

    fn from_str(text: &str) -> Result<Self, NamespaceError> {
        check(text, "target").map(Self)
    }
}

impl fmt::Display for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_32_lower_case_hexadecimal_digits() {
        let good = "0123456789abcdef0123456789abcdef";
        assert!(good.parse::<FileId>().is_ok_and(|id| id.as_str() == good));
        assert!(good.parse::<TargetId>().is_ok_and(|id| id.to_string() == good));
        for bad in ["", "0123456789ABCDEF0123456789ABCDEF", "0123456789abcdef0123456789abcde", "é"] {
            assert!(bad.parse::<FileId>().is_err() && bad.parse::<TargetId>().is_err(), "{bad:?}");
        }
        assert!(format!("{good}0").parse::<FileId>().is_err());
    }
}
