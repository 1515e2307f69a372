//! Checks of every request before its body is read.
//!
//! 1. *Host.* A page of another site, or of a name that was made to lead to this node, must not act for its reader. So
//!    `Host`, `:authority` and `Origin` are checked for every method.
//! 2. *Protocol.* gRPC must come over HTTP/2 as `application/grpc`. No page can send this without a request for
//!    permission first.
//! 3. *Principal.* A token, a Unix socket or this machine identifies it, or a seal of the cluster: a pass or a grant.
//!    Only the paths in [`OPEN`] need none of these.
//!
//! Then the connection takes a place of its principal, and the body of a gRPC request gets a time limit and memory of
//! its principal.

use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use gristmill_namespace::Principal;
use gristmill_runtime::ErrorKind;
use gristmill_transport::ConnectionSlot;
use gristmill_wire::{GRANT_HEADER, PASS_HEADER, WireError, pass_of};
use http::header::{self, HeaderName};
use http::{HeaderMap, Method, StatusCode, Version};

use crate::arriving_body::ArrivingBody;
use crate::checks::Checks;
use crate::error::{Answer, Refusal};
use crate::identity::Credentials;
use crate::limits::{KEPT_FACTOR, READ_AT_ONCE, READ_FACTOR, REQUEST_BYTES};
use crate::memory::Room;
use crate::reductionist;
use crate::shared::{Shared, now};

/// Paths without authentication. Their answers contain nothing about files or users.
const OPEN: [&str; 6] = ["/health", "/", "/page.css", "/page.js", "/table.js", "/icon.svg"];

/// Beginning of the path of every gRPC call.
pub(crate) const GRPC: &str = "/arrow.flight.protocol.FlightService/";

/// Headers in which browsers state the site of the page, and the mode of the request.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The principal that a token, a socket or this machine identifies, or the refusal without one.
#[derive(Clone)]
struct Identification(Answer<Principal>);

/// The principal of a request. A seal alone identifies none.
///
/// # Errors
/// Returns the refusal if neither a token, a socket nor this machine identifies a principal.
pub(crate) fn request_principal(extensions: &http::Extensions) -> Answer<Principal> {
    extensions.get::<Identification>().map_or_else(|| Err(unchecked()), |found| found.0.clone())
}

/// A defect: every route lies behind [`enter`].
fn unchecked() -> Refusal {
    Refusal::new(ErrorKind::Failed, "the principal of the request was not checked; please report it")
}

/// Account whose memory and places a gRPC request uses.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Principal of its pass, or of the request.
    pub account: Arc<str>,
    /// Memory that the request holds until it ends.
    room: Arc<Mutex<Room>>,
}

impl Caller {
    /// The caller of a request.
    ///
    /// # Errors
    /// Returns an error if the request did not pass [`enter`], which is a defect.
    pub fn from_extensions(extensions: &http::Extensions) -> Answer<Caller> {
        extensions.get::<Caller>().cloned().ok_or_else(unchecked)
    }

    /// Takes more memory for the request.
    ///
    /// # Errors
    /// Returns an error if this principal can have no more memory now.
    pub fn grow(&self, bytes: usize) -> Answer<()> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner).grow(bytes)
    }

    /// Decodes a request of this length with `read`, after taking memory for it. A long request is decoded on a thread of
    /// the checks, and not on one of the network.
    ///
    /// # Errors
    /// Returns an error if there is no memory for it, and the errors of `read`.
    pub async fn read<T: Send + 'static>(
        &self,
        checks: &Checks,
        bytes: usize,
        read: impl FnOnce() -> Answer<T> + Send + 'static,
    ) -> Answer<T> {
        let whole = bytes.saturating_mul(READ_FACTOR);
        self.grow(whole)?;
        let held = self.clone();
        let read = move || {
            let read = read()?;
            let kept = bytes.saturating_mul(KEPT_FACTOR);
            held.room.lock().unwrap_or_else(PoisonError::into_inner).shrink(whole - kept);
            Ok(read)
        };
        if bytes <= READ_AT_ONCE { read() } else { checks.run(&self.account, read).await }
    }
}

/// Checks a request and passes it on, or answers with the refusal.
pub(crate) async fn enter(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let grpc = request.uri().path().starts_with(GRPC);
    let reduction = is_reduction(&request);
    if grpc && let Err(refusal) = check_grpc(&request) {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, refusal).into_response();
    }
    match admit(&shared, request, grpc) {
        Ok(request) => next.run(request).await,
        Err(refusal) if grpc => tonic::Status::from(refusal).into_http(),
        Err(refusal) if reduction => reductionist::Failure::from(refusal).into_response(),
        Err(refusal) => refusal.into_response(),
    }
}

fn admit(shared: &Shared, mut request: Request, grpc: bool) -> Answer<Request> {
    check_host(&request)?;
    let headers = request.headers();
    let credentials = credentials(&request);
    let principal = shared.identities.principal(request.extensions(), authority(&request), credentials);
    let principal = principal.map_err(|refusal| shared.add_entry_node(refusal));
    let pass = pass_principal(shared, headers)?;
    let account: Option<Arc<str>> = match (pass, &principal) {
        (Some(principal), _) => Some(principal.into()),
        (None, Ok(principal)) => Some(principal.as_str().into()),
        (None, Err(refusal)) if grpc => return Err(refusal.clone()),
        (None, Err(refusal)) if !OPEN.contains(&request.uri().path()) && !has_grant(shared, headers) => {
            return Err(refusal.clone());
        }
        (None, Err(_)) => None,
    };
    claim_connection(shared, &request, account.as_ref())?;
    request.extensions_mut().insert(Identification(principal));
    let Some(account) = account.filter(|_| grpc) else { return Ok(request) };
    let room = Arc::new(Mutex::new(shared.requests.room(&account)));
    let caller = Caller { account, room };
    caller.grow(REQUEST_BYTES)?;
    let body = std::mem::replace(request.body_mut(), Body::empty());
    *request.body_mut() = Body::new(ArrivingBody::new(body, caller.clone()));
    request.extensions_mut().insert(caller);
    Ok(request)
}

