//! The client's side of Flight.

use http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::server::{DO_ACTION, DO_GET};
use crate::{Action, ActionResult, FlightData, Ticket};

/// A client of a Flight service. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FlightClient {
    inner: tonic::client::Grpc<Channel>,
}

impl FlightClient {
    /// Creates a client that takes messages of at most `max_decoding` bytes, and sends messages of at most `max_encoding`
    /// bytes.
    #[must_use]
    pub fn new(channel: Channel, max_decoding: usize, max_encoding: usize) -> FlightClient {
        let inner = tonic::client::Grpc::new(channel);
        let inner = inner.max_decoding_message_size(max_decoding).max_encoding_message_size(max_encoding);
        FlightClient { inner }
    }

    /// Asks for the data of a ticket.
    ///
    /// # Errors
    /// Returns the status of the service, or the reason why it gave no answer.
    pub async fn do_get(
        &mut self,
        request: Request<Ticket>,
    ) -> Result<Response<Streaming<FlightData>>, Status> {
        self.ask(DO_GET, request).await
    }

    /// Asks for an action.
    ///
    /// # Errors
    /// Returns the status of the service, or the reason why it gave no answer.
    pub async fn do_action(
        &mut self,
        request: Request<Action>,
    ) -> Result<Response<Streaming<ActionResult>>, Status> {
        self.ask(DO_ACTION, request).await
    }

    /// Calls a method with a stream of answers.
    async fn ask<Q, A>(
        &mut self,
        path: &'static str,
        request: Request<Q>,
    ) -> Result<Response<Streaming<A>>, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let ready = self.inner.ready().await;
        ready.map_err(|error| Status::unknown(format!("Service was not ready: {error}")))?;
        let path = PathAndQuery::from_static(path);
        self.inner.server_streaming(request, path, ProstCodec::default()).await
    }
}
