//! Namespaces of SQLite in folders, with the functions of the suite.
#![allow(dead_code, unused_imports, reason = "each test uses only some of the functions")]

use std::path::Path;
use std::sync::Arc;

use gristmill_namespace::suite::Fixture;
pub use gristmill_namespace::suite::cluster::{Cluster, MINUTE, NO_TIME, file, path, target, who};
use gristmill_namespace::{Namespace, NamespaceOptions, SqliteNamespace};
use tempfile::TempDir;

/// A namespace in a folder.
pub struct InFolder(pub Arc<TempDir>);

impl Fixture for InFolder {
    fn open(&self) -> Arc<dyn Namespace> {
        Arc::new(open(self.0.path()))
    }
}

/// A namespace with three targets, and its folder.
pub fn cluster() -> (Cluster, Arc<TempDir>) {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let made = gristmill_namespace::suite::cluster::cluster(&|| Box::new(InFolder(folder.clone())));
    (made, folder)
}

/// Opens a namespace with `boss` as the administrator.
pub fn open(dir: &Path) -> SqliteNamespace {
    let options = NamespaceOptions { admin: Some(who("boss")), ..NamespaceOptions::default() };
    SqliteNamespace::open_with(dir, options).unwrap()
}
