//! From names to addresses.

use std::io;
use std::net::SocketAddr;

/// Most addresses of one name that are tried.
const MAX_TRIED: usize = 8;

/// The addresses of `host`; only loopback ones if `local`, so that a resolver which sends `localhost`
/// elsewhere does not send bytes there in the clear.
pub(crate) async fn resolve(host: &str, port: u16, local: bool) -> io::Result<Vec<SocketAddr>> {
    let found: Vec<_> = tokio::net::lookup_host((host, port))
        .await?
        .filter(|found| !local || found.ip().to_canonical().is_loopback())
        .take(MAX_TRIED)
        .collect();
    if found.is_empty() {
        return Err(io::Error::other(format!("the name {host} has no usable address")));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn local_means_loopback_whatever_the_resolver_says() {
        assert!(resolve("192.0.2.1", 1, true).await.is_err());
        assert_eq!(resolve("192.0.2.1", 1, false).await.unwrap().len(), 1);
        assert!(resolve("127.0.0.1", 1, true).await.unwrap()[0].ip().is_loopback());
    }
}
