//! How many requests of a kind a node has, at work or waiting.

use std::sync::Arc;

use gristmill_runtime::ErrorKind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Answer, Refusal};

/// A place among the requests of a kind; given back when dropped.
pub(crate) type Seat = OwnedSemaphorePermit;

/// The places for requests of a kind. Nobody waits for one: who finds none is told that the node is busy.
pub(crate) struct Seats {
    free: Arc<Semaphore>,
    most: usize,
    /// The requests, as an error names them.
    what: &'static str,
}

impl Seats {
    pub fn new(most: usize, what: &'static str) -> Seats {
        Seats { free: Arc::new(Semaphore::new(most)), most, what }
    }

    /// Takes a place on the node of this address, or says that it is busy.
    pub fn take(&self, node: &str) -> Answer<Seat> {
        self.free.clone().try_acquire_owned().map_err(|_| {
            let text = format!(
                "storage node {node} has {} {} already, as many as it takes; try again when some have ended",
                self.most, self.what
            );
            Refusal::new(ErrorKind::Busy, text)
        })
    }

    /// Takes all places once nobody has one.
    #[cfg(test)]
    pub async fn all(&self) -> Seat {
        let most = u32::try_from(self.most).unwrap_or(u32::MAX);
        self.free.clone().acquire_many_owned(most).await.unwrap_or_else(|_| unreachable!("never closed"))
    }
}
