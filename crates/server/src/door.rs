//! The door: what every request passes before more is read of it than its head.
//!
//! 1. *For whom it was meant.* A page of another site, or of a name that was made to lead here, must not act as its reader:
//!    `Host`, `:authority` and `Origin` are looked at, whatever the method.
//! 2. *What it speaks.* gRPC comes over HTTP/2 and as `application/grpc`, which no page can send without being asked first.
//! 3. *Who asks.* A token, a Unix socket, this machine, or a seal of the cluster: a pass or a grant. What needs none of
//!    these is in [`OPEN`], and nothing else is.
//!
//! Then the connection takes one of the places of its principal, and the body of a gRPC request is given a time, and memory of
//! whoever asks.

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
use crate::error::{Answer, Refusal};
use crate::limits::{KEPT_FACTOR, READ_AT_ONCE, READ_FACTOR, REQUEST_BYTES};
use crate::memory::Room;
use crate::node::{Shared, blocking, now};

/// Paths that answer everybody, and that say nothing of files or users.
const OPEN: [&str; 6] = ["/health", "/", "/page.css", "/page.js", "/table.js", "/icon.svg"];

/// The beginning of the path of every gRPC call.
pub(crate) const GRPC: &str = "/arrow.flight.protocol.FlightService/";

/// How browsers say from where a page asks, and how.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The principal that a token, a socket or this machine vouches for; a refusal where only a seal does.
#[derive(Clone)]
struct Who(Answer<Principal>);

/// The principal of a request. A seal alone names none.
///
/// # Errors
/// Nobody who is known here asks.
pub(crate) fn who(extensions: &http::Extensions) -> Answer<Principal> {
    extensions.get::<Who>().map_or_else(|| Err(not_looked_at()), |who| who.0.clone())
}

/// A defect: every route lies behind [`enter`].
fn not_looked_at() -> Refusal {
    Refusal::new(ErrorKind::Failed, "nobody looked at who asks; please report it")
}

/// Whose shares a gRPC request uses.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The principal of its pass, or whoever asks.
    pub account: Arc<str>,
    /// Memory for requests that this one holds until it ends.
    room: Arc<Mutex<Room>>,
}

impl Caller {
    /// The caller of a request.
    pub fn of(extensions: &http::Extensions) -> Answer<Caller> {
        extensions.get::<Caller>().cloned().ok_or_else(not_looked_at)
    }

    /// Takes more memory for the request.
    ///
    /// # Errors
    /// There is no more memory for this principal now.
    pub fn grow(&self, bytes: usize) -> Answer<()> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner).grow(bytes)
    }

    /// Reads a request of so many bytes, in memory that is taken before; a long one not on a thread of the network.
    ///
    /// # Errors
    /// There is no memory for it, or it makes no sense.
    pub async fn read<T: Send + 'static>(
        &self,
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
        if bytes <= READ_AT_ONCE { read() } else { blocking(read).await }
    }
}

/// Lets a request in, or says why not.
pub(crate) async fn enter(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let grpc = request.uri().path().starts_with(GRPC);
    if grpc && let Err(refusal) = speaks_grpc(&request) {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, refusal).into_response();
    }
    match admitted(&shared, request, grpc) {
        Ok(request) => next.run(request).await,
        Err(refusal) if grpc => tonic::Status::from(refusal).into_http(),
        Err(refusal) => refusal.into_response(),
    }
}

fn admitted(shared: &Shared, mut request: Request, grpc: bool) -> Answer<Request> {
    meant_for_here(&request)?;
    let headers = request.headers();
    let who = shared.identities.principal(request.extensions(), authority(&request), headers);
    let who = who.map_err(|refusal| shared.naming_the_entry_node(refusal));
    let pass = pass(shared, headers)?;
    let account: Option<Arc<str>> = match (pass, &who) {
        (Some(principal), _) => Some(principal.into()),
        (None, Ok(who)) => Some(who.as_str().into()),
        (None, Err(refusal)) if grpc => return Err(refusal.clone()),
        (None, Err(refusal)) if !OPEN.contains(&request.uri().path()) && !granted(shared, headers) => {
            return Err(refusal.clone());
        }
        (None, Err(_)) => None,
    };
    claim_connection(shared, &request, account.as_ref())?;
    request.extensions_mut().insert(Who(who));
    let Some(account) = account.filter(|_| grpc) else { return Ok(request) };
    let room = Arc::new(Mutex::new(shared.requests.room(&account)));
    let caller = Caller { account, room };
    caller.grow(REQUEST_BYTES)?;
    let body = std::mem::replace(request.body_mut(), Body::empty());
    *request.body_mut() = Body::new(ArrivingBody::new(body, caller.clone()));
    request.extensions_mut().insert(caller);
    Ok(request)
}

