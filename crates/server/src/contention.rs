//! The contention estimator of a node: what it has to do, how fast it does it, and which active requests it had better
//! hand back to those who asked.
//!
//! - [`sample`]: what the machine does, from `/proc`;
//! - [`pressure`]: fewer processors where memory or disks run short;
//! - [`links`]: how fast the links are, by what is sent over them;
//! - [`normal`]: the normal reads and writes, counted;
//! - [`active`]: the active requests, waiting and running;
//! - [`pace`]: what they take of the processors, and the administrator's cap on it;
//! - [`priority`]: how urgent they are beside everything else;
//! - [`queue`]: how long the work is, and when somebody who was refused had better come again;
//! - [`counts`]: what was done with them since the node started;
//! - [`decide`]: where each had better run, by `gristmill-schedule`;
//! - [`thread`]: the thread that does all this, whenever something has changed.

pub(crate) mod active;
pub(crate) mod counts;
pub(crate) mod decide;
pub(crate) mod links;
pub(crate) mod normal;
pub(crate) mod pace;
pub(crate) mod pressure;
pub(crate) mod priority;
pub(crate) mod queue;
pub(crate) mod sample;
pub(crate) mod thread;

pub(crate) use thread::Contention;
