//! Bounds that both sides keep.

use std::time::Duration;

/// Most connections a [`Listener`](crate::Listener) serves at once; others wait to be accepted.
pub const MAX_CONNECTIONS: usize = 1024;

/// How long a connection that has asked nothing yet keeps its slot while others wait for one.
pub const SILENT_WHEN_FULL: Duration = Duration::from_secs(2);

/// How long a connection that has asked and has no request in flight keeps its slot while others wait for one.
pub const IDLE_WHEN_FULL: Duration = Duration::from_secs(5);

/// How long a connection without an owner keeps its slot while others wait for one, whatever it asks.
pub const UNOWNED_WHEN_FULL: Duration = Duration::from_secs(10);

/// How long a connection without a request in flight keeps its slot while others wait for one, if more than half of all
/// connections come from its source: an address, or a user of this machine.
pub const CROWDED: Duration = Duration::from_millis(500);

/// How long a connection that gives up its slot may take to end in order.
pub const LEAVE_TIME: Duration = Duration::from_secs(1);

/// How long a listener waits for the slot of a connection that was told to leave before it tells another one.
pub const ONE_MORE: Duration = Duration::from_millis(100);

/// How often the listener checks again for a connection that may go.
pub const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Most HTTP/2 streams at once on one connection.
pub const MAX_STREAMS: u32 = 256;

/// HTTP/2 flow control: bytes of an answer in flight on one stream.
pub const STREAM_WINDOW: u32 = 8 << 20;

/// HTTP/2 flow control: bytes of answers in flight on one connection.
pub const CONNECTION_WINDOW: u32 = 16 << 20;

/// HTTP/2 flow control: bytes of an answer in flight on a connection that it has alone. It may stand still, and there may be
/// many.
pub const ALONE_WINDOW: u32 = 512 << 10;

/// HTTP/2 flow control: bytes of a request that a server has received and not read, on one stream.
pub const UPLOAD_STREAM_WINDOW: u32 = 1 << 20;

/// HTTP/2 flow control: the same on one connection. All connections together may make a server keep
/// [`MAX_CONNECTIONS`] times as much.
pub const UPLOAD_CONNECTION_WINDOW: u32 = 1 << 20;

/// Largest HTTP/2 frame, in bytes.
pub const MAX_H2_FRAME: u32 = 256 << 10;

/// Most bytes of HTTP/2 headers in one message.
pub const MAX_HEADER_LIST: u32 = 64 << 10;

/// HTTP/1.1 reads and buffers at most this much at once, in bytes; heads of messages are within it.
pub const HTTP1_BUFFER: usize = 512 << 10;

/// How often a quiet HTTP/2 connection is pinged.
pub const PING_EVERY: Duration = Duration::from_secs(20);

/// How long the answer to a ping may take.
pub const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a TLS handshake may take on the server.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may take to its first request, and an HTTP/1.1 connection to its next one.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a client may take nothing of what the server writes, and, unless
/// [`body_silence`](crate::Listener::body_silence) says otherwise, leave the server waiting in the middle of an
/// upload.
pub const CLIENT_STALL: Duration = Duration::from_secs(300);

/// How long nothing may come over a TCP connection before the system asks whether the other machine is still there,
/// whatever the protocol: an upload may rightly be silent for hours, but not from a machine that vanished.
pub const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// How often it asks while nothing comes back.
pub const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// How many such questions without an answer end the connection.
pub const KEEPALIVE_TRIES: u32 = 4;

/// How much of an HTTP/1.1 upload that the handler did not want is still read, in bytes, so that the client
/// sees the answer and not only a connection cut under its hands.
pub const DRAIN_BYTES: usize = 64 << 20;

/// How long such an upload is still read.
pub const DRAIN_TIME: Duration = Duration::from_secs(2);

/// How long requests in flight may go on when a server shuts down.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// How long a server waits after a connection could not be accepted, for instance for want of files.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a node may be silent in the middle of an answer.
pub const STALL: Duration = Duration::from_secs(10);

/// How long connecting may take, TLS included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Most unused HTTP/1.1 connections kept for one address.
pub const MAX_IDLE_PER_ADDRESS: usize = 16;

/// Most addresses a [`Dialer`](crate::Dialer) keeps connections for.
pub const MAX_ADDRESSES: usize = 4096;

/// Unused connections older than this are not used again: below [`HEADER_TIMEOUT`] and [`IDLE_WHEN_FULL`], so that the server is
/// not just closing them.
pub const MAX_IDLE_AGE: Duration = Duration::from_secs(4);
