//! Operations on whole files and directories: move, removal and usage.

use rusqlite::{Connection, params};
use std::time::SystemTime;

use super::SqliteNamespace;
use super::listing::{directory_exists, file_above};
use super::owner::not_found;
use super::puts::{check_destination, discard};
use super::rows::{Row, stored_value, wrong_type};
use super::trees::{check_no_trees, tree_of};
use crate::clock::from_nanos;
use crate::{
    Access, Amount, DirPath, FilePath, MAX_CHANGED_AT_ONCE, MAX_PATH_BYTES, Mode, MoveOutcome,
    NamespaceError, PathConflict, PathFault, Principal, Result, Rules,
};

impl SqliteNamespace {
    pub(super) fn rename(&self, who: &Principal, from: &str, to: &str) -> Result<MoveOutcome> {
        let source = DirPath::parse(from)?;
        if source.is_root() {
            return Err(NamespaceError::invalid("/ is not moved", "name a file or a directory in it"));
        }
        let source = FilePath::parse(source.as_str())?;
        let destination = DirPath::parse(to)?;
        let (only_directory, into) = (from.ends_with('/'), to.ends_with('/'));
        let (rules, who) = (self.rules.clone(), who.clone());
        self.writer.call(move |connection| {
            let file = match only_directory {
                true => None,
                false => Row::at(connection, &source)?,
            };
            if file.is_none() {
                check_no_trees(connection, &DirPath::from(&source), &source)?;
            }
            if file.is_none() && !directory_exists(connection, &DirPath::from(&source))? {
                return Err(not_found(&source));
            }
            let target = match into || directory_exists(connection, &destination)? {
                true => FilePath::parse(&format!(
                    "{}/{}",
                    destination.as_str().trim_end_matches('/'),
                    source.name()
                ))?,
                false => FilePath::parse(destination.as_str())?,
            };
            if target == source || destination.as_str() == source.as_str() {
                return Err(NamespaceError::same_path(&source, &destination));
            }
            let files = match file {
                Some(row) => move_file(connection, &rules, &who, row, &target)?,
                None => move_directory(connection, &rules, &who, &source, &target)?,
            };
            Ok(MoveOutcome { path: target, files })
        })
    }

    pub(super) fn remove_all(&self, who: &Principal, path: &str) -> Result<Amount> {
        let dir = DirPath::parse(path)?;
        if dir.is_root() {
            return Err(NamespaceError::invalid(
                "/ is not removed as a whole",
                "name files or directories in it",
            ));
        }
        let only_directory = path.ends_with('/');
        let (rules, who) = (self.rules.clone(), who.clone());
        self.writer.call(move |connection| {
            let file = FilePath::parse(dir.as_str())?;
            if let (false, Some(row)) = (only_directory, Row::at(connection, &file)?) {
                let n = row.n;
                let entry = row.entry()?;
                rules.check(&who, &entry, Access::Write, "remove")?;
                discard(connection, n)?;
                return Ok(Amount {
                    files: 1,
                    bytes: entry.length,
                    changed: entry.created,
                    directory: false,
                });
            }
            check_no_trees(connection, &dir, &file)?;
            let amount = amount(connection, &dir)?;
            check_all(connection, &rules, &who, &dir, amount.files, "remove")?;
            connection
                .prepare_cached(
                    "UPDATE files SET state = 2, lease = NULL WHERE state = 1 AND path >= ? AND path < ?",
                )?
                .execute(params![dir.prefix(), dir.prefix_end()])?;
            Ok(amount)
        })
    }

    pub(super) fn usage(&self, path: &str) -> Result<Amount> {
        let dir = DirPath::parse(path)?;
        self.readers.with(|connection| {
            if !path.ends_with('/')
                && let Some(row) = Row::at(connection, &FilePath::parse(path)?)?
            {
                let file = row.entry()?;
                return Ok(Amount { files: 1, bytes: file.length, changed: file.created, directory: false });
            }
            amount(connection, &dir)
        })
    }
}

fn move_file(
    connection: &Connection,
    rules: &Rules,
    who: &Principal,
    row: Row,
    target: &FilePath,
) -> Result<u64> {
    let n = row.n;
    rules.check(who, &row.entry()?, Access::Write, "move")?;
    if let Some((old, _)) = check_destination(connection, rules, who, target, None)? {
        discard(connection, old)?;
    }
    connection.prepare_cached("UPDATE files SET path = ? WHERE n = ?")?.execute(params![target.key(), n])?;
    Ok(1)
}

