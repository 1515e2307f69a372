//! The common test suite for both backends.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test: a panic is a failure")]

use std::sync::Arc;

use gristmill_store::suite::{ManualClock, Subject};
use gristmill_store::{LocalStore, MemoryStore, object_store_suite};

mod memory {
    use super::*;

    fn subject() -> Subject {
        let clock = Arc::new(ManualClock::new());
        Subject::new(Box::new(MemoryStore::with_limits(clock.clone(), 1 << 24)), clock, Box::new(()))
    }
    object_store_suite!(subject);
}

mod local {
    use super::*;

    fn subject() -> Subject {
        let clock = Arc::new(ManualClock::new());
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open_with(dir.path(), clock.clone()).unwrap();
        Subject::new(Box::new(store), clock, Box::new(dir))
    }
    object_store_suite!(subject);
}
