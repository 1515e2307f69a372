//! Lists of directories in memory.

use std::collections::BTreeMap;

use super::state::State;
use crate::path::{SEPARATOR, check_name};
use crate::{DirPath, FilePath, ListEntry, NamespaceError, Result};

impl State {
    pub fn list(&self, dir: &DirPath, after: Option<&str>, limit: usize) -> Result<Vec<ListEntry>> {
        after.map_or(Ok(()), check_name)?;
        let prefix = dir.prefix();
        let mut names = BTreeMap::new();
        for (key, file) in self.files_in(dir) {
            let below = key.strip_prefix(&*prefix).unwrap_or_default();
            match below.split_once(SEPARATOR) {
                Some((name, _)) => names.insert(name.to_owned(), ListEntry::Dir(name.to_owned())),
                None => names.insert(below.to_owned(), ListEntry::File(file.clone())),
            };
        }
        for (key, _) in self.trees_in(dir) {
            let below = key.strip_prefix(&*prefix).unwrap_or_default();
            let name = below.split(SEPARATOR).next().unwrap_or_default();
            names.insert(name.to_owned(), ListEntry::Dir(name.to_owned()));
        }
        let found = names.into_iter().filter(|(name, _)| after.is_none_or(|after| name.as_str() > after));
        self.unless_missing(dir, found.map(|(_, entry)| entry).take(limit).collect())
    }

    pub fn list_below(&self, dir: &DirPath, after: Option<&str>, limit: usize) -> Result<Vec<ListEntry>> {
        let start = match after {
            Some(below) => {
                let path = FilePath::parse(&format!("{}/{below}", dir.as_str().trim_end_matches('/')))?;
                path.key() + "\0"
            }
            None => dir.prefix(),
        };
        let prefix = dir.prefix();
        let files = self.files_from(&start, dir).map(|(key, file)| (key, ListEntry::File(file.clone())));
        let trees = self.trees_in(dir).filter(|(key, _)| *key >= start.as_str()).map(|(key, _)| {
            let below = key.strip_prefix(&*prefix).unwrap_or_default();
            (key, ListEntry::Dir(below.replace(SEPARATOR, "/")))
        });
        let mut found: Vec<_> = files.take(limit).chain(trees).collect();
        found.sort_by(|one, other| one.0.cmp(other.0));
        self.unless_missing(dir, found.into_iter().map(|(_, entry)| entry).take(limit).collect())
    }

    /// The entries, unless there are none because there is no such directory.
    fn unless_missing(&self, dir: &DirPath, entries: Vec<ListEntry>) -> Result<Vec<ListEntry>> {
        if entries.is_empty() && !dir.is_root() && !self.directory_exists(dir) {
            return Err(NamespaceError::NotFound { path: dir.to_string() });
        }
        Ok(entries)
    }
}
