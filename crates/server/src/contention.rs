//! The contention estimator of a node: what it has to do, how fast it does it, and which active requests it had better
//! hand back to those who asked.
//!
//! - [`sample`]: what the machine does, from `/proc`;
//! - [`pressure`]: fewer processors where memory or disks run short;
//! - [`links`]: how fast the links are, by what is sent over them;
//! - [`normal`]: the normal reads and writes, counted;
//! - [`active`]: the active requests, waiting and running;
//! - [`pace`]: what they take of the processors, and the administrator's cap on it;
//! - [`lane_queue`]: which lanes work while somebody reads or writes;
//! - [`priority`]: how urgent they are beside everything else;
//! - [`queue`]: how long the work is, and when somebody who was refused had better come again;
//! - [`counts`]: what was done with them since the node started;
//! - [`decide`]: where each had better run, by `gristmill-schedule`;
//! - [`sending`]: what it costs to send a byte;
//! - [`options`]: how a node was told to share its machine;
//! - [`backlog`]: what was handed back and is not done yet;
//! - [`prior`]: how fast kernels are taken to be before they were measured;
//! - [`estimator`]: what a node knows of itself, and what it says of that;
//! - [`admitted`]: active requests, for as long as they are here;
//! - [`decision_budget`]: how often the node decides;
//! - [`thread`]: the thread that watches, and decides whenever something has changed.

pub(crate) mod active;
pub(crate) mod admitted;
mod backlog;
pub(crate) mod counts;
pub(crate) mod decide;
mod decision_budget;
pub(crate) mod estimator;
mod lane_queue;
pub(crate) mod links;
pub(crate) mod normal;
pub(crate) mod options;
pub(crate) mod pace;
pub(crate) mod pressure;
mod prior;
pub(crate) mod priority;
pub(crate) mod queue;
pub(crate) mod sample;
mod sending;
pub(crate) mod thread;

pub(crate) use estimator::Contention;
