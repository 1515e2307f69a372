//! One port for gRPC and HTTP, over TCP, TLS and Unix sockets.
//!
//! Nodes use gRPC for messages with structure, and plain HTTP/1.1 for many bytes. Both use one port, so a node has one
//! address and one certificate. This crate handles connections and bytes. It does not know their meaning:
//!
//! - [`Listener`] serves an axum router. Each request carries its [`Peer`] and the [`ConnectionSlot`] of its
//!   connection.
//! - [`Dialer`] keeps HTTP/1.1 connections ([`HttpClient`]) and gRPC channels to other nodes.
//! - [`Senders`] measures how fast the connections of a listener send.
//! - [`ReadBody`] sends a range of bytes that a function reads. [`Response`] gives bytes as they arrive.
//!
//! Two rules hold everywhere. Bytes go to and from other machines under TLS only. Every wait ends: if a connected node
//! is silent for [`STALL`], the error is [`TransportError::Stalled`].
//!
//! ```
//! use axum::{Router, body::Body, routing::get};
//! use gristmill_transport::{Dialer, Listener, ReadBody};
//! use http::Request;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let router = Router::new().route(
//!     "/flour",
//!     get(|| async {
//!         Body::new(ReadBody::new(0..1_000_000, |_offset, buffer| {
//!             buffer.fill(b'f'); // A real server reads a file.
//!             Ok(())
//!         }))
//!     }),
//! );
//! let listener = Listener::bind(&"127.0.0.1:0".parse()?, None).await?;
//! let address = listener.address();
//! let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
//! let server = tokio::spawn(listener.serve(router, async { drop(stopped.await) }));
//!
//! let dialer = Dialer::default();
//! let mut response = dialer.http(&address).send(Request::get("/flour").body(())?).await?;
//! assert_eq!(response.remaining(), Some(1_000_000));
//! let mut received = 0;
//! while let Some(chunk) = response.chunk().await? {
//!     received += chunk.len();
//! }
//! assert_eq!(received, 1_000_000);
//!
//! drop(stop);
//! server.await??;
//! # Ok(())
//! # }
//! ```

mod address;
mod answer_body;
mod certificates;
mod channel;
mod connect;
mod connection;
mod dialer;
mod error;
mod frame_buffer;
mod http_client;
mod limits;
mod listener;
mod peer;
mod pool;
mod read_body;
mod request_body;
mod resolve;
mod response;
mod senders;
mod serve;
mod slot;
mod socket_file;
mod stream;
mod tcp_info;
mod tls;
mod upload;

pub use address::{Address, MAX_SOCKET_PATH};
pub use certificates::{
    CertificateFiles, MAX_CERTIFICATE_NAMES, TEST_CERTIFICATE_DAYS, make_test_certificates,
};
pub use dialer::{Dialer, DialerOptions};
pub use error::{BoxError, Result, TransportError};
pub use http_client::{HttpClient, Probe};
pub use limits::*;
pub use listener::{BodySilence, Listener};
pub use peer::{Origin, Peer};
pub use read_body::{FRAME, ReadBody};
pub use request_body::RequestBody;
pub use response::Response;
pub use senders::{MAX_ENDED, MAX_MEASURED, SendSample, Senders};
pub use slot::ConnectionSlot;
pub use tls::{ClientTls, ServerTls};
