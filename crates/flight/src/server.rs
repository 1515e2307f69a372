//! The server's side of Flight.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::Stream;
use tonic::body::Body;
use tonic::server::{Grpc, ServerStreamingService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;
use tower_service::Service;

use crate::{
    Action, ActionResult, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, Ticket,
};

pub(crate) const DO_GET: &str = "/arrow.flight.protocol.FlightService/DoGet";
pub(crate) const DO_ACTION: &str = "/arrow.flight.protocol.FlightService/DoAction";
const GET_FLIGHT_INFO: &str = "/arrow.flight.protocol.FlightService/GetFlightInfo";
const LIST_ACTIONS: &str = "/arrow.flight.protocol.FlightService/ListActions";
const LIST_FLIGHTS: &str = "/arrow.flight.protocol.FlightService/ListFlights";

/// The methods of Flight that are not supported.
const OTHER_METHODS: [&str; 5] = ["DoExchange", "DoPut", "GetSchema", "Handshake", "PollFlightInfo"];

/// A stream of answers.
pub type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// The methods that a Flight service supports. It refuses the other methods of Flight.
pub trait FlightService: Send + Sync + 'static {
    /// The data of a ticket.
    fn do_get(
        &self,
        request: Request<Ticket>,
    ) -> impl Future<Output = Result<Response<Answers<FlightData>>, Status>> + Send;

    /// Does an action.
    fn do_action(
        &self,
        request: Request<Action>,
    ) -> impl Future<Output = Result<Response<Answers<ActionResult>>, Status>> + Send;

    /// Describes a flight.
    fn get_flight_info(
        &self,
        request: Request<FlightDescriptor>,
    ) -> impl Future<Output = Result<Response<FlightInfo>, Status>> + Send;

    /// Describes several flights.
    fn list_flights(
        &self,
        request: Request<Criteria>,
    ) -> impl Future<Output = Result<Response<Answers<FlightInfo>>, Status>> + Send;

    /// The actions that the service supports.
    fn list_actions(
        &self,
        request: Request<Empty>,
    ) -> impl Future<Output = Result<Response<Answers<ActionType>>, Status>> + Send;

    /// The status of a method that is not supported. `method` is its name in Flight, for example `DoPut`, or "this method" if
    /// Flight does not have it.
    fn unsupported(&self, method: &str) -> Status {
        Status::unimplemented(format!("{method} is not supported"))
    }
}

/// Serves a [`FlightService`] over gRPC.
pub struct FlightServer<S> {
    service: Arc<S>,
    max_decoding: usize,
}

impl<S> FlightServer<S> {
    /// Serves this service. Requests of more than `max_decoding` bytes are refused. Answers have any length.
    pub fn new(service: S, max_decoding: usize) -> FlightServer<S> {
        FlightServer { service: Arc::new(service), max_decoding }
    }

    fn grpc<Q, A>(&self) -> Grpc<ProstCodec<A, Q>>
    where
        Q: prost::Message + Default + 'static,
        A: prost::Message + Default + 'static,
    {
        let grpc = Grpc::new(ProstCodec::default());
        grpc.max_decoding_message_size(self.max_decoding).max_encoding_message_size(usize::MAX)
    }
}

impl<S> Clone for FlightServer<S> {
    fn clone(&self) -> FlightServer<S> {
        FlightServer { service: self.service.clone(), max_decoding: self.max_decoding }
    }
}

/// The answer of a method that is running.
type Running<T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send>>;

/// A method of a service, as tonic calls it. The type of the request says which.
struct Method<S>(Arc<S>);

impl<S: FlightService> ServerStreamingService<Ticket> for Method<S> {
    type Response = FlightData;
    type ResponseStream = Answers<FlightData>;
    type Future = Running<Answers<FlightData>>;

    fn call(&mut self, request: Request<Ticket>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move { service.do_get(request).await })
    }
}

impl<S: FlightService> ServerStreamingService<Action> for Method<S> {
    type Response = ActionResult;
    type ResponseStream = Answers<ActionResult>;
    type Future = Running<Answers<ActionResult>>;

    fn call(&mut self, request: Request<Action>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move { service.do_action(request).await })
    }
}

impl<S: FlightService> UnaryService<FlightDescriptor> for Method<S> {
    type Response = FlightInfo;
    type Future = Running<FlightInfo>;

    fn call(&mut self, request: Request<FlightDescriptor>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move { service.get_flight_info(request).await })
    }
}

impl<S: FlightService> ServerStreamingService<Criteria> for Method<S> {
    type Response = FlightInfo;
    type ResponseStream = Answers<FlightInfo>;
    type Future = Running<Answers<FlightInfo>>;

    fn call(&mut self, request: Request<Criteria>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move { service.list_flights(request).await })
    }
}

impl<S: FlightService> ServerStreamingService<Empty> for Method<S> {
    type Response = ActionType;
    type ResponseStream = Answers<ActionType>;
    type Future = Running<Answers<ActionType>>;

