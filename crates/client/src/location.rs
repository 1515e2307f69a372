//! Names of files: plain paths, and URLs of files on storage nodes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use gristmill_sources::{SourceUrl, UrlError, without_secrets};

use crate::ClientError;

/// A file as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A plain file, or the layout file of a file that is striped over targets of this machine.
    Local(PathBuf),
    /// A file, or directory, of a cluster.
    Remote(Url),
    /// A file, or folder, of an object store or of a web server. The client reads it itself.
    Outside(SourceUrl),
}

/// A path on storage nodes: `grist://HOST:PORT/PATH`, `grist+unix://SOCKET:/PATH`, or `grist:///PATH` on the
/// cluster that the environment names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Address of the entry node: `HOST:PORT` or `unix:SOCKET`; `None` where the URL leaves it out.
    pub entry: Option<String>,
    /// Absolute path in the cluster.
    pub path: String,
}

const TCP: &str = "grist://";
const UNIX: &str = "grist+unix://";

impl Location {
    /// Reads a name. A name that is not a URL is a path of this machine.
    ///
    /// # Errors
    /// The error is [`ClientError::Usage`] if the URL has another scheme or is malformed.
    pub fn parse(text: &str) -> Result<Location, ClientError> {
        if text.starts_with(TCP) || text.starts_with(UNIX) {
            return Ok(Location::Remote(text.parse()?));
        }
        if text.starts_with("grist:") || text.starts_with("grist+unix:") {
            return Err(ClientError::Usage(format!(
                "{text}: a URL of a cluster has two slashes; write grist://HOST:PORT/PATH, or ./{text} for a file"
            )));
        }
        if SourceUrl::is_url(text) {
            let url = text.parse().map_err(|error: UrlError| ClientError::Usage(error.to_string()))?;
            return Ok(Location::Outside(url));
        }
        match text.split_once("://") {
            Some((scheme, _)) if scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+') => {
                Err(ClientError::Usage(format!(
                    "{}: there is no scheme {scheme}://; write grist://HOST:PORT/PATH, s3://BUCKET/KEY, https://HOST/PATH, cephfs:///PATH, or a path",
                    without_secrets(text)
                )))
            }
            _ => Ok(Location::Local(PathBuf::from(text))),
        }
    }

    /// The path, if the file is on this machine.
    pub fn local(&self) -> Option<&Path> {
        match self {
            Location::Local(path) => Some(path),
            Location::Remote(_) | Location::Outside(_) => None,
        }
    }

    /// The URL, if the file is on a cluster. The client reads all other files itself; see [`Here`](crate::Here).
    pub fn cluster(&self) -> Option<&Url> {
        match self {
            Location::Remote(url) => Some(url),
            Location::Local(_) | Location::Outside(_) => None,
        }
    }

    /// The path of the file, without the address of its cluster or its bucket or host.
    pub fn path(&self) -> &Path {
        match self {
            Location::Local(path) => path,
            Location::Remote(url) => Path::new(&url.path),
            Location::Outside(url) => Path::new(url.key().as_str()),
        }
    }
}

impl FromStr for Location {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Location, ClientError> {
        Location::parse(text)
    }
}

impl FromStr for Url {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Url, ClientError> {
        let wrong = |why: &str| {
            ClientError::Usage(format!(
                "{}: {why}; write grist://HOST:PORT/PATH, or grist:///PATH with GRISTMILL_CLUSTER set",
                without_secrets(text)
            ))
        };
        let (entry, path) = if let Some(rest) = text.strip_prefix(UNIX) {
            let (socket, path) =
                rest.split_once(":/").ok_or_else(|| wrong("it has no :/PATH behind the socket"))?;
            (Some(format!("unix:{socket}")), path)
        } else {
            let rest = text.strip_prefix(TCP).ok_or_else(|| wrong("it is not a URL of a cluster"))?;
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            ((!host.is_empty()).then(|| host.to_owned()), path)
        };
        if let Some(entry) = &entry {
            entry.parse::<gristmill_transport::Address>().map_err(|e| wrong(&e.to_string()))?;
        }
        Ok(Url { entry, path: format!("/{path}") })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry.as_deref().map(|entry| entry.strip_prefix("unix:").ok_or(entry)) {
            None => write!(f, "{TCP}{}", self.path),
            Some(Ok(socket)) => write!(f, "{UNIX}{socket}:{}", self.path),
            Some(Err(host)) => write!(f, "{TCP}{host}{}", self.path),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Local(path) => write!(f, "{}", path.display()),
            Location::Remote(url) => write!(f, "{url}"),
            Location::Outside(url) => write!(f, "{url}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_read_and_shown_alike() {
        for text in [
            "grist://127.0.0.1:7440/a/b.f64",
            "grist:///a",
            "grist+unix:///run/g.sock:/a/b",
            "/tmp/x",
            "a:b",
            "./c",
            "s3://bucket/a/b",
            "https://host/a%20b",
        ] {
            let location = Location::parse(text).unwrap();
            assert_eq!(location.to_string(), text);
            assert_eq!(location.local().is_some(), !text.contains("//"));
            assert_eq!(location.cluster().is_some(), text.starts_with("grist"));
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_remedy() {
        for text in [
            "ftp://a/b",
            "grist:/x",
            "grist:x",
            "grist+unix:/run/g.sock:/x",
            "grist://host",
            "grist://host/x",
            "grist+unix:///run/g.sock",
        ] {
            let error = Location::parse(text).unwrap_err();
            assert!(error.is_usage());
            assert!(error.to_string().contains("write grist://"), "{error}");
        }
    }
}
