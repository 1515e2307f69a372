//! The sources of a process.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gristmill_backend::{Backend, BackendError, Key, Reader, Result};
use gristmill_cephfs::{CephFs, CephOptions};
use tokio::runtime::Handle;

use crate::bucket::{Bucket, Store};
use crate::driver::Driver;
use crate::http_client::HttpClient;
use crate::object::read_once;
use crate::range_cache::{CachePlace, RangeCache};
use crate::stores::open_store;
use crate::web_server::WebServer;
use crate::{AddressPolicy, Scheme, SourceUrl};

/// How object stores are reached. What is left out comes from the environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`,
/// `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_SKIP_SIGNATURE`, `GOOGLE_APPLICATION_CREDENTIALS`,
/// `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY` and the other credentials that the crate `object_store` reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcesOptions {
    /// The URL of a server with the protocol of S3.
    pub endpoint: Option<String>,
    /// The region of the bucket.
    pub region: Option<String>,
    /// Asks without credentials, for public buckets.
    pub anonymous: bool,
    /// Whose credentials are sent.
    pub access: Access,
    /// The addresses that web servers, and the `endpoint`, may have.
    pub addresses: AddressPolicy,
    /// Longest time of one read, however many requests it takes. `None`: only the times without a byte are bounded.
    pub patience: Option<Duration>,
}

/// Whose credentials an object store gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Those of the environment of this process.
    #[default]
    Environment,
    /// None. The environment is not read.
    Anonymous,
    /// Those of a user, for S3 and for web servers. The environment is not read.
    Key(AccessKey),
}

/// The access key of a user, or the name and the password of a user of a web server.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// The name of the key.
    pub id: String,
    /// The secret.
    pub secret: String,
    /// The token of a session that has an end, for S3.
    pub token: Option<String>,
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessKey(..)")
    }
}

/// Connections to object stores and web servers. It is cheap to clone.
#[derive(Clone)]
pub struct Sources {
    driver: Driver,
    /// The client for all addresses, and the one for those of other machines.
    any: HttpClient,
    not_local: HttpClient,
    options: SourcesOptions,
    /// Keeps ranges that are read.
    cache: Option<Arc<RangeCache>>,
    /// The clients of buckets, which keep credentials that a machine or a service gave. The oldest comes first.
    stores: Arc<Mutex<VecDeque<KeptStore>>>,
}

/// A folder of an object store, of a web server or of CephFS, for asynchronous reads.
pub struct OutsideFolder(Kind);

enum Kind {
    WebServer(Box<WebServer>),
    Bucket(Bucket),
    CephFs(CephFs),
}

impl OutsideFolder {
    /// The same folder for callers that block.
    pub fn backend(&self) -> &dyn Backend {
        match &self.0 {
            Kind::WebServer(server) => &**server,
            Kind::Bucket(bucket) => bucket,
            Kind::CephFs(tree) => tree,
        }
    }

    /// Fills `out` with the bytes of a file from an offset, in the state of the file now, without a request for that state. Returns
    /// `false` if the file must be opened to know more: if a request failed, or if the answers to several are not of one state.
    ///
    /// # Errors
    /// The error is [`BackendError::NotFound`] if there is no such file, [`BackendError::Denied`] if it may not be read, and
    /// [`BackendError::Unavailable`] if the time for a read is over.
    pub async fn read_once(&self, key: &Key, offset: u64, out: &mut [u8]) -> Result<bool> {
        match &self.0 {
            Kind::WebServer(server) => read_once(&**server, key, offset, out).await,
            Kind::Bucket(bucket) => read_once(bucket, key, offset, out).await,
            // Its library blocks.
            Kind::CephFs(_) => Ok(false),
        }
    }
}

/// The client of a bucket.
type KeptStore = ((Scheme, String), Arc<dyn Store>);

/// A folder of CephFS (`cephfs://`), as a reader may read it. The environment names the cluster. Nothing is connected.
///
/// # Errors
/// The error is [`BackendError::InvalidKey`] if the folder cannot have such a name.
pub fn cephfs(folder: &SourceUrl, reader: Reader) -> Result<CephFs> {
    CephFs::new(&CephOptions::of_environment(folder.container(), folder.key().as_str()), reader)
}

/// Variables of the environment that name the server of object stores.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];

/// Variables of the environment that name the region of buckets.
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

