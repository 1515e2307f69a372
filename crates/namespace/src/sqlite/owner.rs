//! Removal of an existing file, and change of its mode.

use rusqlite::params;

use super::rows::Row;
use super::trees::check_not_in_tree;
use super::{SqliteNamespace, puts};
use crate::{Access, FileId, FilePath, Mode, NamespaceError, Principal, Result};

impl SqliteNamespace {
    pub(super) fn remove(&self, who: &Principal, path: &FilePath) -> Result<FileId> {
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

    pub(super) fn set_mode(&self, who: &Principal, path: &FilePath, mode: Mode) -> Result<()> {
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
