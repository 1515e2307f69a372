//! Operations of the entry node on whole files and directories.

use std::time::UNIX_EPOCH;

use gristmill_namespace::Principal;
use gristmill_wire::action::{Amount, PathRequest, Rename, Renamed};

use crate::error::Answer;
use crate::requester::Requester;
use crate::shared::Shared;

impl Shared {
    /// Removes a file, or a directory with all its files.
    pub fn remove_all(&self, principal: &Principal, path: &PathRequest) -> Answer<Amount> {
        let removed = self.reserve.freeing(|| Ok(self.namespace()?.remove_all(principal, &path.path)?))?;
        self.garbage.notify_one();
        Ok(amount(&removed))
    }

    /// Renames a file or a directory.
    pub fn rename(&self, principal: &Principal, rename: &Rename) -> Answer<Renamed> {
        let moved = self.namespace()?.rename(principal, &rename.from, &rename.to)?;
        // A file may have been replaced.
        self.garbage.notify_one();
        Ok(Renamed { path: moved.path.to_string(), files: moved.files })
    }

    /// Amount of a file, or of all files in a directory.
    pub fn usage(&self, requester: Requester<'_>, path: &PathRequest) -> Answer<Amount> {
        if let Some(amount) = self.usage_attached(requester, &path.path)? {
            return Ok(amount);
        }
        Ok(amount(&self.namespace()?.usage(&path.path)?))
    }
}

fn amount(all: &gristmill_namespace::Amount) -> Amount {
    Amount {
        files: all.files,
        bytes: all.bytes,
        changed: all.changed.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        directory: all.directory,
        unread: 0,
    }
}
