//! The test suite that every backend passes.
//!
//! The tests of a backend define a function that makes a [`Subject`]. The macro
//! [`object_store_suite!`](crate::object_store_suite) makes one `#[test]` for each property:
//!
//! ```
//! use std::sync::Arc;
//! use gristmill_store::suite::{ManualClock, Subject};
//! use gristmill_store::{MemoryStore, object_store_suite};
//!
//! fn subject() -> Subject {
//!     let clock = Arc::new(ManualClock::new());
//!     let store = MemoryStore::with_limits(clock.clone(), 1 << 20);
//!     Subject::new(Box::new(store), clock, Box::new(()))
//! }
//! object_store_suite!(subject);
//! # fn main() {}
//! ```
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test suite: a panic is a failed test")]

pub mod attributes;
pub mod bytes;
pub mod lifecycle;
pub mod model;

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{Clock, CreateOptions, ObjectId, ObjectStore, ReadOptions, WriteOptions};

/// An empty store under test, and its clock.
pub struct Subject {
    /// The store.
    pub store: Box<dyn ObjectStore>,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    _keep: Box<dyn Any>,
}

impl Subject {
    /// A subject of tests. `keep` lives as long as the subject; it may be a temporary directory.
    pub fn new(store: Box<dyn ObjectStore>, clock: Arc<ManualClock>, keep: Box<dyn Any>) -> Self {
        Self { store, clock, _keep: keep }
    }
}

/// A clock that moves only by calls of [`advance`](Self::advance).
pub struct ManualClock(Mutex<SystemTime>);

impl ManualClock {
    /// A clock at a Unix time of 1,000,000,001 seconds.
    pub fn new() -> Self {
        Self(Mutex::new(UNIX_EPOCH + Duration::from_secs(1_000_000_001)))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }
}

/// Returns `name` as an object name.
pub fn id(name: &str) -> ObjectId {
    ObjectId::new(name).unwrap()
}

/// Creates an object with `bytes` and without a lease.
pub fn with_bytes(store: &dyn ObjectStore, name: &str, bytes: &[u8]) -> ObjectId {
    let id = id(name);
    store.create(&id, &CreateOptions::default()).unwrap();
    store.write_at(&id, 0, bytes, WriteOptions::default()).unwrap();
    id
}

/// Returns all bytes of an object.
pub fn all_bytes(store: &dyn ObjectStore, id: &ObjectId) -> Vec<u8> {
    let mut bytes = vec![0xee; store.stat(id).unwrap().length as usize + 1];
    let n = store.read_at(id, 0, &mut bytes, ReadOptions::default()).unwrap();
    bytes.truncate(n);
    bytes
}

/// Runs every property, each on a new subject, for callers without the test harness.
pub fn run(make: &dyn Fn() -> Subject) {
    for (name, property) in PROPERTIES {
        eprintln!("{name}");
        property(&make());
    }
}

macro_rules! properties {
    ($($module:ident: $($name:ident)*;)*) => {
        /// Every property by name.
        pub const PROPERTIES: &[(&str, fn(&Subject))] = &[$($((stringify!($name), $module::$name)),*),*];
    };
}
properties! {
    lifecycle: create_stat_remove versions_grow_and_never_repeat arrival_states list_pages names_do_not_collide
        operations_need_an_object threads_share_a_store;
    bytes: reads_are_short_only_at_the_end if_version_guards_reads_and_writes append_returns_its_offset
        punch_leaves_zeros truncate_cuts_and_grows extents_scatter_and_gather written_intervals intervals_are_bounded
        offsets_are_bounded conditional_reads_see_one_state;
    attributes: set_get_list_remove attributes_go_with_operations attribute_bounds cas_swaps_only_on_match
        fetch_add_counts counters_are_atomic;
    model: agrees_with_the_model;
}

/// Makes one `#[test]` for each property of [`suite`](crate::suite). The argument is a function that returns a
/// [`Subject`](crate::suite::Subject). Use it once in a module.
#[macro_export]
macro_rules! object_store_suite {
    ($make:expr) => {
        $crate::object_store_suite! { @tests $make;
            create_stat_remove versions_grow_and_never_repeat arrival_states list_pages
            names_do_not_collide operations_need_an_object threads_share_a_store
            reads_are_short_only_at_the_end if_version_guards_reads_and_writes append_returns_its_offset
            punch_leaves_zeros truncate_cuts_and_grows extents_scatter_and_gather written_intervals intervals_are_bounded
            offsets_are_bounded conditional_reads_see_one_state
            set_get_list_remove attributes_go_with_operations attribute_bounds cas_swaps_only_on_match
            fetch_add_counts counters_are_atomic agrees_with_the_model
        }
    };
    (@tests $make:expr; $($name:ident)*) => {
        $(#[test]
        fn $name() {
            let properties = $crate::suite::PROPERTIES.iter();
            let (_, property) = properties.copied().find(|(name, _)| *name == stringify!($name)).unwrap();
            property(&$make());
        })*

        /// The list above contains every property.
        #[test]
        fn suite_is_complete() {
            assert_eq!([$(stringify!($name)),*].len(), $crate::suite::PROPERTIES.len());
        }
    };
}
