//! Connections to object stores and web servers: HTTP/1.1 over TCP or TLS, kept open between requests.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::HeaderValue;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::client::{
    HttpClient as StoreClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use url::Url;

use crate::AccessKey;
use crate::addresses::{AddressPolicy, CheckedResolver};

/// Most requests at once. Further requests wait.
pub const MAX_REQUESTS_AT_ONCE: usize = 64;

/// Longest time until a connection is there.
pub const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Longest time without a byte of an answer.
pub const ANSWER_PATIENCE: Duration = Duration::from_secs(30);

/// Longest wait for one of the requests at once.
pub const PERMIT_PATIENCE: Duration = Duration::from_secs(300);

/// Bytes that are read from a connection at once.
const READ_BYTES: usize = 64 << 10;

/// Time after which a connection without requests is closed.
const IDLE: Duration = Duration::from_secs(60);

type Inner = Client<HttpsConnector<TcpConnector<CheckedResolver>>, HttpRequestBody>;

/// A client for all sources of a process. It is cheap to clone.
#[derive(Clone)]
pub(crate) struct HttpClient {
    inner: Inner,
    permits: Arc<Semaphore>,
    policy: AddressPolicy,
    /// Whether requests may go out without encryption.
    plain: bool,
    /// The value of the header `Authorization` for web servers.
    login: Option<HeaderValue>,
}

impl HttpClient {
    /// A client for all addresses and one for those of other machines. Both share the number of requests at once. Reads the certificate
    /// authorities of the system.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    pub fn pair() -> std::io::Result<(HttpClient, HttpClient)> {
        let permits = Arc::new(Semaphore::new(MAX_REQUESTS_AT_ONCE));
        let new = |policy| HttpClient::new(policy, permits.clone());
        Ok((new(AddressPolicy::Any)?, new(AddressPolicy::NotLocal)?))
    }

    fn new(policy: AddressPolicy, permits: Arc<Semaphore>) -> std::io::Result<HttpClient> {
        let mut tcp = TcpConnector::new_with_resolver(CheckedResolver::new(policy));
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_PATIENCE));
        tcp.set_nodelay(true);
        let provider = rustls::crypto::ring::default_provider();
        let https = HttpsConnectorBuilder::new().with_provider_and_native_roots(provider)?;
        let connector = https.https_or_http().enable_http1().wrap_connector(tcp);
        let inner = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(MAX_REQUESTS_AT_ONCE)
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .http1_read_buf_exact_size(READ_BYTES)
            .build(connector);
        Ok(HttpClient { inner, permits, policy, plain: true, login: None })
    }

    /// The same client with a login at web servers (Basic, RFC 7617).
    pub fn with_login(self, key: &AccessKey) -> HttpClient {
        use base64::Engine;
        let pair = format!("{}:{}", key.id, key.secret);
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        // Base64 has visible characters only.
        let mut login = HeaderValue::from_str(&format!("Basic {encoded}")).ok();
        login.iter_mut().for_each(|login| login.set_sensitive(true));
        HttpClient { login, ..self }
    }

    /// The login for a request to `url` that was begun with a request to `first`. Other servers do not get it.
    pub fn login(&self, url: &Url, first: &Url) -> Option<&HeaderValue> {
        self.login.as_ref().filter(|_| url.origin() == first.origin())
    }

    /// Sends a request, and waits for the head of its answer.
    pub async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if !self.plain && request.uri().scheme_str() != Some("https") {
            let why = "credentials are sent over https only";
            return Err(HttpError::new(HttpErrorKind::Unknown, std::io::Error::other(why)));
        }
        // The connector does not resolve what is an address already.
        let host = request.uri().host().unwrap_or_default();
        self.policy.check_host(host).map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let permit = tokio::time::timeout(PERMIT_PATIENCE, self.permits.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| silent("all requests at once", PERMIT_PATIENCE))?;
        let permit = permit.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let answer = tokio::time::timeout(ANSWER_PATIENCE, self.inner.request(request)).await;
        let answer = answer.map_err(|_| silent("it", ANSWER_PATIENCE))?.map_err(failed)?;
        Ok(answer.map(|body| HttpResponseBody::new(PatientBody::new(body, permit))))
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpClient")
    }
}

fn silent(what: &str, patience: Duration) -> HttpError {
    let text = format!("no byte arrived from {what} in {} s", patience.as_secs());
    HttpError::new(HttpErrorKind::Timeout, std::io::Error::new(std::io::ErrorKind::TimedOut, text))
}

fn failed(error: hyper_util::client::legacy::Error) -> HttpError {
    let kind = if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
    HttpError::new(kind, error)
}

impl HttpService for HttpClient {
    fn call<'a, 'b>(&'a self, request: HttpRequest) -> BoxFuture<'b, Result<HttpResponse, HttpError>>
    where
        'a: 'b,
        Self: 'b,
    {
        self.send(request).boxed()
    }
}

impl HttpConnector for HttpClient {
    /// Other options than these have no effect.
    fn connect(&self, options: &ClientOptions) -> object_store::Result<StoreClient> {
        if options.get_config_value(&ClientConfigKey::ProxyUrl).is_some() {
            return Err(object_store::Error::NotSupported { source: "proxies are not supported".into() });
        }
        let plain =
            options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|allow| allow == "true");
        Ok(StoreClient::new(HttpClient { plain, ..self.clone() }))
    }
}

/// The body of an answer. It fails if no byte arrives for [`ANSWER_PATIENCE`]. It holds the permit of its request to its end. Whoever
/// asks again after a failure needs another permit, and may still hold this body.
struct PatientBody {
    body: Incoming,
    deadline: Pin<Box<Sleep>>,
    permit: Option<OwnedSemaphorePermit>,
}

impl PatientBody {
    fn new(body: Incoming, permit: OwnedSemaphorePermit) -> PatientBody {
        PatientBody { body, deadline: Box::pin(tokio::time::sleep(ANSWER_PATIENCE)), permit: Some(permit) }
    }
}

impl Body for PatientBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.deadline.as_mut().reset(Instant::now() + ANSWER_PATIENCE);
            if !matches!(frame, Some(Ok(_))) {
                self.permit = None;
            }
            let cut_off = |error| HttpError::new(HttpErrorKind::Interrupted, error);
            return Poll::Ready(frame.map(|frame| frame.map_err(cut_off)));
        }
        ready!(self.deadline.as_mut().poll(cx));
        self.permit = None;
        Poll::Ready(Some(Err(silent("it", ANSWER_PATIENCE))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
