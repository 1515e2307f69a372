//! Where versions come from: one counter for the whole store.
//!
//! The SQLite file holds a ceiling that no version given so far reaches. It is raised, durably, a block at
//! a time; after a crash the counter goes on from the ceiling.

use std::sync::Mutex;

use super::meta::Meta;
use crate::locks::lock;
use crate::{MAX_OBJECT_BYTES, Result, StoreError};

/// Versions reserved by one commit.
const BLOCK: u64 = 1 << 16;

pub(super) struct Versions(Mutex<Counter>);

struct Counter {
    next: u64,
    ceiling: u64,
}

impl Versions {
    /// Goes on from `next`, above every version given before.
    pub(super) fn from(next: u64) -> Self {
        Self(Mutex::new(Counter { next, ceiling: next }))
    }

    pub(super) fn next(&self, meta: &Meta) -> Result<u64> {
        let mut counter = lock(&self.0);
        if counter.next >= counter.ceiling {
            let ceiling = counter.next.saturating_add(BLOCK);
            // SQLite counts in signed 64 bits; no store lives long enough to get there by itself.
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

    /// The version that would be given next.
    pub(super) fn peek(&self) -> u64 {
        lock(&self.0).next
    }
}
