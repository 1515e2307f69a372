//! Whole files over HTTP/1.1, by path, on the entry node, for `curl` and all programs that read URLs.
//!
//! - `GET /files/PATH` reads a file or a byte range; `HEAD` returns the same headers without the bytes.
//! - `PUT /files/PATH` writes a file, `DELETE /files/PATH` removes it.
//! - `GET /files/DIR/` (with a slash at the end) lists a directory as JSON.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt;
use gristmill_namespace::Principal;
use gristmill_peers::{WrittenFile, whole_file};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_transport::{FRAME, ReadBody};
use gristmill_wire::action::{Attempt, Commit, Create, Created, Open, PathRequest};
use http::{HeaderMap, StatusCode, header};

use crate::blocking::blocking;
use crate::door::request_principal;
use crate::error::{Answer, Refusal};
use crate::limits::{PUT_LEASE, UPLOAD_STALL};
use crate::listing::Pages;
use crate::no_route::Named;
use crate::objects::{content_range, has_length, no_such_range};
use crate::range::{RequestedRange, requested_range};
use crate::requester::{Requester, source_access};
use crate::shared::Shared;

/// Stripe unit of files that are written over HTTP.
const UNIT: u64 = 1 << 20;

/// The routes.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/files/{*path}", get(read).put(write).delete(remove))
        .route("/files/", get(list_root))
}

async fn list_root(State(shared): State<Arc<Shared>>, request: Request) -> Answer<Response> {
    let principal = request_principal(request.extensions())?;
    list(shared, &principal, request.headers(), "/".into()).await
}

