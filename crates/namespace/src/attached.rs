//! Attached trees: paths of the namespace whose files lie in storage outside the cluster. The namespace keeps their paths,
//! owners and modes, and a text that says where they lie. It does not read this text.

use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use crate::listing::{directory_exists, file_above};
use crate::path::SEPARATOR;
use crate::rows::{Row, from_nanos, stored_value, to_nanos, wrong_type};
use crate::{Access, DirPath, FilePath, Mode, Namespace, NamespaceError, PathConflict, Principal, Result};

/// Most attached trees.
pub const MAX_TREES: usize = 1_024;
/// Longest source of a tree, in bytes.
pub const MAX_SOURCE_BYTES: usize = 16_384;

/// An attached tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedTree {
    /// The path under which its files appear.
    pub path: FilePath,
    /// Where it lies: a text of the caller.
    pub source: String,
    /// The user who attached it.
    pub owner: Principal,
    /// Permission bits of all its files. Only the bits for reading count.
    pub mode: Mode,
    /// Time when it was attached.
    pub attached: SystemTime,
}

impl AttachedTree {
    /// The path of a file or directory below the tree, without the path of the tree; empty for the tree itself. `None` for a
    /// path that is not in the tree.
    #[must_use]
    pub fn key_of<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(self.path.as_str())?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }
}

impl Namespace {
    /// Attaches a tree. From then on all paths below `path` are its files.
    ///
    /// # Errors
    /// Returns [`NotAdministrator`](NamespaceError::NotAdministrator); [`Conflict`](NamespaceError::Conflict) if there is a
    /// file, a directory or a tree at the path, above it or below it; [`TooMany`](NamespaceError::TooMany) for more than
    /// [`MAX_TREES`]; [`Invalid`](NamespaceError::Invalid) for a source longer than [`MAX_SOURCE_BYTES`]; or a failure of the
    /// system.
    pub fn attach(&self, who: &Principal, path: &FilePath, source: &str, mode: Mode) -> Result<()> {
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

    /// Detaches the tree at `path`. Its files stay where they are.
    ///
    /// # Errors
    /// Returns [`NotFound`](NamespaceError::NotFound) if no tree is attached exactly there,
    /// [`NotAdministrator`](NamespaceError::NotAdministrator), or a failure of the system.
    pub fn detach(&self, who: &Principal, path: &FilePath) -> Result<()> {
        self.rules.check_administrator(who, "detach trees")?;
        let path = path.clone();
        self.writer.call(move |connection| {
            match connection.prepare_cached("DELETE FROM trees WHERE path = ?")?.execute([path.key()])? {
                0 => Err(NamespaceError::NotFound { path: path.to_string() }),
                _ => Ok(()),
            }
        })
    }

    /// Returns all attached trees, in the order of their paths.
    ///
    /// # Errors
    /// Returns a failure of the system.
    pub fn trees(&self) -> Result<Vec<AttachedTree>> {
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

    /// Returns the tree at `path` or above it.
    ///
    /// # Errors
    /// Returns a failure of the system.
    pub fn tree_of(&self, path: &DirPath) -> Result<Option<AttachedTree>> {
        self.readers.with(|connection| tree_of(connection, &path.key()))
    }

    /// Checks that `who` may read the files of a tree.
    ///
    /// # Errors
    /// Returns [`Denied`](NamespaceError::Denied).
    pub fn check_reader(&self, who: &Principal, tree: &AttachedTree) -> Result<()> {
        if self.is_administrator(who) || tree.mode.allows(*who == tree.owner, Access::Read) {
            return Ok(());
        }
        Err(NamespaceError::Denied { who: who.clone(), path: tree.path.clone(), verb: "read" })
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
