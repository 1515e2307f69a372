//! Resolution of host names.

use std::io;
use std::net::SocketAddr;

/// Most addresses that are tried for one name.
const MAX_TRIED: usize = 8;

/// Resolves `host`. If `local`, only loopback addresses are returned: a resolver may map `localhost` to another
/// machine, and bytes must not go there without TLS.
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
    async fn local_names_resolve_to_loopback_only() {
        assert!(resolve("192.0.2.1", 1, true).await.is_err());
        assert_eq!(resolve("192.0.2.1", 1, false).await.unwrap().len(), 1);
        assert!(resolve("127.0.0.1", 1, true).await.unwrap()[0].ip().is_loopback());
    }
}
