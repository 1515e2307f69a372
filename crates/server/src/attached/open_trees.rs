//! The backends of attached trees that a node has open.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_backend::{Backend, BackendError, Mount, MountOptions, Reader, UnixUser};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_sources::{
    Access, AccessKey, AddressPolicy, CacheCounts, RangeCache, Scheme, SourceUrl, SourcesOptions, cephfs,
    check_endpoint, without_secrets,
};
use gristmill_wire::{FileReader, SourceAccess, TreeSource};
use tokio::runtime::Handle;

use crate::NearestEndpoint;
use crate::limits::MAX_OPEN_TREES;
use crate::outside_connections::OutsideConnections;

/// Start of the URL of a folder of a mounted file system.
const MOUNT: &str = "file://";

/// A tree, and the user whose rights count.
type Opened = ((TreeSource, FileReader), Arc<dyn Backend>);

/// The backends of attached trees, the longest unused first.
pub(crate) struct OpenTrees {
    /// Connections that all trees share.
    connections: OutsideConnections,
    /// Keeps ranges of buckets and of web servers on a disk.
    cache: Option<Arc<RangeCache>>,
    /// Servers that are nearer than those of the trees.
    nearest: Vec<NearestEndpoint>,
    open: Mutex<VecDeque<Opened>>,
    /// Trees that are looked at for the entry node. Storage that does not answer holds one look, not more and more.
    looked_at: Mutex<HashSet<TreeSource>>,
}

/// A look at a tree, until it is dropped.
pub(crate) struct Look<'a> {
    trees: &'a OpenTrees,
    source: TreeSource,
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        self.trees.looked_at.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.source);
    }
}

/// The place of a tree.
enum Place {
    Mount(PathBuf),
    Source(SourceUrl),
}

fn place(source: &TreeSource) -> Result<Place, RunError> {
    let usage = |message: String| RunError::Remote { kind: ErrorKind::Usage, message };
    source.check().map_err(|error| usage(error.to_string()))?;
    let Some(path) = source.url.strip_prefix(MOUNT) else {
        let url: SourceUrl =
            source.url.parse().map_err(|error: gristmill_sources::UrlError| usage(error.to_string()))?;
        if url.scheme() != Scheme::S3 && (source.endpoint.is_some() || source.region.is_some()) {
            return Err(usage(format!("{url}: only trees of S3 have an endpoint and a region")));
        }
        if source.user_credentials && (source.anonymous || matches!(url.scheme(), Scheme::Gs | Scheme::Az)) {
            return Err(usage(format!(
                "{url}: users can give credentials of their own for s3:// and https:// only, and not for --anonymous"
            )));
        }
        if source.user_credentials && url.scheme() == Scheme::Http && !is_loopback(url.container()) {
            return Err(usage(format!("{url}: passwords of users are sent over https only; write https://")));
        }
        if source.without_change_time {
            return Err(usage(format!("{url}: only mounts have a time of change")));
        }
        let has_network_options = source.anonymous || source.allow_local || source.user_credentials;
        if url.scheme() == Scheme::CephFs && has_network_options {
            return Err(usage(format!(
                "{url}: Ceph has no addresses and no anonymous users, and its nodes have the key"
            )));
        }
        if let Some(endpoint) = &source.endpoint {
            check_endpoint(endpoint).map_err(|error| usage(error.to_string()))?;
        }
        let is_name = |region: &String| region.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if !source.region.as_ref().is_none_or(is_name) {
            return Err(usage("a region has letters, digits and '-' only".to_owned()));
        }
        return Ok(Place::Source(url));
    };
    if source.endpoint.is_some()
        || source.region.is_some()
        || source.anonymous
        || source.allow_local
        || source.user_credentials
    {
        return Err(usage("a mount has no endpoint, region, credentials or address".to_owned()));
    }
    let path = Path::new(path);
    if !path.is_absolute() {
        let shown = without_secrets(&source.url);
        return Err(usage(format!(
            "{shown}: the URL of a folder has three slashes; write file:///lustre/era5"
        )));
    }
    Ok(Place::Mount(path.to_owned()))
}

