//! Lookup of a file by its path, and lists of directories.

use rusqlite::{Connection, params};

use super::SqliteNamespace;
use super::owner::not_found;
use super::rows::{COLUMNS, Row, wrong_type};
use super::trees::{tree_below, tree_names, trees_from};
use crate::path::{AFTER_SEPARATOR, SEPARATOR, check_name};
use crate::{
    Access, DirPath, FileEntry, FilePath, ListEntry, MAX_LIST_PAGE, NamespaceError, Principal, Result,
};

/// Position of the path in [`COLUMNS`].
const PATH: usize = 3;

impl SqliteNamespace {
    pub(super) fn lookup(&self, who: &Principal, path: &FilePath, access: Access) -> Result<FileEntry> {
        let row = self.readers.with(|connection| Row::at(connection, path))?;
        let file = row.ok_or_else(|| not_found(path))?.entry()?;
        self.rules.check(who, &file, access, access.verb())?;
        Ok(file)
    }

    pub(super) fn list(&self, dir: &DirPath, after: Option<&str>, limit: usize) -> Result<Vec<ListEntry>> {
        after.map_or(Ok(()), check_name)?;
        let limit = limit.min(MAX_LIST_PAGE);
        self.readers.with(|connection| {
            let mut entries = page(connection, dir, after, limit)?;
            for name in tree_names(connection, dir, after)? {
                if let Err(at) = entries.binary_search_by(|entry| entry.name().cmp(&name)) {
                    entries.insert(at, ListEntry::Dir(name));
                }
            }
            entries.truncate(limit);
            if entries.is_empty() && !dir.is_root() && !directory_exists(connection, dir)? {
                return Err(NamespaceError::NotFound { path: dir.to_string() });
            }
            Ok(entries)
        })
    }

    pub(super) fn list_below(
        &self,
        dir: &DirPath,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ListEntry>> {
        let limit = limit.min(MAX_LIST_PAGE);
        let start = match after {
            // Of a path that follows directly, the key has the lowest character more.
            Some(below) => {
                FilePath::parse(&format!("{}/{below}", dir.as_str().trim_end_matches('/')))?.key() + "\0"
            }
            None => dir.prefix(),
        };
        self.readers.with(|connection| {
            let mut found = files_from(connection, dir, &start, limit)?;
            for path in trees_from(connection, dir, &start, limit)? {
                let (key, prefix) = (path.key(), dir.prefix());
                let name = key.strip_prefix(&prefix).unwrap_or_default().replace(SEPARATOR, "/");
                found.push((key, ListEntry::Dir(name)));
            }
            found.sort_by(|one, other| one.0.cmp(&other.0));
            found.truncate(limit);
            if found.is_empty() && !dir.is_root() && !directory_exists(connection, dir)? {
                return Err(NamespaceError::NotFound { path: dir.to_string() });
            }
            Ok(found.into_iter().map(|(_, entry)| entry).collect())
        })
    }
}

/// Files below a directory with keys from `start` on.
fn files_from(
    connection: &Connection,
    dir: &DirPath,
    start: &str,
    limit: usize,
) -> Result<Vec<(String, ListEntry)>> {
    let mut statement = connection.prepare_cached(&range_query())?;
    let mut rows = statement.query(params![start, dir.prefix_end(), limit as i64])?;
    let mut files = Vec::new();
    while let Some(row) = rows.next()? {
        let file = Row::read(row)?.entry()?;
        files.push((file.path.key(), ListEntry::File(file)));
    }
    Ok(files)
}

fn range_query() -> String {
    format!("SELECT {COLUMNS} FROM files WHERE state = 1 AND path >= ? AND path < ? ORDER BY path LIMIT ?")
}

fn page(connection: &Connection, dir: &DirPath, after: Option<&str>, limit: usize) -> Result<Vec<ListEntry>> {
    let (prefix, end) = (dir.prefix(), dir.prefix_end());
    let mut statement = connection.prepare_cached(&range_query())?;
    let mut start = after.map_or_else(|| prefix.clone(), |name| format!("{prefix}{name}{AFTER_SEPARATOR}"));
    let mut entries = Vec::new();
    // Each turn reads the files up to the next directory, and continues after all files of this directory.
    'next: while entries.len() < limit {
        let mut rows = statement.query(params![start, end, (limit - entries.len()) as i64])?;
        while let Some(row) = rows.next()? {
            let key = row.get_ref(PATH)?.as_str().map_err(wrong_type)?;
            let Some(name) = key.strip_prefix(prefix.as_str()) else {
                return Err(NamespaceError::damaged("the index of paths is out of order"));
            };
            if let Some((name, _)) = name.split_once(SEPARATOR) {
                entries.push(ListEntry::Dir(name.to_owned()));
                start = format!("{prefix}{name}{AFTER_SEPARATOR}");
                continue 'next;
            }
            entries.push(ListEntry::File(Row::read(row)?.entry()?));
        }
        break;
    }
    Ok(entries)
}

/// Whether a file or an attached tree lies in the directory, at any depth.
pub(crate) fn directory_exists(connection: &Connection, dir: &DirPath) -> Result<bool> {
    let mut statement = connection
        .prepare_cached("SELECT 1 FROM files WHERE state = 1 AND path >= ? AND path < ? LIMIT 1")?;
    Ok(statement.exists(params![dir.prefix(), dir.prefix_end()])? || tree_below(connection, dir)?.is_some())
}

/// Returns the file whose path is a parent of `path`, if there is one.
pub(crate) fn file_above(connection: &Connection, path: &FilePath) -> Result<Option<FilePath>> {
    let key = path.key();
    let mut statement = connection
        .prepare_cached("SELECT path FROM files WHERE state = 1 AND path < ? ORDER BY path DESC LIMIT 1")?;
    // In the order of keys, only keys below a file could come between it and `path`. There are none, because a path is
    // never both file and directory. So only the key just before can be that file.
    let mut rows = statement.query([&key])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let before = row.get_ref(0)?.as_str().map_err(wrong_type)?;
    let below = key.strip_prefix(before).is_some_and(|rest| rest.starts_with(SEPARATOR));
    below.then(|| FilePath::from_key(before)).transpose()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::sqlite::schema;

    #[test]
    fn a_page_is_a_range_of_the_index_and_needs_no_sorting() {
        let dir = tempfile::tempdir().unwrap();
        let connection = schema::open_writer(dir.path()).unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", range_query())).unwrap();
        let plan = statement.query_map(params!["a", "b", 1], |row| row.get::<_, String>(3)).unwrap();
        let plan: Vec<String> = plan.map(|line| line.unwrap()).collect();
        assert_eq!(plan, ["SEARCH files USING INDEX live_paths (path>? AND path<?)"]);
    }
}
