//! The object that a request names.

use std::sync::Arc;

use gristmill_backend::{BackendError, Key, Object, read_opened};
use gristmill_peers::whole_file;
use gristmill_reductionist::{Interface, Request};
use gristmill_runtime::{ErrorKind, FileParts, RunError};
use gristmill_sources::{
    Access, AddressPolicy, OutsideFolder, SourceUrl, SourcesOptions, UrlError, path_style,
};
use gristmill_wire::SourceAccess;
use gristmill_wire::action::Open;

use crate::error::{Answer, Refusal};
use crate::limits::CHUNK_TIME;
use crate::requester::Requester;
use crate::shared::Shared;
use crate::{OutsideSources, attached};

/// The object of a request.
pub(crate) enum Source {
    /// An object of another server. It is not asked for before a read.
    Outside(OutsideObject),
    /// An opened object of another server or of an attached tree.
    Object(Arc<dyn Object>),
    /// A file on storage nodes.
    File(FileParts),
}

/// An object of another server.
pub(crate) struct OutsideObject {
    /// The folder of the object.
    folder: OutsideFolder,
    /// The name of the object in the folder.
    key: Key,
}

impl OutsideObject {
    /// The object of a request. No request is sent.
    ///
    /// # Errors
    /// It fails if the URL is malformed, or if the node does not ask its server.
    pub fn of(
        shared: &Shared,
        request: &Request,
        credentials: Option<SourceAccess>,
    ) -> Answer<OutsideObject> {
        let usage = |text: String| Refusal::new(ErrorKind::Usage, text);
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
                (url, SourcesOptions { endpoint: Some(endpoint), ..SourcesOptions::default() })
            }
            Interface::Http | Interface::Https => {
                let url = request.url().parse();
                let url: SourceUrl = url.map_err(|error: UrlError| usage(error.to_string()))?;
                if !url.scheme().is_web() {
                    return Err(usage(format!("{url} is not the URL of a file of a web server")));
                }
                (url, SourcesOptions::default())
            }
        };
        let access = credentials.as_ref().map_or(Access::Anonymous, attached::key);
        let options = SourcesOptions { addresses, access, patience: Some(CHUNK_TIME), ..options };
        let Some((folder, name)) = url.split_name() else {
            return Err(usage(format!("{url} names no object")));
        };
        let open = || {
            let sources = shared.user_sources.with(options)?;
            Ok(OutsideObject { folder: sources.folder(&folder)?, key: Key::new(name)? })
        };
        Ok(open().map_err(|error: BackendError| RunError::from(error))?)
    }

    fn name(&self) -> String {
        format!("{}/{}", self.folder.backend().name().trim_end_matches('/'), self.key)
    }

    /// Opens the object in its state now. Blocks.
    ///
    /// # Errors
    /// It fails if there is no such object, or if it may not be read.
    pub fn open(&self) -> Answer<Source> {
        Ok(Source::Object(self.folder.backend().open(&self.key).map_err(RunError::from)?))
    }

    /// Fills `out` from an offset, without a request for the state of the object. Returns `false` if [`Source::read`] must read it.
    ///
    /// # Errors
    /// It fails if there is no such object, or if it may not be read.
    pub async fn read_once(&self, offset: u64, out: &mut [u8]) -> Answer<bool> {
        Ok(self.folder.read_once(&self.key, offset, out).await.map_err(RunError::from)?)
    }
}

impl Source {
    /// The name of the object in messages.
    pub fn name(&self) -> String {
        match self {
            Source::Outside(object) => object.name(),
            Source::Object(object) => object.name(),
            Source::File(file) => file.name.clone(),
        }
    }

    /// Bytes of the object. `None` if it was not asked for.
    pub fn length(&self) -> Option<u64> {
        match self {
            Source::Outside(_) => None,
            Source::Object(object) => Some(object.found().length),
            Source::File(file) => Some(file.length),
        }
    }

    /// Checks that the object has this many bytes.
    ///
    /// # Errors
    /// It fails if `length`, that of the object, is less.
    pub fn check_end(&self, end: u64, length: u64) -> Answer<()> {
        if end <= length {
            return Ok(());
        }
        let text = format!("{} has {length} bytes, not {end}", self.name());
        Err(Refusal::new(ErrorKind::Usage, text))
    }

    /// Fills `out` from an offset. All bytes are of one state of the object. Blocks.
    ///
    /// # Errors
    /// It fails if the object is too short, if it changed since it was opened, and if it cannot be read.
    pub fn read(&self, offset: u64, out: &mut [u8]) -> Answer<()> {
        match self {
            Source::Outside(OutsideObject { folder, key }) => {
                match read_opened(folder.backend(), key, offset, out) {
                    Err(BackendError::Short { end, length, .. }) => self.check_end(end, length),
                    read => Ok(read.map_err(RunError::from)?),
                }
            }
            Source::Object(object) => {
                let read = object.read_at(offset, out).and_then(|()| object.unchanged());
                Ok(read.map_err(RunError::from)?)
            }
            Source::File(file) => Ok(file.read(offset..offset.saturating_add(out.len() as u64), out)?),
        }
    }
}

/// The path of a file of this cluster, if the URL has the address of the request itself.
pub(crate) fn own_path(url: &str, host: Option<&str>) -> Option<String> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let (authority, path) = rest.split_once('/')?;
    let is_own = host.is_some_and(|host| host.eq_ignore_ascii_case(authority));
    let path = path.strip_prefix("files/").filter(|_| is_own)?;
    let decoded = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    Some(format!("/{decoded}"))
}

/// Opens a file of this cluster. Blocks.
///
/// # Errors
/// It fails if there is no such file, or if the principal may not read it.
pub(crate) fn own_file(shared: &Arc<Shared>, requester: Requester<'_>, path: &str) -> Answer<Source> {
    let opened = shared.open_here(requester, &Open::new(path))?;
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
