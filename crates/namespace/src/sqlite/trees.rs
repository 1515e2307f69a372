//! The table of attached trees.

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};
use std::time::SystemTime;

use super::SqliteNamespace;
use super::listing::{directory_exists, file_above};
use super::rows::{Row, stored_value, wrong_type};
use crate::clock::{from_nanos, to_nanos};
use crate::path::SEPARATOR;
use crate::{
    AttachedTree, DirPath, FilePath, MAX_SOURCE_BYTES, MAX_TREES, Mode, NamespaceError, PathConflict,
    Principal, Result,
};

impl SqliteNamespace {
    pub(super) fn attach(&self, who: &Principal, path: &FilePath, source: &str, mode: Mode) -> Result<()> {
        self.rules.check_administrator(who, "attach trees")?;
        if source.len() > MAX_SOURCE_BYTES {
            return Err(NamespaceError::invalid("the source of the tree is too long", "use a shorter URL"));
        }
        let (who, path, source) = (who.clone(), path.clone(), source.to_owned());
        self.writer.call(move |connection| {
            let conflict = match file_above(connection, &path)? {
                _ if Row::at(connection, &path)?.is_some() => Some(PathConflict::IsFile),
                Some(parent) => Some(PathConflict::ParentIsFile(parent)),
                None => match tree_of(connection, &path.key())? {
                    Some(tree) => Some(PathConflict::InTree(tree.path)),
                    None => directory_exists(connection, &DirPath::from(&path))?
                        .then_some(PathConflict::IsDirectory),
                },
            };
            if let Some(conflict) = conflict {
                return Err(NamespaceError::Conflict { path, conflict });
            }
            let count: i64 =
                connection.prepare_cached("SELECT count(*) FROM trees")?.query_row([], |row| row.get(0))?;
            if count >= MAX_TREES as i64 {
                return Err(NamespaceError::TooMany { what: "attached trees", limit: MAX_TREES as u64 });
            }
            let mut insert = connection.prepare_cached("INSERT INTO trees VALUES (?, ?, ?, ?, ?)")?;
            let attached = to_nanos(SystemTime::now());
            insert.execute(params![path.key(), source, who.as_str(), mode.bits(), attached])?;
            Ok(())
        })
    }

    pub(super) fn detach(&self, who: &Principal, path: &FilePath) -> Result<()> {
        self.rules.check_administrator(who, "detach trees")?;
        let path = path.clone();
        self.writer.call(move |connection| {
            match connection.prepare_cached("DELETE FROM trees WHERE path = ?")?.execute([path.key()])? {
                0 => Err(NamespaceError::NotFound { path: path.to_string() }),
                _ => Ok(()),
            }
        })
    }

    pub(super) fn trees(&self) -> Result<Vec<AttachedTree>> {
        self.readers.with(|connection| {
            let mut statement =
                connection.prepare_cached(&format!("SELECT {COLUMNS} FROM trees ORDER BY path"))?;
            let mut rows = statement.query([])?;
            let mut trees = Vec::new();
            while let Some(row) = rows.next()? {
                trees.push(read(row)?);
            }
            Ok(trees)
        })
    }

    pub(super) fn tree_of(&self, path: &DirPath) -> Result<Option<AttachedTree>> {
        self.readers.with(|connection| tree_of(connection, &path.key()))
    }
}

const COLUMNS: &str = "path, source, owner, mode, attached";

fn read(row: &SqlRow<'_>) -> Result<AttachedTree> {
    Ok(AttachedTree {
        path: FilePath::from_key(row.get_ref(0)?.as_str().map_err(wrong_type)?)?,
        source: row.get(1)?,
        owner: stored_value(row.get_ref(2)?.as_str().map_err(wrong_type)?.parse())?,
        mode: stored_value(Mode::new(row.get(3)?))?,
        attached: from_nanos(row.get(4)?),
    })
}

/// Returns the tree at the path of this key or above it.
pub(crate) fn tree_of(connection: &Connection, key: &str) -> Result<Option<AttachedTree>> {
    // Trees do not lie in each other. So in the order of keys, only the tree just before can have this path.
    let sql = format!("SELECT {COLUMNS} FROM trees WHERE path <= ? ORDER BY path DESC LIMIT 1");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement.query_row([key], |row| Ok(read(row))).optional()?.transpose()?;
    Ok(found.filter(|tree| {
        let tree = tree.path.key();
        key.strip_prefix(&tree).is_some_and(|rest| rest.is_empty() || rest.starts_with(SEPARATOR))
    }))
}

/// Refuses a change of a path in a tree.
pub(crate) fn check_not_in_tree(connection: &Connection, path: &FilePath) -> Result<()> {
    match tree_of(connection, &path.key())? {
        Some(tree) => {
            Err(NamespaceError::Conflict { path: path.clone(), conflict: PathConflict::InTree(tree.path) })
        }
        None => Ok(()),
    }
}

/// Refuses a change of a whole directory that has trees in it, or lies in one.
pub(crate) fn check_no_trees(connection: &Connection, dir: &DirPath, path: &FilePath) -> Result<()> {
    check_not_in_tree(connection, path)?;
    match tree_below(connection, dir)? {
        Some(tree) => {
            Err(NamespaceError::Conflict { path: path.clone(), conflict: PathConflict::HasTree(tree) })
        }
        None => Ok(()),
    }
}

/// Returns the first tree below a directory.
pub(crate) fn tree_below(connection: &Connection, dir: &DirPath) -> Result<Option<FilePath>> {
    let mut statement = connection
        .prepare_cached("SELECT path FROM trees WHERE path >= ? AND path < ? ORDER BY path LIMIT 1")?;
    let key: Option<String> =
        statement.query_row(params![dir.prefix(), dir.prefix_end()], |row| row.get(0)).optional()?;
    key.map(|key| FilePath::from_key(&key)).transpose()
}

/// Returns the first trees below a directory with keys from `start` on.
pub(crate) fn trees_from(
    connection: &Connection,
    dir: &DirPath,
    start: &str,
    limit: usize,
) -> Result<Vec<FilePath>> {
    let mut statement = connection
        .prepare_cached("SELECT path FROM trees WHERE path >= ? AND path < ? ORDER BY path LIMIT ?")?;
    let mut rows = statement.query(params![start, dir.prefix_end(), limit as i64])?;
    let mut trees = Vec::new();
    while let Some(row) = rows.next()? {
        trees.push(FilePath::from_key(row.get_ref(0)?.as_str().map_err(wrong_type)?)?);
    }
    Ok(trees)
}

/// Returns the names in a directory that lead to trees, after the name `after`.
pub(crate) fn tree_names(connection: &Connection, dir: &DirPath, after: Option<&str>) -> Result<Vec<String>> {
    let prefix = dir.prefix();
    let mut statement =
        connection.prepare_cached("SELECT path FROM trees WHERE path >= ? AND path < ? ORDER BY path")?;
    let mut rows = statement.query(params![prefix, dir.prefix_end()])?;
    let mut names: Vec<String> = Vec::new();
    while let Some(row) = rows.next()? {
        let key = row.get_ref(0)?.as_str().map_err(wrong_type)?;
        let name = key.strip_prefix(prefix.as_str()).and_then(|rest| rest.split(SEPARATOR).next());
        let Some(name) = name else {
            return Err(NamespaceError::damaged("the index of trees is out of order"));
        };
        if after.is_none_or(|after| name > after) && names.last().is_none_or(|last| last != name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
