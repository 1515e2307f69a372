//! Who is at the other end of a connection.

use std::net::IpAddr;

/// Who sent a request. Found in the extensions of every request that a
/// [`Listener`](crate::Listener) serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where the connection comes from.
    pub origin: Origin,
    /// Whether it is under TLS. A Unix socket is not, and needs not be.
    pub encrypted: bool,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A process of this machine, by the credentials the kernel recorded when it connected (`SO_PEERCRED`).
    Unix {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// An IP address; IPv4 addresses mapped to IPv6 are given as IPv4.
    Tcp(IpAddr),
}
