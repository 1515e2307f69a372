//! States in which the files of a tree were first used.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::FormatError;
use gristmill_runtime::{ErrorKind, RunError};

/// The state of each file of a tree when it was first used. Listings, indices of shards and folds read at different
/// times. All must find one state, or the index of one state would be used for the bytes of another.
#[derive(Clone)]
pub(crate) struct FileStates<S>(Arc<Mutex<HashMap<String, S>>>);

impl<S> Default for FileStates<S> {
    fn default() -> FileStates<S> {
        FileStates(Arc::default())
    }
}

impl<S: PartialEq> FileStates<S> {
    /// Notes the state of a file, or compares it with the state that was noted first.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if the file was in another state before.
    pub fn check(&self, key: &str, state: S) -> Result<(), FormatError> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get(key) {
            Some(known) if *known == state => Ok(()),
            Some(_) => Err(stale(key, "it was replaced after it was opened; open it again")),
            None => {
                all.insert(key.to_owned(), state);
                Ok(())
            }
        }
    }

    /// Compares a list of all files below a folder with the files that were noted. A file that was there before must still be there: a
    /// chunk that is not listed counts as not stored.
    ///
    /// # Errors
    /// Returns [`FormatError::Io`] if a file is gone.
    pub fn check_listed<'a>(
        &self,
        folder: &str,
        listed: impl Iterator<Item = &'a str>,
    ) -> Result<(), FormatError> {
        let listed: HashSet<&str> = listed.collect();
        let below = |key: &str| {
            folder.is_empty() || key.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.keys().find(|key| below(key) && !listed.contains(key.as_str())) {
            Some(gone) => Err(stale(gone, "it was removed after it was opened; open it again")),
            None => Ok(()),
        }
    }
}

fn stale(key: &str, message: &str) -> FormatError {
    let error = RunError::Remote { kind: ErrorKind::Stale, message: message.to_owned() };
    FormatError::Io { what: key.to_owned(), source: std::io::Error::other(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_state() {
        let states = FileStates::default();
        assert!(states.check("c/0", "first").is_ok() && states.check("c/1", "second").is_ok());
        assert!(states.clone().check("c/0", "first").is_ok());
        assert!(states.check("d/0", "first").is_ok());
        assert!(states.check_listed("d", ["d/0", "d/1"].into_iter()).is_ok());
        let gone = states.check_listed("d", ["d/1"].into_iter()).map_err(|error| error.to_string());
        assert!(gone.is_err_and(|text| text.contains("d/0") && text.contains("removed")));
        let error = states.check("c/0", "another").map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("c/0") && text.contains("open it again")));
    }
}
