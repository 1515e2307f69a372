//! Object stores: S3, Google Cloud Storage and Azure, through the crate `object_store`.

mod lists;
mod stored_object;

use std::ops::Range;
use std::sync::Arc;

use gristmill_backend::{
    Backend, BackendError, Found, Key, Kind, MAX_LIST_PAGE, Object, Page, Result, Stamp, WholeRecords,
};
use object_store::list::PaginatedListStore;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt};

use stored_object::{StoredObject, read_answer};

use crate::SourceUrl;
use crate::driver::Driver;
use crate::object::{Folder, RemoteObject, TakeBytes};
use crate::retry::repeat;
use crate::store_error::explain;

/// The operations of the client of any object store.
pub(crate) trait Store: ObjectStore + PaginatedListStore {}

impl<S: ObjectStore + PaginatedListStore> Store for S {}

/// The objects of a bucket below a prefix.
pub(crate) struct Bucket {
    root: SourceUrl,
    store: Arc<dyn Store>,
    driver: Driver,
}

impl Bucket {
    pub fn new(root: SourceUrl, store: Arc<dyn Store>, driver: Driver) -> Bucket {
        Bucket { root, store, driver }
    }

    async fn found(&self, url: &SourceUrl) -> Result<Found> {
        let path = path(url)?;
        let head = async || self.store.head(&path).await.map_err(|error| explain(url, error));
        found(url, &repeat(head).await?)
    }
}

/// The path of an object in its bucket.
fn path(url: &SourceUrl) -> Result<Path> {
    let invalid =
        |_| BackendError::InvalidKey { key: url.key().to_string(), why: "object stores do not allow it" };
    Path::parse(url.key().as_str()).map_err(invalid)
}

/// The state of an object. Some stores give an ETag in quotes in one answer and without them in another.
fn found(url: &SourceUrl, meta: &ObjectMeta) -> Result<Found> {
    let tag = meta.e_tag.as_deref().map(|tag| tag.trim_matches('"'));
    let stamp = tag.filter(|tag| !tag.is_empty() && !tag.starts_with("W/")).and_then(Stamp::new);
    let stamp = stamp.ok_or_else(|| {
        let why = "the object store gives no strong ETag, so a change of the object would not be noticed";
        let source = std::io::Error::new(std::io::ErrorKind::Unsupported, why);
        BackendError::Io { verb: "read", name: url.to_string(), source }
    })?;
    Ok(Found { length: meta.size, stamp })
}

impl Backend for Bucket {
    fn name(&self) -> String {
        self.root.to_string()
    }

    fn list(&self, folder: &Key, after: Option<&str>, limit: usize) -> Result<Page> {
        self.driver.wait(self.level(folder, after, limit.clamp(1, MAX_LIST_PAGE)))
    }

    /// One list of the bucket, without a request for each folder.
    fn list_below(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        self.driver.wait(self.below(folder, from, limit.clamp(1, MAX_LIST_PAGE)))
    }

    fn folders_are_names(&self) -> bool {
        true
    }

    fn stat(&self, key: &Key) -> Result<Found> {
        let url = self.root.below(key)?;
        if url.key().is_root() {
            return Err(BackendError::WrongKind { name: url.to_string(), kind: Kind::Folder });
        }
        self.driver.wait(self.found(&url))
    }

    /// Objects are written whole.
    fn stat_growing(&self, key: &Key, _records: WholeRecords) -> Result<Found> {
        self.stat(key)
    }

    fn open(&self, key: &Key) -> Result<Arc<dyn Object>> {
        let found = self.stat(key)?;
        self.open_at(key, &found)
    }

    /// Needs no request. The first read finds out whether the object has this state.
    fn open_at(&self, key: &Key, found: &Found) -> Result<Arc<dyn Object>> {
        let url = self.root.below(key)?;
        let fetch = StoredObject { path: path(&url)?, url, found: found.clone(), store: self.store.clone() };
        Ok(Arc::new(RemoteObject::new(Arc::new(fetch), found.clone(), self.driver.clone())))
    }

    fn read_now(&self, key: &Key, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read_once_or_opened(key, offset, out)
    }
}

impl Folder for Bucket {
    fn driver(&self) -> &Driver {
        &self.driver
    }

    async fn get_now(&self, key: &Key, range: Range<u64>, take: TakeBytes<'_>) -> Result<Option<Found>> {
        let url = self.root.below(key)?;
        let bounded = Some(GetRange::Bounded(range.clone()));
        let options = GetOptions { range: bounded, ..GetOptions::default() };
        let got = self.store.get_opts(&path(&url)?, options).await;
        let got = got.map_err(|error| explain(&url, error))?;
        let state = found(&url, &got.meta).ok();
        read_answer(&url, got, range, take).await?;
        Ok(state)
    }
}
