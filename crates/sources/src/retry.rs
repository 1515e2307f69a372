//! Repetition of requests that failed for a reason that may pass.

use std::time::Duration;

use gristmill_backend::{BackendError, Result};
use object_store::RetryConfig;
use tokio::time::Instant;

/// Most repetitions of a request.
pub const MAX_RETRIES: usize = 4;

/// Longest time in which a request is repeated.
pub const RETRY_PATIENCE: Duration = Duration::from_secs(60);

/// Wait before the first repetition. It doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Longest wait before a repetition.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The client of object stores repeats nothing itself, so that there is one bound for all storage.
pub(crate) fn no_store_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// Sends a request again as long as its failure may pass.
pub(crate) async fn repeat<T>(mut send: impl AsyncFnMut() -> Result<T>) -> Result<T> {
    let mut retries = Retries::begin();
    loop {
        match send().await {
            Err(error) if retries.again(&error).await => {}
            other => return other,
        }
    }
}

/// The repetitions of one request.
pub(crate) struct Retries {
    begin: Instant,
    left: usize,
    wait: Duration,
}

impl Retries {
    pub fn begin() -> Retries {
        Retries { begin: Instant::now(), left: MAX_RETRIES, wait: FIRST_WAIT }
    }

    /// Waits, and returns whether the request should be sent again. Only [`BackendError::Unavailable`] may pass.
    pub async fn again(&mut self, error: &BackendError) -> bool {
        let may_pass = matches!(error, BackendError::Unavailable { .. });
        if !may_pass || self.left == 0 || self.begin.elapsed() + self.wait > RETRY_PATIENCE {
            return false;
        }
        // Many readers that failed together should not come back together.
        tokio::time::sleep(self.wait.mul_f64(0.5 + fastrand::f64())).await;
        self.left -= 1;
        self.wait = (self.wait * 2).min(MAX_WAIT);
        true
    }
}
