//! HTTP/1.1 requests to one address.

use std::time::Duration;

use http::header::HOST;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Uri};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;

use crate::connect::{Protocol, connect, require_tls};
use crate::pool::Connection;
use crate::request_body::{OutgoingBody, Progress, Waiting};
use crate::{Address, Dialer, HTTP1_BUFFER, RequestBody, Response, Result, TransportError};

/// Sends HTTP/1.1 requests to one address over the connections that its [`Dialer`] keeps.
#[derive(Clone, Debug)]
pub struct HttpClient {
    dialer: Dialer,
    address: Address,
}

/// A check whether the other side is alive while a request makes no progress. The other side may be writing to a slow
/// disk, or the link may be slow.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Path of a `GET` over another connection. Any answer is sufficient.
    pub path: &'static str,
    /// How long the request may make no progress although the other side is alive.
    pub max_wait: Duration,
}

/// Limits of the waits of a request.
#[derive(Clone, Copy)]
struct WaitLimits {
    answer_within: Duration,
    probe: Option<Probe>,
}

/// A request that got no answer.
struct Failure {
    error: TransportError,
    /// The request, if nothing of it was sent.
    unsent: Option<Request<OutgoingBody>>,
    /// Whether the connection was closed. Kept connections can be closed.
    closed: bool,
}

impl HttpClient {
    pub(crate) fn new(dialer: Dialer, address: Address) -> Self {
        Self { dialer, address }
    }

    /// The address that requests go to.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a request and waits for the head of the answer, at most the dialer's `stall` after the last byte
    /// of the body was sent; see [`send_within`](Self::send_within).
    ///
    /// # Errors
    /// It fails as [`send_within`](Self::send_within) does.
    pub async fn send<B: Into<RequestBody>>(&self, request: Request<B>) -> Result<Response> {
        self.send_within(request, self.dialer.shared.options.stall).await
    }

    /// Sends a request and waits for the head of the answer, at most `answer_within` after the last byte of
    /// the body was sent. While the body is sent, the node must take some of it within the dialer's
    /// `stall`. The time that the body needs for its next bytes does not count.
    ///
    /// Only path and query of the URI are sent. `Host` is set if it is missing. A kept connection is used if there
    /// is one. If it is found closed, the request is sent once more on a new connection, provided that
    /// nothing of it was sent, or that its body is bytes in memory and its method is idempotent. Dropping the future
    /// closes the connection.
    ///
    /// # Errors
    /// The error is [`TransportError::NotLocal`] if the address is another machine and there is no TLS;
    /// [`TransportError::Refused`], [`TransportError::Timeout`] or [`TransportError::Tls`] if no connection can be
    /// made; [`TransportError::Stalled`] if the node is silent for too long; [`TransportError::Closed`] if the
    /// connection ends before the head of the answer; and [`TransportError::Request`] if the body fails or HTTP/1.1
    /// cannot express the request. No status of the answer is an error.
    pub async fn send_within<B: Into<RequestBody>>(
        &self,
        request: Request<B>,
        answer_within: Duration,
    ) -> Result<Response> {
        self.send_limited(request, WaitLimits { answer_within, probe: None }).await
    }

    /// Sends a request as [`send`](Self::send) does, but probes the node if it makes no progress for the dialer's
    /// `stall`. The request continues while the node answers probes, and for at most [`Probe::max_wait`] without a byte
    /// of progress.
    ///
    /// # Errors
    /// It fails as [`send_within`](Self::send_within) does. The error is [`TransportError::Stalled`] only if the node
    /// does not answer a probe, or after [`Probe::max_wait`].
    pub async fn send_probing<B: Into<RequestBody>>(
        &self,
        request: Request<B>,
        probe: Probe,
    ) -> Result<Response> {
        let answer_within = self.dialer.shared.options.stall;
        self.send_limited(request, WaitLimits { answer_within, probe: Some(probe) }).await
    }

