//! Bounds of both sides of a connection.

use std::time::Duration;

/// Most connections that a [`Listener`](crate::Listener) serves at once. Others wait to be accepted.
pub const MAX_CONNECTIONS: usize = 1024;

/// Most connections that the system keeps until they are accepted. A client beyond that gets no answer, and tries again a
/// second later. The system may have a smaller bound (`net.core.somaxconn`).
pub const MAX_UNACCEPTED: u16 = 4096;

/// How long a connection without a request so far keeps its slot while others wait for one.
pub const SILENT_WHEN_FULL: Duration = Duration::from_secs(2);

/// How long a connection that had a request, and has none in flight, keeps its slot while others wait for one.
pub const IDLE_WHEN_FULL: Duration = Duration::from_secs(5);

/// How long a connection without an owner keeps its slot while others wait for one, also with requests in flight.
pub const UNOWNED_WHEN_FULL: Duration = Duration::from_secs(10);

/// How long a connection without a request in flight keeps its slot while others wait for one, if more than half of all
/// connections come from its source: an address, or a user of this machine.
pub const CROWDED_WHEN_FULL: Duration = Duration::from_millis(500);

/// How long an evicted connection may take for an orderly end.
pub const EVICTION_TIME: Duration = Duration::from_secs(1);

/// How long a listener waits for the slot of an evicted connection before it evicts another one.
pub const EVICTION_PAUSE: Duration = Duration::from_millis(100);

/// How often the listener checks again for a connection that it can evict.
pub const EVICTION_CHECK: Duration = Duration::from_millis(100);

/// Most HTTP/2 streams at once on one connection.
pub const MAX_STREAMS: u32 = 256;

/// HTTP/2 flow control: bytes of an answer in flight on one stream.
pub const STREAM_WINDOW: u32 = 8 << 20;

/// HTTP/2 flow control: bytes of answers in flight on one connection.
pub const CONNECTION_WINDOW: u32 = 16 << 20;

/// HTTP/2 flow control: bytes of an answer in flight on a dedicated connection. Its reader may pause, and there may be
/// many such connections.
pub const DEDICATED_WINDOW: u32 = 512 << 10;

/// HTTP/2 flow control: bytes of a request that a server has received and not read, on one stream.
pub const UPLOAD_STREAM_WINDOW: u32 = 1 << 20;

/// HTTP/2 flow control: bytes of requests that a server has received and not read, on one connection. All connections
/// together may need [`MAX_CONNECTIONS`] times as much memory.
pub const UPLOAD_CONNECTION_WINDOW: u32 = 1 << 20;

/// Largest HTTP/2 frame, in bytes.
pub const MAX_H2_FRAME: u32 = 256 << 10;

/// Most bytes of HTTP/2 headers in one message.
pub const MAX_HEADER_LIST: u32 = 64 << 10;

/// Most bytes that HTTP/1.1 reads and buffers at once. The head of a message must fit.
pub const HTTP1_BUFFER: usize = 512 << 10;

/// How often a quiet HTTP/2 connection is pinged.
pub const PING_EVERY: Duration = Duration::from_secs(20);

/// How long the answer to a ping may take.
pub const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a TLS handshake may take on the server.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may take to its first request, and an HTTP/1.1 connection to its next one.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a write to a client may make no progress. It is also how long a client may be silent within an upload,
/// unless [`body_silence`](crate::Listener::body_silence) sets another time.
pub const CLIENT_STALL: Duration = Duration::from_secs(300);

/// How long a TCP connection may be silent before the system probes the other machine. An upload may be silent for
/// hours, but not if its machine has vanished.
pub const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// How often the system probes a silent machine.
pub const KEEPALIVE_EVERY: Duration = Duration::from_secs(15);

/// Number of probes without an answer after which the connection ends.
pub const KEEPALIVE_TRIES: u32 = 4;

/// Most bytes of an HTTP/1.1 upload that are read after the handler stopped reading. So the client receives the answer,
/// and not only the end of the connection.
pub const DRAIN_BYTES: usize = 64 << 20;

/// How long such an upload is read after the handler stopped reading.
pub const DRAIN_TIME: Duration = Duration::from_secs(2);

/// How long requests in flight may continue when a server shuts down.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// How long a server waits after it could not accept a connection, for example because it has too many open files.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a node may be silent in the middle of an answer.
pub const STALL: Duration = Duration::from_secs(10);

/// How long connecting may take, TLS included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Most unused HTTP/1.1 connections kept for one address.
pub const MAX_IDLE_PER_ADDRESS: usize = 16;

/// Most addresses for which a [`Dialer`](crate::Dialer) keeps connections.
pub const MAX_ADDRESSES: usize = 4096;

/// How long an unused connection can be used again. It is below [`HEADER_TIMEOUT`] and [`IDLE_WHEN_FULL`], so that the
/// server is not closing the connection at that moment.
pub const MAX_IDLE_AGE: Duration = Duration::from_secs(4);
