//! A small server with the protocol of S3 and with index pages, which fails when it is told to.

#![allow(clippy::unwrap_used, dead_code, missing_docs)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri, header};
use bytes::Bytes;
use gristmill_backend::suite::Fixture;
use gristmill_backend::{Backend, Key};
use gristmill_sources::{CacheCounts, RangeCache, Sources, SourcesOptions};

pub const BUCKET: &str = "bucket";

/// A fault in the answer to one request for bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The answer is right.
    Nothing,
    Status(u16),
    /// The connection closes in the middle of the body.
    CutBody,
    /// The body is shorter, and its length says so.
    ShortBody,
    /// The answer has other bytes than those that were asked for, and says so.
    OtherRange,
    /// The whole file comes instead of the range.
    WholeFile,
    /// The file gets another content before the answer is made.
    Replace,
    /// Conditions of the request are not looked at, as some servers do, and the file gets another content.
    ReplaceAndIgnoreConditions,
    Remove,
    /// The file gets other content of half its length.
    Shrink,
}

#[derive(Default)]
struct Files {
    by_key: BTreeMap<String, (Vec<u8>, u64)>,
    writes: u64,
    faults: VecDeque<Fault>,
    /// Whether `HEAD` tells the length 0 for every file.
    empty_heads: bool,
    /// Whether ETags are weak.
    weak_tags: bool,
    /// The time of the last change of all files. It is long ago without.
    changed: Option<SystemTime>,
    /// Most names of a page of a list, and whether pages have tokens.
    pages: Option<(usize, bool)>,
    requests: Vec<String>,
}

#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Files>>);

/// A running server. It ends with its runtime.
pub struct Server {
    pub files: Shared,
    pub address: SocketAddr,
    /// A cache of what is read, in a folder of its own.
    cache: Option<(Arc<RangeCache>, tempfile::TempDir)>,
    _runtime: tokio::runtime::Runtime,
}

impl Shared {
    pub fn put(&self, key: &str, bytes: &[u8]) {
        let mut files = self.0.lock().unwrap();
        files.writes += 1;
        let version = files.writes;
        files.by_key.insert(key.to_owned(), (bytes.to_vec(), version));
    }

    pub fn remove(&self, key: &str) {
        self.0.lock().unwrap().by_key.remove(key);
    }

    /// The next requests for bytes fail in these ways.
    pub fn fail(&self, faults: &[Fault]) {
        self.0.lock().unwrap().faults = faults.iter().copied().collect();
    }

    /// `HEAD` tells the length 0 from now on.
    pub fn empty_heads(&self) {
        self.0.lock().unwrap().empty_heads = true;
    }

    /// ETags are weak from now on.
    pub fn weak_tags(&self) {
        self.0.lock().unwrap().weak_tags = true;
    }

    /// All files are as old as this call.
    pub fn changed_now(&self) {
        self.0.lock().unwrap().changed = Some(SystemTime::now());
    }

    /// Lists have at most so many names, with or without tokens for the rest.
    pub fn cut_lists(&self, most: usize, tokens: bool) {
        self.0.lock().unwrap().pages = Some((most, tokens));
    }

    pub fn faults_left(&self) -> usize {
        self.0.lock().unwrap().faults.len()
    }

    /// The requests since the last call, as method and path.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().requests)
    }
}

impl Server {
    pub fn start() -> Server {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let (files, address) = (Shared::default(), listener.local_addr().unwrap());
        let router = Router::new().fallback(answer).with_state(files.clone());
        runtime.spawn(async { axum::serve(listener, router).await });
        Server { files, address, cache: None, _runtime: runtime }
    }

    /// A server whose files are read through a cache.
    pub fn cached() -> Server {
        let dir = tempfile::tempdir().unwrap();
        let cache = RangeCache::open(dir.path(), 1 << 30).unwrap();
        Server { cache: Some((cache, dir)), ..Server::start() }
    }

    pub fn cache_counts(&self) -> CacheCounts {
        self.cache.as_ref().unwrap().0.counts()
    }

    pub fn sources(&self) -> Sources {
        let options = SourcesOptions {
            endpoint: Some(format!("http://{}", self.address)),
            region: Some("nowhere".into()),
            anonymous: true,
            ..SourcesOptions::default()
        };
        let cache = self.cache.as_ref().map(|(cache, _)| cache.clone());
        Sources::start(options).unwrap().cached(cache)
    }
}

