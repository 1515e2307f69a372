//! The daemon of a storage node. It folds records of its target, serves bytes and, on the entry node, the namespace.
//!
//! Every node has one target (a directory with an object store) and one port. The *entry node* also has the
//! namespace: it gives out grants, and storage nodes join it. A node answers
//! - Flight `DoGet`: a fold over its records ([`gristmill_wire::FoldRequest`]); on the entry node also a kernel
//!   over a file by path ([`gristmill_wire::RunRequest`]), with the nodes' partials merged;
//! - Flight `DoAction`, `ListFlights`, `GetFlightInfo`: management of files, on the entry node;
//! - HTTP/1.1 `/objects/NAME`: bytes of objects, with a grant; `/files/PATH` on the entry node: whole files with byte
//!   ranges, for `curl` and other programs; `/health`;
//! - HTTP/1.1 for monitoring: `/metrics`; `/status` with a grant; on the entry node `/cluster`, the status of all
//!   nodes, and `/`, a page that shows it.
//!
//! Memory is bounded for every size of a file: [`limits`] names all bounds.
//!
//! ```
//! use gristmill_server::{Node, NodeOptions};
//!
//! let dir = tempfile::tempdir()?;
//! let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
//! let node = runtime.block_on(Node::start(NodeOptions::entry(dir.path(), "127.0.0.1:0".parse()?)))?;
//! println!("listens on {}", node.address());
//! runtime.block_on(node.stop())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod actions;
mod active_uploads;
mod answer;
mod arriving_body;
mod attached;
mod blocking;
#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod busy_tests;
mod checks;
mod cluster;
mod collect;
mod contention;
mod door;
mod entry;
mod entry_node;
mod error;
mod exchange;
mod files;
mod flight;
mod fold;
mod frames;
mod fsck;
mod group_fold;
mod group_work;
mod guard;
#[cfg(test)]
mod hand_back_tests;
mod hand_off;
mod identity;
mod join;
mod keep;
pub mod limits;
#[cfg(test)]
mod links_tests;
mod listing;
mod load;
mod members;
mod membership;
mod memory;
mod metrics;
mod nearest_endpoint;
mod no_route;
mod node;
mod object_page;
mod objects;
mod options;
mod outside_connections;
mod own_parts;
mod page;
mod permit;
mod private;
mod puts;
mod range;
mod reductionist;
mod removed;
mod requester;
mod reserve;
mod routes;
mod run;
mod scrub;
mod sent;
mod shared;
mod statistics;
#[cfg(test)]
mod statistics_tests;
mod status;
mod target;
#[cfg(test)]
mod test_node;
mod tokens;
mod tree;
mod turns;
mod units;
mod upload;
mod users;
mod value_answer;
mod watched_file;

pub use contention::decide::Objective;
pub use contention::priority::ActivePriority;
pub use error::ServerError;
pub use gristmill_rados::{LocationError, RadosLocation};
pub use nearest_endpoint::NearestEndpoint;
pub use node::Node;
pub use options::{MountUsers, NodeObjects, NodeOptions, OutsideSources};
