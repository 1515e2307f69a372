//! Paths, and their stored form.
//!
//! A stored path is called *key*, and has [`SEPARATOR`] in place of `/`. Every character that a name may contain is
//! above it. So keys are sorted by whole names, as a list of one level needs, and all files of a directory are
//! together. With `/` as separator, `/a-b` would come between the directory `/a` and its file `/a/x`.

use std::fmt;
use std::str::FromStr;

use crate::NamespaceError;

/// Longest whole path, in bytes.
pub const MAX_PATH_BYTES: usize = 4_096;
/// Longest name between two slashes, in bytes.
pub const MAX_COMPONENT_BYTES: usize = 255;

/// Character for `/` in a key.
pub(crate) const SEPARATOR: char = '\u{1}';
/// Character after [`SEPARATOR`]. A name followed by it sorts after all keys in the directory of that name, and before
/// the next name.
pub(crate) const AFTER_SEPARATOR: char = '\u{2}';

/// The rule that a path breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathFault {
    /// The path does not start with a slash.
    #[error("it does not start with /: give the whole path")]
    Relative,
    /// The path is the root, which is not a file.
    #[error("it names no file: add a name")]
    Root,
    /// The path ends with a slash.
    #[error("it ends with /: remove the last / to name a file")]
    TrailingSlash,
    /// Two slashes follow each other, or a name is empty.
    #[error("a name in it is empty: put one slash between names")]
    EmptyComponent,
    /// A name is `.` or `..`.
    #[error("a name in it is . or ..: give the path without them")]
    Dots,
    /// The path contains a control character.
    #[error("it contains a control character: use printable characters")]
    Control,
    /// A name contains a slash.
    #[error("it is a name and must not contain /: give the last part of the path")]
    Slash,
    /// A name is longer than [`MAX_COMPONENT_BYTES`].
    #[error("a name in it is longer than {MAX_COMPONENT_BYTES} bytes: shorten it")]
    ComponentTooLong,
    /// The path is longer than [`MAX_PATH_BYTES`].
    #[error("it is longer than {MAX_PATH_BYTES} bytes: shorten it")]
    TooLong,
}

/// The path of a file: absolute and normalised, such as `/a/b`. Its names have 1 to 255 bytes and no control
/// characters, and are not `.` or `..`. A path has at most 4096 bytes. Paths are ordered by their bytes.
///
/// ```
/// use gristmill_namespace::FilePath;
/// assert_eq!(FilePath::parse("/ocean/salt.bin").unwrap().as_str(), "/ocean/salt.bin");
/// assert!(FilePath::parse("ocean/salt.bin").is_err());
/// assert!(FilePath::parse("/ocean/../salt.bin").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

/// The path of a directory: `/`, `/a` or `/a/`. It is printed without the last slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirPath(String);

impl FilePath {
    /// Checks `path`.
    ///
    /// # Errors
    /// Returns [`NamespaceError::InvalidPath`] with the rule that it breaks.
    pub fn parse(path: &str) -> Result<Self, NamespaceError> {
        check(path).map_err(|fault| invalid_path(path, fault))?;
        Ok(Self(path.into()))
    }

    /// The path as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last name in the path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn key(&self) -> String {
        self.0.replace('/', SEPARATOR.encode_utf8(&mut [0; 4]))
    }

    pub(crate) fn from_key(key: &str) -> Result<Self, NamespaceError> {
        // A slash in a key would be read as a separator, and another key would have that path.
        let path = if key.contains('/') { None } else { Some(key.replace(SEPARATOR, "/")) };
        path.and_then(|path| Self::parse(&path).ok()).ok_or_else(|| {
            NamespaceError::damaged(format!("it contains {:?} as a path", crate::error::shorten(key)))
        })
    }
}

impl DirPath {
    /// Checks `path`.
    ///
    /// # Errors
    /// Returns [`NamespaceError::InvalidPath`] with the rule that it breaks.
    pub fn parse(path: &str) -> Result<Self, NamespaceError> {
        if path == "/" {
            return Ok(Self(String::new()));
        }
        let trimmed = path.strip_suffix('/').unwrap_or(path);
        check(trimmed).map_err(|fault| invalid_path(path, fault))?;
        Ok(Self(trimmed.into()))
    }

    /// The path as a string, without a slash at its end unless it is the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        if self.is_root() { "/" } else { &self.0 }
    }

    /// Whether the path is `/`.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The key of a file at the same path; empty for the root.
    pub(crate) fn key(&self) -> String {
        self.0.replace('/', SEPARATOR.encode_utf8(&mut [0; 4]))
    }

    /// The start of the keys of all files in the directory.
    pub(crate) fn prefix(&self) -> String {
        let mut key = self.key();
        key.push(SEPARATOR);
        key
    }

    /// A key after the keys of all files in the directory.
    pub(crate) fn prefix_end(&self) -> String {
        let mut key = self.key();
        key.push(AFTER_SEPARATOR);
        key
    }
}