/// The files of a server through the protocol of S3, below the prefix `pre/fix`.
pub struct S3(pub Server);

impl S3 {
    pub fn start() -> S3 {
        S3(Server::start())
    }

    /// A server with short pages.
    pub fn with_pages(most: usize, tokens: bool) -> S3 {
        let server = S3::start();
        server.0.files.cut_lists(most, tokens);
        server
    }
}

impl Fixture for S3 {
    fn backend(&self) -> Arc<dyn Backend> {
        self.0.sources().open(&format!("s3://{BUCKET}/pre/fix").parse().unwrap()).unwrap()
    }

    fn put(&self, key: &Key, bytes: &[u8]) {
        self.0.files.put(&format!("pre/fix/{key}"), bytes);
    }

    fn remove(&self, key: &Key) {
        self.0.files.remove(&format!("pre/fix/{key}"));
    }
}

/// The files of a server through its index pages.
pub struct Web(pub Server);

impl Web {
    pub fn start() -> Web {
        Web(Server::start())
    }
}

impl Fixture for Web {
    fn backend(&self) -> Arc<dyn Backend> {
        self.0.sources().open(&format!("http://{}/pre/f%20x", self.0.address).parse().unwrap()).unwrap()
    }

    fn put(&self, key: &Key, bytes: &[u8]) {
        self.0.files.put(&format!("pre/f x/{key}"), bytes);
    }

    fn remove(&self, key: &Key) {
        self.0.files.remove(&format!("pre/f x/{key}"));
    }
}

fn plain(status: StatusCode) -> Response<Body> {
    Response::builder().status(status).body(Body::empty()).unwrap()
}

async fn answer(State(files): State<Shared>, method: Method, uri: Uri, headers: HeaderMap) -> Response<Body> {
    let query = url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    let query: BTreeMap<String, String> = query.into_owned().collect();
    files.0.lock().unwrap().requests.push(format!("{method} {uri}"));
    let path = percent_encoding::percent_decode_str(uri.path()).decode_utf8().unwrap().into_owned();
    let path = path.trim_start_matches('/').to_owned();
    let is_s3 = path == BUCKET || path.starts_with(&format!("{BUCKET}/"));
    if is_s3 && query.contains_key("list-type") {
        return list(&files, &query);
    }
    let key = if is_s3 { path[BUCKET.len()..].trim_start_matches('/').to_owned() } else { path };
    if !is_s3 && let Some(page) = index(&files, &key) {
        return page;
    }
    object(&files, &key, &method, &headers)
}

/// The page of a folder, or the way to it.
fn index(files: &Shared, key: &str) -> Option<Response<Body>> {
    let files = files.0.lock().unwrap();
    let prefix = if key.is_empty() || key.ends_with('/') { key.to_owned() } else { format!("{key}/") };
    let below: Vec<&str> = files.by_key.keys().filter_map(|name| name.strip_prefix(&prefix)).collect();
    if below.is_empty() || files.by_key.contains_key(key) {
        return None;
    }
    let encoded = |text: &str| {
        percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
    };
    if prefix != key {
        let path: Vec<String> = prefix.split('/').map(encoded).collect();
        let moved = Response::builder().status(301).header(header::LOCATION, format!("/{}", path.join("/")));
        return Some(moved.body(Body::empty()).unwrap());
    }
    let names: BTreeSet<String> = below
        .iter()
        .map(|name| match name.split_once('/') {
            Some((folder, _)) => format!("{}/", encoded(folder)),
            None => encoded(name),
        })
        .collect();
    let links: Vec<String> = names.iter().map(|name| format!("<a href=\"{name}\">x</a>")).collect();
    let text = format!("<html><a href=\"../\">../</a><a href=\"?C=N\">Name</a>{}</html>", links.join("\n"));
    Some(Response::builder().header(header::CONTENT_TYPE, "text/html").body(Body::from(text)).unwrap())
}

