//! Connections to nodes, and calls with one request and one answer.

use std::any::Any;
use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_flight::{Action, ActionResult, FlightClient};
use gristmill_runtime::{Allowance, ErrorKind, RunError};
use gristmill_transport::{Address, Dialer};
use gristmill_wire::{
    Asker, MAX_FRAME_BYTES, MAX_REQUEST_BYTES, PASS_HEADER, SOURCE_HEADER, SourceAccess, VERIFY_HEADER,
    action, action::names,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use crate::ReceiveCounter;
use crate::error::transport_error;
use crate::failed_request::FailedRequest;
use crate::layouts::Layouts;
use crate::placement::{Machine, RecentLoads};
use crate::silence::while_alive;

/// Most bytes that gRPC and Arrow add to a frame.
const ENVELOPE_BYTES: usize = 1 << 20;

/// Options of requests to nodes.
#[derive(Clone, Debug)]
pub struct PeersOptions {
    /// The token of the user, which is sent with actions to the entry node. It never leaves this machine unencrypted.
    pub token: Option<String>,
    /// Credentials of the user for storage outside the cluster, which are sent with actions to the entry node. They never leave this
    /// machine unencrypted.
    pub source: Option<SourceAccess>,
    /// Longest time without a sign of life from a node at work.
    pub stall: Duration,
    /// Counts the bytes of files that are received.
    pub received: ReceiveCounter,
    /// Whether nodes compare all bytes with their checksums, also bytes that were compared lately.
    pub verify: bool,
}

impl Default for PeersOptions {
    fn default() -> PeersOptions {
        PeersOptions {
            token: None,
            source: None,
            stall: Duration::from_secs(10),
            received: ReceiveCounter::default(),
            verify: false,
        }
    }
}

/// A header of a request, if there is one. The first one of a request says who asks.
type Header = Option<(&'static str, MetadataValue<Ascii>)>;

/// Connections to nodes, shared by all requests. Cheap to clone.
#[derive(Clone)]
pub struct Peers {
    dialer: Dialer,
    runtime: Handle,
    token: Option<MetadataValue<Ascii>>,
    source: Option<MetadataValue<Ascii>>,
    pub(crate) layouts: Layouts,
    pub(crate) loads: RecentLoads,
    /// The name by which nodes know this process.
    name: Arc<str>,
    pub(crate) stall: Duration,
    pub(crate) verify: bool,
    received: ReceiveCounter,
    /// The owner of the runtime, which ends the runtime when it is dropped. It is the last field because all else runs
    /// on the runtime.
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

impl Peers {
    /// Creates connections that `dialer` makes and `runtime` drives.
    ///
    /// # Errors
    /// The error is [`RunError::Remote`] if the token has characters that are not allowed in a token.
    pub fn new(dialer: Dialer, runtime: Handle, options: PeersOptions) -> Result<Peers, RunError> {
        let bearer = |token: String| {
            let value = format!("Bearer {token}").parse::<MetadataValue<Ascii>>();
            value.map_err(|_| RunError::Remote {
                kind: gristmill_runtime::ErrorKind::Usage,
                message: "the token has characters that are not allowed in a token; check GRISTMILL_TOKEN"
                    .to_owned(),
            })
        };
        let token = options.token.map(bearer).transpose()?;
        let source = options.source.map(|access| access.to_header()).transpose()?;
        // Base64 has letters of headers only.
        let source =
            source.and_then(|header| header.parse::<MetadataValue<Ascii>>().ok()).map(|mut header| {
                header.set_sensitive(true);
                header
            });
        // It is random, but not a secret.
        let name = format!("{:016x}", RandomState::new().build_hasher().finish()).into();
        Ok(Peers {
            dialer,
            runtime,
            token,
            source,
            layouts: Layouts::default(),
            loads: RecentLoads::default(),
            name,
            stall: options.stall,
            verify: options.verify,
            received: options.received,
            _owner: None,
        })
    }

    /// Adds the owner of the runtime, which lives as long as any clone. A file that is read over these connections may live
    /// longer than the value that opened it, and a read on a runtime that has ended panics.
    pub fn with_owner(self, owner: Arc<dyn Any + Send + Sync>) -> Peers {
        Peers { _owner: Some(owner), ..self }
    }

    /// The same connections, with another choice whether nodes compare all bytes with their checksums or only bytes that are
    /// due.
    pub fn verifying(&self, verify: bool) -> Peers {
        Peers { verify, ..self.clone() }
    }

    /// Adds the header for the comparison of all bytes with their checksums, if that is wanted.
    pub(crate) fn with_verify_header(&self, request: http::request::Builder) -> http::request::Builder {
        if self.verify { request.header(VERIFY_HEADER, "all") } else { request }
    }

    /// This process as a client that folds the records that nodes hand back, with `lanes` threads. `rate` is the bytes per
    /// second that one processor receives and folds, if that was measured.
    pub fn asker(&self, lanes: usize, rate: Option<f64>) -> Asker {
        let lanes = u32::try_from(lanes).unwrap_or(u32::MAX).max(1);
        let Allowance { quota, processors } = Machine::now().allowance;
        let millicores =
            quota.map(|cores| (cores * 1000.0).ceil() as u32).filter(|cores| *cores / 1000 < lanes);
        let rate = rate.map(|rate| rate as u64);
        Asker { name: self.name.to_string(), lanes, millicores, rate, link: None, processors }
    }

    /// The token as the value of a header.
    pub(crate) fn token(&self) -> Option<&[u8]> {
        self.token.as_ref().map(MetadataValue::as_bytes)
    }

    /// The counter of received bytes of files.
    pub fn received(&self) -> &ReceiveCounter {
        &self.received
    }

    /// The runtime that drives the connections.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// The dialer.
    pub fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// Waits for a future. Only for threads that do not belong to the runtime.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// A Flight client of the node at this address.
    ///
    /// # Errors
    /// It fails if the address is invalid, if it is of another machine and there is no TLS, and outside of a Tokio runtime.
    pub fn flight(&self, address: &str) -> Result<FlightClient, RunError> {
        let channel = self.dialer.channel(&parse_address(address)?);
        Ok(flight_client(channel.map_err(|e| transport_error(address, &e))?))
    }

    /// A Flight client with a connection of its own.
    pub(crate) fn dedicated_flight(&self, address: &str) -> Result<FlightClient, RunError> {
        let channel = self.dialer.dedicated_channel(&parse_address(address)?);
        Ok(flight_client(channel.map_err(|e| transport_error(address, &e))?))
    }

    /// Asks a node for an action and reads its JSON answer. An empty answer counts as `null`.
    ///
    /// # Errors
    /// It fails as [`try_action`](Peers::try_action) does.
    pub async fn action<Q: Serialize, R: DeserializeOwned>(
        &self,
        address: &str,
        name: &str,
        body: &Q,
    ) -> Result<R, RunError> {
        self.try_action(address, name, body).await.map_err(|failure| failure.error)
    }

    /// Does as [`action`](Peers::action). The error also says whether the node may have done the action.
    ///
    /// # Errors
    /// Returns the refusal of the node, or the reason why it gave no answer.
    pub async fn try_action<Q: Serialize, R: DeserializeOwned>(
        &self,
        address: &str,
        name: &str,
        body: &Q,
    ) -> Result<R, FailedRequest> {
        let token = self.token.clone().map(|token| ("authorization", token));
        let source = self.source.clone().map(|source| (SOURCE_HEADER, source));
        self.call(address, name, body, &[token, source]).await
    }

    /// Does as [`action`](Peers::action), for a node. Its pass shows that it has the key of the cluster.
    ///
    /// # Errors
    /// It fails as [`try_action`](Peers::try_action) does.
    pub async fn action_with_pass<Q: Serialize, R: DeserializeOwned>(
        &self,
        address: &str,
        name: &str,
        body: &Q,
        pass: &str,
    ) -> Result<R, RunError> {
        let pass = pass.parse().ok().map(|pass| (PASS_HEADER, pass));
        self.call(address, name, body, &[pass]).await.map_err(|failure| failure.error)
    }

    /// Sends an action and reads its answer.
    async fn send(
        &self,
        address: &str,
        name: &str,
        body: Bytes,
        headers: &[Header],
    ) -> Result<Option<ActionResult>, FailedRequest> {
        let mut request = tonic::Request::new(Action { r#type: name.to_owned(), body });
        for (header, value) in headers.iter().flatten() {
            request.metadata_mut().insert(*header, value.clone());
        }
        let mut client = self.flight(address)?;
        let call = async {
            let mut answers = client.do_action(request).await?.into_inner();
            let answer = answers.message().await?;
            // The stream is read to its end: otherwise it is reset, and servers count resets.
            while answers.message().await?.is_some() {}
            Ok::<_, tonic::Status>(answer)
        };
        call.await.map_err(|status| FailedRequest::from_status(address, &status))
    }

    async fn call<Q: Serialize, R: DeserializeOwned>(
        &self,
        address: &str,
        name: &str,
        body: &Q,
        headers: &[Header],
    ) -> Result<R, FailedRequest> {
        let body = action::encode(body).map_err(RunError::from)?.into();
        let call = self.send(address, name, body, headers);
        let ping = || async {
            let answer =
                self.send(address, names::PING, Bytes::new(), headers.get(..1).unwrap_or_default()).await;
            answer.map_or_else(|failed| failed.error.kind() != ErrorKind::Unavailable, |_| true)
        };
        let answer = while_alive(address, self.stall, call, ping);
        let answer = answer.await??;
        let answer = answer.map(|answer| answer.body).unwrap_or_default();
        Ok(action::decode("answer", &answer).map_err(RunError::from)?)
    }
}

fn flight_client(channel: Channel) -> FlightClient {
    FlightClient::new(channel, MAX_FRAME_BYTES + ENVELOPE_BYTES, MAX_REQUEST_BYTES + ENVELOPE_BYTES)
}

/// Parses the text of an address.
pub(crate) fn parse_address(address: &str) -> Result<Address, RunError> {
    address.parse().map_err(|e: gristmill_transport::TransportError| transport_error(address, &e))
}