    async fn send_limited<B: Into<RequestBody>>(
        &self,
        request: Request<B>,
        limits: WaitLimits,
    ) -> Result<Response> {
        require_tls(&self.address, self.dialer.shared.options.tls.as_ref())?;
        let (mut head, body) = request.into_parts();
        let body = body.into();
        self.complete_head(&mut head)?;

        let Some(kept) = self.dialer.shared.pool.take(&self.address).await else {
            return self.send_new(Request::from_parts(head, OutgoingBody::new(body)), limits).await;
        };
        let copy = match head.method.is_idempotent() {
            true => body.try_clone().map(|body| (head.clone(), body)),
            false => None,
        };
        let request = Request::from_parts(head, OutgoingBody::new(body));
        match self.attempt(kept, request, limits).await {
            Ok(response) => Ok(response),
            Err(Failure { unsent: Some(request), .. }) => self.send_new(request, limits).await,
            Err(Failure { closed: true, error, .. }) => match copy {
                Some((head, body)) => {
                    self.send_new(Request::from_parts(head, OutgoingBody::new(body)), limits).await
                }
                None => Err(error),
            },
            Err(failure) => Err(failure.error),
        }
    }

    fn complete_head(&self, head: &mut Parts) -> Result<()> {
        let failed = |error: http::Error| TransportError::Request {
            address: self.address.clone(),
            source: error.into(),
        };
        let path = head.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        head.uri = Uri::from(path);
        head.version = http::Version::HTTP_11;
        if !head.headers.contains_key(HOST) {
            let host = HeaderValue::try_from(self.address.authority()).map_err(|e| failed(e.into()))?;
            head.headers.insert(HOST, host);
        }
        Ok(())
    }

    async fn send_new(&self, request: Request<OutgoingBody>, limits: WaitLimits) -> Result<Response> {
        let sender = self.connect_new().await?;
        self.attempt(sender, request, limits).await.map_err(|failure| failure.error)
    }

    async fn connect_new(&self) -> Result<Connection> {
        let options = &self.dialer.shared.options;
        let within = options.connect_timeout;
        let stream = connect(&self.address, options.tls.as_ref(), Protocol::Http1, within).await?;
        let (sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(HTTP1_BUFFER)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.explain(error))?;
        // The task ends with the sender and the body of the answer, which get its errors.
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn attempt(
        &self,
        mut connection: Connection,
        request: Request<OutgoingBody>,
        limits: WaitLimits,
    ) -> std::result::Result<Response, Failure> {
        let progress = request.body().progress();
        let answer = std::pin::pin!(connection.try_send_request(request));
        let answer = tokio::select! {
            answer = answer => answer,
            waited = self.stalled(&progress, limits) => {
                let error = TransportError::Stalled { address: self.address.clone(), waited };
                return Err(Failure { error, unsent: None, closed: false });
            }
        };
        let answer: http::Response<Incoming> = answer.map_err(|mut error| {
            let unsent = error.take_message();
            let error = error.into_error();
            let closed = !error.is_user() && !error.is_parse() && !error.is_timeout();
            Failure { error: self.explain(error), unsent, closed }
        })?;
        Ok(Response::new(answer, connection, progress, self.dialer.clone(), self.address.clone()))
    }

    /// Waits until the other side has made no progress for too long. Returns how long that was.
    async fn stalled(&self, progress: &Progress, limits: WaitLimits) -> Duration {
        let stall = self.dialer.shared.options.stall;
        loop {
            let (waiting, since) = progress.waiting();
            let allowed = if waiting == Waiting::Answer { limits.answer_within } else { stall };
            let deadline = since + allowed;
            if tokio::time::Instant::now() < deadline {
                tokio::time::sleep_until(deadline).await;
            } else if waiting == Waiting::Source {
                tokio::time::sleep(stall).await;
            } else {
                match limits.probe {
                    Some(probe) if since.elapsed() < probe.max_wait && self.is_alive(probe).await => {
                        tokio::time::sleep(stall).await;
                    }
                    Some(_) => return since.elapsed(),
                    None => return allowed,
                }
            }
        }
    }

    /// Whether the other side answers a probe, over a new connection.
    async fn is_alive(&self, probe: Probe) -> bool {
        let probed = async {
            let mut head = Request::get(probe.path).body(()).ok()?.into_parts().0;
            self.complete_head(&mut head).ok()?;
            let mut connection = self.connect_new().await.ok()?;
            let request = Request::from_parts(head, OutgoingBody::new(RequestBody::empty()));
            connection.send_request(request).await.ok()
        };
        tokio::time::timeout(self.dialer.shared.options.stall, probed)
            .await
            .is_ok_and(|answer| answer.is_some())
    }

    fn explain(&self, error: hyper::Error) -> TransportError {
        let address = self.address.clone();
        match error.is_user() {
            true => TransportError::Request { address, source: error.into() },
            false => TransportError::Closed { address, source: error.into() },
        }
    }
}