fn list(files: &Shared, query: &BTreeMap<String, String>) -> Response<Body> {
    let files = files.0.lock().unwrap();
    let get = |name: &str| query.get(name).map_or("", String::as_str);
    let (prefix, delimiter) = (get("prefix"), get("delimiter"));
    let from =
        if get("continuation-token").is_empty() { get("start-after") } else { get("continuation-token") };
    let asked: usize = get("max-keys").parse().unwrap_or(1000);
    let (most, tokens) = files.pages.unwrap_or((1000, true));
    let most = most.min(asked);
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let (mut rows, mut folders, mut last, mut truncated) =
        (Vec::new(), BTreeSet::new(), String::new(), false);
    for (key, (bytes, version)) in files.by_key.iter().filter(|(key, _)| key.starts_with(prefix)) {
        let folder = key[prefix.len()..].find('/').filter(|_| !delimiter.is_empty());
        let folder = folder.map(|end| key[..=prefix.len() + end].to_owned());
        let is_known = folder.as_ref().is_some_and(|folder| folders.contains(folder));
        if key.as_str() <= from || is_known {
            continue;
        }
        if rows.len() + folders.len() == most {
            truncated = true;
            break;
        }
        match folder {
            Some(folder) => {
                // A token is the place after the folder.
                last = format!("{folder}\u{10ffff}");
                folders.insert(folder);
            }
            None => {
                last.clone_from(key);
                rows.push(format!(
                    "<Contents><Key>{}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified><ETag>\"{version}\"</ETag><Size>{}</Size></Contents>",
                    escaped(key),
                    bytes.len()
                ));
            }
        }
    }
    rows.extend(
        folders
            .iter()
            .map(|one| format!("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", escaped(one))),
    );
    let next = if truncated && tokens {
        format!("<NextContinuationToken>{}</NextContinuationToken>", escaped(&last))
    } else {
        String::new()
    };
    let text = format!(
        "<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{next}{}</ListBucketResult>",
        rows.join("")
    );
    Response::new(Body::from(text))
}

fn object(files: &Shared, key: &str, method: &Method, asked: &HeaderMap) -> Response<Body> {
    let fault = if method == Method::GET { files.0.lock().unwrap().faults.pop_front() } else { None };
    match fault {
        Some(Fault::Status(status)) => return plain(status.try_into().unwrap()),
        Some(Fault::Replace | Fault::ReplaceAndIgnoreConditions) => {
            let length = files.0.lock().unwrap().by_key[key].0.len();
            files.put(key, &vec![0xee; length]);
        }
        Some(Fault::Shrink) => {
            let length = files.0.lock().unwrap().by_key[key].0.len();
            files.put(key, &vec![0xee; length / 2]);
        }
        Some(Fault::Remove) => files.remove(key),
        _ => {}
    }
    let files = files.0.lock().unwrap();
    let Some((bytes, version)) = files.by_key.get(key) else { return plain(StatusCode::NOT_FOUND) };
    let weak = if files.weak_tags { "W/" } else { "" };
    let tag = format!("{weak}\"{version}\"");
    let text = |name| asked.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    if text(header::IF_MATCH).is_some_and(|wanted| wanted != tag)
        && fault != Some(Fault::ReplaceAndIgnoreConditions)
    {
        return plain(StatusCode::PRECONDITION_FAILED);
    }
    let changed = files.changed.unwrap_or(SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_200));
    let mut made = Response::builder()
        .header(header::ETAG, tag)
        .header(header::LAST_MODIFIED, httpdate::fmt_http_date(changed))
        .header(header::CONTENT_TYPE, "application/octet-stream");
    let range = text(header::RANGE).and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let Some((first, last)) = range.filter(|_| fault != Some(Fault::WholeFile)) else {
        let body = if method == Method::HEAD { Body::empty() } else { Body::from(bytes.clone()) };
        let length = if method == Method::HEAD && files.empty_heads { 0 } else { bytes.len() };
        return made.header(header::CONTENT_LENGTH, length).body(body).unwrap();
    };
    let (mut first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
    if first >= bytes.len() {
        return plain(StatusCode::RANGE_NOT_SATISFIABLE);
    }
    let last = last.min(bytes.len() - 1);
    if fault == Some(Fault::OtherRange) {
        first += 1;
    }
    let part = Bytes::copy_from_slice(&bytes[first..=last.max(first)]);
    made = made.status(206).header(header::CONTENT_RANGE, format!("bytes {first}-{last}/{}", bytes.len()));
    match fault {
        Some(Fault::CutBody) => {
            let half = part.slice(..part.len() / 2);
            let broken = futures_util::stream::iter([Ok(half), Err(std::io::Error::other("cut"))]);
            made.header(header::CONTENT_LENGTH, part.len()).body(Body::from_stream(broken)).unwrap()
        }
        Some(Fault::ShortBody) => made.body(Body::from(part.slice(..part.len() / 2))).unwrap(),
        _ => made.body(Body::from(part)).unwrap(),
    }
}