async fn list(
    shared: Arc<Shared>,
    principal: &Principal,
    headers: &HeaderMap,
    path: String,
) -> Answer<Response> {
    let access = source_access(headers)?;
    let body = Pages::new(shared, &principal.as_str().into(), access, path, MAX_LISTED)?.json().await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// Largest number of names in one listing.
const MAX_LISTED: usize = 100_000;

fn json<T: serde::Serialize>(status: StatusCode, value: &T) -> Answer<Response> {
    let mut text = serde_json::to_vec(value).map_err(|e| Refusal::new(ErrorKind::Failed, e.to_string()))?;
    text.push(b'\n');
    Ok((status, [(header::CONTENT_TYPE, "application/json")], text).into_response())
}

async fn read(State(shared): State<Arc<Shared>>, Named(path): Named, request: Request) -> Answer<Response> {
    let principal = request_principal(request.extensions())?;
    let path = format!("/{path}");
    if path.ends_with('/') {
        return list(shared, &principal, request.headers(), path).await;
    }
    // Each read takes a connection to every node of the file, this node included.
    let permit = shared.permit(&shared.file_reads, &principal.as_str().into())?;
    let (state, access) = (shared.clone(), source_access(request.headers())?);
    let opened = blocking(move || {
        let requester = Requester { principal: &principal, access: access.as_ref() };
        state.open(requester, &Open::new(path))
    });
    let opened = opened.await?;
    let length = opened.info.file.length;
    let tag = format!("\"{}\"", opened.info.file.id);
    if text(request.headers(), header::IF_NONE_MATCH) == Some(&tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    // A client with a part of an older version gets the whole file, not the rest of this version.
    let same = text(request.headers(), header::IF_RANGE).is_none_or(|wanted| wanted == tag);
    let wanted = text(request.headers(), header::RANGE).filter(|_| same);
    let (status, range) = match requested_range(wanted, length) {
        RequestedRange::All => (StatusCode::OK, 0..length),
        RequestedRange::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        RequestedRange::Nothing => return Ok(no_such_range(length)),
    };
    let described = content_range(status, &range, length);
    let grant: Arc<str> = opened.grant.as_str().into();
    let sent = shared.sent.clone();
    let begins = range.start;
    let (file, mut first) = blocking({
        let end = range.end.min(begins + FRAME as u64);
        move || {
            let file = whole_file(&shared.peers, &opened.info.file, &grant)?;
            // Bytes that cannot be read are reported as an error instead of an empty body.
            let mut first = vec![0; usize::try_from(end - begins).unwrap_or(FRAME)];
            file.read(begins..end, &mut first)?;
            Ok::<_, Refusal>((file, Some(first)))
        }
    })
    .await?;
    let body = ReadBody::new(range, move |offset, buffer| {
        let _held = &permit;
        if let Some(first) = first.take().filter(|first| offset == begins && buffer.len() == first.len()) {
            buffer.copy_from_slice(&first);
            return Ok(());
        }
        file.read(offset..offset + buffer.len() as u64, buffer).map_err(io::Error::other)
    });
    Ok((status, AppendHeaders(described), [(header::ETAG, tag)], sent.body(body)).into_response())
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn write(State(shared): State<Arc<Shared>>, Named(path): Named, request: Request) -> Answer<Response> {
    let principal = request_principal(request.extensions())?;
    unconditional(request.headers())?;
    has_length(request.headers(), request.version())?;
    if request.headers().contains_key(header::CONTENT_RANGE) {
        // A part must not replace the whole file.
        let text = "a file is written whole; leave the range out (curl: without -C)";
        return Err(Refusal::new(ErrorKind::Usage, text));
    }
    let _permit = shared.permit(&shared.file_uploads, &principal.as_str().into())?;
    let create = Create { path: format!("/{path}"), unit: UNIT, ..Create::default() };
    let (state, by) = (shared.clone(), principal.clone());
    let created = blocking(move || state.create(&by, &create)).await?;
    let written = receive(&shared, &principal, &created, request.into_body()).await;
    let attempt = Attempt { id: created.file.id.clone() };
    let state = shared.clone();
    let info = match written {
        Ok(WrittenFile { length, receipts }) => {
            let commit = Commit { id: attempt.id, length, receipts };
            blocking(move || state.commit(&principal, &commit)).await?
        }
        Err(refusal) => {
            // If this fails, the lease of the put expires.
            let _ = blocking(move || state.abandon(&principal, &attempt)).await;
            return Err(refusal);
        }
    };
    json(StatusCode::CREATED, &info)
}

/// Writes the body, and renews the put meanwhile.
async fn receive(
    shared: &Arc<Shared>,
    principal: &Principal,
    created: &Created,
    body: Body,
) -> Answer<WrittenFile> {
    let stream = body.into_data_stream().map(|bytes| {
        bytes.map_err(|error| RunError::Remote {
            kind: ErrorKind::Usage,
            message: format!("the upload was cut off: {error}"),
        })
    });
    // A client that sends nothing for too long is refused, as on all nodes.
    let stream = impatient(stream);
    let mut put = std::pin::pin!(shared.peers.put_stream(created, stream));
    loop {
        match tokio::time::timeout(PUT_LEASE / 3, &mut put).await {
            Ok(written) => return Ok(written?),
            Err(_) => {
                let (state, principal) = (shared.clone(), principal.clone());
                let attempt = Attempt { id: created.file.id.clone() };
                blocking(move || state.renew(&principal, &attempt)).await?;
            }
        }
    }
}

fn impatient<S>(stream: S) -> impl futures_util::Stream<Item = Result<bytes::Bytes, RunError>>
where
    S: futures_util::Stream<Item = Result<bytes::Bytes, RunError>> + Unpin,
{
    futures_util::stream::unfold(Some(stream), |stream| async move {
        let mut stream = stream?;
        match tokio::time::timeout(UPLOAD_STALL, stream.next()).await {
            Ok(Some(item)) => Some((item, Some(stream))),
            Ok(None) => None,
            Err(_) => {
                let message =
                    format!("the upload was cut off: nothing came for {} s", UPLOAD_STALL.as_secs());
                Some((Err(RunError::Remote { kind: ErrorKind::Usage, message }), None))
            }
        }
    })
}

/// Refuses conditional requests whose condition would be ignored.
fn unconditional(headers: &HeaderMap) -> Answer<()> {
    let conditions = [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_UNMODIFIED_SINCE];
    match conditions.iter().find(|name| headers.contains_key(*name)) {
        None => Ok(()),
        Some(name) => {
            let text = format!("the condition {name} is not understood here; leave it out");
            Err(Refusal::new(ErrorKind::Usage, text))
        }
    }
}

async fn remove(
    State(shared): State<Arc<Shared>>,
    Named(path): Named,
    request: Request,
) -> Answer<StatusCode> {
    let principal = request_principal(request.extensions())?;
    unconditional(request.headers())?;
    let path = PathRequest { path: format!("/{path}") };
    blocking(move || shared.remove(&principal, &path)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bytes::Bytes;
    use futures_util::stream::{iter, pending};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_stands_still_is_given_up() {
        let some = iter([Ok(Bytes::from_static(b"a"))]);
        let mut stream = std::pin::pin!(impatient(some.chain(pending())));
        assert_eq!(stream.next().await.unwrap().unwrap(), "a");
        let error = stream.next().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("nothing came for 300 s"), "{error}");
        assert!(stream.next().await.is_none());
    }
}
