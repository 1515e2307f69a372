//! Changes that are queued, so that many share a commit.

use std::sync::mpsc::{Receiver, sync_channel};

use crate::{NamespaceError, Result};

/// A change that is queued or done. It is made even if no caller waits for it.
#[must_use = "only a call of wait tells whether the change was made"]
pub struct PendingChange<T>(Receiver<Result<T>>);

impl<T> PendingChange<T> {
    /// A change that is done, for a namespace that queues none.
    pub fn done(result: Result<T>) -> Self {
        let (sender, answer) = sync_channel(1);
        // The channel has room for it.
        let _ = sender.try_send(result);
        Self(answer)
    }

    /// A change whose result comes through a channel. If the sender is dropped without one, the namespace has stopped.
    pub fn of(answer: Receiver<Result<T>>) -> Self {
        Self(answer)
    }

    /// Waits until the change is durable, and returns its result.
    ///
    /// # Errors
    /// Returns the errors of the change.
    pub fn wait(self) -> Result<T> {
        self.0.recv().map_err(|_| NamespaceError::Stopped)?
    }
}
