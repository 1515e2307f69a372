//! The part of Arrow Flight that nodes and clients speak: its messages, a client, a server, and record batches as messages.
//!
//! [Flight](https://arrow.apache.org/docs/format/Flight.html) is a gRPC service. An answer of `DoGet` is a stream of
//! [`FlightData`]: first the schema, then record batches in [Arrow's IPC format](https://arrow.apache.org/docs/format/IPC.html).
//! Any Flight client can ask a node.
//!
//! - [`FlightService`] has the methods that a node supports, and [`FlightServer`] serves them.
//! - [`FlightClient`] asks a node.
//! - [`encode_batches`] and [`BatchDecoder`] convert record batches to messages and back. Dictionaries are not supported.
//!
//! The crate `arrow-flight` does the same and more. It also converts columns between types. The two crates that it needs for that
//! took 170 of the 1,200 seconds of processor time of a release build, and Gristmill never converts columns.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::{ArrayRef, Int64Array, RecordBatch};
//! use futures_util::{TryStreamExt, stream};
//! use gristmill_flight::{BatchDecoder, encode_batches};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let grains: ArrayRef = Arc::new(Int64Array::from(vec![3, 1, 4]));
//! let batch = RecordBatch::try_from_iter([("grains", grains)])?;
//! let messages = encode_batches(None, stream::iter([Ok(batch.clone())]));
//!
//! let mut decoder = BatchDecoder::default();
//! let mut received = Vec::new();
//! for message in messages.try_collect::<Vec<_>>().await? {
//!     received.extend(decoder.decode(message)?);
//! }
//! assert_eq!(received, [batch]);
//! # Ok(())
//! # }
//! ```

mod client;
mod decode;
mod encode;
mod error;
mod message;
mod server;

pub use client::FlightClient;
pub use decode::BatchDecoder;
pub use encode::{MAX_BATCH_BYTES, encode_batches};
pub use error::FlightError;
pub use message::{
    Action, ActionResult, ActionType, Criteria, DescriptorType, Empty, FlightData, FlightDescriptor,
    FlightEndpoint, FlightInfo, Location, Ticket,
};
pub use server::{Answers, FlightServer, FlightService};
