//! Names of objects.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use crate::limits::MAX_ID_BYTES;

/// The name of an object: 1 to 200 bytes of `[A-Za-z0-9._-]` that do not start with `.`.
///
/// The rule makes every name safe as a file name, as part of a URL and in a log line. Names are ordered by their bytes.
///
/// ```
/// use gristmill_store::ObjectId;
/// assert_eq!(ObjectId::new("run-7.part_0").unwrap().as_str(), "run-7.part_0");
/// assert!(ObjectId::new("../etc/passwd").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(Box<str>);

/// The rule of [`ObjectId`] that a string breaks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// The string is empty.
    #[error("an object name is empty: give it 1 to {MAX_ID_BYTES} bytes")]
    Empty,
    /// The string is longer than [`MAX_ID_BYTES`].
    #[error("an object name of {bytes} bytes is too long: use at most {MAX_ID_BYTES}")]
    TooLong {
        /// Length of the string in bytes.
        bytes: usize,
    },
    /// The string starts with a dot.
    #[error("object name {name:?} starts with a dot: start it with a letter, a digit, `_` or `-`")]
    LeadingDot {
        /// The string.
        name: String,
    },
    /// The string contains a character outside `[A-Za-z0-9._-]`.
    #[error("object name {name:?} contains {character:?}: use only A-Z a-z 0-9 . _ -")]
    Character {
        /// The string.
        name: String,
        /// The first character that is not allowed.
        character: char,
    },
}

impl ObjectId {
    /// Checks `name` and returns it as an object name.
    ///
    /// # Errors
    /// The [`IdError`] says which rule `name` breaks.
    pub fn new(name: &str) -> Result<Self, IdError> {
        if name.is_empty() {
            return Err(IdError::Empty);
        }
        if name.len() > MAX_ID_BYTES {
            return Err(IdError::TooLong { bytes: name.len() });
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if let Some(character) = name.chars().find(|&c| !allowed(c)) {
            return Err(IdError::Character { name: name.into(), character });
        }
        if name.starts_with('.') {
            return Err(IdError::LeadingDot { name: name.into() });
        }
        Ok(Self(name.into()))
    }

    /// The name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ObjectId {
    type Err = IdError;
    fn from_str(name: &str) -> Result<Self, IdError> {
        Self::new(name)
    }
}

impl TryFrom<&str> for ObjectId {
    type Error = IdError;
    fn try_from(name: &str) -> Result<Self, IdError> {
        Self::new(name)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl AsRef<str> for ObjectId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for ObjectId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_names_are_accepted() {
        let longest = "x".repeat(MAX_ID_BYTES);
        for name in ["a", "A.b_c-9", "-", "_x", "0", "a..b", &longest] {
            assert_eq!(ObjectId::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn the_error_names_the_broken_rule() {
        assert_eq!(ObjectId::new(""), Err(IdError::Empty));
        assert_eq!(ObjectId::new(&"x".repeat(201)), Err(IdError::TooLong { bytes: 201 }));
        assert!(matches!(ObjectId::new(".."), Err(IdError::LeadingDot { .. })));
        for (name, bad) in [("a/b", '/'), ("a\0", '\0'), ("é", 'é'), ("a b", ' '), ("a\n", '\n')] {
            let expected = IdError::Character { name: name.into(), character: bad };
            assert_eq!(ObjectId::new(name), Err(expected));
        }
    }
}
