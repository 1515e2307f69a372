//! Reads object stores and web servers: `s3://`, `gs://`, `az://`, `http://` and `https://`. URLs of CephFS (`cephfs://`) lead to the
//! crate `gristmill_cephfs`.
//!
//! A [`SourceUrl`] names a file or a folder. [`Sources`] opens it as a [`Backend`](gristmill_backend::Backend), so everything that
//! reads a mount reads a bucket. Each request for bytes names the version of the object, and its answer is compared with that version.
//!
//! # Limits
//! At most [`MAX_REQUESTS_AT_ONCE`] requests run at once. A request reads at most [`MAX_PIECE`] bytes, and ranges with at most
//! [`MAX_GAP`] bytes between them are read together. Requests that fail for a reason that may pass are repeated [`MAX_RETRIES`]
//! times. At most [`MAX_AHEAD`] bytes of all objects are fetched before they are needed. A [`RangeCache`] keeps ranges on a local disk,
//! up to a number of bytes. A process that reads URLs of others can
//! refuse addresses of its own machine ([`AddressPolicy`]).
//!
//! # Example
//! A web server on this machine, and a file of it:
//! ```
//! use axum::Router;
//! use axum::http::{HeaderMap, StatusCode, header};
//! use axum::routing::get;
//! use gristmill_backend::Key;
//! use gristmill_sources::{Sources, SourcesOptions};
//!
//! /// A file with the bytes 0 to 99.
//! async fn file(asked: HeaderMap) -> (StatusCode, [(header::HeaderName, String); 2], Vec<u8>) {
//!     let range = asked.get("range").and_then(|range| range.to_str().ok()?.strip_prefix("bytes=")?.split_once('-'));
//!     let ends = range.and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
//!     let status = if ends.is_some() { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
//!     let (first, last) = ends.unwrap_or((0u8, 99u8));
//!     let range = format!("bytes {first}-{last}/100");
//!     (status, [(header::ETAG, "\"v1\"".into()), (header::CONTENT_RANGE, range)], (first..=last).collect())
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = tokio::runtime::Runtime::new()?;
//! let listener = server.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
//! let address = listener.local_addr()?;
//! server.spawn(async { axum::serve(listener, Router::new().route("/data/x.u8", get(file))).await });
//!
//! let sources = Sources::start(SourcesOptions::default())?;
//! let folder = sources.open(&format!("http://{address}/data").parse()?)?;
//! let object = folder.open(&Key::new("x.u8")?)?;
//! let mut bytes = [0; 4];
//! object.read(&[98..100, 3..5], &mut bytes)?;
//! assert_eq!((object.found().length, bytes), (100, [98, 99, 3, 4]));
//! # Ok(())
//! # }
//! ```

mod addresses;
mod bucket;
mod driver;
mod http_client;
mod index_page;
mod object;
mod pieces;
mod range_cache;
mod read_ahead;
mod retry;
mod sources;
mod store_error;
mod stores;
mod url;
mod web_answer;
mod web_server;

pub use addresses::AddressPolicy;
pub use http_client::{ANSWER_PATIENCE, CONNECT_PATIENCE, MAX_REQUESTS_AT_ONCE, PERMIT_PATIENCE};
pub use index_page::{MAX_INDEX_BYTES, MAX_INDEX_NAMES, names_below};
pub use pieces::{MAX_GAP, MAX_PIECE};
pub use range_cache::{CacheCounts, MAX_KEPT_RANGE, MAX_KEPT_RANGES, MAX_UNWRITTEN, RangeCache};
pub use read_ahead::MAX_AHEAD;
pub use retry::{MAX_RETRIES, RETRY_PATIENCE};
pub use sources::{Access, AccessKey, OutsideFolder, Sources, SourcesOptions, cephfs, s3_of_environment};
pub use url::{Scheme, SourceUrl, UrlError, check_endpoint, path_style, without_secrets};
pub use web_answer::{MAX_REDIRECTS, SETTLED_AGE};
