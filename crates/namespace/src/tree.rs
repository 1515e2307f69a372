//! Files and directories as wholes: moved, removed, added up.

use std::time::SystemTime;

use rusqlite::{Connection, params};

use crate::access::Rules;
use crate::listing::{exists, file_above};
use crate::owner::missing;
use crate::puts::{check_place, discard};
use crate::rows::{Row, from_nanos, stored, wrong_type};
use crate::{
    Access, DirPath, FilePath, MAX_PATH_BYTES, Mode, Namespace, NamespaceError, PathConflict, PathFault,
    Principal, Result,
};

/// Files that one call moves or removes at most: while it does, all other changes wait.
pub const MAX_CHANGED_AT_ONCE: u64 = 500_000;

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the newest of them was committed.
    pub changed: SystemTime,
    /// They lie in a directory of the name that was asked about, which is no file.
    pub directory: bool,
}

/// What a move did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Where it is now.
    pub path: FilePath,
    /// Files that have another path by it.
    pub files: u64,
}

impl Namespace {
    /// Gives a file, or all that lies in a directory, another path, in one step. `from` and `to` as `mv` reads them: what
    /// ends with a slash is a directory; into a directory that is there, or whose name ends so, the old name goes; a file
    /// takes the place of another. Owners and modes stay.
    ///
    /// # Errors
    /// [`NotFound`](NamespaceError::NotFound); [`Denied`](NamespaceError::Denied) unless `who` may write every file that is
    /// moved and the one that is replaced; [`Conflict`](NamespaceError::Conflict), also where `to` would be a directory
    /// that has files already; [`Invalid`](NamespaceError::Invalid) for a directory into itself or in the place of a file,
    /// and for what is at `to` already; [`InvalidPath`](NamespaceError::InvalidPath) also if a path gets too long;
    /// [`TooMany`](NamespaceError::TooMany) files; or a failure of the system.
    pub fn rename(&self, who: &Principal, from: &str, to: &str) -> Result<Moved> {
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
            if file.is_none() && !exists(connection, &DirPath::from(&source))? {
                return Err(missing(&source));
            }
            let target = match into || exists(connection, &destination)? {
                true => FilePath::parse(&format!(
                    "{}/{}",
                    destination.as_str().trim_end_matches('/'),
                    source.name()
                ))?,
                false => FilePath::parse(destination.as_str())?,
            };
            if target == source || destination.as_str() == source.as_str() {
                return Err(NamespaceError::invalid(
                    format!("{source} and {destination} are the same"),
                    "give another name",
                ));
            }
            let files = match file {
                Some(row) => move_file(connection, &rules, &who, row, &target)?,
                None => move_directory(connection, &rules, &who, &source, &target)?,
            };
            Ok(Moved { path: target, files })
        })
    }

    /// Removes a file, or all that lies in a directory, in one step; it becomes garbage.
    ///
    /// # Errors
    /// [`NotFound`](NamespaceError::NotFound); [`Denied`](NamespaceError::Denied) unless `who` may write every file, and
    /// then nothing is removed; [`Invalid`](NamespaceError::Invalid) for the root; [`TooMany`](NamespaceError::TooMany)
    /// files; or a failure of the system.
    pub fn remove_all(&self, who: &Principal, path: &str) -> Result<Amount> {
        let dir = DirPath::parse(path)?;
        if dir.is_root() {
            return Err(NamespaceError::invalid("/ is not removed as a whole", "name what lies in it"));
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
            let amount = amount(connection, &dir)?;
            check_all(connection, &rules, &who, &dir, amount.files, "remove")?;
            connection
                .prepare_cached(
                    "UPDATE files SET state = 2, lease = NULL WHERE state = 1 AND path >= ? AND path < ?",
                )?
                .execute(params![dir.prefix(), dir.above()])?;
            Ok(amount)
        })
    }

    /// How much a file is, or all that lies in a directory. Everybody may know.
    ///
    /// # Errors
    /// [`NotFound`](NamespaceError::NotFound), unless it is `/`; or a failure of the system.
    pub fn usage(&self, path: &str) -> Result<Amount> {
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
    if let Some((old, _)) = check_place(connection, rules, who, target, None)? {
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
        return Err(NamespaceError::invalid(
            format!("{target} lies in {source}, which would be moved into itself"),
            "choose another directory",
        ));
    }
    if Row::at(connection, target)?.is_some() {
        return Err(NamespaceError::invalid(
            format!("{target} is a file, and {source} a directory"),
            "choose another name, or remove that file",
        ));
    }
    let conflict = match file_above(connection, target)? {
        Some(parent) => Some(PathConflict::ParentIsFile(parent)),
        None => exists(connection, &to)?.then_some(PathConflict::IsDirectory),
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
        .query_row(params![from.prefix(), from.above()], |row| row.get(0))?;
    let longest = usize::try_from(longest).unwrap_or(usize::MAX);
    if longest.saturating_sub(old.len()).saturating_add(new.len()) > MAX_PATH_BYTES {
        return Err(NamespaceError::InvalidPath {
            path: crate::error::start(target.as_str()),
            why: PathFault::TooLong,
        });
    }
    // Positions of substr are those of characters, from 1.
    let behind = i64::try_from(old.chars().count()).unwrap_or(i64::MAX).saturating_add(1);
    connection
        .prepare_cached(
            "UPDATE files SET path = ? || substr(path, ?) WHERE state = 1 AND path >= ? AND path < ?",
        )?
        .execute(params![new, behind, from.prefix(), from.above()])?;
    Ok(files)
}

/// All that lies in a directory.
fn amount(connection: &Connection, dir: &DirPath) -> Result<Amount> {
    let mut statement = connection
        .prepare_cached("SELECT length, created FROM files WHERE state = 1 AND path >= ? AND path < ?")?;
    let mut rows = statement.query(params![dir.prefix(), dir.above()])?;
    let mut all = Amount { files: 0, bytes: 0, changed: SystemTime::UNIX_EPOCH, directory: true };
    while let Some(row) = rows.next()? {
        all.files += 1;
        all.bytes = all.bytes.saturating_add(row.get::<_, i64>(0)?.max(0).unsigned_abs());
        all.changed = all.changed.max(from_nanos(row.get(1)?));
    }
    if all.files == 0 && !dir.is_root() {
        return Err(NamespaceError::NotFound { path: dir.to_string() });
    }
    Ok(all)
}

/// Whether there are not too many files in a directory, and `who` may write each.
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
    let mut rows = statement.query(params![dir.prefix(), dir.above()])?;
    while let Some(row) = rows.next()? {
        let owner = row.get_ref(1)?.as_str().map_err(wrong_type)?;
        let mode = stored(Mode::new(row.get(2)?))?;
        if !rules.may_write(who, owner, mode) {
            let path = FilePath::from_key(row.get_ref(0)?.as_str().map_err(wrong_type)?)?;
            return Err(NamespaceError::Denied { who: who.clone(), path, verb });
        }
    }
    Ok(())
}
