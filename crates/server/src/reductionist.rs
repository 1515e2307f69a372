//! The HTTP API of Reductionist: `POST /v2/{count|max|min|select|sum}/`, for PyActiveStorage and cf-python.
//!
//! A request names one chunk of an object: on a server with the protocol of S3, on a web server, or in a file of this cluster
//! (`http://NODE/files/PATH`, with the address of the request). The Basic credentials of a request belong to the source. They
//! are sent to it and nowhere else. Who the caller is comes from the connection, as for all requests.

mod source;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use gristmill_format::MAX_STORED_BYTES;
use gristmill_reductionist::{Operation, RequestError, reduce};
use gristmill_runtime::ErrorKind;
use http::{HeaderMap, StatusCode, header};

use crate::blocking::blocking;
use crate::door::request_principal;
use crate::error::Refusal;
use crate::limits::{BODY_TIME, EXTENT_TIME, MAX_REDUCTION_BODY};
use crate::reductionist::source::{Credentials, Source};
use crate::shared::Shared;

/// Beginning of the paths.
pub(crate) const PATHS: &str = "/v2/";

/// The routes.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/v2/{operation}", post(answer)).route("/v2/{operation}/", post(answer))
}

/// An error in the form of Reductionist.
pub(crate) struct Failure {
    status: StatusCode,
    message: String,
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        let status = match ErrorKind::named(&refusal.0.kind) {
            ErrorKind::Denied => StatusCode::UNAUTHORIZED,
            ErrorKind::Busy => StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::Usage | ErrorKind::NotFound | ErrorKind::Data | ErrorKind::Stale => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Failure { status, message: refusal.0.message }
    }
}

impl From<crate::ServerError> for Failure {
    fn from(error: crate::ServerError) -> Failure {
        Refusal::from(error).into()
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Failure {
        let status = match error {
            RequestError::Operation(_) => StatusCode::NOT_FOUND,
            _ => StatusCode::BAD_REQUEST,
        };
        Failure { status, message: error.to_string() }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": { "message": self.message } });
        (self.status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
    }
}

/// The Basic credentials of a request.
///
/// # Errors
/// Returns an error if they are malformed.
fn credentials(headers: &HeaderMap) -> Result<Option<Credentials>, Failure> {
    use base64::Engine;
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let Some(encoded) = value.as_bytes().strip_prefix(b"Basic ") else { return Ok(None) };
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded.trim_ascii()).ok();
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
    let pair = text.as_deref().and_then(|text| text.split_once(':'));
    match pair {
        Some((name, secret)) => Ok(Some(Credentials { name: name.to_owned(), secret: secret.to_owned() })),
        None => {
            let message = "the Basic credentials are malformed".to_owned();
            Err(Failure { status: StatusCode::BAD_REQUEST, message })
        }
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    Path(operation): Path<String>,
    request: Request,
) -> Result<Response, Failure> {
    let principal = request_principal(request.extensions())?;
    let operation = Operation::named(&operation)?;
    let account: Arc<str> = principal.as_str().into();
    let _permit = shared.permit(&shared.reductions, &account)?;
    let credentials = credentials(request.headers())?;
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    let usage = |text: String| Failure::from(Refusal::new(ErrorKind::Usage, text));
    let body: Body = request.into_body();
    let body = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, MAX_REDUCTION_BODY)).await;
    let body = body.map_err(|_| usage(format!("send the request within {} s", BODY_TIME.as_secs())))?;
    let body = body.map_err(|_| usage(format!("the request is longer than {MAX_REDUCTION_BODY} bytes")))?;
    let asked = Arc::new(gristmill_reductionist::Request::parse(&body)?);
    let state = shared.clone();
    let (source, asked) = blocking(move || {
        let source = Source::open(&state, &principal, &asked, host.as_deref(), credentials)?;
        Ok::<_, Failure>((source, asked))
    })
    .await?;
    let (offset, size) = asked.stored_range();
    let length = source.length();
    let left = length.saturating_sub(offset);
    let size = size.unwrap_or(left);
    if size > left {
        let end = offset.saturating_add(size);
        return Err(usage(format!("{} has {length} bytes, not {end}", source.name())));
    }
    if size > MAX_STORED_BYTES {
        return Err(usage(format!("a chunk may have at most {MAX_STORED_BYTES} bytes; ask for parts of it")));
    }
    let mut room = shared.chunks.room(&account);
    let memory = size.saturating_add(asked.memory(size));
    room.grow_within(usize::try_from(memory).unwrap_or(usize::MAX), EXTENT_TIME).await?;
    let stored = blocking(move || {
        let mut stored = vec![0; usize::try_from(size).unwrap_or(0)];
        source.read(offset, &mut stored)?;
        Ok::<_, Failure>(stored)
    })
    .await?;
    let turn = shared.folds.turn(&account).await.map_err(Refusal::from)?;
    let cbor = blocking(move || {
        let _held = turn;
        Ok::<_, Failure>(reduce(&asked, operation, &stored)?.to_cbor())
    })
    .await?;
    drop(room);
    Ok(([(header::CONTENT_TYPE, "application/cbor")], shared.sent.body(axum::body::Body::from(cbor)))
        .into_response())
}
