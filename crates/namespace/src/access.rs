//! Permissions of users.

use crate::file::FileEntry;
use crate::{FilePath, Mode, NamespaceError, Principal, Result};

/// Users that may always do everything.
const SUPERUSERS: [&str; 2] = ["root", "uid:0"];

/// Purpose of access to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Get its layout and read its bytes.
    Read,
    /// Replace it by another file, or remove it.
    Write,
}

/// The rules of permission.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub(crate) admin: Option<Principal>,
}

impl Rules {
    pub(crate) fn is_administrator(&self, who: &Principal) -> bool {
        SUPERUSERS.contains(&who.as_str()) || self.admin.as_ref() == Some(who)
    }

    fn owns(&self, who: &Principal, owner: &Principal) -> bool {
        who == owner || self.is_administrator(who)
    }

    /// Returns `Denied` with `verb` unless `who` has this access to the file.
    pub(crate) fn check(
        &self,
        who: &Principal,
        file: &FileEntry,
        access: Access,
        verb: &'static str,
    ) -> Result<()> {
        let allowed = self.is_administrator(who) || file.mode.allows(*who == file.owner, access);
        if allowed { Ok(()) } else { Err(denied(who, &file.path, verb)) }
    }

    /// Returns `NotAdministrator` with `verb` unless `who` may do everything.
    pub(crate) fn check_administrator(&self, who: &Principal, verb: &'static str) -> Result<()> {
        if self.is_administrator(who) {
            return Ok(());
        }
        Err(NamespaceError::NotAdministrator { who: who.clone(), verb })
    }

    /// Whether `who` may replace or remove a file of this owner and mode.
    pub(crate) fn may_write(&self, who: &Principal, owner: &str, mode: Mode) -> bool {
        self.is_administrator(who) || mode.allows(who.as_str() == owner, Access::Write)
    }

    /// Returns `Denied` with `verb` unless `who` is `owner` or an administrator.
    pub(crate) fn check_owner(
        &self,
        who: &Principal,
        owner: &Principal,
        path: &FilePath,
        verb: &'static str,
    ) -> Result<()> {
        if self.owns(who, owner) { Ok(()) } else { Err(denied(who, path, verb)) }
    }

    /// Checks whether `who` may replace `file` by a file with `mode`. A replacement must not evade the rule that only
    /// the owner changes the mode.
    pub(crate) fn check_replace(&self, who: &Principal, file: &FileEntry, mode: Option<Mode>) -> Result<()> {
        self.check(who, file, Access::Write, "replace")?;
        if mode.is_none_or(|mode| mode == file.mode) {
            return Ok(());
        }
        self.check_owner(who, &file.owner, &file.path, "change the mode of")
    }
}

fn denied(who: &Principal, path: &FilePath, verb: &'static str) -> NamespaceError {
    NamespaceError::Denied { who: who.clone(), path: path.clone(), verb }
}
