//! The contention estimator of a node. It measures the node's load and speed, and decides which active requests the
//! node hands back to their clients.
//!
//! - [`sample`]: load of the machine, from `/proc`;
//! - [`pressure`]: share of the processors while memory or disks run short;
//! - [`links`]: speed of the links, from what was sent over them;
//! - [`normal`]: number of normal reads and writes;
//! - [`active`]: active requests, waiting and running;
//! - [`pace`]: turns, memory and processor time of one active request;
//! - [`cap`]: the administrator's cap on the processor time of all, and the turns of lanes;
//! - [`lane_queue`]: choice of the lanes that work during reads and writes;
//! - [`priority`]: scheduling priority of lanes;
//! - [`queue`]: length of the active work, and the time after which a refused client should try again;
//! - [`counts`]: active requests that ended or were handed back since the node started;
//! - [`decide`]: placement of each request, by `gristmill-schedule`;
//! - [`sending`]: processor time that sending a byte costs;
//! - [`options`]: options by which a node shares its machine;
//! - [`backlog`]: work that was handed back and is not done yet;
//! - [`prior`]: assumed speed of kernels before they are measured;
//! - [`estimator`]: state of the estimator, and what the node reports of it;
//! - [`admitted`]: registration of an active request until it ends;
//! - [`decision_budget`]: time between decisions;
//! - [`thread`]: the thread that takes samples and decides after each change.

pub(crate) mod active;
pub(crate) mod admitted;
mod backlog;
pub(crate) mod cap;
pub(crate) mod counts;
pub(crate) mod decide;
mod decision_budget;
pub(crate) mod estimator;
mod lane_allotments;
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
pub(crate) mod starvation;
mod thread;

pub(crate) use estimator::Contention;
