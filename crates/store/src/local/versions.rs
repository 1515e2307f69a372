//! The counter of versions, one for the whole store.
//!
//! The SQLite file contains a ceiling, which is above every used version. It is raised durably by a block of versions
//! at a time. After a crash the counter continues from the ceiling.

use std::sync::Mutex;

use super::meta::Meta;
use crate::locks::lock;
use crate::{MAX_OBJECT_BYTES, Result, StoreError};

/// Number of versions that one commit reserves.
const VERSION_BLOCK: u64 = 1 << 16;

pub(super) struct Versions(Mutex<Counter>);

struct Counter {
    next: u64,
    ceiling: u64,
}

impl Versions {
    /// A counter that continues from `next`, which must be above every used version.
    pub(super) fn starting_at(next: u64) -> Self {
        Self(Mutex::new(Counter { next, ceiling: next }))
    }

    pub(super) fn next(&self, meta: &Meta) -> Result<u64> {
        let mut counter = lock(&self.0);
        if counter.next >= counter.ceiling {
            let ceiling = counter.next.saturating_add(VERSION_BLOCK);
            // SQLite counts in signed 64 bits. Only a damaged store has so large a version.
            if ceiling > MAX_OBJECT_BYTES {
                let what = format!("the version counter stands at {}", counter.next);
                return Err(StoreError::Damaged { what, remedy: crate::error::RESTORE });
            }
            meta.set_counter(ceiling, false)?;
            counter.ceiling = ceiling;
        }
        counter.next += 1;
        Ok(counter.next - 1)
    }

    /// The next version. It is not used up.
    pub(super) fn peek(&self) -> u64 {
        lock(&self.0).next
    }
}
