//! Addresses of nodes, as users write them.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::{Result, TransportError};

/// The longest path of a Unix socket, in bytes. The kernel's field has 108 bytes with the final zero.
pub const MAX_SOCKET_PATH: usize = 107;

/// The longest host name of DNS, in bytes.
const MAX_HOST: usize = 253;

/// An address of a node: `127.0.0.1:7440`, `[::1]:7440`, `name:7440` or `unix:/run/gristmill.sock`.
///
/// ```
/// use gristmill_transport::Address;
///
/// let address: Address = "[::1]:7440".parse()?;
/// assert!(address.is_local());
/// assert_eq!(address.to_string(), "[::1]:7440");
/// # Ok::<(), gristmill_transport::TransportError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// A TCP port.
    Tcp {
        /// A name in lower case or an IP literal; IPv6 without brackets.
        host: String,
        /// The port; 0 asks [`Listener::bind`](crate::Listener::bind) for any free one.
        port: u16,
    },
    /// A Unix socket, by its absolute path.
    Unix(PathBuf),
}

impl Address {
    /// Whether the bytes stay on this machine: the address is a Unix socket, a loopback literal or `localhost`.
    ///
    /// Only such addresses may be used without TLS. Names are not resolved for this.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, .. } => match host.parse::<IpAddr>() {
                Ok(ip) => ip.to_canonical().is_loopback(),
                Err(_) => host.eq_ignore_ascii_case("localhost"),
            },
        }
    }

    /// The text for a `Host` header or an `:authority`. It is `localhost` for a Unix socket.
    pub(crate) fn authority(&self) -> String {
        match self {
            Self::Unix(_) => "localhost".to_owned(),
            Self::Tcp { .. } => self.to_string(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

impl FromStr for Address {
    type Err = TransportError;

    fn from_str(text: &str) -> Result<Self> {
        let bad = |reason| TransportError::BadAddress { text: text.chars().take(300).collect(), reason };
        // A host cannot have the name unix in any case of letters, because its address would print as a socket.
        let socket = text.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("unix:"));
        if let Some(path) = socket.and_then(|_| text.get(5..)) {
            if !path.starts_with('/') || path.ends_with('/') || path.contains('\0') {
                return Err(bad("the path of a Unix socket must be absolute and name a file"));
            }
            if path.len() > MAX_SOCKET_PATH {
                return Err(bad("the path of a Unix socket has at most 107 bytes; choose a shorter one"));
            }
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(|| bad("it has no port"))?;
        let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        let port = port.parse().ok().filter(|_| digits).ok_or_else(|| bad("the port must be 0 to 65535"))?;
        let host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(literal) => {
                let ip: Ipv6Addr =
                    literal.parse().map_err(|_| bad("the text between brackets must be an IPv6 address"))?;
                ip.to_string()
            }
            None if host.contains(':') => return Err(bad("an IPv6 address must be between brackets")),
            None => host.to_ascii_lowercase(),
        };
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-' || b == b'_' || b == b':';
        if host.is_empty() || host.len() > MAX_HOST || !host.bytes().all(allowed) {
            return Err(bad("the host must be a name or an IP address"));
        }
        Ok(Self::Tcp { host, port })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_round_trip() {
        for text in ["127.0.0.1:7440", "[::1]:7440", "node-3.lab_1:1", "unix:/run/g.sock", "0.0.0.0:0"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("Name:1".parse::<Address>().unwrap(), "name:1".parse().unwrap());
        assert_eq!("[0:0::1]:1".parse::<Address>().unwrap(), "[::1]:1".parse().unwrap());
    }

    #[test]
    fn wrong_addresses_are_refused() {
        let long = format!("unix:/{}", "x".repeat(MAX_SOCKET_PATH));
        for text in [
            "",
            "7440",
            ":7440",
            "name",
            "name:",
            "name:65536",
            "name:+1",
            "::1:7440",
            "[::1]",
            "[name]:1",
            "a b:1",
            "a/b:1",
            "user@a:1",
            "unix:",
            "unix:g.sock",
            "Unix:57",
            "unix:/",
            "unix:/run/",
            "[fe80::1%eth0]:1",
            &long,
        ] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(matches!(error, TransportError::BadAddress { .. }), "{text}: {error}");
        }
    }

    #[test]
    fn only_this_machine_is_local() {
        for (text, local) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("LocalHost:1", true),
            ("unix:/run/g.sock", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("10.0.0.1:1", false),
            ("localhost.example:1", false),
            ("127.0.0.1.example:1", false),
        ] {
            assert_eq!(text.parse::<Address>().unwrap().is_local(), local, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_parsed_address_round_trips(text in "(unix:)?[a-z0-9\\[\\]:./%-]{0,24}") {
            if let Ok(address) = text.parse::<Address>() {
                prop_assert_eq!(address.to_string().parse::<Address>().unwrap(), address);
            }
        }
    }
}
