//! The picture of a cluster in a terminal.
//!
//! - [`changes`]: rates, from one answer of the entry node to the next;
//! - [`table`]: rows as lines of a given width;
//! - [`rows`]: nodes, requests and kernels as rows;
//! - [`picture`]: an answer and its rates as lines of text;
//! - [`screen`]: the picture on a terminal of any size, and the effect of keys;
//! - [`live`]: the terminal itself, its keys, and requests to the entry node;
//! - [`closed_terminal`]: the end of the program when the terminal is closed.

pub mod changes;
mod closed_terminal;
pub mod live;
pub mod picture;
pub mod rows;
pub mod screen;
pub mod table;
#[cfg(test)]
mod tests;
