//! Bytes of objects over HTTP/1.1, with a grant.
//!
//! - `GET /objects/NAME`, with or without a byte range: the object at the version of the grant.
//! - `POST /objects/NAME/extents`: the body is pairs of offset and length, 8 bytes each, little-endian; the answer
//!   is their bytes, packed.
//! - `PUT /objects/NAME`: writes an object; the answer is a receipt once it is durable.
//! - `DELETE /objects/NAME`: for the entry node.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::{get, post};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_store::{Extent, ObjectId, ReadOptions, StoreError, Version};
use gristmill_transport::ReadBody;
use gristmill_wire::{GRANT_HEADER, Grant, Rights, VERIFY_HEADER};
use http::{HeaderMap, StatusCode, header};

use crate::blocking::blocking;
use crate::error::{Answer, Refusal};
use crate::limits::{BODY_TIME, EXTENT_TIME, MAX_EXTENT_BYTES, MAX_EXTENTS};
use crate::no_route::Named;
use crate::range::{RequestedRange, requested_range};
use crate::shared::Shared;
use crate::{attached, target, upload};

/// The routes.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/objects/{name}", get(read).put(write).delete(remove))
        .route("/objects/{name}/extents", post(extents))
        .route("/health", get(|| async { "ok\n" }))
}

/// Object of a request.
pub(crate) struct Object {
    pub id: ObjectId,
    pub version: Version,
    pub grant: Grant,
    pub number: u32,
}

/// Checks a grant for an object of this node's target.
pub(crate) fn object(shared: &Shared, name: &str, headers: &HeaderMap, rights: Rights) -> Answer<Object> {
    let Some(sealed) = headers.get(GRANT_HEADER) else {
        let text = format!(
            "this needs a grant in the header {GRANT_HEADER}; whole files are at /files/PATH of the entry node"
        );
        return Err(Refusal::new(ErrorKind::Denied, text));
    };
    let sealed = sealed.to_str().map_err(|_| Refusal::new(ErrorKind::Usage, "the grant is not text"))?;
    let grant = shared.grant(sealed, rights)?;
    if grant.file.object() != name {
        return Err(Refusal::new(ErrorKind::Denied, "the grant is for another object; open the file again"));
    }
    let number = shared.number()?;
    let Some(place) = grant.file.targets.iter().find(|place| place.number == number) else {
        return Err(elsewhere(&shared.address));
    };
    let version = Version(place.version);
    Ok(Object { id: ObjectId::new(name).map_err(StoreError::from)?, version, grant, number })
}

/// Options to read this version, with the checks that the client wants.
fn read_options(version: Version, headers: &HeaderMap) -> ReadOptions {
    ReadOptions { verify: headers.contains_key(VERIFY_HEADER), ..ReadOptions::at(version) }
}

pub(crate) fn elsewhere(address: &str) -> Refusal {
    let text = format!("the file has no part on the storage node at {address}; open the file again");
    Refusal::new(ErrorKind::Stale, text)
}

impl Shared {
    /// The error of a fold over the file, with its meaning for the client.
    pub fn explain_run_error(&self, path: &str, error: RunError) -> RunError {
        match error {
            RunError::Store(error) => self.store_refusal(path, error).0.into_error(),
            other => other,
        }
    }

    /// The meaning of an error of this node's store for a client. An object that is missing or has another version was
    /// replaced or removed. All other errors name this node and the file.
    pub fn store_refusal(&self, path: &str, error: StoreError) -> Refusal {
        let kind = ErrorKind::of_store(&error);
        let text = match &error {
            StoreError::NotFound { .. } | StoreError::Stale { .. } | StoreError::Unflushed { .. } => {
                let text = format!(
                    "{path} was replaced or removed after it was opened; open it again and start over"
                );
                return Refusal::new(ErrorKind::Stale, text);
            }
            StoreError::NoSpace { .. } => {
                "its disk is full; free space there, or put the file on other targets with --on".to_owned()
            }
            StoreError::Damaged { .. } | StoreError::Corrupt { .. } => {
                format!("{error} To users: put {path} again from its source")
            }
            other => other.to_string(),
        };
        let number = self.number().map_or_else(|_| "?".to_owned(), |number| number.to_string());
        Refusal::new(kind, format!("storage node {number} ({}): {path}: {text}", self.address))
    }
}

