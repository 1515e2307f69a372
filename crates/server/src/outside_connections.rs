//! Connections to object stores and web servers.

use std::sync::OnceLock;

use gristmill_backend::BackendError;
use gristmill_sources::{Sources, SourcesOptions};
use tokio::runtime::Handle;

/// Connections to object stores and web servers, with one bound on their requests at once. They are made at the first use,
/// because most nodes need none.
pub(crate) struct OutsideConnections {
    runtime: Handle,
    sources: OnceLock<Sources>,
}

impl OutsideConnections {
    /// No connections yet. Requests run on `runtime`.
    pub fn new(runtime: Handle) -> OutsideConnections {
        OutsideConnections { runtime, sources: OnceLock::new() }
    }

    /// The sources with these options, over the connections.
    ///
    /// # Errors
    /// It fails if the certificate authorities of the system cannot be read.
    pub fn with(&self, options: SourcesOptions) -> Result<Sources, BackendError> {
        if let Some(sources) = self.sources.get() {
            return Ok(sources.sharing(options));
        }
        let sources = Sources::on(self.runtime.clone(), SourcesOptions::default())?;
        Ok(self.sources.get_or_init(|| sources).sharing(options))
    }
}