impl From<&FilePath> for DirPath {
    /// The directory of that name, if there is one.
    fn from(path: &FilePath) -> Self {
        Self(path.0.clone())
    }
}

/// Checks one name.
pub(crate) fn check_name(name: &str) -> Result<(), NamespaceError> {
    let fault = if name.contains('/') { Err(PathFault::Slash) } else { check_component(name) };
    fault.map_err(|fault| invalid_path(name, fault))
}

fn check(path: &str) -> Result<(), PathFault> {
    if path.len() > MAX_PATH_BYTES {
        return Err(PathFault::TooLong);
    }
    let names = path.strip_prefix('/').ok_or(PathFault::Relative)?;
    if names.is_empty() {
        return Err(PathFault::Root);
    }
    if path.ends_with('/') && !path.ends_with("//") {
        return Err(PathFault::TrailingSlash);
    }
    names.split('/').try_for_each(check_component)
}

fn check_component(name: &str) -> Result<(), PathFault> {
    match name {
        "" => Err(PathFault::EmptyComponent),
        "." | ".." => Err(PathFault::Dots),
        _ if name.len() > MAX_COMPONENT_BYTES => Err(PathFault::ComponentTooLong),
        _ if name.chars().any(char::is_control) => Err(PathFault::Control),
        _ => Ok(()),
    }
}

fn invalid_path(path: &str, why: PathFault) -> NamespaceError {
    NamespaceError::InvalidPath { path: crate::error::shorten(path), why }
}

impl FromStr for FilePath {
    type Err = NamespaceError;

    fn from_str(path: &str) -> Result<Self, NamespaceError> {
        Self::parse(path)
    }
}

impl FromStr for DirPath {
    type Err = NamespaceError;

    fn from_str(path: &str) -> Result<Self, NamespaceError> {
        Self::parse(path)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for DirPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn fault(path: &str) -> Option<PathFault> {
        match FilePath::parse(path) {
            Ok(_) => None,
            Err(NamespaceError::InvalidPath { why, .. }) => Some(why),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn each_broken_rule_is_named() {
        let name = "x".repeat(MAX_COMPONENT_BYTES);
        for good in ["/a", "/a/b", "/.a", "/...", "/a b/ü-ß", "/a\\b", &format!("/{name}")] {
            assert_eq!(fault(good), None, "{good}");
        }
        for (bad, why) in [
            ("", PathFault::Relative),
            ("a", PathFault::Relative),
            ("/", PathFault::Root),
            ("/a/", PathFault::TrailingSlash),
            ("//", PathFault::EmptyComponent),
            ("//a", PathFault::EmptyComponent),
            ("/a//b", PathFault::EmptyComponent),
            ("/a//", PathFault::EmptyComponent),
            ("/./a", PathFault::Dots),
            ("/a/..", PathFault::Dots),
            ("/a\nb", PathFault::Control),
            ("/a\u{1}b", PathFault::Control),
            ("/a\u{85}", PathFault::Control),
            ("/a\0", PathFault::Control),
            (&format!("/{name}x"), PathFault::ComponentTooLong),
            (&"/abc".repeat(1_025), PathFault::TooLong),
        ] {
            assert_eq!(fault(bad), Some(why), "{bad:?}");
        }
        assert_eq!(fault(&"/abc".repeat(1_024)), None);
    }

    #[test]
    fn a_directory_may_end_with_a_slash_and_be_the_root() {
        for (path, shown) in [("/", "/"), ("/a", "/a"), ("/a/", "/a"), ("/a/b/", "/a/b")] {
            assert_eq!(DirPath::parse(path).unwrap().to_string(), shown);
        }
        for bad in ["", "a", "//", "/a//", "/../"] {
            assert!(DirPath::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn keys_sort_as_names_and_come_back_as_paths() {
        let mut paths =
            ["/a-b", "/a/x", "/a b", "/a/x-1", "/a.c", "/b", "/a/x.d"].map(|p| FilePath::parse(p).unwrap());
        paths.sort_by_key(FilePath::key);
        let sorted: Vec<_> = paths.iter().map(FilePath::as_str).collect();
        assert_eq!(sorted, ["/a/x", "/a/x-1", "/a/x.d", "/a b", "/a-b", "/a.c", "/b"]);
        for path in &paths {
            assert_eq!(&FilePath::from_key(&path.key()).unwrap(), path);
            let dir = DirPath::parse("/a").unwrap();
            let within = path.key() >= dir.prefix() && path.key() < dir.prefix_end();
            assert_eq!(within, path.as_str().starts_with("/a/"), "{path}");
        }
        for bad in ["/a", "", "a", "\u{1}", "\u{1}a\u{1}", "\u{1}a/b", "\u{1}..", "\u{1}a\u{2}"] {
            assert!(matches!(FilePath::from_key(bad), Err(NamespaceError::Damaged { .. })), "{bad:?}");
        }
    }
}
