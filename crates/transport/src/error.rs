//! Errors of connections between two nodes.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::Address;

/// The result of a transport operation.
pub type Result<T> = std::result::Result<T, TransportError>;

/// Any error of a body or a library.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The reason why bytes could not be transferred. Messages name the address and say what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The text is not an address.
    #[error(
        "{text:?} is not an address: {reason}. Write 127.0.0.1:7440, [::1]:7440, name:7440 or unix:/run/g.sock"
    )]
    BadAddress {
        /// The text.
        text: String,
        /// A clause that says what is wrong with the text.
        reason: &'static str,
    },
    /// The address is another machine, and the client has no TLS.
    #[error(
        "{address} is another machine, so TLS is needed: set GRISTMILL_CA to the file of its certificate authority"
    )]
    NotLocal {
        /// The address asked for.
        address: Address,
    },
    /// Other machines can reach the address, and the listener has no TLS.
    #[error(
        "{address} can be reached from other machines and there is no TLS: give a certificate and a key, or listen on 127.0.0.1 or a Unix socket"
    )]
    NotLocalListen {
        /// The address asked for.
        address: Address,
    },
    /// Another process listens on the address.
    #[error("{address} is in use: stop the node that listens there, or choose another address with --listen")]
    InUse {
        /// The address asked for.
        address: Address,
    },
    /// The system refused to listen on the address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: Address,
        /// The reason.
        source: io::Error,
    },
    /// A connection could not be accepted. The listener continues after a pause.
    #[error(
        "{address} could not accept a connection: {source}; if there are too many open files, raise their limit"
    )]
    Accept {
        /// The address of the listener.
        address: Address,
        /// The reason.
        source: io::Error,
    },
    /// The connection could not be made.
    #[error("cannot connect to {address}: {source}; check that the node runs and the address is right")]
    Refused {
        /// The address asked for.
        address: Address,
        /// The reason.
        source: io::Error,
    },
    /// The connection, with its handshake, was not made in time.
    #[error("no connection to {address} within {waited:?}: check that the node runs and can be reached")]
    Timeout {
        /// The address asked for.
        address: Address,
        /// How long the client waited.
        waited: Duration,
    },
    /// The other side is connected and makes no progress.
    #[error("{address} has been silent for {waited:?}: the node hangs, is stopped or is overloaded")]
    Stalled {
        /// The address of the silent side.
        address: Address,
        /// How long it was silent.
        waited: Duration,
    },
    /// The connection ended before the message was complete.
    #[error(
        "{address} closed the connection before the message was complete: {source}; the node or its read may have failed"
    )]
    Closed {
        /// The address of the other side.
        address: Address,
        /// The error of the HTTP library.
        source: BoxError,
    },
    /// The two sides do not trust or understand each other.
    #[error(
        "no TLS with {address}: {source}; check that GRISTMILL_CA names the authority of the node's certificate, and that the certificate has the node's name"
    )]
    Tls {
        /// The address asked for.
        address: Address,
        /// The reason.
        source: io::Error,
    },
    /// The body of the request failed, or HTTP/1.1 cannot express the request.
    #[error("the request for {address} could not be sent: {source}")]
    Request {
        /// The address asked for.
        address: Address,
        /// The error of the body or of the HTTP library.
        source: BoxError,
    },
    /// The answer is larger than the caller allows.
    #[error("the answer of {address} is larger than the {limit} bytes expected")]
    TooLarge {
        /// The address of the other side.
        address: Address,
        /// The bound, in bytes.
        limit: usize,
    },
    /// A certificate or key file cannot be used, or cannot be written.
    #[error("{}: {reason}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// A clause that says what is wrong with the file, and what to do.
        reason: String,
    },
    /// A channel was opened outside of a Tokio runtime, which it needs for its connection.
    #[error("a channel to {address} needs a Tokio runtime: open it from asynchronous code")]
    NoRuntime {
        /// The address asked for.
        address: Address,
    },
}
