//! Permission bits.

use std::fmt;
use std::str::FromStr;

use crate::{Access, NamespaceError};

/// The mode of a file without a chosen mode: the owner reads and writes, and all others read.
pub const DEFAULT_MODE: Mode = Mode(0o644);

const LARGEST: u16 = 0o777;

/// Unix permission bits, 0 to 0o777, written in octal. Only the read and write bits of the owner and of others have an
/// effect. The bits of the group and the execute bits are only stored.
///
/// ```
/// use gristmill_namespace::Mode;
/// assert_eq!("640".parse::<Mode>().unwrap().bits(), 0o640);
/// assert_eq!(Mode::default().to_string(), "644");
/// assert!("1777".parse::<Mode>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mode(u16);

impl Mode {
    /// A mode with these bits.
    ///
    /// # Errors
    /// Returns [`NamespaceError::Invalid`] for bits above 0o777.
    pub fn new(bits: u16) -> Result<Self, NamespaceError> {
        if bits > LARGEST {
            return Err(invalid_mode(&format!("{bits:o}")));
        }
        Ok(Self(bits))
    }

    /// The bits.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }

    pub(crate) fn allows(self, is_owner: bool, access: Access) -> bool {
        let others = match access {
            Access::Read => 0o4,
            Access::Write => 0o2,
        };
        let bit = if is_owner { others << 6 } else { others };
        self.0 & bit != 0
    }
}

impl Default for Mode {
    fn default() -> Self {
        DEFAULT_MODE
    }
}

impl FromStr for Mode {
    type Err = NamespaceError;

    /// Parses one to four octal digits.
    fn from_str(text: &str) -> Result<Self, NamespaceError> {
        let octal = (1..=4).contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
        let bits = if octal { u16::from_str_radix(text, 8).ok() } else { None };
        bits.and_then(|bits| Self::new(bits).ok()).ok_or_else(|| invalid_mode(text))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03o}", self.0)
    }
}

fn invalid_mode(text: &str) -> NamespaceError {
    NamespaceError::invalid(
        format!("{:?} is not a file mode", crate::error::shorten(text)),
        "use three octal digits such as 644",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn modes_are_octal_up_to_777() {
        for (text, bits) in [("0", 0), ("4", 4), ("644", 0o644), ("0600", 0o600), ("777", 0o777)] {
            assert_eq!(text.parse::<Mode>().unwrap().bits(), bits);
        }
        for bad in ["", "1000", "7777", "8", "+644", "-1", "0o644", "rw", "00644", " 644"] {
            assert!(bad.parse::<Mode>().is_err(), "{bad:?}");
        }
        assert!(Mode::new(0o1000).is_err());
        assert_eq!(Mode::new(0o4).unwrap().to_string(), "004");
    }

    #[test]
    fn owner_and_other_bits_decide_and_group_bits_do_not() {
        let allowed = |bits, is_owner| {
            let mode = Mode::new(bits).unwrap();
            (mode.allows(is_owner, Access::Read), mode.allows(is_owner, Access::Write))
        };
        assert_eq!(allowed(0o600, true), (true, true));
        assert_eq!(allowed(0o600, false), (false, false));
        assert_eq!(allowed(0o604, false), (true, false));
        assert_eq!(allowed(0o606, false), (true, true));
        assert_eq!(allowed(0o402, true), (true, false));
        assert_eq!(allowed(0o402, false), (false, true));
        assert_eq!(allowed(0o171, true), (false, false));
        assert_eq!(allowed(0o171, false), (false, false));
    }
}
