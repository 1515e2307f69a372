//! The threads that drive connections, for callers that block.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use gristmill_backend::BackendError;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::range_cache::CachePlace;
use crate::read_ahead::ProcessAhead;

/// Threads that drive the connections of a process. Bytes are copied by the threads that read, so these have little to do.
const THREADS: usize = 2;

/// A handle to the runtime that drives connections. It is cheap to clone.
#[derive(Clone)]
pub(crate) struct Driver {
    handle: Handle,
    ahead: Arc<ProcessAhead>,
    /// Longest time of a whole read.
    patience: Option<Duration>,
    /// The cache of ranges that are read.
    cache: Option<CachePlace>,
    /// The last one ends the runtime.
    _owner: Option<Arc<OwnRuntime>>,
}

struct OwnRuntime(Option<Runtime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        // The usual drop waits for tasks, which is not allowed on a thread of another runtime.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The error of a read that took longer than it may.
pub(crate) fn too_slow(name: String, patience: Duration) -> BackendError {
    let why = format!("it was not read in {} s", patience.as_secs());
    BackendError::Unavailable { name, why }
}

impl Driver {
    /// Starts threads of its own.
    ///
    /// # Errors
    /// The error is [`BackendError::Io`] if the system gives no threads.
    pub fn start() -> gristmill_backend::Result<Driver> {
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let failed =
            |source| BackendError::Io { verb: "start", name: "the threads of connections".into(), source };
        let runtime = runtime.map_err(failed)?;
        let handle = runtime.handle().clone();
        let owner = Some(Arc::new(OwnRuntime(Some(runtime))));
        Ok(Driver { handle, ahead: Arc::default(), patience: None, cache: None, _owner: owner })
    }

    /// Uses the threads of a runtime that lives longer.
    pub fn on(handle: Handle) -> Driver {
        Driver { handle, ahead: Arc::default(), patience: None, cache: None, _owner: None }
    }

    /// The same threads, for reads that take at most this long.
    pub fn with_patience(self, patience: Option<Duration>) -> Driver {
        Driver { patience, ..self }
    }

    /// The same threads, for reads whose ranges are kept.
    pub fn with_cache(self, cache: Option<CachePlace>) -> Driver {
        Driver { cache, ..self }
    }

    /// The cache of ranges that are read.
    pub fn cache(&self) -> Option<&CachePlace> {
        self.cache.as_ref()
    }

    /// Waits for a read of an object. It fails if the time for it is over.
    ///
    /// # Errors
    /// The error is that of the read, or [`BackendError::Unavailable`] after the time.
    pub fn wait_for_read(
        &self,
        name: impl Fn() -> String,
        read: impl Future<Output = gristmill_backend::Result<()>>,
    ) -> gristmill_backend::Result<()> {
        let Some(patience) = self.patience else { return self.wait(read) };
        let timed = async { tokio::time::timeout(patience, read).await };
        self.wait(timed).unwrap_or_else(|_| Err(too_slow(name(), patience)))
    }

    /// Longest time of a whole read.
    pub fn patience(&self) -> Option<Duration> {
        self.patience
    }

    /// The bytes that are fetched ahead.
    pub fn ahead(&self) -> &ProcessAhead {
        &self.ahead
    }

    /// Waits for an operation. The calling thread must not drive asynchronous tasks itself.
    pub fn wait<T>(&self, operation: impl Future<Output = T>) -> T {
        self.handle.block_on(operation)
    }

    /// Begins an operation whose result is awaited later.
    pub fn spawn<T: Send + 'static>(
        &self,
        operation: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.handle.spawn(operation)
    }
}
