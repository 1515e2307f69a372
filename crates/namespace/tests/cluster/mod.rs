//! A namespace with three targets, and short functions for its use.
#![allow(dead_code, reason = "each test uses only some of the functions")]

use std::path::Path;
use std::time::Duration;

use gristmill_namespace::{
    DirPath, FileId, FilePath, ListEntry, Mode, Namespace, NamespaceOptions, NewFile, Principal, Result,
    SqliteNamespace, TargetId,
};

pub const MINUTE: Duration = Duration::from_secs(60);
pub const NO_TIME: Duration = Duration::ZERO;

pub struct Cluster {
    pub namespace: SqliteNamespace,
    pub dir: tempfile::TempDir,
}

pub fn cluster() -> Cluster {
    let dir = tempfile::tempdir().unwrap();
    let namespace = open(dir.path());
    for n in 0..3 {
        assert_eq!(namespace.join(&target(n), &format!("node{n}:7070"), true).unwrap(), n);
    }
    Cluster { namespace, dir }
}

/// Opens a namespace with `boss` as the administrator.
pub fn open(dir: &Path) -> SqliteNamespace {
    SqliteNamespace::open_with(
        dir,
        NamespaceOptions { admin: Some(who("boss")), ..NamespaceOptions::default() },
    )
    .unwrap()
}

pub fn target(n: u32) -> TargetId {
    format!("{n:032x}").parse().unwrap()
}

pub fn who(name: &str) -> Principal {
    name.parse().unwrap()
}

pub fn path(path: &str) -> FilePath {
    FilePath::parse(path).unwrap()
}

pub fn mode(text: &str) -> Mode {
    text.parse().unwrap()
}

pub fn file(at: &str) -> NewFile {
    NewFile {
        path: path(at),
        unit: 4_096,
        first: 1,
        targets: vec![2, 0],
        record: None,
        segments: false,
        mode: None,
    }
}

pub fn file_with_mode(at: &str, bits: &str) -> NewFile {
    NewFile { mode: Some(mode(bits)), ..file(at) }
}

impl Cluster {
    pub fn begin(&self, name: &str, at: &str) -> Result<FileId> {
        self.namespace.begin(&who(name), &file(at), MINUTE)
    }

    pub fn put(&self, name: &str, file: &NewFile) -> Result<FileId> {
        let id = self.namespace.begin(&who(name), file, MINUTE)?;
        let versions: Vec<u64> = (5..).take(file.targets.len()).collect();
        self.namespace.commit(&who(name), &id, 100, &versions).map(|done| done.file.id)
    }

    /// Names in a directory. Names of directories end with a slash.
    pub fn names(&self, dir: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        let entries = self.namespace.list(&DirPath::parse(dir).unwrap(), after, limit)?;
        let name = |entry: &ListEntry| match entry {
            ListEntry::Dir(name) => format!("{name}/"),
            ListEntry::File(_) => entry.name().to_owned(),
        };
        Ok(entries.iter().map(name).collect())
    }

    pub fn garbage(&self) -> Vec<FileId> {
        let mut ids: Vec<_> =
            self.namespace.garbage(1_000).unwrap().into_iter().map(|found| found.id).collect();
        ids.sort();
        ids
    }

    /// Closes the namespace and opens it again.
    pub fn reopen(self) -> Self {
        let Self { namespace, dir } = self;
        drop(namespace);
        Self { namespace: open(dir.path()), dir }
    }
}
