//! Users.

use std::fmt;
use std::str::FromStr;

use crate::NamespaceError;

/// Longest name of a principal, in bytes.
pub const MAX_PRINCIPAL_BYTES: usize = 128;

/// The name of a user, such as `anonymous`, `uid:1000` or `alice`. The caller has identified the user. The name has 1
/// to 128 bytes of `[A-Za-z0-9._@:+-]`.
///
/// ```
/// use gristmill_namespace::Principal;
/// assert_eq!("uid:1000".parse::<Principal>().unwrap().as_str(), "uid:1000");
/// assert!("two words".parse::<Principal>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal(String);

impl Principal {
    /// The user without an identity.
    #[must_use]
    pub fn anonymous() -> Self {
        Self("anonymous".into())
    }

    /// The name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Principal {
    type Err = NamespaceError;

    fn from_str(name: &str) -> Result<Self, NamespaceError> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._@:+-".contains(&byte);
        if name.is_empty() || name.len() > MAX_PRINCIPAL_BYTES || !name.bytes().all(allowed) {
            return Err(NamespaceError::invalid(
                format!("{:?} is not a user name", crate::error::shorten(name)),
                "use 1 to 128 bytes of A-Z a-z 0-9 . _ @ : + -",
            ));
        }
        Ok(Self(name.into()))
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn user_names_are_short_and_plain() {
        for good in ["a", "anonymous", "uid:0", "Alice.B_c@host+x-1", &"x".repeat(128)] {
            assert_eq!(good.parse::<Principal>().unwrap().to_string(), good);
        }
        for bad in ["", " ", "a b", "a/b", "a\n", "é", "a\0", &"x".repeat(129)] {
            assert!(bad.parse::<Principal>().is_err_and(|error| error.is_usage()), "{bad:?}");
        }
        assert_eq!(Principal::anonymous(), "anonymous".parse().unwrap());
    }
}
