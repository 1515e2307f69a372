//! What can go wrong between two nodes, and what to do about it.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::Address;

/// The result of a transport operation.
pub type Result<T> = std::result::Result<T, TransportError>;

/// Any error, as bodies and libraries give them.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why bytes did not get across. Each sentence names the address and says what would be right.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The text is no address.
    #[error(
        "{text:?} is not an address: {reason}. Write 127.0.0.1:7440, [::1]:7440, name:7440 or unix:/run/g.sock"
    )]
    BadAddress {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Another machine would have been dialled in the clear.
    #[error(
        "{address} is another machine and there is no TLS: set GRISTMILL_CA to the file of the certificate authority"
    )]
    NotLocal {
        /// The address asked for.
        address: Address,
    },
    /// Other machines could have connected in the clear.
    #[error(
        "{address} can be reached from other machines and there is no TLS: give a certificate and a key, or listen on 127.0.0.1 or a Unix socket"
    )]
    NotLocalListen {
        /// The address asked for.
        address: Address,
    },
    /// Somebody listens there already.
    #[error("{address} is in use: stop the node that listens there, or choose another address")]
    InUse {
        /// The address asked for.
        address: Address,
    },
    /// The address could not be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: Address,
        /// The reason.
        source: io::Error,
    },
    /// A connection could not be accepted. The listener goes on after a pause.
    #[error("{address} could not accept a connection: {source}; raise the limit of open files if that is it")]
    Accept {
        /// The address of the listener.
        address: Address,
        /// The reason.
        source: io::Error,
    },
    /// No connection came about.
    #[error("cannot connect to {address}: {source}; check that the node runs and the address is right")]
    Refused {
        /// The address asked for.
        address: Address,
        /// The reason.
        source: io::Error,
    },
    /// No connection, or no handshake, came about in time.
    #[error("no connection to {address} within {waited:?}: check that the node runs and can be reached")]
    Timeout {
        /// The address asked for.
        address: Address,
        /// How long it took.
        waited: Duration,
    },
    /// The other side is connected and does nothing.
    #[error("{address} has been silent for {waited:?}: the node hangs, is stopped or is overloaded")]
    Stalled {
        /// The address of the silent side.
        address: Address,
        /// How long it was silent.
        waited: Duration,
    },
    /// The connection ended before the message did.
    #[error("{address} closed the connection in the middle: {source}; the node or its read may have failed")]
    Closed {
        /// The address of the other side.
        address: Address,
        /// What the HTTP library says.
        source: BoxError,
    },
    /// The two sides do not trust or understand each other.
    #[error(
        "no TLS with {address}: {source}; check that GRISTMILL_CA names the authority of the node's certificate, and that the certificate holds the node's name"
    )]
    Tls {
        /// The address asked for.
        address: Address,
        /// The reason.
        source: io::Error,
    },
    /// The request's own body failed, or the request is none that HTTP/1.1 can express.
    #[error("the request for {address} could not be sent: {source}")]
    Request {
        /// The address asked for.
        address: Address,
        /// What the body or the HTTP library says.
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
        /// What is wrong with it and what would be right.
        reason: String,
    },
    /// A channel was asked for outside of a Tokio runtime, which it needs for its connection.
    #[error("a channel to {address} needs a Tokio runtime: ask for it from asynchronous code")]
    NoRuntime {
        /// The address asked for.
        address: Address,
    },
}
