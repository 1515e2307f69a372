//! Which addresses a client may connect to.
//!
//! A process that reads URLs of others must not become a way to reach what they cannot reach: services that listen only for the
//! machine itself, or those of its link that give out credentials. The address is checked after the name was resolved, for each
//! connection, so neither a redirect nor a name that changes its address leads there.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower_service::Service;

/// The addresses that a client may connect to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AddressPolicy {
    /// All addresses.
    #[default]
    Any,
    /// Not the addresses of this machine, and not those that are valid on one link only.
    NotLocal,
}

/// An address to which a client does not connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is an address of this machine or of its link, which may not be read by this way; allow it explicitly if that is wanted"
)]
pub(crate) struct RefusedAddress(pub IpAddr);

/// The refused address that is behind an error, if there is one.
pub(crate) fn refused_address(error: &(dyn Error + 'static)) -> Option<RefusedAddress> {
    let mut next = Some(error);
    while let Some(error) = next {
        let within = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let within = within.and_then(|inner| inner.downcast_ref::<RefusedAddress>());
        if let Some(refused) = within.or_else(|| error.downcast_ref::<RefusedAddress>()) {
            return Some(*refused);
        }
        next = error.source();
    }
    None
}

impl AddressPolicy {
    /// Checks an address.
    ///
    /// # Errors
    /// Returns an error if the policy refuses it.
    pub(crate) fn check(self, address: IpAddr) -> Result<(), RefusedAddress> {
        match self {
            AddressPolicy::NotLocal if is_local(address) => Err(RefusedAddress(address)),
            _ => Ok(()),
        }
    }

    /// Checks the host of a URL, if it is an address. Names are checked when they are resolved.
    ///
    /// # Errors
    /// Returns an error if the policy refuses the address.
    pub(crate) fn check_host(self, host: &str) -> Result<(), RefusedAddress> {
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        host.parse().map_or(Ok(()), |address| self.check(address))
    }
}

/// Services of clouds that give out credentials at other addresses than those of the link: AWS, Azure, Alibaba and Oracle.
const CREDENTIALS: [IpAddr; 4] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
];

/// Whether an address belongs to this machine, or is valid on one link only.
fn is_local(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(v6) => embedded(v6).unwrap_or(address),
        v4 => v4,
    };
    let of_the_link = match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    } || CREDENTIALS.contains(&address);
    // Only an address of this machine can be bound.
    let own = || UdpSocket::bind((address, 0)).is_ok();
    of_the_link || address.is_loopback() || address.is_unspecified() || address.is_multicast() || own()
}

/// The address of IPv4 in an address of IPv6 that stands for it: mapped, translated (RFC 6052), or of a relay (RFC 3056).
fn embedded(v6: Ipv6Addr) -> Option<IpAddr> {
    let octets = v6.octets();
    let v4 = |at: usize| {
        let bytes: [u8; 4] = octets.get(at..at + 4)?.try_into().ok()?;
        Some(IpAddr::from(bytes))
    };
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => v4(12),
        [0x2002, ..] => v4(2),
        _ => v6.to_ipv4_mapped().map(IpAddr::V4),
    }
}

/// Resolves names to the addresses that a policy allows.
#[derive(Clone)]
pub(crate) struct CheckedResolver {
    names: GaiResolver,
    policy: AddressPolicy,
}

impl CheckedResolver {
    pub fn new(policy: AddressPolicy) -> CheckedResolver {
        CheckedResolver { names: GaiResolver::new(), policy }
    }
}

impl fmt::Debug for CheckedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CheckedResolver").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.names.poll_ready(cx)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (found, policy) = (self.names.call(name), self.policy);
        Box::pin(async move {
            let (mut allowed, mut refused) = (Vec::new(), None);
            for address in found.await? {
                match policy.check(address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(error) => refused = Some(error),
                }
            }
            match refused {
                // A name with a local address among others is not used, because the next connection could get that one.
                Some(error) => Err(std::io::Error::new(std::io::ErrorKind::PermissionDenied, error)),
                None => Ok(allowed.into_iter()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn addresses_of_the_machine_and_its_link_are_refused() {
        for text in [
            "127.0.0.1",
            "127.9.8.7",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "fd00:ec2::254",
            "168.63.129.16",
            "100.100.100.200",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
        ] {
            assert_eq!(
                AddressPolicy::NotLocal.check(text.parse().unwrap()),
                Err(RefusedAddress(text.parse().unwrap()))
            );
            assert_eq!(AddressPolicy::Any.check(text.parse().unwrap()), Ok(()));
            let host = if text.contains(':') { format!("[{text}]") } else { text.to_owned() };
            assert!(AddressPolicy::NotLocal.check_host(&host).is_err(), "{host}");
        }
        for text in ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "198.51.100.7"] {
            assert_eq!(AddressPolicy::NotLocal.check(text.parse().unwrap()), Ok(()), "{text}");
        }
        assert_eq!(AddressPolicy::NotLocal.check_host("localhost"), Ok(()), "names are resolved first");
    }

    #[tokio::test]
    async fn names_are_checked_after_they_were_resolved() {
        let name: Name = "localhost".parse().unwrap();
        let refused = CheckedResolver::new(AddressPolicy::NotLocal).call(name.clone()).await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
        assert!(CheckedResolver::new(AddressPolicy::Any).call(name).await.unwrap().count() > 0);
    }
}
