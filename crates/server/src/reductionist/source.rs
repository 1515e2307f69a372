//! The object that a request names.

use std::fmt;
use std::sync::Arc;

use gristmill_backend::Object;
use gristmill_namespace::Principal;
use gristmill_peers::whole_file;
use gristmill_reductionist::{Interface, Request};
use gristmill_runtime::{ErrorKind, FileParts, RunError};
use gristmill_sources::{Access, AccessKey, AddressPolicy, SourceUrl, SourcesOptions, UrlError, path_style};

use crate::error::{Answer, Refusal};
use crate::limits::CHUNK_TIME;
use crate::shared::Shared;
use crate::{OutsideSources, attached};

/// The credentials of a request, for its source.
pub(crate) struct Credentials {
    pub name: String,
    pub secret: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// An opened object.
pub(crate) enum Source {
    /// An object of an object store, a web server or an attached tree.
    Object(Arc<dyn Object>),
    /// A file on storage nodes.
    File(FileParts),
}

impl Source {
    /// Opens the object of a request. Blocks. `host`: the address of this node in the request.
    ///
    /// # Errors
    /// It fails if the URL is malformed, if the object does not exist, or if it may not be read.
    pub fn open(
        shared: &Arc<Shared>,
        principal: &Principal,
        request: &Request,
        host: Option<&str>,
        credentials: Option<Credentials>,
    ) -> Answer<Source> {
        let usage = |text: String| Refusal::new(ErrorKind::Usage, text);
        if let Some(path) = own_path(request.url(), host) {
            return own_file(shared, principal, &path);
        }
        let addresses = match shared.outside_sources {
            OutsideSources::None => {
                return Err(usage(
                    "this node reads files of the cluster only, not of other servers".to_owned(),
                ));
            }
            OutsideSources::Others => AddressPolicy::NotLocal,
            OutsideSources::All => AddressPolicy::Any,
        };
        let (url, options) = match request.interface() {
            Interface::S3 => {
                let (endpoint, url) = path_style(request.url()).map_err(|error| usage(error.to_string()))?;
                let key = credentials.map(|key| AccessKey { id: key.name, secret: key.secret });
                let access = key.map_or(Access::Anonymous, Access::Key);
                (url, SourcesOptions { endpoint: Some(endpoint), access, ..SourcesOptions::default() })
            }
            Interface::Http | Interface::Https => {
                if credentials.is_some() {
                    return Err(usage("logins of web servers are not supported".to_owned()));
                }
                let url = request.url().parse();
                let url: SourceUrl = url.map_err(|error: UrlError| usage(error.to_string()))?;
                if !url.scheme().is_web() {
                    return Err(usage(format!("{url} is not the URL of a file of a web server")));
                }
                (url, SourcesOptions::default())
            }
        };
        let options = SourcesOptions { addresses, patience: Some(CHUNK_TIME), ..options };
        let Some((folder, name)) = url.split_name() else {
            return Err(usage(format!("{url} names no object")));
        };
        let open = || {
            let folder = shared.user_sources.with(options)?.open(&folder)?;
            folder.open(&gristmill_backend::Key::new(name)?)
        };
        Ok(Source::Object(open().map_err(RunError::from)?))
    }

    /// The name of the object in messages.
    pub fn name(&self) -> String {
        match self {
            Source::Object(object) => object.name(),
            Source::File(file) => file.name.clone(),
        }
    }

    /// Bytes of the object.
    pub fn length(&self) -> u64 {
        match self {
            Source::Object(object) => object.found().length,
            Source::File(file) => file.length,
        }
    }

    /// Fills `out` from an offset. All bytes are of one state of the object. Blocks.
    ///
    /// # Errors
    /// It fails if the object changed since it was opened, and if it cannot be read.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Answer<()> {
        match self {
            Source::Object(object) => {
                let read = object.read_at(offset, out).and_then(|()| object.unchanged());
                Ok(read.map_err(RunError::from)?)
            }
            Source::File(file) => Ok(file.read(offset..offset.saturating_add(out.len() as u64), out)?),
        }
    }
}

/// The path of a file of this cluster, if the URL has the address of the request itself.
fn own_path(url: &str, host: Option<&str>) -> Option<String> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let (authority, path) = rest.split_once('/')?;
    let is_own = host.is_some_and(|host| host.eq_ignore_ascii_case(authority));
    let path = path.strip_prefix("files/").filter(|_| is_own)?;
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    Some(format!("/{decoded}"))
}

fn own_file(shared: &Arc<Shared>, principal: &Principal, path: &str) -> Answer<Source> {
    let opened = shared.open(principal, path)?;
    if let Some(file) = &opened.info.file.attached {
        return Ok(Source::Object(attached::open(shared, &opened.info.file, file)?));
    }
    Ok(Source::File(whole_file(&shared.peers, &opened.info.file, &opened.grant.as_str().into())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_cluster_have_the_address_of_the_request() {
        let path = |url, host| own_path(url, Some(host));
        assert_eq!(path("http://127.0.0.1:7440/files/a%20b/c", "127.0.0.1:7440").as_deref(), Some("/a b/c"));
        assert_eq!(path("http://LocalHost:7440/files/x", "localhost:7440").as_deref(), Some("/x"));
        assert_eq!(path("https://node/files/x", "node").as_deref(), Some("/x"));
        for other in [
            "http://127.0.0.1:7441/files/x",
            "http://127.0.0.1:7440/x",
            "s3://files/x",
            "http://127.0.0.1:7440",
        ] {
            assert_eq!(path(other, "127.0.0.1:7440"), None, "{other}");
        }
        assert_eq!(own_path("http://node/files/x", None), None);
    }
}
