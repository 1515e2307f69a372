//! Resolution of host names.

use std::io;
use std::net::SocketAddr;

/// Most addresses that are tried for one name.
const MAX_TRIED: usize = 8;

/// Resolves `host`. If `local`, only loopback addresses are returned: a resolver may map `localhost` to another
/// machine, and bytes must not go there without TLS.
pub(crate) async fn resolve(host: &str, port: u16, local: bool) -> io::Result<Vec<SocketAddr>> {
    let name = host.to_owned();
    // A task runs on a thread of the runtime: a thread that a caller of low priority starts has its priority.
    let lookup = tokio::spawn(async move {
        tokio::net::lookup_host((name, port)).await.map(|found| found.collect::<Vec<_>>())
    });
    let found: Vec<_> = lookup
        .await
        .map_err(io::Error::other)??
        .into_iter()
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