impl Shared {
    /// Removes an object of this node's target, if there is one, and ends its uploads.
    pub fn remove_object(&self, id: &ObjectId) -> Answer<()> {
        self.removed.add(id, Instant::now());
        // Uploads end before the removal, so that they have the reason, and again after it, for uploads that began
        // meanwhile.
        self.active_uploads.end(id);
        let removed = self.reserve.freeing(|| Ok(target::remove(&*self.store, id)?));
        if let Some(books) = &self.statistics {
            books.forget(id);
        }
        self.active_uploads.end(id);
        removed
    }
}

async fn read(State(shared): State<Arc<Shared>>, Named(name): Named, headers: HeaderMap) -> Answer<Response> {
    let mut object = object(&shared, &name, &headers, Rights::Read)?;
    if let Some(attached) = object.grant.file.attached.take() {
        return attached::read(&shared, object.grant, *attached, &headers).await;
    }
    let store = shared.store.clone();
    let (id, at) = (object.id.clone(), read_options(object.version, &headers));
    let path = object.grant.file.path.clone();
    let stat = {
        let (store, id) = (store.clone(), id.clone());
        // This checks the version of the object. The reads of the body check it again.
        let check = move || store.read_at(&id, 0, &mut [], at).and_then(|_| store.stat(&id));
        tokio::task::block_in_place(check).map_err(|e| shared.store_refusal(&path, e))?
    };
    let range = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let (status, range) = match requested_range(range, stat.length) {
        RequestedRange::All => (StatusCode::OK, 0..stat.length),
        RequestedRange::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        RequestedRange::Nothing => return Ok(no_such_range(stat.length)),
    };
    // Damage in the first frame is reported as an error instead of an empty body. So a client that asks for the rest of
    // a cut body learns the reason.
    let first = range.start..range.end.min(range.start + gristmill_transport::FRAME as u64);
    tokio::task::block_in_place(|| store.verify(&id, first, at))
        .map_err(|e| shared.store_refusal(&path, e))?;
    let described = content_range(status, &range, stat.length);
    let normal = shared.contention.normal.begin();
    let body = ReadBody::new(range, move |offset, buffer| {
        let _counted = &normal;
        match store.read_at(&id, offset, buffer, at) {
            Ok(read) if read == buffer.len() => Ok(()),
            Ok(_) => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Err(error) => Err(io::Error::other(error)),
        }
    });
    Ok((status, AppendHeaders(described), shared.sent.body(body)).into_response())
}

/// The headers that describe the bytes of the answer.
pub(crate) fn content_range(
    status: StatusCode,
    range: &std::ops::Range<u64>,
    length: u64,
) -> Vec<(header::HeaderName, String)> {
    let mut headers = vec![
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
    ];
    if status == StatusCode::PARTIAL_CONTENT {
        let part = format!("bytes {}-{}/{length}", range.start, range.end.saturating_sub(1));
        headers.push((header::CONTENT_RANGE, part));
    }
    headers
}

pub(crate) fn no_such_range(length: u64) -> Response {
    let text = format!("the range begins behind the end: the object has {length} bytes");
    let refusal = Refusal::new(ErrorKind::Usage, text);
    let length = [(header::CONTENT_RANGE, format!("bytes */{length}"))];
    (StatusCode::RANGE_NOT_SATISFIABLE, length, refusal).into_response()
}

/// The body of a message of extents.
async fn pairs(body: Body) -> Answer<Bytes> {
    let refuse = |text: String| Refusal::new(ErrorKind::Usage, text);
    let body = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, 16 * MAX_EXTENTS)).await;
    let body = body.map_err(|_| refuse(format!("send the extents within {} s", BODY_TIME.as_secs())))?;
    body.map_err(|_| refuse(format!("give at most {MAX_EXTENTS} pairs of offset and length")))
}

