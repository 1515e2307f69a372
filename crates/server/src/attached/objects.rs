//! Bytes of files of attached trees over HTTP, with a grant, like those of objects.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use axum::response::{AppendHeaders, IntoResponse, Response};
use gristmill_backend::Object;
use gristmill_runtime::RunError;
use gristmill_store::Extent;
use gristmill_transport::{FRAME, ReadBody};
use gristmill_wire::{AttachedFile, Grant};
use http::{HeaderMap, StatusCode, header};

use super::parts;
use crate::blocking::blocking;
use crate::error::{Answer, Refusal};
use crate::objects::{content_range, no_such_range};
use crate::range::{RequestedRange, requested_range};
use crate::shared::Shared;

/// Answers with the file, or with a range of it.
pub(crate) async fn read(
    shared: &Arc<Shared>,
    grant: Grant,
    attached: AttachedFile,
    headers: &HeaderMap,
) -> Answer<Response> {
    let length = grant.file.length;
    let range = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let (status, range) = match requested_range(range, length) {
        RequestedRange::All => (StatusCode::OK, 0..length),
        RequestedRange::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        RequestedRange::Nothing => return Ok(no_such_range(length)),
    };
    let normal = shared.contention.normal.begin();
    let begins = range.start;
    let (state, end) = (shared.clone(), range.end.min(begins + FRAME as u64));
    let (object, mut first) = blocking(move || {
        let object = parts::open(&state, &grant.file, &attached)?;
        // Bytes that cannot be read are reported as an error instead of an empty body.
        let mut first = vec![0; usize::try_from(end - begins).unwrap_or(FRAME)];
        read_checked(&*object, std::slice::from_ref(&(begins..end)), &mut first)?;
        Ok::<_, Refusal>((object, Some(first)))
    })
    .await?;
    let described = content_range(status, &range, length);
    let body = ReadBody::new(range, move |offset, buffer| {
        let _counted = &normal;
        if let Some(first) = first.take().filter(|first| offset == begins && buffer.len() == first.len()) {
            buffer.copy_from_slice(&first);
            return Ok(());
        }
        let range = offset..offset.saturating_add(buffer.len() as u64);
        read_checked(&*object, std::slice::from_ref(&range), buffer).map_err(io::Error::other)
    });
    Ok((status, AppendHeaders(described), shared.sent.body(body)).into_response())
}

/// Reads extents, packed. Blocks.
pub(crate) fn read_extents(
    shared: &Shared,
    grant: &Grant,
    attached: &AttachedFile,
    extents: &[Extent],
    out: &mut [u8],
) -> Answer<()> {
    let object = parts::open(shared, &grant.file, attached)?;
    let ranges: Vec<Range<u64>> =
        extents.iter().map(|extent| extent.offset..extent.offset.saturating_add(extent.len)).collect();
    Ok(read_checked(&*object, &ranges, out)?)
}

/// Reads ranges. All bytes are of the version of the grant.
fn read_checked(object: &dyn Object, ranges: &[Range<u64>], out: &mut [u8]) -> Result<(), RunError> {
    object.read(ranges, out)?;
    Ok(object.unchanged()?)
}
