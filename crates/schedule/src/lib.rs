//! Where active requests run: on the storage node that has the data, on a data node, or at the client.
//!
//! Everything here is a function of what it is given: no clock, no network, no randomness. So the same code
//! decides on an entry node and in a simulation of ten thousand nodes.
//!
//! - [`paper`] is the objective of DOSAS (Chen 2012), solved exactly in O(k log k).
//! - [`overlap`] is ours: resources work at the same time, and the busiest one counts. It comes with a bound.
//! - [`cluster`] asks [`overlap`] in the words of nodes, clients and shards, and says what other places would
//!   have cost.
//! - [`Learned`] and [`Rates`] are rates of kernels as measured, whatever a clock or a node says.
//! - [`Revision`] says when to move work that runs.
//! - [`simulate`] plays requests over many nodes under each way to decide.
//!
//! Three Gaussian filters wait at a storage node of two cores, for one client of eight:
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
//!     client_rate: 640e6, // of all of the client's
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
mod learned;
pub mod overlap;
pub mod paper;
mod place;
mod problem;
mod rates;
mod revision;
pub mod simulate;

pub use error::ScheduleError;
pub use learned::{GUESS_SECONDS, HALF_LIFE, LEAST_SAMPLE, Learned, MAX_FACTOR, PRIOR_SECONDS};
pub use place::{Place, Places};
pub use problem::{Choice, MAX_RESOURCES, MAX_USES, Problem, Use};
pub use rates::{MAX_KERNELS, Rates};
pub use revision::{LEAST_GAIN, LEAST_SHARE, MAX_MOVES, Revision, SETTLE};

/// Most requests that are decided at once.
pub const MAX_WORKS: usize = 1 << 20;

/// Slowest rate that is believed, in bytes a second.
pub const MIN_RATE: f64 = 1e-9;

/// Fastest rate that is believed, in bytes a second.
pub const MAX_RATE: f64 = 1e18;

/// Longest time that is counted with, in seconds: sums and powers of such times remain numbers.
pub const MAX_SECONDS: f64 = 1e30;

/// Shortest time that is counted with, in seconds; what is shorter counts as none.
pub const MIN_SECONDS: f64 = 1e-30;
