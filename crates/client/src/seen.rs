//! In which state the files of a tree were seen.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_format::FormatError;
use gristmill_runtime::{ErrorKind, RunError};

/// The state in which each file of a tree was seen first. Listings, indices of shards and folds ask at different moments; they
/// must find the same, or the index of one state would be taken for the bytes of another.
#[derive(Clone)]
pub(crate) struct Seen<S>(Arc<Mutex<HashMap<String, S>>>);

impl<S> Default for Seen<S> {
    fn default() -> Seen<S> {
        Seen(Arc::default())
    }
}

impl<S: PartialEq> Seen<S> {
    /// A file is in this state now.
    ///
    /// # Errors
    /// One that was in another before.
    pub fn note(&self, key: &str, state: S) -> Result<(), FormatError> {
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
        let seen = Seen::default();
        assert!(seen.note("c/0", "first").is_ok() && seen.note("c/1", "second").is_ok());
        assert!(seen.clone().note("c/0", "first").is_ok());
        let error = seen.note("c/0", "another").map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("c/0") && text.contains("open it again")));
    }
}
