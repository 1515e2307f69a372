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

impl Access {
    /// The verb of a refusal.
    pub(crate) const fn verb(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
        }
    }
}

/// The rules of permission, for all namespaces.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    admin: Option<Principal>,
}

impl Rules {
    /// The rules with a user who may do everything, in addition to `root` and `uid:0`.
    #[must_use]
    pub fn new(admin: Option<Principal>) -> Self {
        Self { admin }
    }

    /// Whether `who` may do everything.
    #[must_use]
    pub fn is_administrator(&self, who: &Principal) -> bool {
        SUPERUSERS.contains(&who.as_str()) || self.admin.as_ref() == Some(who)
    }

    fn owns(&self, who: &Principal, owner: &Principal) -> bool {
        who == owner || self.is_administrator(who)
    }

    /// Checks that `who` has this access to the file.
    ///
    /// # Errors
    /// Returns [`Denied`](NamespaceError::Denied) with `verb`.
    pub fn check(&self, who: &Principal, file: &FileEntry, access: Access, verb: &'static str) -> Result<()> {
        let allowed = self.is_administrator(who) || file.mode.allows(*who == file.owner, access);
        if allowed { Ok(()) } else { Err(denied(who, &file.path, verb)) }
    }

    /// Checks that `who` may do everything.
    ///
    /// # Errors
    /// Returns [`NotAdministrator`](NamespaceError::NotAdministrator) with `verb`.
    pub fn check_administrator(&self, who: &Principal, verb: &'static str) -> Result<()> {
        if self.is_administrator(who) {
            return Ok(());
        }
        Err(NamespaceError::NotAdministrator { who: who.clone(), verb })
    }

    /// Whether `who` may replace or remove a file of this owner and mode.
    pub fn may_write(&self, who: &Principal, owner: &str, mode: Mode) -> bool {
        self.is_administrator(who) || mode.allows(who.as_str() == owner, Access::Write)
    }

    /// Checks that `who` is `owner` or an administrator.
    ///
    /// # Errors
    /// Returns [`Denied`](NamespaceError::Denied) with `verb`.
    pub fn check_owner(
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
    ///
    /// # Errors
    /// Returns [`Denied`](NamespaceError::Denied).
    pub fn check_replace(&self, who: &Principal, file: &FileEntry, mode: Option<Mode>) -> Result<()> {
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
