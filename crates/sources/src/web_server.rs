//! Files of web servers, and their pages that list folders.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
use gristmill_backend::{
    Backend, BackendError, Content, Entry, Found, Key, Kind, MAX_DEPTH, MAX_LIST_PAGE, Object, Page, Result,
};
use http::{Method, StatusCode};
use url::Url;

use crate::SourceUrl;
use crate::driver::Driver;
use crate::http_client::HttpClient;
use crate::index_page::{MAX_INDEX_BYTES, names_below};
use crate::object::{Fetch, Folder, RemoteObject, TakeBytes};
use crate::retry::repeat;
use crate::store_error::innermost;
use crate::web_answer::{
    WebFailure, check_empty, failure, is_settled, read_range, read_range_now, send, state,
};

/// Files of a list whose states are asked for at once.
const STATES_AT_ONCE: usize = 16;

/// Names that index pages hide, because they begin with `.`: the documents of Zarr 2. They are asked for.
const HIDDEN: [&str; 4] = [".zarray", ".zattrs", ".zgroup", ".zmetadata"];

/// The files of a web server below a path.
pub(crate) struct WebServer {
    root: SourceUrl,
    http: HttpClient,
    driver: Driver,
}

impl WebServer {
    pub fn new(root: SourceUrl, http: HttpClient, driver: Driver) -> WebServer {
        WebServer { root, http, driver }
    }

    /// The state of a file.
    async fn head(&self, url: &SourceUrl) -> Result<Found> {
        Ok(self.settled_head(url).await?.0)
    }

    /// The state of a file, and whether it is settled.
    async fn settled_head(&self, url: &SourceUrl) -> Result<(Found, bool)> {
        let (name, target) = (url.to_string(), parsed(url)?);
        let found =
            repeat(async || self.head_once(&target).await.map_err(|failure| failure.named(name.clone())));
        let is_folder = || BackendError::WrongKind { name: name.clone(), kind: Kind::Folder };
        found.await?.ok_or_else(is_folder)
    }

    /// The state of a file, and whether it is settled; `None` for a folder.
    async fn head_once(&self, target: &Url) -> std::result::Result<Option<(Found, bool)>, WebFailure> {
        let (answer, at) = send(&self.http, Method::HEAD, target, &[]).await?;
        if let Some(failure) = failure(answer.status()) {
            return Err(failure);
        }
        // A server sends the URL of a folder on to the same URL with a '/'.
        if at.path().ends_with('/') {
            return Ok(None);
        }
        let (found, settled) = (state(answer.headers())?, is_settled(answer.headers()));
        // It holds one of the requests at once.
        drop(answer);
        if found.length == 0 {
            check_empty(&self.http, target).await?;
        }
        Ok(Some((found, settled)))
    }

    /// The names of a folder, from its index page: whether each is a folder.
    async fn index(&self, folder: &SourceUrl) -> Result<BTreeMap<String, bool>> {
        let name = folder.to_string();
        let target = parsed_text(&format!("{}/", name.trim_end_matches('/')), folder)?;
        repeat(async || self.index_once(&target).await.map_err(|failure| failure.named(name.clone()))).await
    }

    async fn index_once(&self, target: &Url) -> std::result::Result<BTreeMap<String, bool>, WebFailure> {
        let (answer, at) = send(&self.http, Method::GET, target, &[]).await?;
        if let Some(failure) = failure(answer.status()) {
            return Err(failure);
        }
        let kind = answer.headers().get(http::header::CONTENT_TYPE);
        let is_page = kind.and_then(|kind| kind.to_str().ok()).is_some_and(|kind| kind.contains("html"));
        if answer.status() != StatusCode::OK || !is_page {
            return Err(WebFailure::Unable("the server shows no list of its files there"));
        }
        let (mut body, mut bytes) = (answer.into_body().bytes_stream(), Vec::new());
        while let Some(more) = body.next().await {
            bytes.extend(more.map_err(|error| WebFailure::Unavailable(innermost(&error)))?);
            if bytes.len() > MAX_INDEX_BYTES {
                return Err(WebFailure::Unable("the page with the list of its files is too long"));
            }
        }
        names_below(&at, &String::from_utf8_lossy(&bytes))
            .ok_or(WebFailure::Unable("the page with the list of its files has too many names"))
    }

