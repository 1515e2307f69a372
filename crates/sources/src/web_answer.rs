//! Requests to web servers and their answers (RFC 9110): lengths, versions, ranges, redirects.

use std::ops::Range;
use std::time::Duration;

use futures_util::StreamExt;
use gristmill_backend::{BackendError, Found, Stamp};
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, ETAG, HeaderName,
    IF_MATCH, IF_UNMODIFIED_SINCE, LAST_MODIFIED, LOCATION, RANGE,
};
use http::{HeaderMap, Method, Request, StatusCode};
use object_store::client::{HttpRequestBody, HttpResponse};
use url::Url;

use crate::addresses::refused_address;
use crate::http_client::HttpClient;
use crate::object::TakeBytes;
use crate::store_error::innermost;

/// The message about a server that answers `HEAD` with another length than `GET`.
const LENGTH_ZERO: &str = "the server tells the length 0 for a file that has bytes";

/// Age of the last change after which versions of web servers are believed to be different. It allows for a file server with another
/// clock.
pub const SETTLED_AGE: Duration = Duration::from_secs(60);

/// Most redirects of one request.
pub const MAX_REDIRECTS: usize = 5;

/// Why a request gave no bytes. The caller knows the name of the object.
#[derive(Debug)]
pub(crate) enum WebFailure {
    /// There is no such file.
    Missing,
    /// The file has another version.
    Changed,
    /// The server denies the file.
    Denied(String),
    /// The server failed in a way that may pass.
    Unavailable(String),
    /// The server refuses the request.
    Refused(StatusCode),
    /// The server cannot do what is needed.
    Unable(&'static str),
}

impl WebFailure {
    /// The error for an object of this name.
    pub fn named(self, name: String) -> BackendError {
        let unable = |why: String| std::io::Error::new(std::io::ErrorKind::Unsupported, why);
        match self {
            WebFailure::Missing => BackendError::NotFound { name },
            WebFailure::Changed => BackendError::Changed { name },
            WebFailure::Denied(why) => BackendError::Denied { name, why },
            WebFailure::Unavailable(why) => BackendError::Unavailable { name, why },
            WebFailure::Refused(status) => {
                let why = format!("the server refuses the request with {status}");
                BackendError::Io { verb: "read", name, source: unable(why) }
            }
            WebFailure::Unable(why) => {
                BackendError::Io { verb: "read", name, source: unable(why.to_owned()) }
            }
        }
    }
}

/// Sends a request and follows redirects. Returns the answer with its own URL.
pub(crate) async fn send(
    http: &HttpClient,
    method: Method,
    url: &Url,
    headers: &[(HeaderName, &str)],
) -> Result<(HttpResponse, Url), WebFailure> {
    let (first, mut url) = (url, url.clone());
    for _ in 0..=MAX_REDIRECTS {
        let mut request = Request::builder().method(method.clone()).uri(url.as_str());
        // The bytes of the file are needed, and not those of a compressed answer.
        request = request.header(ACCEPT_ENCODING, "identity");
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        if let Some(login) = http.login(&url, first) {
            request = request.header(AUTHORIZATION, login);
        }
        let request = request.body(HttpRequestBody::empty());
        let request = request.map_err(|_| WebFailure::Unable("its name cannot be sent in a request"))?;
        let answer = http.send(request).await;
        let answer = answer.map_err(|error| match refused_address(&error) {
            Some(refused) => WebFailure::Denied(refused.to_string()),
            None => WebFailure::Unavailable(innermost(&error)),
        })?;
        if !answer.status().is_redirection() {
            return Ok((answer, url));
        }
        let target = text(answer.headers(), &LOCATION).and_then(|target| url.join(target).ok());
        let target = target.ok_or(WebFailure::Unable("the server redirects to no other URL"))?;
        let keeps_privacy = target.scheme() == "https" || url.scheme() == target.scheme();
        if !keeps_privacy || !["http", "https"].contains(&target.scheme()) {
            return Err(WebFailure::Unable("the server redirects from https to another protocol"));
        }
        url = target;
    }
    Err(WebFailure::Unable("the server redirects too often"))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The failure of an answer with this status; `None` for success.
pub(crate) fn failure(status: StatusCode) -> Option<WebFailure> {
    Some(match status {
        status if status.is_success() => return None,
        StatusCode::NOT_FOUND | StatusCode::GONE => WebFailure::Missing,
        StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE => WebFailure::Changed,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => WebFailure::Denied(format!(
            "the server answers {status}: it wants a login, or another one; write https:// if it sends you there"
        )),
        status
            if status.is_server_error()
                || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT) =>
        {
            WebFailure::Unavailable(format!("the server answers {status}"))
        }
        status => WebFailure::Refused(status),
    })
}

/// The version of an answer: a strong ETag, or the time of the last change with a weak ETag before it. A time has seconds only, so two
/// changes within one are one.
pub(crate) fn stamp(headers: &HeaderMap) -> Result<Stamp, WebFailure> {
    let unable = WebFailure::Unable(
        "the server gives neither a strong ETag nor Last-Modified, so a change of the file would not be noticed",
    );
    let text = match (text(headers, &ETAG), text(headers, &LAST_MODIFIED)) {
        (Some(tag), _) if tag.starts_with('"') => tag.to_owned(),
        (Some(weak), Some(time)) => format!("{weak} {time}"),
        (None, Some(time)) => time.to_owned(),
        (_, None) => return Err(unable),
    };
    Stamp::new(text).ok_or(WebFailure::Unable("the server gives an ETag that is too long"))
}

/// Whether a later change of the file must have another version. The version of many servers is made of a time with seconds only, so a
/// file that was changed just now may change again under the same version (RFC 9110, section 8.8.2.2).
pub(crate) fn is_settled(headers: &HeaderMap) -> bool {
    let time = |name| text(headers, &name).and_then(|time| httpdate::parse_http_date(time).ok());
    match (time(LAST_MODIFIED), time(DATE)) {
        (Some(changed), Some(now)) => now.duration_since(changed).is_ok_and(|age| age >= SETTLED_AGE),
        // Without a time of the last change its tag is not made of that.
        (None, _) => !headers.contains_key(LAST_MODIFIED),
        (Some(_), None) => false,
    }
}

/// The state of a file, from an answer that has the whole file or its head.
pub(crate) fn state(headers: &HeaderMap) -> Result<Found, WebFailure> {
    check_encoding(headers)?;
    let length = text(headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let length = length.ok_or(WebFailure::Unable("the server does not tell the length of the file"))?;
    Ok(Found { length, stamp: stamp(headers)? })
}

fn check_encoding(headers: &HeaderMap) -> Result<(), WebFailure> {
    match text(headers, &CONTENT_ENCODING) {
        None | Some("identity") => Ok(()),
        Some(_) => Err(WebFailure::Unable("the server compresses its answers, although it was asked not to")),
    }
}

/// The range of an answer and the length of the whole file: `bytes 0-99/1000`.
fn content_range(headers: &HeaderMap) -> Option<(Range<u64>, u64)> {
    let (range, length) = text(headers, &CONTENT_RANGE)?.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let end = last.parse::<u64>().ok()?.checked_add(1)?;
    Some((first.parse().ok()?..end, length.parse().ok()?))
}

/// Checks with a request for bytes that a file is empty. Some servers answer `HEAD` with the length 0 for every file.
pub(crate) async fn check_empty(http: &HttpClient, url: &Url) -> Result<(), WebFailure> {
    let (answer, _) = send(http, Method::GET, url, &[(RANGE, "bytes=0-0")]).await?;
    match answer.status() {
        StatusCode::RANGE_NOT_SATISFIABLE => Ok(()),
        StatusCode::OK => match answer.into_body().bytes_stream().next().await {
            None => Ok(()),
            Some(Err(error)) => Err(WebFailure::Unavailable(innermost(&error))),
            Some(Ok(_)) => Err(WebFailure::Unable(LENGTH_ZERO)),
        },
        status => Err(failure(status).unwrap_or(WebFailure::Unable(LENGTH_ZERO))),
    }
}

/// Reads a range of a file that has this state. Returns whether the state [is settled](is_settled).
pub(crate) async fn read_range(
    http: &HttpClient,
    url: &Url,
    found: &Found,
    wanted: Range<u64>,
    take: TakeBytes<'_>,
) -> Result<bool, WebFailure> {
    let Range { start, end } = wanted;
    let (stamp_text, range) = (found.stamp.as_str(), format!("bytes={start}-{}", end.saturating_sub(1)));
    let mut headers = vec![(RANGE, range.as_str())];
    match stamp_text {
        tag if tag.starts_with('"') => headers.push((IF_MATCH, tag)),
        // A weak ETag never matches, so the condition is the time after it.
        time => headers.push((IF_UNMODIFIED_SINCE, time.rsplit_once("\" ").map_or(time, |(_, time)| time))),
    }
    let (answer, _) = send(http, Method::GET, url, &headers).await?;
    let (status, headers) = (answer.status(), answer.headers());
    if let Some(failure) = failure(status) {
        return Err(failure);
    }
    check_encoding(headers)?;
    if stamp(headers)? != found.stamp {
        return Err(WebFailure::Changed);
    }
    let settled = is_settled(headers);
    match (status, content_range(headers)) {
        (StatusCode::PARTIAL_CONTENT, Some((got, length))) => {
            if length != found.length {
                return Err(WebFailure::Changed);
            }
            if got != (start..end) {
                return Err(WebFailure::Unavailable(format!(
                    "the server answers with the bytes {got:?} instead of {start}..{end}"
                )));
            }
        }
        (StatusCode::OK, _) if start == 0 && end == found.length => {}
        (StatusCode::OK, _) => {
            return Err(WebFailure::Unable("the server cannot send a part of a file (no range requests)"));
        }
        _ => return Err(WebFailure::Unable("the server does not say which bytes it sends")),
    }
    body(answer, end - start, take).await?;
    Ok(settled)
}

/// Reads a range of a file in its state now. Returns the state if the answer tells it.
///
/// # Errors
/// It fails also if the URL is that of a folder, and if the server sends something else than the range.
pub(crate) async fn read_range_now(
    http: &HttpClient,
    url: &Url,
    wanted: Range<u64>,
    take: TakeBytes<'_>,
) -> Result<Option<Found>, WebFailure> {
    let (range, len) =
        (format!("bytes={}-{}", wanted.start, wanted.end.saturating_sub(1)), wanted.end - wanted.start);
    let (answer, at) = send(http, Method::GET, url, &[(RANGE, range.as_str())]).await?;
    let (status, headers) = (answer.status(), answer.headers());
    if let Some(failure) = failure(status) {
        return Err(failure);
    }
    check_encoding(headers)?;
    let length = match (status, content_range(headers)) {
        (StatusCode::PARTIAL_CONTENT, Some((got, length))) => Some(length).filter(|_| got == wanted),
        (StatusCode::OK, _) => {
            let length = text(headers, &CONTENT_LENGTH).and_then(|length| length.parse().ok());
            length.filter(|length| wanted.start == 0 && *length == len)
        }
        _ => None,
    };
    // A server sends the URL of a folder on to the page of the folder.
    let length = length.filter(|_| !at.path().ends_with('/'));
    let length = length
        .ok_or_else(|| WebFailure::Unavailable("the server sends something else than the range".into()))?;
    let state = stamp(headers).ok().map(|stamp| Found { length, stamp });
    body(answer, len, take).await?;
    Ok(state)
}

/// Gives the body of an answer, which must have `len` bytes.
async fn body(answer: HttpResponse, len: u64, take: TakeBytes<'_>) -> Result<(), WebFailure> {
    let (mut body, mut left) = (answer.into_body().bytes_stream(), len);
    while let Some(bytes) = body.next().await {
        let bytes = bytes.map_err(|error| WebFailure::Unavailable(innermost(&error)))?;
        left = left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| WebFailure::Unavailable("it sent more bytes than asked for".into()))?;
        take(bytes);
    }
    if left > 0 {
        return Err(WebFailure::Unavailable(format!("it sent {} of {len} bytes", len - left)));
    }
    Ok(())
}
