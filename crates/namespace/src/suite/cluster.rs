//! A namespace with three targets, and short functions for its use.

use std::sync::Arc;
use std::time::Duration;

use super::{Fixture, Make};
use crate::{DirPath, FileId, FilePath, ListEntry, Mode, Namespace, NewFile, Principal, Result, TargetId};

pub const MINUTE: Duration = Duration::from_secs(60);
pub const NO_TIME: Duration = Duration::ZERO;

/// A namespace, and where it is opened again.
pub struct Cluster {
    pub namespace: Arc<dyn Namespace>,
    fixture: Box<dyn Fixture>,
}

/// A namespace with three targets.
pub fn cluster(make: Make<'_>) -> Cluster {
    let cluster = Cluster::empty(make);
    for n in 0..3 {
        assert_eq!(cluster.namespace.join(&target(n), &format!("node{n}:7070"), true).unwrap(), n);
    }
    cluster
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

    /// A namespace without targets.
    pub fn empty(make: Make<'_>) -> Self {
        let fixture = make();
        Self { namespace: fixture.open(), fixture }
    }

    /// Closes the namespace and opens it again.
    pub fn reopen(self) -> Self {
        let Self { namespace, fixture } = self;
        drop(namespace);
        Self { namespace: fixture.open(), fixture }
    }
}