/// Gives the connection of a request one of the places of its principal: whoever asks or, where only a grant says who this is,
/// the one who was given the grant.
///
/// # Errors
/// The principal has as many connections as it may.
fn claim_connection(shared: &Shared, request: &Request, account: Option<&Arc<str>>) -> Answer<()> {
    let slot = request.extensions().get::<Arc<ConnectionSlot>>().filter(|slot| !slot.is_owned());
    let Some(slot) = slot else { return Ok(()) };
    let Some(owner) = account.cloned().or_else(|| holder_of_grant(shared, request.headers())) else {
        return Ok(());
    };
    slot.own(|| shared.permit(&shared.connections, &owner))
}

impl Shared {
    /// A storage node knows no tokens, and says who does.
    fn naming_the_entry_node(&self, refusal: Refusal) -> Refusal {
        let Some(entry) = &self.entry else { return refusal };
        let text = format!("{}; files are at the entry node, {entry}", refusal.0.message);
        Refusal::new(ErrorKind::Denied, text)
    }
}

/// The host that a request names.
fn authority(request: &Request) -> Option<&str> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    request.uri().authority().map(http::uri::Authority::as_str).or(host)
}

/// Refuses what a page of somewhere else has a browser ask, and what names its host twice.
fn meant_for_here(request: &Request) -> Answer<()> {
    let headers = request.headers();
    let denied = |text: &str| Err(Refusal::new(ErrorKind::Denied, text));
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next();
    let both = request.uri().authority().zip(host);
    if hosts.next().is_some() || both.is_some_and(|(one, other)| one.as_str().as_bytes() != other.as_bytes())
    {
        return Err(Refusal::new(ErrorKind::Usage, "the request names two hosts; name one"));
    }
    let another = "a page of another site asked for this; only pages that come from this node may";
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
        // Somebody who follows a link to this node sees what is there, and the page with the link does not.
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) if looks => Ok(()),
        Some(_) => denied(another),
    }
}

fn speaks_grpc(request: &Request) -> Answer<()> {
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
        "this takes gRPC only: HTTP/2 with the content type application/grpc; files are at /files/PATH";
    Err(Refusal::new(ErrorKind::Usage, text))
}

/// The principal of a pass, if there is one.
fn pass(shared: &Shared, headers: &HeaderMap) -> Answer<Option<String>> {
    let Some(sealed) = headers.get(PASS_HEADER) else { return Ok(None) };
    let sealed = sealed.to_str().map_err(|_| Refusal::new(ErrorKind::Usage, "the pass is not text"))?;
    let pass = shared.key.open_pass(sealed, now()).map_err(|error| match error {
        WireError::Seal => Refusal::new(
            ErrorKind::Denied,
            "whoever asks is of another cluster: give a node the key file of this one's entry node, or open the file again",
        ),
        other => other.into(),
    });
    Ok(Some(pass?.principal))
}

/// The principal that was given the grant of a head.
fn holder_of_grant(shared: &Shared, headers: &HeaderMap) -> Option<Arc<str>> {
    let sealed = headers.get(GRANT_HEADER)?.to_str().ok()?;
    Some(shared.key.open_pass(pass_of(sealed)?, now()).ok()?.principal.into())
}

/// Whether the head has a grant of this cluster. What it is for is looked at where it is used.
fn granted(shared: &Shared, headers: &HeaderMap) -> bool {
    let sealed = headers.get(GRANT_HEADER).and_then(|sealed| sealed.to_str().ok());
    sealed.is_some_and(|sealed| shared.key.sealed(sealed))
}
