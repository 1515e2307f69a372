//! Connections to nodes, and the calls that are one question and one answer.

use std::any::Any;
use std::collections::hash_map::RandomState;
use std::future::Future;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::Action;
use arrow_flight::flight_service_client::FlightServiceClient;
use gristmill_runtime::{Allowance, RunError};
use gristmill_transport::{Address, Dialer};
use gristmill_wire::{Asker, MAX_FRAME_BYTES, MAX_REQUEST_BYTES, PASS_HEADER, VERIFY_HEADER, action};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use crate::Received;
use crate::error::{transport, unavailable};
use crate::failed_request::FailedRequest;
use crate::layouts::Layouts;
use crate::placement::{Machine, RecentLoads};

/// Room for what gRPC and Arrow put around a frame.
const ENVELOPE_BYTES: usize = 1 << 20;

/// How to ask.
#[derive(Clone, Debug)]
pub struct PeersOptions {
    /// Sent with actions, so that the entry node knows who asks. Never sent in the clear beyond this machine.
    pub token: Option<String>,
    /// How long a node at work may give no sign of life.
    pub stall: Duration,
    /// Counts what is received of files.
    pub received: Received,
    /// Has nodes compare all bytes with their checksums, also those that were compared lately.
    pub verify: bool,
}

impl Default for PeersOptions {
    fn default() -> PeersOptions {
        PeersOptions {
            token: None,
            stall: Duration::from_secs(10),
            received: Received::default(),
            verify: false,
        }
    }
}

/// Connections to nodes, shared by everything that asks them. Cheap to clone.
#[derive(Clone)]
pub struct Peers {
    dialer: Dialer,
    runtime: Handle,
    token: Option<MetadataValue<Ascii>>,
    pub(crate) layouts: Layouts,
    pub(crate) loads: RecentLoads,
    /// Tells this process from others that ask.
    name: Arc<str>,
    pub(crate) stall: Duration,
    pub(crate) verify: bool,
    received: Received,
    /// What the runtime ends with. Last, for all else runs on it.
    _owner: Option<Arc<dyn Any + Send + Sync>>,
}

impl Peers {
    /// Connections made by `dialer`, driven by `runtime`.
    ///
    /// # Errors
    /// The error is [`RunError::Remote`] if the token has characters that no token has.
    pub fn new(dialer: Dialer, runtime: Handle, options: PeersOptions) -> Result<Peers, RunError> {
        let bearer = |token: String| {
            let value = format!("Bearer {token}").parse::<MetadataValue<Ascii>>();
            value.map_err(|_| RunError::Remote {
                kind: gristmill_runtime::ErrorKind::Usage,
                message: "the token has characters that no token has; check GRISTMILL_TOKEN".to_owned(),
            })
        };
        let token = options.token.map(bearer).transpose()?;
        // Random, and no secret.
        let name = format!("{:016x}", RandomState::new().build_hasher().finish()).into();
        Ok(Peers {
            dialer,
            runtime,
            token,
            layouts: Layouts::default(),
            loads: RecentLoads::default(),
            name,
            stall: options.stall,
            verify: options.verify,
            received: options.received,
            _owner: None,
        })
    }

    /// With the owner of the runtime, which lives as long as any clone does: a file that is read over these connections may
    /// outlive whoever opened it, and a read on a runtime that has ended panics.
    pub fn owning(self, owner: Arc<dyn Any + Send + Sync>) -> Peers {
        Peers { _owner: Some(owner), ..self }
    }

    /// The same connections, over which nodes compare all bytes with their checksums, or only those that are due.
    pub fn verifying(&self, verify: bool) -> Peers {
        Peers { verify, ..self.clone() }
    }

    /// A request for bytes, which says so where all of them are to be compared with their checksums.
    pub(crate) fn checked(&self, request: http::request::Builder) -> http::request::Builder {
        if self.verify { request.header(VERIFY_HEADER, "all") } else { request }
    }

    /// This process as one that folds with so many threads what nodes hand back. `rate`: bytes a second that one processor
    /// takes in and folds, if that was measured.
    pub fn asker(&self, lanes: usize, rate: Option<f64>) -> Asker {
        let lanes = u32::try_from(lanes).unwrap_or(u32::MAX).max(1);
        let Allowance { quota, processors } = Machine::now().allowance;
        let millicores =
            quota.map(|cores| (cores * 1000.0).ceil() as u32).filter(|cores| *cores / 1000 < lanes);
        let rate = rate.map(|rate| rate as u64);
        Asker { name: self.name.to_string(), lanes, millicores, rate, link: None, processors }
    }

