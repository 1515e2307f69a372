//! Names of files below the root of a backend.

use std::fmt;

use crate::{BackendError, Result};

/// Most bytes of a key: the longest path of Linux, and more than S3 allows.
pub const MAX_KEY_BYTES: usize = 4_096;

/// The path of a file or folder below the root: parts with `/` between them. No part is empty, `.` or `..`, so a key does not lead
/// out of its backend. The root has no parts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// The root.
    pub const ROOT: Key = Key(String::new());

    /// Checks a key.
    ///
    /// ```
    /// use gristmill_backend::Key;
    ///
    /// assert!(Key::new("2001/tas.nc").is_ok() && Key::new("").is_ok_and(|key| key.is_root()));
    /// assert!(Key::new("../tas.nc").is_err() && Key::new("/tas.nc").is_err() && Key::new("2001//tas.nc").is_err());
    /// ```
    ///
    /// # Errors
    /// The error is [`BackendError::InvalidKey`] if a part is empty, `.` or `..`, if there is a NUL character, or if the key has
    /// more than [`MAX_KEY_BYTES`].
    pub fn new(key: impl Into<String>) -> Result<Key> {
        let key = key.into();
        let why = if key.len() > MAX_KEY_BYTES {
            "it is too long"
        } else if key.contains('\0') {
            "it holds a NUL character"
        } else if !key.is_empty() && key.split('/').any(|part| matches!(part, "" | "." | "..")) {
            "a part of it is empty, '.' or '..'"
        } else {
            return Ok(Key(key));
        };
        Err(BackendError::InvalidKey { key, why })
    }

    /// The key as text. It is empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The folder of the file or folder. That of the root is the root.
    pub fn above(&self) -> Key {
        Key(self.0.rsplit_once('/').map_or_else(String::new, |(above, _)| above.to_owned()))
    }

    /// The key of a file or folder in this folder.
    ///
    /// # Errors
    /// It fails as [`new`](Key::new) does.
    pub fn join(&self, name: &str) -> Result<Key> {
        Key::new(if self.is_root() { name.to_owned() } else { format!("{}/{name}", self.0) })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
