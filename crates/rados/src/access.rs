//! The parts of a store that every object uses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill_store::rules::to_nanos;
use gristmill_store::{Clock, ObjectId, StoreError, Version};
use rustix::io::Errno;

use crate::RadosLocation;
use crate::client::Pool;
use crate::error::explain;
use crate::owner::Ownership;
use crate::placement::Placement;

/// Bits of a version that count changes. Those above count how often the store was opened.
const CHANGE_BITS: u32 = 40;

/// The pool, and what belongs to the whole store.
pub(crate) struct Access {
    pub pool: Arc<Pool>,
    pub location: RadosLocation,
    pub placement: Placement,
    pub clock: Arc<dyn Clock>,
    owner: Ownership,
    changes: AtomicU64,
}

impl Access {
    pub fn new(
        pool: Arc<Pool>,
        location: &RadosLocation,
        placement: Placement,
        clock: Arc<dyn Clock>,
        owner: Ownership,
    ) -> Access {
        Access { pool, location: location.clone(), placement, clock, owner, changes: AtomicU64::new(0) }
    }

    /// Whether another process has the store now.
    pub fn is_lost(&self) -> bool {
        self.owner.is_lost()
    }

    /// A version that no object had before.
    pub fn next_version(&self) -> Version {
        let change = self.changes.fetch_add(1, Ordering::Relaxed);
        Version((self.owner.opened << CHANGE_BITS) + change)
    }

    pub fn now(&self) -> i64 {
        to_nanos(self.clock.now())
    }

    /// The name of an object in messages.
    pub fn name_of(&self, id: &ObjectId) -> String {
        format!("{}/{id}", self.location)
    }

    /// The error of an operation on an object.
    pub fn failed(&self, op: &'static str, id: &ObjectId) -> impl Fn(Errno) -> StoreError + use<'_> {
        let name = self.name_of(id);
        move |errno| explain(op, name.clone(), errno)
    }
}
