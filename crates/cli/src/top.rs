//! A cluster as a picture in a terminal.
//!
//! - [`changes`]: rates, from one answer of the entry node to the next;
//! - [`table`]: rows as lines of a given width;
//! - [`rows`]: nodes, requests and kernels as rows;
//! - [`picture`]: an answer and its rates as lines of text;
//! - [`screen`]: these on a terminal of any size, and what keys do;
//! - [`live`]: the terminal itself, keys, and questions to the entry node.

pub mod changes;
mod gone;
pub mod live;
pub mod picture;
pub mod rows;
pub mod screen;
pub mod table;
#[cfg(test)]
mod tests;
