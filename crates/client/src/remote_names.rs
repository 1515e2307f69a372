//! Operations on whole files and directories of a cluster: renaming, removing, adding up.

use std::path::Path;

use futures_util::stream::{self, StreamExt};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_wire::FAN_IN;
use gristmill_wire::action::{Amount, PathRequest, Rename, Renamed, SetMode, names};

use crate::remote_tree::join;
use crate::{ClientError, Cluster};

impl Cluster {
    /// Renames a file or a directory in one step. If `to` is an existing directory or ends with a slash, the file goes
    /// into it under its old name. A file replaces another file.
    ///
    /// # Errors
    /// Returns an error if `from` does not exist, if the client may not write it, or if `to` is in the way. Nothing is
    /// changed then.
    pub fn rename(&self, from: &str, to: &str) -> Result<Renamed, ClientError> {
        self.wait(names::RENAME, &Rename { from: from.to_owned(), to: to.to_owned() })
    }

    /// Removes a file, or all files of a directory, in one step.
    ///
    /// # Errors
    /// Returns an error if nothing is at `path`, or if the client may not write one of the files. Nothing is removed
    /// then.
    pub fn remove_all(&self, path: &str) -> Result<Amount, ClientError> {
        self.wait(names::REMOVE_ALL, &PathRequest { path: path.to_owned() })
    }

    /// Changes the permission bits of a file, or of each file in a directory, as in `0o640`.
    ///
    /// # Errors
    /// Returns an error if nothing is at `path`, or if the client does not own some of the files. In the second case
    /// the bits of all other files are changed.
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

    /// Returns the size of a file, or of all files in a directory.
    ///
    /// # Errors
    /// Returns an error if nothing is at `path`.
    pub fn usage(&self, path: &str) -> Result<Amount, ClientError> {
        self.wait(names::USAGE, &PathRequest { path: path.to_owned() })
    }

    /// Returns the path of a copy of `from` to `to`. If `to` is an existing directory or ends with a slash, the copy
    /// goes into it under its old name.
    ///
    /// # Errors
    /// Returns an error if the cluster cannot be reached, or if the root, which has no name, is copied into a
    /// directory.
    pub fn copy_goes_to(&self, to: &str, from: &str) -> Result<String, ClientError> {
        if !to.ends_with('/') && !self.is_directory(to)? {
            return Ok(to.to_owned());
        }
        let name = Path::new(from).file_name().and_then(|name| name.to_str());
        let name =
            name.ok_or_else(|| ClientError::Usage(format!("{from} has no name; give one for the copy")))?;
        Ok(format!("{}/{name}", to.trim_end_matches('/')))
    }

    /// Returns whether there is a file of this name that the client may read.
    pub(crate) fn is_file(&self, path: &str) -> Result<bool, ClientError> {
        match self.stat(path) {
            Ok(_) => Ok(true),
            Err(ClientError::Run(error)) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}
