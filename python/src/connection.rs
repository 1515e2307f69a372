//! Clusters, and the names of their files.

use std::path::Path;
use std::sync::Arc;

use gristmill_client::{Cluster, ClusterOptions, Location};
use pyo3::prelude::*;

use crate::errors::Failure;
use crate::fork_guard::ForkGuard;

/// A connection to a cluster. The Python side keeps a few of them.
#[pyclass(frozen, module = "gristmill._gristmill")]
pub struct Connection {
    cluster: ForkGuard<Arc<Cluster>>,
}

impl Connection {
    pub fn cluster(&self) -> Result<Arc<Cluster>, Failure> {
        Ok(self.cluster.get()?.clone())
    }
}

#[pymethods]
impl Connection {
    /// Gets ready to talk to the cluster at this address, or to the one that the environment names.
    #[new]
    fn new(py: Python<'_>, entry: Option<String>) -> PyResult<Connection> {
        let made = py.detach(|| {
            let options = ClusterOptions::from_env(entry.as_deref())?;
            Cluster::connect(options).map_err(Failure::from)
        });
        Ok(Connection { cluster: ForkGuard::new(Arc::new(made?)) })
    }

    /// Address of the entry node.
    #[getter]
    fn entry(&self) -> PyResult<String> {
        Ok(self.cluster.get()?.entry().to_owned())
    }
}

/// The cluster of a connection that may not be there.
pub fn cluster_of(connection: Option<&Bound<'_, Connection>>) -> PyResult<Option<Arc<Cluster>>> {
    Ok(connection.map(|connection| connection.get().cluster()).transpose()?)
}

/// The location of a file that this process reads itself: a path of this machine, or the URL of an object store or web server.
pub fn here(path: &Path) -> Result<Location, Failure> {
    match path.to_str().filter(|text| text.contains("://")) {
        Some(text) => Ok(Location::parse(text)?),
        None => Ok(Location::Local(path.to_owned())),
    }
}

/// Entry address (or `None` for that of the environment) and path of a URL; `None` for a file that this process reads itself.
#[pyfunction]
pub fn parse(url: &str) -> PyResult<Option<(Option<String>, String)>> {
    match Location::parse(url).map_err(Failure::from)? {
        Location::Local(_) | Location::Outside(_) => Ok(None),
        Location::Remote(url) => Ok(Some((url.entry, url.path))),
    }
}