/// Whether a request asks for the reduction of a chunk.
fn is_reduction(request: &Request) -> bool {
    request.uri().path().starts_with(reductionist::PATHS)
}

/// The credentials of a request. Basic credentials of a reduction are those of its source. They identify the caller only if the
/// administrator of the node lists them.
fn credentials(request: &Request) -> Credentials<'_> {
    let Some(value) = request.headers().get(header::AUTHORIZATION) else { return Credentials::None };
    match value.as_bytes().strip_prefix(b"Basic ") {
        Some(basic) if is_reduction(request) => Credentials::Source(basic),
        _ => Credentials::Token(value),
    }
}

/// Takes a place for the connection of a request, for its account or, with a grant only, the principal of the grant.
///
/// # Errors
/// Returns an error if the principal can have no more connections.
fn claim_connection(shared: &Shared, request: &Request, account: Option<&Arc<str>>) -> Answer<()> {
    let slot = request.extensions().get::<Arc<ConnectionSlot>>().filter(|slot| !slot.is_owned());
    let Some(slot) = slot else { return Ok(()) };
    let Some(owner) = account.cloned().or_else(|| holder_of_grant(shared, request.headers())) else {
        return Ok(());
    };
    slot.set_owner(|| shared.permit(&shared.connections, &owner))
}

impl Shared {
    /// Adds the address of the entry node to a refusal of a storage node, which knows no tokens.
    fn add_entry_node(&self, refusal: Refusal) -> Refusal {
        let Some(entry) = &self.entry else { return refusal };
        let text = format!("{}; files are at the entry node, {entry}", refusal.0.message);
        Refusal::new(ErrorKind::Denied, text)
    }
}

/// The host that a request names.
pub(crate) fn authority(request: &Request) -> Option<&str> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    request.uri().authority().map(http::uri::Authority::as_str).or(host)
}

/// Checks that a request does not come from a page of another site, and does not name two hosts.
///
/// # Errors
/// Returns an error if it does.
fn check_host(request: &Request) -> Answer<()> {
    let headers = request.headers();
    let denied = |text: &str| Err(Refusal::new(ErrorKind::Denied, text));
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next();
    let both = request.uri().authority().zip(host);
    if hosts.next().is_some() || both.is_some_and(|(one, other)| one.as_str().as_bytes() != other.as_bytes())
    {
        return Err(Refusal::new(ErrorKind::Usage, "the request names two hosts; name one"));
    }
    let another = "a page of another site sent this request; only pages that come from this node may send it";
    if let Some(origin) = headers.get(header::ORIGIN) {
        let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
        let same =
            origin.zip(authority(request)).is_some_and(|((_, from), to)| from.eq_ignore_ascii_case(to));
        if !same {
            return denied(another);
        }
    }
    let site = headers.get(FETCH_SITE).map(http::HeaderValue::as_bytes);
    let looks = matches!(*request.method(), Method::GET | Method::HEAD)
        && headers.get(FETCH_MODE).is_some_and(|mode| mode == "navigate");
    match site {
        // A user may follow a link to this node. The page with the link does not see the answer.
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) if looks => Ok(()),
        Some(_) => denied(another),
    }
}

fn check_grpc(request: &Request) -> Answer<()> {
    let kind = request.headers().get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes);
    let grpc = kind.is_some_and(|kind| {
        kind == b"application/grpc"
            || kind.starts_with(b"application/grpc+")
            || kind.starts_with(b"application/grpc;")
    });
    if grpc && request.version() == Version::HTTP_2 && request.method() == Method::POST {
        return Ok(());
    }
    let text =
        "this path takes gRPC only: HTTP/2 with the content type application/grpc; files are at /files/PATH";
    Err(Refusal::new(ErrorKind::Usage, text))
}

/// The principal of the request's pass, if there is one.
fn pass_principal(shared: &Shared, headers: &HeaderMap) -> Answer<Option<String>> {
    let Some(sealed) = headers.get(PASS_HEADER) else { return Ok(None) };
    let sealed = sealed.to_str().map_err(|_| Refusal::new(ErrorKind::Usage, "the pass is not text"))?;
    let pass = shared.key.open_pass(sealed, now()).map_err(|error| match error {
        WireError::Seal => Refusal::new(
            ErrorKind::Denied,
            "the pass was sealed by another cluster: give the node the key file of this cluster's entry node, or open \
             the file again",
        ),
        other => other.into(),
    });
    Ok(Some(pass?.principal))
}

/// The principal of the grant in the headers.
fn holder_of_grant(shared: &Shared, headers: &HeaderMap) -> Option<Arc<str>> {
    let sealed = headers.get(GRANT_HEADER)?.to_str().ok()?;
    Some(shared.key.open_pass(pass_of(sealed)?, now()).ok()?.principal.into())
}

/// Whether the headers have a grant of this cluster. Its file and rights are checked later.
fn has_grant(shared: &Shared, headers: &HeaderMap) -> bool {
    let sealed = headers.get(GRANT_HEADER).and_then(|sealed| sealed.to_str().ok());
    sealed.is_some_and(|sealed| shared.key.is_sealed(sealed))
}