async fn extents(
    State(shared): State<Arc<Shared>>,
    Named(name): Named,
    headers: HeaderMap,
    body: Body,
) -> Answer<Response> {
    let object = object(&shared, &name, &headers, Rights::Read)?;
    let refuse = |text: String| Refusal::new(ErrorKind::Usage, text);
    let body = pairs(body).await?;
    let (words, rest) = body.as_chunks::<8>();
    let (pairs, odd) = words.as_chunks::<2>();
    if !rest.is_empty() || !odd.is_empty() || pairs.is_empty() {
        return Err(refuse("give pairs of offset and length, 8 bytes each, little-endian".into()));
    }
    let word = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let extents: Vec<Extent> =
        pairs.iter().map(|pair| Extent { offset: word(&pair[0]), len: word(&pair[1]) }).collect();
    let total = extents.iter().try_fold(0u64, |sum, extent| sum.checked_add(extent.len));
    let Some(total) = total.filter(|total| *total <= MAX_EXTENT_BYTES) else {
        return Err(refuse(format!("ask for at most {MAX_EXTENT_BYTES} bytes at once")));
    };
    let (store, id, at) = (shared.store.clone(), object.id, read_options(object.version, &headers));
    let path = object.grant.file.path.clone();
    let normal = shared.contention.normal.begin();
    let grant = object.grant;
    let mut room = shared.extents.room(&grant.principal.as_str().into());
    room.grow_within(total as usize, EXTENT_TIME).await?;
    let state = shared.clone();
    // The room moves into the work, which continues if the client has gone.
    let (bytes, room) = blocking(move || {
        let mut buffer = vec![0; total as usize];
        if let Some(attached) = &grant.file.attached {
            attached::read_extents(&state, &grant, attached, &extents, &mut buffer)?;
            return Ok((buffer, room));
        }
        store.read_extents(&id, &extents, &mut buffer, at).map_err(|e| state.store_refusal(&path, e))?;
        Ok::<_, Refusal>((buffer, room))
    })
    .await?;
    // The room is returned when the last byte is sent.
    let body = ReadBody::new(0..total, move |offset, buffer| {
        let _held = (&room, &normal);
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let part = start.checked_add(buffer.len()).and_then(|end| bytes.get(start..end));
        buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    });
    Ok(shared.sent.body(body).into_response())
}

async fn write(
    State(shared): State<Arc<Shared>>,
    Named(name): Named,
    version: http::Version,
    headers: HeaderMap,
    body: Body,
) -> Answer<Response> {
    has_length(&headers, version)?;
    let object = object(&shared, &name, &headers, Rights::Write)?;
    let _permit = shared.permit(&shared.uploads, &object.grant.principal.as_str().into())?;
    let _normal = shared.contention.normal.begin_write();
    let receipt = upload::receive(&shared, object, body).await?;
    let text = serde_json::to_vec(&receipt).map_err(|e| Refusal::new(ErrorKind::Failed, e.to_string()))?;
    Ok((StatusCode::CREATED, [(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Refuses a body whose end cannot be distinguished from a broken connection.
pub(crate) fn has_length(headers: &HeaderMap, version: http::Version) -> Answer<()> {
    let has_end =
        headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING);
    if has_end || version >= http::Version::HTTP_2 {
        return Ok(());
    }
    Err(Refusal::new(ErrorKind::Usage, "say how long the body is: Content-Length, or chunks"))
}

async fn remove(
    State(shared): State<Arc<Shared>>,
    Named(name): Named,
    headers: HeaderMap,
) -> Answer<StatusCode> {
    let object = object(&shared, &name, &headers, Rights::Manage)?;
    blocking(move || shared.remove_object(&object.id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::convert::Infallible;

    use futures_util::stream::{StreamExt, iter, pending};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_message_that_is_not_sent_to_its_end_is_given_up() {
        let begun = iter([Ok::<_, Infallible>(Bytes::from_static(&[0; 16]))]);
        let refusal = pairs(Body::from_stream(begun.chain(pending()))).await.unwrap_err();
        assert!(refusal.0.message.contains("within 60 s"), "{refusal:?}");
    }
}