    /// Says who asks, as the value of a header.
    pub(crate) fn token(&self) -> Option<&[u8]> {
        self.token.as_ref().map(MetadataValue::as_bytes)
    }

    /// What is received of files.
    pub fn received(&self) -> &Received {
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

    /// Waits for a future from a thread that is none of the runtime's.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// A Flight client of the node at this address.
    ///
    /// # Errors
    /// It fails if the address is none, if it is another machine and there is no TLS, and outside of a Tokio runtime.
    pub fn flight(&self, address: &str) -> Result<FlightServiceClient<Channel>, RunError> {
        let channel = self.dialer.channel(&parse(address)?);
        Ok(client(channel.map_err(|e| transport(address, &e))?))
    }

    /// The same over a connection of its own.
    pub(crate) fn flight_alone(&self, address: &str) -> Result<FlightServiceClient<Channel>, RunError> {
        let channel = self.dialer.channel_alone(&parse(address)?);
        Ok(client(channel.map_err(|e| transport(address, &e))?))
    }

    /// Asks a node for an action and reads its JSON answer; an action that answers nothing gives `null`.
    ///
    /// # Errors
    /// As [`ask`](Peers::ask).
    pub async fn action<Q: Serialize, R: DeserializeOwned>(
        &self,
        address: &str,
        name: &str,
        body: &Q,
    ) -> Result<R, RunError> {
        self.ask(address, name, body).await.map_err(|unanswered| unanswered.error)
    }

    /// As [`action`](Peers::action), where a failure says too whether the node may have done what it was asked.
    ///
    /// # Errors
    /// What the node refused, and why it gave no answer.
    pub async fn ask<Q: Serialize, R: DeserializeOwned>(
        &self,
        address: &str,
        name: &str,
        body: &Q,
    ) -> Result<R, FailedRequest> {
        self.call(address, name, body, self.token.clone().map(|token| ("authorization", token))).await
    }

    /// As [`action`](Peers::action), asked by a node that has the key of the cluster, as its pass says.
    ///
    /// # Errors
    /// As [`ask`](Peers::ask).
    pub async fn action_of_node<Q: Serialize, R: DeserializeOwned>(
        &self,
        address: &str,
        name: &str,
        body: &Q,
        pass: &str,
    ) -> Result<R, RunError> {
        let pass = pass.parse().ok().map(|pass| (PASS_HEADER, pass));
        self.call(address, name, body, pass).await.map_err(|unanswered| unanswered.error)
    }

    async fn call<Q: Serialize, R: DeserializeOwned>(
        &self,
        address: &str,
        name: &str,
        body: &Q,
        who: Option<(&'static str, MetadataValue<Ascii>)>,
    ) -> Result<R, FailedRequest> {
        let body = action::encode(body).map_err(RunError::from)?;
        let action = Action { r#type: name.to_owned(), body: body.into() };
        let mut request = tonic::Request::new(action);
        if let Some((header, value)) = who {
            request.metadata_mut().insert(header, value);
        }
        let mut client = self.flight(address)?;
        let call = async {
            let mut answers = client.do_action(request).await?.into_inner();
            let answer = answers.message().await?;
            // Read to its end: a stream that is dropped before is reset, and servers count resets.
            while answers.message().await?.is_some() {}
            Ok::<_, tonic::Status>(answer)
        };
        let answer = match tokio::time::timeout(self.stall, call).await {
            Err(_) => {
                let why = format_args!("no answer in {} s", self.stall.as_secs_f64());
                return Err(FailedRequest { error: unavailable(address, why), begun: true, silent: true });
            }
            Ok(answer) => answer.map_err(|status| FailedRequest::of_status(address, &status))?,
        };
        let answer = answer.map(|answer| answer.body).unwrap_or_default();
        Ok(action::decode("answer", &answer).map_err(RunError::from)?)
    }
}

fn client(channel: Channel) -> FlightServiceClient<Channel> {
    FlightServiceClient::new(channel)
        .max_decoding_message_size(MAX_FRAME_BYTES + ENVELOPE_BYTES)
        .max_encoding_message_size(MAX_REQUEST_BYTES + ENVELOPE_BYTES)
}

/// An address that came as text.
pub(crate) fn parse(address: &str) -> Result<Address, RunError> {
    address.parse().map_err(|e: gristmill_transport::TransportError| transport(address, &e))
}
