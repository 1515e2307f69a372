//! The normal reads and writes that a node serves: they have no turns and no estimates, but they are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many there are.
#[derive(Clone, Debug, Default)]
pub(crate) struct NormalCount(Arc<AtomicU64>);

/// One of them, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Normal(NormalCount);

impl NormalCount {
    /// One more, until what is given is dropped.
    pub fn begin(&self) -> Normal {
        self.0.fetch_add(1, Ordering::Relaxed);
        Normal(self.clone())
    }

    /// How many there are now.
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Normal {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
