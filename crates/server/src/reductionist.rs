//! The HTTP API of Reductionist: `POST /v2/{count|max|min|select|sum}/`, for PyActiveStorage and cf-python.
//!
//! A request names one chunk of an object: on a server with the protocol of S3, on a web server, or in a file of this cluster
//! (`http://NODE/files/PATH`, with the address of the request). The Basic credentials of a request belong to the source. They
//! are sent to it and nowhere else. They are an identity only if the administrator lists them. Else the connection tells who the
//! caller is, as for all requests.

mod answer_body;
mod source;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::post;
use gristmill_format::MAX_STORED_BYTES;
use gristmill_reductionist::{Interface, Operation, RequestError, reduce};
use gristmill_runtime::ErrorKind;
use gristmill_sources::{Scheme, SourceUrl};
use gristmill_wire::SourceAccess;
use http::{HeaderMap, StatusCode, header};

use crate::blocking::blocking;
use crate::door::{authority, request_principal};
use crate::error::Refusal;
use crate::limits::{BODY_TIME, INLINE_REDUCTION, MAX_REDUCTION_BODY, REDUCTION_PATIENCE};
use crate::memory::Room;
use crate::permit::Permit;
use crate::reductionist::answer_body::AnswerBody;
use crate::reductionist::source::{OutsideObject, Source, own_file, own_path};
use crate::requester::{Requester, basic_pair, source_access};
use crate::shared::Shared;

/// Beginning of the paths.
pub(crate) const PATHS: &str = "/v2/";

/// The routes.
pub(crate) fn routes() -> Router<Arc<Shared>> {
    Router::new().route("/v2/{operation}", post(answer)).route("/v2/{operation}/", post(answer))
}

/// The reason why there is no object, in the words of S3.
const S3_MISSING: &str = "the server does not have it (NoSuchKey, or NoSuchBucket)";

/// An error in the form of Reductionist.
pub(crate) struct Failure {
    status: StatusCode,
    message: String,
    /// Reasons, the deepest one last.
    caused_by: Vec<String>,
    /// Seconds until the next try.
    retry_after: Option<u32>,
}

impl Failure {
    fn new(status: StatusCode, message: String) -> Failure {
        Failure { status, message, caused_by: Vec::new(), retry_after: None }
    }

    /// The failure of a request to a source, with the words of its protocol.
    fn of_source(interface: Interface, refusal: Refusal) -> Failure {
        let is_missing = ErrorKind::named(&refusal.0.kind) == ErrorKind::NotFound;
        let mut failure = Failure::from(refusal);
        if interface == Interface::S3 && is_missing {
            failure.caused_by.push(S3_MISSING.to_owned());
        }
        failure
    }
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
        Failure { retry_after: refusal.0.retry_after, ..Failure::new(status, refusal.0.message) }
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
        Failure::new(status, error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let error = match self.caused_by.is_empty() {
            true => serde_json::json!({ "message": self.message }),
            false => serde_json::json!({ "message": self.message, "caused_by": self.caused_by }),
        };
        let body = serde_json::json!({ "error": error });
        let again = self.retry_after.map(|seconds| (header::RETRY_AFTER, seconds.to_string()));
        let kind = [(header::CONTENT_TYPE, "application/json")];
        (self.status, kind, AppendHeaders(again), format!("{body}\n")).into_response()
    }
}

/// The credentials of a request for its source: those of the header for them, which leaves `Authorization` for a token, or the Basic
/// credentials.
///
/// # Errors
/// Returns an error if they are malformed.
fn credentials(headers: &HeaderMap) -> Result<Option<SourceAccess>, Failure> {
    if let Some(access) = source_access(headers)? {
        return Ok(Some(access));
    }
    let Some(encoded) = basic(headers) else { return Ok(None) };
    let pair = basic_pair(encoded);
    match pair.as_deref().and_then(|pair| pair.split_once(':')) {
        Some((id, secret)) => {
            Ok(Some(SourceAccess { id: id.to_owned(), secret: secret.to_owned(), token: None }))
        }
        None => {
            let message = "the Basic credentials are malformed".to_owned();
            Err(Failure::new(StatusCode::BAD_REQUEST, message))
        }
    }
}

/// The Basic credentials of a request, as the header has them behind `Basic `.
fn basic(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(header::AUTHORIZATION)?.as_bytes().strip_prefix(b"Basic ")
}

