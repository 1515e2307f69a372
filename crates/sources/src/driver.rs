//! The threads that drive connections, for callers that block.

use std::future::Future;
use std::sync::Arc;

use crate::read_ahead::AheadBudget;
use gristmill_backend::BackendError;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that drive the connections of a process. Bytes are copied by the threads that read, so these have little to do.
const THREADS: usize = 2;

/// A handle to the runtime that drives connections. It is cheap to clone.
#[derive(Clone)]
pub(crate) struct Driver {
    handle: Handle,
    ahead: Arc<AheadBudget>,
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
        Ok(Driver { handle, ahead: Arc::default(), _owner: Some(Arc::new(OwnRuntime(Some(runtime)))) })
    }

    /// Uses the threads of a runtime that lives longer.
    pub fn on(handle: Handle) -> Driver {
        Driver { handle, ahead: Arc::default(), _owner: None }
    }

    /// The bytes that are fetched ahead.
    pub fn ahead(&self) -> &AheadBudget {
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
