//! The namespaces of this crate pass the suite.
#![allow(clippy::unwrap_used, reason = "a test: a panic is a failure")]

mod cluster;

use std::sync::Arc;

use cluster::InFolder;
use gristmill_namespace::suite::Fixture;
use gristmill_namespace::{MemoryNamespace, Namespace, namespace_suite};

struct InMemory(Arc<MemoryNamespace>);

impl Fixture for InMemory {
    fn open(&self) -> Arc<dyn Namespace> {
        self.0.clone()
    }
}

namespace_suite!(sqlite, InFolder(Arc::new(tempfile::tempdir().unwrap())));
namespace_suite!(memory, InMemory(Arc::new(MemoryNamespace::new("boss".parse().ok()))));