/// The memory and the permit of a request. It holds them until its last byte is sent, also if its client has gone.
struct Held {
    room: Room,
    _permit: Permit,
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    Path(operation): Path<String>,
    request: Request,
) -> Result<Response, Failure> {
    let principal = request_principal(request.extensions())?;
    let operation = Operation::named(&operation)?;
    let account: Arc<str> = principal.as_str().into();
    let permit = shared.permit(&shared.reductions, &account)?;
    let mut held = Held { room: shared.reduced.room(&account), _permit: permit };
    let credentials = credentials(request.headers())?;
    let host = authority(&request).map(str::to_owned);
    let (head, body) = request.into_parts();
    let usage = |text: String| Failure::from(Refusal::new(ErrorKind::Usage, text));
    let body = axum::body::to_bytes(body, MAX_REDUCTION_BODY);
    let body = tokio::time::timeout(BODY_TIME, body).await;
    let body = body.map_err(|_| usage(format!("send the request within {} s", BODY_TIME.as_secs())))?;
    let body = body.map_err(|_| usage(format!("the request is longer than {MAX_REDUCTION_BODY} bytes")))?;
    let asked = Arc::new(gristmill_reductionist::Request::parse(&body)?);
    let own = own_path(asked.url(), host.as_deref());
    let identify = || basic(&head.headers).is_some_and(|basic| shared.identities.are_listed(basic));
    // The URL tells whether a login of a web server is encrypted on its way, not the interface.
    let is_plain = || asked.url().parse().is_ok_and(|url: SourceUrl| url.scheme() == Scheme::Http);
    if asked.interface() != Interface::S3 && own.is_none() && identify() && is_plain() {
        let text = "these credentials say who you are here, so they are not sent without encryption; name the server with https";
        return Err(usage(text.to_owned()));
    }
    let (offset, size) = asked.stored_range();
    let interface = asked.interface();
    let of_source = move |refusal| Failure::of_source(interface, refusal);
    let source = match own {
        Some(path) => {
            let state = shared.clone();
            let (source, held_again) = blocking(move || {
                let requester = Requester { principal: &principal, access: credentials.as_ref() };
                let source = own_file(&state, requester, &path)?;
                Ok::<_, Failure>((source, held))
            })
            .await?;
            held = held_again;
            source
        }
        None => Source::Outside(OutsideObject::of(&shared, &asked, credentials)?),
    };
    let source = match source {
        // Only the object tells where its last byte is.
        Source::Outside(object) if size.is_none() => {
            let opened = blocking(move || Ok::<_, Failure>((object.open().map_err(of_source)?, held)));
            let (source, held_again) = opened.await?;
            held = held_again;
            source
        }
        source => source,
    };
    let size = match source.length() {
        Some(length) => {
            let size = size.unwrap_or(length.saturating_sub(offset));
            source.check_end(offset.saturating_add(size), length)?;
            size
        }
        None => size.unwrap_or(0),
    };
    let (memory, share) = (asked.memory(operation, size), shared.reduced.share());
    if size > MAX_STORED_BYTES || memory > share {
        return Err(usage(format!(
            "the chunk takes {memory} bytes of memory, more than the {share} of a user; ask for parts of it"
        )));
    }
    held.room.grow_within(usize::try_from(memory).unwrap_or(usize::MAX), REDUCTION_PATIENCE).await?;
    let mut stored = vec![0; usize::try_from(size).unwrap_or(0)];
    let is_read = match &source {
        Source::Outside(object) => object.read_once(offset, &mut stored).await.map_err(of_source)?,
        _ => false,
    };
    if !is_read {
        (stored, held) = blocking(move || {
            source.read(offset, &mut stored).map_err(of_source)?;
            Ok::<_, Failure>((stored, held))
        })
        .await?;
    }
    let turn = shared.reducing.turn(&account).await.map_err(Refusal::from)?;
    let work = move || {
        let _turn = turn;
        let cbor = reduce(&asked, operation, &stored)?.to_cbor();
        drop(stored);
        held.room.shrink(usize::try_from(memory.saturating_sub(cbor.len() as u64)).unwrap_or(0));
        Ok::<_, Failure>((cbor, held))
    };
    // A small chunk takes less time than to wake another thread.
    let (cbor, held) = if memory <= INLINE_REDUCTION { work()? } else { blocking(work).await? };
    let body = AnswerBody::new(cbor, held);
    Ok(([(header::CONTENT_TYPE, "application/cbor")], shared.sent.body(body)).into_response())
}
