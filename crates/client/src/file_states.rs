//! States in which the files of a tree were first used.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::FormatError;
use gristmill_runtime::{ErrorKind, RunError};

/// The state of each file of a tree when it was first used. Listings, indices of shards and folds read at different
/// times. All must find one state, or the index of one state would be used for the bytes of another.
#[derive(Clone)]
pub(crate) struct FileStates<S>(Arc<Mutex<BTreeMap<String, S>>>);

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

    /// The state of a file that was noted, if it was.
    pub fn known(&self, key: &str) -> Option<S>
    where
        S: Clone,
    {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    /// The files below a folder that were noted so far.
    pub fn known_below(&self, folder: &str) -> Vec<String> {
        let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let from = all.range(prefix.clone()..).map(|(key, _)| key);
        from.take_while(|key| key.starts_with(&prefix)).cloned().collect()
    }
}

/// Compares a list of files with those that were known before it was made. They must still be there: a chunk that is not listed counts
/// as not stored.
///
/// # Errors
/// Returns [`FormatError::Io`] if a file is gone.
pub(crate) fn check_listed<'a>(
    known: &[String],
    listed: impl Iterator<Item = &'a str>,
) -> Result<(), FormatError> {
    let listed: HashSet<&str> = listed.collect();
    match known.iter().find(|key| !listed.contains(key.as_str())) {
        Some(gone) => Err(stale(gone, "it was removed after it was opened; open it again")),
        None => Ok(()),
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
        assert_eq!((states.known_below("d"), states.known_below("").len()), (vec!["d/0".to_owned()], 3));
        assert!(check_listed(&states.known_below("d"), ["d/0", "d/1"].into_iter()).is_ok());
        let gone =
            check_listed(&states.known_below("d"), ["d/1"].into_iter()).map_err(|error| error.to_string());
        assert!(gone.is_err_and(|text| text.contains("d/0") && text.contains("removed")));
        let error = states.check("c/0", "another").map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("c/0") && text.contains("open it again")));
    }
}
