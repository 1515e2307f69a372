//! What the entry node does with files and directories as wholes.

use std::time::UNIX_EPOCH;

use gristmill_namespace::Principal;
use gristmill_wire::action::{Amount, PathOf, Rename, Renamed};

use crate::error::Answer;
use crate::node::Shared;

impl Shared {
    /// Removes a file, or all that lies in a directory.
    pub fn remove_all(&self, who: &Principal, path: &PathOf) -> Answer<Amount> {
        let removed = self.reserve.freeing(|| Ok(self.namespace()?.remove_all(who, &path.path)?))?;
        self.garbage.notify_one();
        Ok(amount(&removed))
    }

    /// Gives a file, or all that lies in a directory, another path.
    pub fn rename(&self, who: &Principal, rename: &Rename) -> Answer<Renamed> {
        let moved = self.namespace()?.rename(who, &rename.from, &rename.to)?;
        // Perhaps one was replaced.
        self.garbage.notify_one();
        Ok(Renamed { path: moved.path.to_string(), files: moved.files })
    }

    /// How much a file is, or all that lies in a directory.
    pub fn usage(&self, path: &PathOf) -> Answer<Amount> {
        Ok(amount(&self.namespace()?.usage(&path.path)?))
    }
}

fn amount(all: &gristmill_namespace::Amount) -> Amount {
    Amount {
        files: all.files,
        bytes: all.bytes,
        changed: all.changed.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        directory: all.directory,
    }
}