    /// All files below a folder. Below an array no documents are asked for: chunks lie there.
    async fn below(&self, folder: &Key, most: usize) -> Result<Vec<(Key, Content)>> {
        let mut found = Vec::new();
        let mut folders = vec![(folder.clone(), 0, true)];
        while let Some((folder, depth, hidden)) = folders.pop() {
            if depth > MAX_DEPTH {
                return Err(BackendError::TooDeep { name: self.root.below(&folder)?.to_string() });
            }
            let (mut entries, mut from): (Vec<Entry>, Option<String>) = (Vec::new(), None);
            loop {
                let page = self.page(&folder, from.as_deref(), MAX_LIST_PAGE, hidden).await;
                let page = page.map_err(|error| match error {
                    BackendError::NotFound { name } if depth > 0 => BackendError::Changed { name },
                    error => error,
                })?;
                entries.extend(page.entries);
                if found.len() + entries.len() > most {
                    return Err(BackendError::TooMany { name: self.root.to_string(), most });
                }
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
            let is_array = entries.iter().any(|entry| matches!(entry.name.as_str(), ".zarray" | "zarr.json"));
            for entry in entries {
                let key = folder.join(&entry.name)?;
                match entry.content {
                    Content::Folder => folders.push((key, depth + 1, hidden && !is_array)),
                    content => found.push((key, content)),
                }
            }
        }
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }

    /// A page of a list. `hidden` tells whether to ask for documents that index pages hide.
    async fn page(&self, folder: &Key, after: Option<&str>, limit: usize, hidden: bool) -> Result<Page> {
        let url = self.root.below(folder)?;
        let mut names = self.index(&url).await?;
        if after.is_none() && hidden && !names.contains_key("zarr.json") {
            let mut denied = None;
            for hidden in HIDDEN.iter().filter(|hidden| !names.contains_key(**hidden)).collect::<Vec<_>>() {
                match self.head(&self.root.below(&folder.join(hidden)?)?).await {
                    Ok(_) => drop(names.insert((*hidden).to_owned(), false)),
                    Err(BackendError::NotFound { .. }) => {}
                    Err(error @ BackendError::Denied { .. }) => denied = Some(error),
                    Err(error) => return Err(error),
                }
            }
            // Attributes that may not be read would change the meaning of the array beside them.
            if let Some(error) = denied.filter(|_| HIDDEN.iter().any(|hidden| names.contains_key(*hidden))) {
                return Err(error);
            }
        }
        let later = || names.iter().filter(|(name, _)| after.is_none_or(|after| name.as_str() > after));
        let mut last = None;
        let entries = later().take(limit).map(|(name, is_folder)| {
            last = Some(name.clone());
            async {
                let content = match is_folder {
                    true => Content::Folder,
                    false => match self.head(&self.root.below(&folder.join(name)?)?).await {
                        Ok(found) => Content::File(found),
                        // The page is older than the file, or the name leads elsewhere.
                        Err(BackendError::NotFound { name }) => {
                            Content::Unreadable { why: format!("{name} is listed, but does not exist") }
                        }
                        Err(BackendError::WrongKind { kind: Kind::Folder, .. }) => Content::Folder,
                        Err(error @ (BackendError::Denied { .. } | BackendError::Io { .. })) => {
                            Content::Unreadable { why: error.to_string() }
                        }
                        Err(error) => return Err(error),
                    },
                };
                Ok(Entry { name: name.clone(), content })
            }
        });
        let entries: Vec<_> = entries.collect();
        let entries = stream::iter(entries).buffered(STATES_AT_ONCE).try_collect::<Vec<_>>().await?;
        let next = last.filter(|_| later().count() > entries.len());
        Ok(Page { entries, next })
    }
}

fn parsed(url: &SourceUrl) -> Result<Url> {
    parsed_text(&url.to_string(), url)
}

fn parsed_text(text: &str, url: &SourceUrl) -> Result<Url> {
    let invalid =
        |_| BackendError::InvalidKey { key: url.key().to_string(), why: "it is not a path of a URL" };
    Url::parse(text).map_err(invalid)
}

impl Backend for WebServer {
    fn name(&self) -> String {
        self.root.to_string()
    }