    fn call(&mut self, request: Request<Empty>) -> Self::Future {
        let service = self.0.clone();
        Box::pin(async move { service.list_actions(request).await })
    }
}

impl<S, B> Service<http::Request<B>> for FlightServer<S>
where
    S: FlightService,
    B: http_body::Body + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>> + Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let (server, method) = (self.clone(), Method(self.service.clone()));
        Box::pin(async move {
            let answer = match request.uri().path() {
                DO_GET => server.grpc::<Ticket, _>().server_streaming(method, request).await,
                DO_ACTION => server.grpc::<Action, _>().server_streaming(method, request).await,
                GET_FLIGHT_INFO => server.grpc::<FlightDescriptor, _>().unary(method, request).await,
                LIST_FLIGHTS => server.grpc::<Criteria, _>().server_streaming(method, request).await,
                LIST_ACTIONS => server.grpc::<Empty, _>().server_streaming(method, request).await,
                other => {
                    let name = OTHER_METHODS.iter().find(|name| other.ends_with(*name));
                    server.service.unsupported(name.unwrap_or(&"this method")).into_http()
                }
            };
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use bytes::{BufMut, Bytes, BytesMut};
    use futures_util::stream;
    use http_body::Frame;
    use prost::Message;
    use tonic::Code;

    use super::*;

    /// A body of one frame.
    struct Once(Option<Bytes>);

    impl http_body::Body for Once {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    /// A service that answers an action with its own body, and nothing else.
    struct Echo;

    impl FlightService for Echo {
        async fn do_get(&self, _: Request<Ticket>) -> Result<Response<Answers<FlightData>>, Status> {
            Err(Status::not_found("no flight"))
        }

        async fn do_action(&self, asked: Request<Action>) -> Result<Response<Answers<ActionResult>>, Status> {
            let body = asked.into_inner().body;
            Ok(Response::new(Box::pin(stream::iter([Ok(ActionResult { body })]))))
        }

        async fn get_flight_info(
            &self,
            _: Request<FlightDescriptor>,
        ) -> Result<Response<FlightInfo>, Status> {
            Err(Status::not_found("no flight"))
        }

        async fn list_flights(&self, _: Request<Criteria>) -> Result<Response<Answers<FlightInfo>>, Status> {
            Ok(Response::new(Box::pin(stream::iter([]))))
        }

        async fn list_actions(&self, _: Request<Empty>) -> Result<Response<Answers<ActionType>>, Status> {
            Ok(Response::new(Box::pin(stream::iter([]))))
        }
    }

    /// The status of an answer without messages, and its text.
    async fn status(path: &str, message: &impl Message) -> (Option<Code>, String) {
        let mut body = BytesMut::new();
        body.put_u8(0);
        body.put_u32(u32::try_from(message.encoded_len()).unwrap());
        message.encode(&mut body).unwrap();
        let request = http::Request::post(path).header("content-type", "application/grpc");
        let request = request.body(Once(Some(body.freeze()))).unwrap();
        let answer = FlightServer::new(Echo, 1000).call(request).await.unwrap();
        assert_eq!((answer.status(), &answer.headers()["content-type"]), (http::StatusCode::OK, &GRPC));
        let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let code = header("grpc-status").map(|code| Code::from_bytes(code.as_bytes()));
        (code, header("grpc-message").unwrap_or_default())
    }

    const GRPC: http::HeaderValue = http::HeaderValue::from_static("application/grpc");

    #[tokio::test]
    async fn methods_are_called_by_their_names() {
        let action = Action { r#type: "echo".into(), body: Bytes::from_static(b"flour") };
        // The status of a stream comes behind its messages.
        assert_eq!(status(DO_ACTION, &action).await.0, None);
        assert_eq!(status(LIST_ACTIONS, &Empty {}).await.0, None);
        assert_eq!(status(LIST_FLIGHTS, &Criteria::default()).await.0, None);
        assert_eq!(status(DO_GET, &Ticket::default()).await.0, Some(Code::NotFound));
        assert_eq!(status(GET_FLIGHT_INFO, &FlightDescriptor::default()).await.0, Some(Code::NotFound));
    }

    #[tokio::test]
    async fn large_requests_and_other_methods_are_refused() {
        let action = Action { r#type: "echo".into(), body: Bytes::from(vec![7; 2000]) };
        assert_eq!(status(DO_ACTION, &action).await.0, Some(Code::OutOfRange));
        let other = |name: &str| format!("/arrow.flight.protocol.FlightService/{name}");
        for name in OTHER_METHODS {
            let (code, text) = status(&other(name), &Empty {}).await;
            assert!(code == Some(Code::Unimplemented) && text.starts_with(name), "{text}");
        }
        let (code, text) = status(&other("DoMill"), &Empty {}).await;
        assert!(code == Some(Code::Unimplemented) && !text.contains("DoMill"), "{text}");
    }
}
