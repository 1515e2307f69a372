//! Messages between the members of a group. `gristmill_peers` documents the protocol.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::StreamExt;
use gristmill_runtime::ErrorKind;
use gristmill_wire::{GRANT_HEADER, MAX_PARTIAL_BYTES, Rights};
use http::{HeaderMap, StatusCode, header};

use crate::error::{Answer, Refusal};
use crate::group_work::{Inbox, JobState, Message};
use crate::limits::{BODY_TIME, FREE_ANSWER_BYTES, ROOM_TIME};
use crate::memory::Room;
use crate::shared::Shared;

/// Longest value, in bytes: a partial, the message of a failure, and their lengths.
const MAX_VALUE_BYTES: usize = MAX_PARTIAL_BYTES + (64 << 10);

/// The routes.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/collectives/{job}", get(ask))
        .route("/collectives/{job}/{number}/{from}", post(tell))
}

/// An inbox, and the principal of the message.
type Member = (Arc<Inbox>, Arc<str>);

/// The inbox of a job and the principal of the grant, or the answer without an inbox. The request needs a grant for the
/// file of the job.
fn inbox(shared: &Shared, job: &str, headers: &HeaderMap) -> Answer<Result<Member, Response>> {
    let sealed = headers.get(GRANT_HEADER).and_then(|sealed| sealed.to_str().ok());
    let sealed =
        sealed.ok_or_else(|| Refusal::new(ErrorKind::Denied, "only members of the job may send this"))?;
    let grant = shared.grant(sealed, Rights::Read)?;
    Ok(match shared.group_work.job_state(job) {
        JobState::Running(inbox) if inbox.file == grant.file.id => Ok((inbox, grant.principal.into())),
        JobState::Running(_) => return Err(Refusal::new(ErrorKind::Denied, "the grant is for another file")),
        JobState::Unknown => {
            Err(Refusal::new(ErrorKind::NotFound, "there is no such job on this node").into_response())
        }
        JobState::Failed(why) => {
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
    let (inbox, principal) = match inbox(&shared, &job, &headers)? {
        Ok(known) => known,
        Err(other) => return Ok(other),
    };
    let usage = |text: String| Refusal::new(ErrorKind::Usage, text);
    let length =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let length = length.filter(|length| *length <= MAX_VALUE_BYTES);
    let length =
        length.ok_or_else(|| usage(format!("send at most {MAX_VALUE_BYTES} bytes, and say how many")))?;
    let room = shared.collectives.room(&principal);
    let arriving = tokio::time::timeout(BODY_TIME, arrive(body, length, room)).await;
    let (value, room) =
        arriving.map_err(|_| usage(format!("send the value within {} s", BODY_TIME.as_secs())))??;
    inbox.put(Message { number, from, value, _room: room })?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Receives a value of `length` bytes. Its room is taken when the first bytes arrive, so that a value that is only
/// announced holds none.
async fn arrive(body: Body, length: usize, mut room: Room) -> Answer<(Vec<u8>, Room)> {
    let usage = |text: String| Refusal::new(ErrorKind::Usage, text);
    let (mut value, mut stream) = (Vec::new(), body.into_data_stream());
    while let Some(bytes) = stream.next().await {
        let bytes = bytes.map_err(|error| usage(error.to_string()))?;
        if value.len() + bytes.len() > length {
            return Err(usage(format!("more than the announced {length} bytes arrived")));
        }
        // The room is taken for the whole value, so that two values do not wait for each other.
        if value.is_empty() && length > FREE_ANSWER_BYTES {
            room.grow_within(length, ROOM_TIME).await?;
        }
        value.extend_from_slice(&bytes);
    }
    if value.len() < length {
        return Err(usage(format!("{} of {length} bytes arrived", value.len())));
    }
    Ok((value, room))
}