/// Whether the host of a URL is this machine.
fn is_loopback(host: &str) -> bool {
    let without_port = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = without_port.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    without_port == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The path of the folder of a mounted file system. `None` if the tree is no mount.
pub(super) fn mount_root(source: &TreeSource) -> Option<&str> {
    source.url.strip_prefix(MOUNT)
}

/// Whether the files of a tree have owners and modes, so that they are read with the rights of a user of the file system.
pub(super) fn has_users(source: &TreeSource) -> bool {
    source.url.starts_with(MOUNT) || is_cephfs(source)
}

fn is_cephfs(source: &TreeSource) -> bool {
    source.url.parse::<SourceUrl>().is_ok_and(|url| url.scheme() == Scheme::CephFs)
}

impl OpenTrees {
    /// No open trees. Trees are read from the `nearest` of servers of the same store. Requests to object stores and web servers run on `runtime`, and `cache` keeps what they give.
    pub fn new(runtime: Handle, cache: Option<Arc<RangeCache>>, nearest: Vec<NearestEndpoint>) -> OpenTrees {
        let connections = OutsideConnections::new(runtime);
        OpenTrees { connections, cache, nearest, open: Mutex::default(), looked_at: Mutex::default() }
    }

    /// The numbers of the cache, if there is one.
    pub fn cache_counts(&self) -> Option<CacheCounts> {
        self.cache.as_ref().map(|cache| cache.counts())
    }

    /// Opens a tree. Blocks. The files of a mount are read with the rights of `reader`.
    ///
    /// # Errors
    /// The error is a usage error if the URL is malformed or if the reader is no user. It also fails if a folder of a mount
    /// cannot be opened.
    pub fn open(&self, source: &TreeSource, reader: &FileReader) -> Result<Arc<dyn Backend>, RunError> {
        let wanted = (source.clone(), reader.clone());
        if let Some(known) = self.find(&wanted) {
            return Ok(known);
        }
        // A file system may not answer for long, so nothing is locked here.
        let backend = self.open_new(source, reader, None)?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(known, _)| *known != wanted);
        open.push_back((wanted, backend.clone()));
        let oldest = if open.len() > MAX_OPEN_TREES { open.pop_front() } else { None };
        drop(open);
        // Its connections may take a second to end.
        drop(oldest);
        Ok(backend)
    }

    /// Checks where a tree lies. No request is sent.
    ///
    /// # Errors
    /// The error is a usage error if the URL is malformed, or does not fit the options.
    pub fn check(source: &TreeSource) -> Result<(), RunError> {
        place(source).map(drop)
    }

    /// Opens a tree for a user. One that is read with credentials of users is opened with those of this user, and is not kept.
    ///
    /// # Errors
    /// It fails as [`open`](OpenTrees::open) does, and if the user gave no credentials.
    pub fn open_as(
        &self,
        source: &TreeSource,
        reader: &FileReader,
        access: Option<&SourceAccess>,
    ) -> Result<Arc<dyn Backend>, RunError> {
        if !source.user_credentials {
            return self.open(source, reader);
        }
        let access = access.ok_or_else(|| {
            let message = format!(
                "{} is read with credentials of each user: set GRISTMILL_SOURCE_ID and GRISTMILL_SOURCE_SECRET for the command or for \
                 Python, and the header x-gristmill-source for other programs",
                source.url
            );
            RunError::Remote { kind: ErrorKind::Denied, message }
        })?;
        self.open_new(source, reader, Some(access))
    }

    /// Begins a look at a tree; `None` if another one has not ended.
    pub fn look(&self, source: &TreeSource) -> Option<Look<'_>> {
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = looked_at.insert(source.clone());
        is_first.then(|| Look { trees: self, source: source.clone() })
    }

    fn find(&self, wanted: &(TreeSource, FileReader)) -> Option<Arc<dyn Backend>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let at = open.iter().position(|(known, _)| known == wanted)?;
        let found = open.remove(at)?;
        let backend = found.1.clone();
        open.push_back(found);
        Some(backend)
    }

    fn open_new(
        &self,
        source: &TreeSource,
        reader: &FileReader,
        access: Option<&SourceAccess>,
    ) -> Result<Arc<dyn Backend>, RunError> {
        let opened: Result<Arc<dyn Backend>, BackendError> = match place(source)? {
            Place::Mount(path) => {
                let options = MountOptions {
                    without_change_time: source.without_change_time,
                    follows_links_out: false,
                    reader: rights_of(reader)?,
                };
                Mount::open_with(path, options).map(|mount| Arc::new(mount) as Arc<dyn Backend>)
            }
            Place::Source(url) if url.scheme() == Scheme::CephFs => {
                cephfs(&url, rights_of(reader)?).map(|tree| Arc::new(tree) as Arc<dyn Backend>)
            }
            Place::Source(url) => {
                let endpoint = source.endpoint.as_deref();
                let nearest =
                    endpoint.and_then(|endpoint| self.nearest.iter().find_map(|one| one.of(endpoint)));
                // The administrator of the node names the nearest one, so it may be at any address.
                let is_local = source.allow_local || nearest.is_some();
                let options = SourcesOptions {
                    endpoint: nearest.or(endpoint).map(str::to_owned),
                    region: source.region.clone(),
                    anonymous: source.anonymous,
                    access: access.map_or(Access::Environment, key),
                    addresses: if is_local { AddressPolicy::Any } else { AddressPolicy::NotLocal },
                    patience: None,
                };
                let sources = self.connections.with(options);
                // What a user reads with credentials of his own is for him alone.
                let cache = self.cache.clone().filter(|_| access.is_none());
                sources.and_then(|sources| sources.cached(cache).open(&url))
            }
        };
        Ok(opened?)
    }
}