fn move_directory(
    connection: &Connection,
    rules: &Rules,
    who: &Principal,
    source: &FilePath,
    target: &FilePath,
) -> Result<u64> {
    let (from, to) = (DirPath::from(source), DirPath::from(target));
    if target.key().starts_with(&from.prefix()) {
        return Err(NamespaceError::into_itself(source, target));
    }
    if let Some(tree) = tree_of(connection, &target.key())? {
        let conflict = PathConflict::InTree(tree.path);
        return Err(NamespaceError::Conflict { path: target.clone(), conflict });
    }
    if Row::at(connection, target)?.is_some() {
        return Err(NamespaceError::onto_file(source, target));
    }
    let conflict = match file_above(connection, target)? {
        Some(parent) => Some(PathConflict::ParentIsFile(parent)),
        None => directory_exists(connection, &to)?.then_some(PathConflict::IsDirectory),
    };
    if let Some(conflict) = conflict {
        return Err(NamespaceError::Conflict { path: target.clone(), conflict });
    }
    let files = amount(connection, &from)?.files;
    check_all(connection, rules, who, &from, files, "move")?;
    let (old, new) = (source.key(), target.key());
    let longest: i64 = connection
        .prepare_cached(
            "SELECT max(length(CAST(path AS BLOB))) FROM files WHERE state = 1 AND path >= ? AND path < ?",
        )?
        .query_row(params![from.prefix(), from.prefix_end()], |row| row.get(0))?;
    let longest = usize::try_from(longest).unwrap_or(usize::MAX);
    if longest.saturating_sub(old.len()).saturating_add(new.len()) > MAX_PATH_BYTES {
        return Err(NamespaceError::InvalidPath {
            path: crate::error::shorten(target.as_str()),
            why: PathFault::TooLong,
        });
    }
    // `substr` counts characters, from 1.
    let behind = i64::try_from(old.chars().count()).unwrap_or(i64::MAX).saturating_add(1);
    connection
        .prepare_cached(
            "UPDATE files SET path = ? || substr(path, ?) WHERE state = 1 AND path >= ? AND path < ?",
        )?
        .execute(params![new, behind, from.prefix(), from.prefix_end()])?;
    Ok(files)
}

/// Returns the number and size of all files of a directory.
fn amount(connection: &Connection, dir: &DirPath) -> Result<Amount> {
    let mut statement = connection
        .prepare_cached("SELECT length, created FROM files WHERE state = 1 AND path >= ? AND path < ?")?;
    let mut rows = statement.query(params![dir.prefix(), dir.prefix_end()])?;
    let mut all = Amount { files: 0, bytes: 0, changed: SystemTime::UNIX_EPOCH, directory: true };
    while let Some(row) = rows.next()? {
        all.files += 1;
        all.bytes = all.bytes.saturating_add(row.get::<_, i64>(0)?.max(0).unsigned_abs());
        all.changed = all.changed.max(from_nanos(row.get(1)?));
    }
    if all.files == 0 && !directory_exists(connection, dir)? && !dir.is_root() {
        return Err(NamespaceError::NotFound { path: dir.to_string() });
    }
    Ok(all)
}

/// Checks that a directory has not too many files, and that `who` may write each file.
fn check_all(
    connection: &Connection,
    rules: &Rules,
    who: &Principal,
    dir: &DirPath,
    files: u64,
    verb: &'static str,
) -> Result<()> {
    if files > MAX_CHANGED_AT_ONCE {
        return Err(NamespaceError::TooMany {
            what: "files in the directory to change at once",
            limit: MAX_CHANGED_AT_ONCE,
        });
    }
    let mut statement = connection
        .prepare_cached("SELECT path, owner, mode FROM files WHERE state = 1 AND path >= ? AND path < ?")?;
    let mut rows = statement.query(params![dir.prefix(), dir.prefix_end()])?;
    while let Some(row) = rows.next()? {
        let owner = row.get_ref(1)?.as_str().map_err(wrong_type)?;
        let mode = stored_value(Mode::new(row.get(2)?))?;
        if !rules.may_write(who, owner, mode) {
            let path = FilePath::from_key(row.get_ref(0)?.as_str().map_err(wrong_type)?)?;
            return Err(NamespaceError::Denied { who: who.clone(), path, verb });
        }
    }
    Ok(())
}