fn variable(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// The server with the protocol of S3 and the region that the environment names.
pub fn s3_of_environment() -> (Option<String>, Option<String>) {
    (variable(&ENDPOINTS), variable(&REGIONS))
}

/// Most clients of buckets that are kept.
const MAX_STORES: usize = 16;

impl Sources {
    /// Starts threads for the connections.
    ///
    /// # Errors
    /// The error is [`BackendError::Io`] if the system gives no threads, or if the certificate authorities of the system cannot be
    /// read.
    pub fn start(options: SourcesOptions) -> Result<Sources> {
        Sources::new(Driver::start()?, options)
    }

    /// Uses the threads of a runtime, which must live longer than all that is opened.
    ///
    /// # Errors
    /// The error is [`BackendError::Io`] if the certificate authorities of the system cannot be read.
    pub fn on(runtime: Handle, options: SourcesOptions) -> Result<Sources> {
        Sources::new(Driver::on(runtime), options)
    }

    fn new(driver: Driver, options: SourcesOptions) -> Result<Sources> {
        let name = "the certificate authorities of the system".to_owned();
        let (any, not_local) =
            HttpClient::pair().map_err(|source| BackendError::Io { verb: "read", name, source })?;
        Ok(Sources { driver, any, not_local, options, cache: None, stores: Arc::default() })
    }

    /// Sources with other options that share the connections, the requests at once, and the bytes that are fetched ahead with these.
    pub fn sharing(&self, options: SourcesOptions) -> Sources {
        Sources { options, stores: Arc::default(), ..self.clone() }
    }

    /// The same sources, with a cache of the ranges of objects that are opened from now on. Whoever may read one of the objects can find
    /// its bytes there, so the cache is for sources with the same credentials.
    pub fn cached(self, cache: Option<Arc<RangeCache>>) -> Sources {
        Sources { cache, ..self }
    }

    /// Opens a folder: all files below it, with keys that begin there. No request is sent.
    ///
    /// # Errors
    /// The error is [`BackendError::Unavailable`] if the options and the environment do not suffice to reach the object store.
    pub fn open(&self, folder: &SourceUrl) -> Result<Arc<dyn Backend>> {
        Ok(match self.folder(folder)?.0 {
            Kind::WebServer(server) => Arc::new(*server),
            Kind::Bucket(bucket) => Arc::new(bucket),
            Kind::CephFs(tree) => Arc::new(tree),
        })
    }

    /// Opens a folder as [`open`](Sources::open) does, for asynchronous reads.
    ///
    /// # Errors
    /// It fails as [`open`](Sources::open) does.
    pub fn folder(&self, folder: &SourceUrl) -> Result<OutsideFolder> {
        let cache = self.cache.clone().map(|cache| CachePlace { cache, server: self.server().into() });
        let driver = self.driver.clone().with_patience(self.options.patience).with_cache(cache);
        Ok(OutsideFolder(match folder.scheme() {
            Scheme::Http | Scheme::Https => {
                let http = self.client(self.options.addresses);
                let http = match &self.options.access {
                    Access::Key(key) => http.with_login(key),
                    Access::Environment | Access::Anonymous => http,
                };
                Kind::WebServer(Box::new(WebServer::new(folder.clone(), http, driver)))
            }
            Scheme::CephFs
                if self.options.access != Access::Environment
                    || self.options.addresses != AddressPolicy::Any =>
            {
                let why = "files of CephFS are read with the key of this process only".to_owned();
                return Err(BackendError::Denied { name: folder.to_string(), why });
            }
            Scheme::CephFs => Kind::CephFs(cephfs(folder, Reader::Process)?),
            Scheme::S3 | Scheme::Gs | Scheme::Az => {
                Kind::Bucket(Bucket::new(folder.clone(), self.store(folder)?, driver))
            }
        }))
    }

    /// The server of object stores, if it is not the one that their URLs tell.
    fn server(&self) -> String {
        self.options.endpoint.clone().or_else(|| variable(&ENDPOINTS)).unwrap_or_default()
    }

    fn client(&self, addresses: AddressPolicy) -> HttpClient {
        match addresses {
            AddressPolicy::Any => self.any.clone(),
            AddressPolicy::NotLocal => self.not_local.clone(),
        }
    }

    fn store(&self, url: &SourceUrl) -> Result<Arc<dyn Store>> {
        let bucket = (url.scheme(), url.container().to_owned());
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = stores.iter().find(|(name, _)| *name == bucket) {
            return Ok(known.clone());
        }
        // A store of the environment may ask the machine for credentials.
        let named = self.options.endpoint.is_some();
        let http = self.client(if named { self.options.addresses } else { AddressPolicy::Any });
        let store = open_store(url, &self.options, http)?;
        stores.push_back((bucket, store.clone()));
        if stores.len() > MAX_STORES {
            stores.pop_front();
        }
        Ok(store)
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("options", &self.options).finish_non_exhaustive()
    }
}
