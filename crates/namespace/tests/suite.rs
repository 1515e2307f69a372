//! The namespaces of this crate pass the suite.
#![allow(clippy::unwrap_used, reason = "a test: a panic is a failure")]

use std::sync::Arc;

use gristmill_namespace::suite::Fixture;
use gristmill_namespace::{MemoryNamespace, Namespace, NamespaceOptions, SqliteNamespace, namespace_suite};

struct InFolder(tempfile::TempDir);

impl Fixture for InFolder {
    fn open(&self) -> Arc<dyn Namespace> {
        let options = NamespaceOptions { admin: "boss".parse().ok(), ..NamespaceOptions::default() };
        Arc::new(SqliteNamespace::open_with(self.0.path(), options).unwrap())
    }
}

struct InMemory(Arc<MemoryNamespace>);

impl Fixture for InMemory {
    fn open(&self) -> Arc<dyn Namespace> {
        self.0.clone()
    }
}

namespace_suite!(sqlite, InFolder(tempfile::tempdir().unwrap()));
namespace_suite!(memory, InMemory(Arc::new(MemoryNamespace::new("boss".parse().ok()))));
