//! A router that answers HTTP and gRPC, and servers for it.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::{any, get};
use bytes::{Buf, BufMut, Bytes};
use gristmill_transport::{Address, Listener, Origin, Peer, Result};
use http::uri::PathAndQuery;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Status, client, server};

/// A codec that sends bytes unchanged, in place of protocol buffers.
#[derive(Default, Clone)]
pub struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;
    fn encoder(&mut self) -> Raw {
        Raw
    }
    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> std::result::Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> std::result::Result<Option<Bytes>, Status> {
        let length = from.remaining();
        Ok(Some(from.copy_to_bytes(length)))
    }
}

/// Answers with the peer and the message.
struct Echo;

impl server::UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<tonic::Response<Bytes>, Status>> + Send>>;
    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let peer = request.extensions().get::<Peer>().map(describe).unwrap_or_default();
        let text = format!("{peer} {}", String::from_utf8_lossy(request.get_ref()));
        Box::pin(async { Ok(tonic::Response::new(Bytes::from(text))) })
    }
}

/// A service as tonic generates it: it is routed by prefix, and needs HTTP/2.
#[derive(Clone)]
struct EchoService;

impl tower_service::Service<Request> for EchoService {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = std::result::Result<Self::Response, Infallible>> + Send>>;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, request: Request) -> Self::Future {
        Box::pin(async { Ok(server::Grpc::new(Raw).unary(Echo, request).await) })
    }
}

pub fn describe(peer: &Peer) -> String {
    let origin = match peer.origin {
        Origin::Unix { uid, .. } => format!("uid {uid}"),
        Origin::Tcp(ip) => ip.to_string(),
    };
    format!("{origin} {}", if peer.encrypted { "tls" } else { "plain" })
}

pub fn router() -> Router {
    let peer = get(|request: Request| async move {
        let peer = request.extensions().get::<Peer>().copied();
        format!("{:?} {}", request.version(), peer.as_ref().map(describe).unwrap_or_default())
    });
    Router::new()
        .route("/peer", peer)
        .route("/echo", any(|body: Body| async { body }))
        .route_service("/test.Echo/{*method}", EchoService)
}

/// Makes one unary call.
pub async fn call(channel: Channel, message: &'static str) -> std::result::Result<String, Status> {
    let mut grpc = client::Grpc::new(channel);
    grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
    let path = PathAndQuery::from_static("/test.Echo/Say");
    let answer = grpc.unary(tonic::Request::new(Bytes::from(message)), path, Raw).await?;
    Ok(String::from_utf8(answer.into_inner().to_vec()).unwrap())
}

pub struct Server {
    pub address: Address,
    pub stop: oneshot::Sender<()>,
    pub done: JoinHandle<Result<()>>,
}

pub fn serve(listener: Listener, router: Router) -> Server {
    let address = listener.address();
    let (stop, stopped) = oneshot::channel();
    let done = tokio::spawn(listener.serve(router, async {
        let _ = stopped.await;
    }));
    Server { address, stop, done }
}

pub async fn plain(router: Router) -> Server {
    serve(Listener::bind(&any_port(), None).await.unwrap(), router)
}

pub fn any_port() -> Address {
    "127.0.0.1:0".parse().unwrap()
}

/// All messages in the chain of an error.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text = format!("{text}: {error}");
        next = error.source();
    }
    text
}
