//! The other end of a connection.

use std::net::IpAddr;

/// The sender of a request. It is in the extensions of every request that a
/// [`Listener`](crate::Listener) serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The origin of the connection.
    pub origin: Origin,
    /// Whether the connection uses TLS. A Unix socket does not use TLS and does not need it.
    pub encrypted: bool,
}

/// The origin of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A process of this machine, by the credentials that the kernel recorded when it connected (`SO_PEERCRED`).
    Unix {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// An IP address. IPv4 addresses that are mapped to IPv6 are converted to IPv4.
    Tcp(IpAddr),
}
