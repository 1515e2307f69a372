//! What members of a group say to each other; `gristmill_peers` says how.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use gristmill_runtime::ErrorKind;
use gristmill_wire::{GRANT_HEADER, MAX_PARTIAL_BYTES, Rights};
use http::{HeaderMap, StatusCode, header};

use crate::error::{Answer, Refusal};
use crate::group_work::{Inbox, Known, Message};
use crate::limits::{BODY_TIME, FREE_ANSWER_BYTES, ROOM_TIME};
use crate::node::Shared;

/// Longest value: a partial, what it may say of a failure, and lengths.
const MAX_VALUE_BYTES: usize = MAX_PARTIAL_BYTES + (64 << 10);

/// The routes.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/collectives/{job}", get(ask))
        .route("/collectives/{job}/{number}/{from}", post(tell))
}

/// The inbox of a job, for somebody with a grant for its file; or what else there is to say.
fn inbox(shared: &Shared, job: &str, headers: &HeaderMap) -> Answer<Result<Arc<Inbox>, Response>> {
    let sealed = headers.get(GRANT_HEADER).and_then(|sealed| sealed.to_str().ok());
    let sealed =
        sealed.ok_or_else(|| Refusal::new(ErrorKind::Denied, "only members of the work may say this"))?;
    let grant = shared.grant(sealed, Rights::Read)?;
    Ok(match shared.group_work.known(job) {
        Known::Here(inbox) if inbox.file == grant.file.id => Ok(inbox),
        Known::Here(_) => return Err(Refusal::new(ErrorKind::Denied, "the grant is for another file")),
        Known::Nothing => Err(Refusal::new(ErrorKind::NotFound, "no such work is done here").into_response()),
        Known::Gone(why) => {
            let mut response = Refusal(why).into_response();
            *response.status_mut() = StatusCode::GONE;
            Err(response)
        }
    })
}

async fn ask(
    State(shared): State<Arc<Shared>>,
    Path(job): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    Ok(match inbox(&shared, &job, &headers)? {
        Ok(_) => StatusCode::NO_CONTENT.into_response(),
        Err(other) => other,
    })
}

async fn tell(
    State(shared): State<Arc<Shared>>,
    Path((job, number, from)): Path<(String, u64, u32)>,
    headers: HeaderMap,
    body: Body,
) -> Answer<Response> {
    let inbox = match inbox(&shared, &job, &headers)? {
        Ok(inbox) => inbox,
        Err(other) => return Ok(other),
    };
    let usage = |text: String| Refusal::new(ErrorKind::Usage, text);
    let length =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let length = length.filter(|length| *length <= MAX_VALUE_BYTES);
    let length =
        length.ok_or_else(|| usage(format!("send at most {MAX_VALUE_BYTES} bytes, and say how many")))?;
    let room = if length > FREE_ANSWER_BYTES {
        let kib = u32::try_from(length.div_ceil(1024)).unwrap_or(u32::MAX);
        let room = tokio::time::timeout(ROOM_TIME, shared.collectives.clone().acquire_many_owned(kib)).await;
        let busy = || Refusal::new(ErrorKind::Busy, "there is no memory for this value now; try again");
        Some(room.map_err(|_| busy())?.map_err(|_| busy())?)
    } else {
        None
    };
    let body = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, length)).await;
    let body = body.map_err(|_| usage(format!("send the value within {} s", BODY_TIME.as_secs())))?;
    let value = body.map_err(|error| usage(error.to_string()))?.to_vec();
    inbox.put(Message { number, from, value, _room: room })?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
