//! Placement of active requests: on the storage node that has the data, on a data node, or at the client.
//!
//! All functions are pure: they use no clock, no network and no randomness. So the same code decides on an
//! entry node and in a simulation of ten thousand nodes.
//!
//! - [`paper`] is the objective of DOSAS (Chen 2012), solved exactly in O(k log k).
//! - [`overlap`] is our own objective. Resources work at the same time, and the busiest one counts. A plan has a
//!   lower bound.
//! - [`cluster`] translates nodes, clients and shards to [`overlap`]. It also returns the costs at the other places.
//! - [`MeasuredRate`] and [`Rates`] are measured rates of kernels. Wrong clocks and false samples do little harm.
//! - [`Revision`] decides when to move running work.
//! - [`simulate`] simulates requests over many nodes with each policy.
//!
//! Three Gaussian filters wait at a storage node with two cores. They belong to one client with eight cores:
//! ```
//! use gristmill_schedule::cluster::{Client, Cluster, Node, Shard};
//! use gristmill_schedule::{Place, Places};
//!
//! let mut cluster = Cluster::default();
//! let node = cluster.storage_node(Node { cores: 2.0, link: 118e6, ..Node::IDLE });
//! let client = cluster.client(Client { link: 1e9, ..Client::IDLE });
//! let filter = Shard {
//!     result_bytes: 64,
//!     parallel: 2.0,
//!     storage_rate: 80e6,  // of one core
//!     client_rate: 640e6, // of all cores of the client
//!     places: Places::ALL.without(Place::Data),
//!     ..Shard::of(node, client, 256_000_000)
//! };
//! let placement = cluster.place(&[filter; 3])?;
//! // One goes over the link (2.2 s) while two are folded at the node (3.2 s).
//! assert_eq!(placement.places.iter().filter(|place| **place == Place::Storage).count(), 2);
//! assert!((placement.makespan - 3.2).abs() < 1e-6);
//! # Ok::<(), gristmill_schedule::ScheduleError>(())
//! ```

mod bound;
pub mod cluster;
mod descent;
mod error;
mod exhaustive;
mod measured_rate;
pub mod overlap;
pub mod paper;
mod place;
mod problem;
mod rates;
mod revision;
pub mod simulate;

pub use error::ScheduleError;
pub use measured_rate::{GUESS_SECONDS, HALF_LIFE, LEAST_SAMPLE, MAX_FACTOR, MeasuredRate, PRIOR_SECONDS};
pub use place::{Place, Places};
pub use problem::{Choice, MAX_RESOURCES, MAX_USES, Problem, Use};
pub use rates::{MAX_KERNELS, Rates};
pub use revision::{BEGINNING_SECONDS, LEAST_GAIN, LEAST_SHARE, MAX_MOVES, Revision, SETTLE_SECONDS};

/// Most requests that are decided at the same time.
pub const MAX_WORKS: usize = 1 << 20;

/// Lowest possible rate, in bytes a second.
pub const MIN_RATE: f64 = 1e-9;

/// Highest possible rate, in bytes a second.
pub const MAX_RATE: f64 = 1e18;

/// Longest possible time, in seconds. Sums and powers of such times are still finite.
pub const MAX_SECONDS: f64 = 1e30;

/// Shortest time that counts, in seconds. A shorter time counts as 0.
pub const MIN_SECONDS: f64 = 1e-30;
