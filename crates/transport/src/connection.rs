//! One accepted connection, from its handshake to its end.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::sync::watch;
use tokio_rustls::{TlsAcceptor, TlsStream};
use tower_service::Service;

use crate::answer_body::AnswerBody;
use crate::listener::BodySilence;
use crate::senders::Senders;
use crate::slot::ConnectionSlot;
use crate::stream::{Socket, Stream};
use crate::upload::Upload;
use crate::{
    CLIENT_STALL, EVICTION_TIME, HANDSHAKE_TIMEOUT, HEADER_TIMEOUT, HTTP1_BUFFER, MAX_H2_FRAME,
    MAX_HEADER_LIST, MAX_STREAMS, Origin, PING_EVERY, PING_TIMEOUT, Peer, ServerTls,
    UPLOAD_CONNECTION_WINDOW, UPLOAD_STREAM_WINDOW,
};

/// The state that all connections of a listener share.
pub(crate) struct ConnectionContext {
    router: Router,
    tls: Option<TlsAcceptor>,
    protocol: Builder<TokioExecutor>,
    body_silence: BodySilence,
    senders: Option<Arc<Senders>>,
    stopped: watch::Receiver<bool>,
}

impl ConnectionContext {
    pub fn new(
        router: Router,
        tls: Option<ServerTls>,
        body_silence: BodySilence,
        senders: Option<Arc<Senders>>,
        stopped: watch::Receiver<bool>,
    ) -> Self {
        let mut protocol = Builder::new(TokioExecutor::new());
        protocol
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(HTTP1_BUFFER)
            .http2()
            .timer(TokioTimer::new())
            .initial_stream_window_size(UPLOAD_STREAM_WINDOW)
            .initial_connection_window_size(UPLOAD_CONNECTION_WINDOW)
            .max_frame_size(MAX_H2_FRAME)
            .max_header_list_size(MAX_HEADER_LIST)
            .max_concurrent_streams(MAX_STREAMS)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT);
        let tls = tls.map(|tls| TlsAcceptor::from(tls.config));
        Self { router, tls, protocol, body_silence, senders, stopped }
    }
}

/// Serves one client. Errors concern only this client, which sees them itself, so they are not returned.
pub(crate) async fn serve_connection(
    context: &ConnectionContext,
    socket: Socket,
    origin: Origin,
    slot: Arc<ConnectionSlot>,
) {
    let mut stopped = context.stopped.clone();
    let socket = tokio::select! {
        socket = secure(context, socket) => socket,
        () = slot.wait_for_eviction() => return,
        _ = stopped.wait_for(|stopped| *stopped) => return,
    };
    let Some(socket) = socket else { return };
    let peer = Peer { origin, encrypted: matches!(socket, Socket::Tls(_)) };
    let service = service_fn(|request: Request<Incoming>| {
        answer(context.router.clone(), request, peer, slot.clone(), context.body_silence)
    });
    let mut stream = Stream::new(socket, Some(CLIENT_STALL)).with_slot(&slot);
    if let Some(senders) = &context.senders {
        stream = stream.with_senders(senders);
    }
    let io = TokioIo::new(stream);
    let mut connection = std::pin::pin!(context.protocol.serve_connection(io, service));

    // hyper's own limit begins only when it knows the protocol, so a silent client would stay.
    let mut first = std::pin::pin!(tokio::time::sleep(HEADER_TIMEOUT));
    let stops = loop {
        tokio::select! {
            _ = &mut connection => return,
            () = slot.wait_for_eviction() => break false,
            _ = stopped.wait_for(|stopped| *stopped) => break true,
            () = &mut first, if !first.is_elapsed() => {
                if slot.is_silent() {
                    return;
                }
            }
        }
    };
    // Requests without an owner are not finished.
    if !stops && !slot.is_owned() {
        return;
    }
    connection.as_mut().graceful_shutdown();
    if stops {
        let _ = connection.await;
        return;
    }
    // A client may ignore the graceful shutdown.
    while tokio::time::timeout(EVICTION_TIME, &mut connection).await.is_err() {
        if !slot.is_busy() {
            return;
        }
    }
}

async fn secure(context: &ConnectionContext, socket: Socket) -> Option<Socket> {
    match (socket, &context.tls) {
        (Socket::Tcp(stream), Some(tls)) => {
            let stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await.ok()?.ok()?;
            Some(Socket::Tls(Box::new(TlsStream::Server(stream))))
        }
        (socket, _) => Some(socket),
    }
}

fn answer(
    mut router: Router,
    request: Request<Incoming>,
    peer: Peer,
    slot: Arc<ConnectionSlot>,
    body_silence: BodySilence,
) -> impl Future<Output = Result<axum::response::Response, Infallible>> {
    let in_flight = slot.begin_request();
    let http2 = request.version() == Version::HTTP_2;
    let expects = request.headers().contains_key(http::header::EXPECT);
    let bound = body_silence(request.method(), request.uri().path());
    // An HTTP/2 stream with unread bytes is reset, and its connection continues.
    let mut request = request.map(|body| Body::new(Upload::new(body, bound, !http2 && !expects)));
    request.extensions_mut().insert(peer);
    request.extensions_mut().insert(slot);
    let answered = Service::<Request<Body>>::call(&mut router, request);
    async move {
        let response = answered.await?;
        Ok(response.map(|body| Body::new(AnswerBody { body, _in_flight: in_flight })))
    }
}
