//! Work that waits, on threads of its own.

use crate::ServerError;

/// Runs work that may wait for a disk on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static, E: From<ServerError> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ServerError::Internal { what: format!("a request panicked: {error}") }.into()),
    }
}
