//! Removal of an existing file, and change of its mode.

use rusqlite::params;

use crate::attached::check_not_in_tree;
use crate::rows::Row;
use crate::{Access, FileId, FilePath, Mode, Namespace, NamespaceError, Principal, Result, puts};

impl Namespace {
    /// Removes the file, which becomes garbage. Returns its id.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound), [`Denied`](NamespaceError::Denied) if `who` may not write it,
    /// [`Conflict`](NamespaceError::Conflict) for a path in an attached tree, or a failure of the system.
    pub fn remove(&self, who: &Principal, path: &FilePath) -> Result<FileId> {
        let (rules, who, path) = (self.rules.clone(), who.clone(), path.clone());
        self.writer.call(move |connection| {
            check_not_in_tree(connection, &path)?;
            let row = Row::at(connection, &path)?.ok_or_else(|| not_found(&path))?;
            let n = row.n;
            let file = row.entry()?;
            rules.check(&who, &file, Access::Write, "remove")?;
            puts::discard(connection, n)?;
            Ok(file.id)
        })
    }

    /// Sets the mode of the file. Only its owner may do that.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound), [`Denied`](NamespaceError::Denied),
    /// [`Conflict`](NamespaceError::Conflict) for a path in an attached tree, or a failure of the system.
    pub fn set_mode(&self, who: &Principal, path: &FilePath, mode: Mode) -> Result<()> {
        let (rules, who, path) = (self.rules.clone(), who.clone(), path.clone());
        self.writer.call(move |connection| {
            check_not_in_tree(connection, &path)?;
            let row = Row::at(connection, &path)?.ok_or_else(|| not_found(&path))?;
            let n = row.n;
            rules.check_owner(&who, &row.entry()?.owner, &path, "change the mode of")?;
            connection
                .prepare_cached("UPDATE files SET mode = ? WHERE n = ?")?
                .execute(params![mode.bits(), n])?;
            Ok(())
        })
    }
}

pub(crate) fn not_found(path: &FilePath) -> NamespaceError {
    NamespaceError::NotFound { path: path.to_string() }
}
