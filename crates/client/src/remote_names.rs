//! Files and directories of a cluster as wholes: renamed, removed, added up.

use std::path::Path;

use futures_util::stream::{self, StreamExt};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::FAN_IN;
use gristmill_wire::action::{Amount, PathOf, Rename, Renamed, SetMode, names};

use crate::remote_tree::join;
use crate::{ClientError, Cluster};

impl Cluster {
    /// Gives a file, or all that lies in a directory, another path, in one step. Into a directory that is there, or whose
    /// name ends with a slash, the old name goes; a file takes the place of another.
    ///
    /// # Errors
    /// What is not there, what one may not write, and what is in the way; nothing is changed then.
    pub fn rename(&self, from: &str, to: &str) -> Result<Renamed, ClientError> {
        self.wait(names::RENAME, &Rename { from: from.to_owned(), to: to.to_owned() })
    }

    /// Removes a file, or all that lies in a directory, in one step.
    ///
    /// # Errors
    /// What is not there, and files that one may not write: nothing is removed then.
    pub fn remove_all(&self, path: &str) -> Result<Amount, ClientError> {
        self.wait(names::REMOVE_ALL, &PathOf { path: path.to_owned() })
    }

    /// Changes who may read and write a file, or each file that lies in a directory: permission bits as in `0o640`.
    ///
    /// # Errors
    /// There is nothing at the path. Or the caller does not own some of the files: then the bits of all others are changed.
    pub fn set_mode_all(&self, path: &str, mode: u16) -> Result<(), ClientError> {
        if !self.is_directory(path)? {
            return self.set_mode(path, mode);
        }
        let files = self.files_in(path)?;
        let changes = files.iter().map(|(name, _)| SetMode { path: join(path, name), mode });
        let changed: Vec<Result<(), RunError>> = self.peers.wait(
            stream::iter(changes)
                .map(|change| async move { self.ask(names::CHMOD, &change).await })
                .buffer_unordered(FAN_IN)
                .collect(),
        );
        Ok(changed.into_iter().collect::<Result<(), RunError>>()?)
    }

    /// How much a file is, or all that lies in a directory.
    ///
    /// # Errors
    /// What is not there.
    pub fn usage(&self, path: &str) -> Result<Amount, ClientError> {
        self.wait(names::USAGE, &PathOf { path: path.to_owned() })
    }

    /// Where a copy goes that is told to go to `to`: into a directory that is there, or whose name ends with a slash,
    /// under the name of what is copied.
    ///
    /// # Errors
    /// The cluster cannot be asked; the root, which has no name, into a directory.
    pub fn copy_goes_to(&self, to: &str, from: &str) -> Result<String, ClientError> {
        if !to.ends_with('/') && !self.is_directory(to)? {
            return Ok(to.to_owned());
        }
        let name = Path::new(from).file_name().and_then(|name| name.to_str());
        let name =
            name.ok_or_else(|| ClientError::Usage(format!("{from} has no name; give one for the copy")))?;
        Ok(format!("{}/{name}", to.trim_end_matches('/')))
    }

    /// Whether there is a file of this name that one may read.
    pub(crate) fn is_file(&self, path: &str) -> Result<bool, ClientError> {
        match self.stat(path) {
            Ok(_) => Ok(true),
            Err(ClientError::Run(error)) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}