    /// Servers hide names, cut long pages, and show a page of their own instead of a list.
    fn lists_everything(&self) -> bool {
        false
    }

    /// Reads the index page of the folder for each page of the list, and asks for the state of each of its files.
    fn list(&self, folder: &Key, from: Option<&str>, limit: usize) -> Result<Page> {
        self.driver.wait(self.page(folder, from, limit.clamp(1, MAX_LIST_PAGE), true))
    }

    fn files_below(&self, folder: &Key, most: usize) -> Result<Vec<(Key, Content)>> {
        self.driver.wait(self.below(folder, most))
    }

    fn stat(&self, key: &Key) -> Result<Found> {
        Ok(self.stat_settled(key)?.0)
    }

    fn stat_settled(&self, key: &Key) -> Result<(Found, bool)> {
        let url = self.root.below(key)?;
        if url.key().is_root() {
            return Err(BackendError::WrongKind { name: url.to_string(), kind: Kind::Folder });
        }
        self.driver.wait(self.settled_head(&url))
    }

    fn open(&self, key: &Key) -> Result<Arc<dyn Object>> {
        let found = self.stat(key)?;
        self.open_at(key, &found)
    }

    /// Needs no request. The first read finds out whether the file has this state.
    fn open_at(&self, key: &Key, found: &Found) -> Result<Arc<dyn Object>> {
        let url = self.root.below(key)?;
        let file = WebFile {
            name: url.to_string(),
            target: parsed(&url)?,
            found: found.clone(),
            http: self.http.clone(),
            settled: AtomicBool::new(true),
        };
        Ok(Arc::new(RemoteObject::new(Arc::new(file), found.clone(), self.driver.clone())))
    }

    fn read_now(&self, key: &Key, offset: u64, out: &mut [u8]) -> Result<()> {
        self.read_once_or_opened(key, offset, out)
    }
}

impl Folder for WebServer {
    fn driver(&self) -> &Driver {
        &self.driver
    }

    async fn get_now(&self, key: &Key, range: Range<u64>, take: TakeBytes<'_>) -> Result<Option<Found>> {
        let url = self.root.below(key)?;
        let read = read_range_now(&self.http, &parsed(&url)?, range, take).await;
        read.map_err(|failure| failure.named(url.to_string()))
    }
}

/// A file in one state.
struct WebFile {
    name: String,
    target: Url,
    found: Found,
    http: HttpClient,
    /// Whether all answers said that the state is settled.
    settled: AtomicBool,
}

impl Fetch for WebFile {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn fetch_once<'a>(&'a self, start: u64, len: u64, take: TakeBytes<'a>) -> BoxFuture<'a, Result<()>> {
        async move {
            if len == 0 {
                return Ok(());
            }
            let read = read_range(&self.http, &self.target, &self.found, start..start + len, take).await;
            let settled = read.map_err(|failure| failure.named(self.name.clone()))?;
            self.settled.fetch_and(settled, Ordering::Relaxed);
            Ok(())
        }
        .boxed()
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed)
    }

    /// Each answer tells it: of a file that is another one there are no bytes.
    fn has_changed(&self) -> BoxFuture<'_, bool> {
        std::future::ready(false).boxed()
    }
}
