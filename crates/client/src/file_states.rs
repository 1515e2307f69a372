//! States in which the files of a tree were first used.

use std::collections::HashMap;
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
            Some(_) => {
                let message = "it was replaced after it was opened; open it again".to_owned();
                let source = std::io::Error::other(RunError::Remote { kind: ErrorKind::Stale, message });
                Err(FormatError::Io { what: key.to_owned(), source })
            }
            None => {
                all.insert(key.to_owned(), state);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_state() {
        let states = FileStates::default();
        assert!(states.check("c/0", "first").is_ok() && states.check("c/1", "second").is_ok());
        assert!(states.clone().check("c/0", "first").is_ok());
        let error = states.check("c/0", "another").map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("c/0") && text.contains("open it again")));
    }
}