/// The credentials of a user, for his source.
pub(crate) fn key(access: &SourceAccess) -> Access {
    let SourceAccess { id, secret, token } = access.clone();
    Access::Key(AccessKey { id, secret, token })
}

/// The reader of a mount for the reader that a grant names.
fn rights_of(reader: &FileReader) -> Result<Reader, RunError> {
    Ok(match reader {
        FileReader::Everybody => Reader::Everybody,
        FileReader::Node => Reader::Process,
        FileReader::User { uid, gid, groups } => {
            let user = UnixUser::new(*uid, *gid, groups.clone());
            let refused = || {
                let message = format!("no node takes on the identity of user {uid} with group {gid}");
                RunError::Remote { kind: ErrorKind::Denied, message }
            };
            Reader::User(Arc::new(user.ok_or_else(refused)?))
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn mount(path: &Path) -> TreeSource {
        TreeSource { url: format!("file://{}", path.display()), ..TreeSource::default() }
    }

    #[tokio::test]
    async fn trees_stay_open_up_to_a_bound() {
        let dir = tempfile::tempdir().unwrap();
        let trees = OpenTrees::new(Handle::current(), None, Vec::new());
        let readers = [FileReader::Node, FileReader::Everybody];
        for n in 0..MAX_OPEN_TREES + 5 {
            std::fs::create_dir(dir.path().join(n.to_string())).unwrap();
            trees.open(&mount(&dir.path().join(n.to_string())), &readers[n % 2]).unwrap();
        }
        assert_eq!(trees.open.lock().unwrap().len(), MAX_OPEN_TREES);
        let last = mount(&dir.path().join("9"));
        let open = |reader| trees.open(&last, reader).unwrap();
        let [node, everybody] = &readers;
        assert!(Arc::ptr_eq(&open(everybody), &open(everybody)));
        assert!(!Arc::ptr_eq(&open(everybody), &open(node)));
    }

    #[tokio::test]
    async fn no_grant_makes_a_node_root() {
        let dir = tempfile::tempdir().unwrap();
        let trees = OpenTrees::new(Handle::current(), None, Vec::new());
        for (uid, gid) in [(0, 0), (u32::MAX, 1), (1, u32::MAX)] {
            let reader = FileReader::User { uid, gid, groups: vec![] };
            let error = trees.open(&mount(dir.path()), &reader).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        }
    }

    #[tokio::test]
    async fn urls_that_name_no_tree_are_refused_without_their_secrets() {
        let trees = OpenTrees::new(Handle::current(), None, Vec::new());
        for url in [
            "file://era5",
            "ftp://host/x",
            "s3://me:secret@bucket/x",
            "http://host/x?key=secret",
            "",
            "/data",
        ] {
            let source = TreeSource { url: url.to_owned(), ..TreeSource::default() };
            let error = trees.open(&source, &FileReader::Node).err().unwrap();
            assert!(error.is_usage() && !error.to_string().contains("secret"), "{error}");
        }
        let missing = trees.open(&mount(Path::new("/no/such/folder")), &FileReader::Node).err().unwrap();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }
}
