//! Servers of object stores that are near a node.

use std::fmt;
use std::str::FromStr;

use gristmill_sources::check_endpoint;

/// A server of an object store, and another one of the same store that is nearer to this node. The node reads trees that are attached with the
/// first one through the second one. So a gateway on each host serves the node there.
///
/// ```
/// use gristmill_server::NearestEndpoint;
///
/// let one: NearestEndpoint = "https://s3.site=http://127.0.0.1:7480".parse()?;
/// assert_eq!(one.to_string(), "https://s3.site=http://127.0.0.1:7480");
/// assert!("https://s3.site".parse::<NearestEndpoint>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearestEndpoint {
    endpoint: String,
    nearest: String,
}

impl NearestEndpoint {
    /// The nearer server, if this is the endpoint that it stands for.
    pub(crate) fn of(&self, endpoint: &str) -> Option<&str> {
        let bare = |text: &str| text.trim_end_matches('/').to_ascii_lowercase();
        (bare(endpoint) == bare(&self.endpoint)).then_some(&*self.nearest)
    }
}

impl FromStr for NearestEndpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<NearestEndpoint, String> {
        let wrong = || {
            "give the endpoint of attached trees and a nearer one: https://s3.site=http://127.0.0.1:7480"
                .to_owned()
        };
        let (endpoint, nearest) = text.split_once('=').ok_or_else(wrong)?;
        for one in [endpoint, nearest] {
            check_endpoint(one).map_err(|error| error.to_string())?;
        }
        Ok(NearestEndpoint { endpoint: endpoint.to_owned(), nearest: nearest.to_owned() })
    }
}

impl fmt::Display for NearestEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.endpoint, self.nearest)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn an_endpoint_has_a_nearer_one() {
        let one: NearestEndpoint = "https://S3.site/=http://127.0.0.1:7480".parse().unwrap();
        assert_eq!(one.of("https://s3.site"), Some("http://127.0.0.1:7480"));
        assert_eq!(one.of("https://s3.site:444"), None);
        for wrong in [
            "",
            "https://s3.site",
            "https://s3.site=",
            "s3.site=http://b",
            "http://a=ftp://b",
            "http://me:secret@a=http://b",
        ] {
            let error = wrong.parse::<NearestEndpoint>().unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
