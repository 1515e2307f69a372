//! Connections are kept, and used again only if that is safe.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use gristmill_transport::{Address, Dialer, ReadBody, RequestBody, TransportError};
use http::{Method, Request};
use support::{call, chain, plain, router, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A server that counts its connections. Each answers this number of requests, reads one more, and closes without an
/// answer.
async fn counting_server(answers: usize) -> (Address, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                for _ in 0..answers {
                    if !read_head(&mut stream).await {
                        return;
                    }
                    stream.write_all(ANSWER).await.unwrap();
                }
                read_head(&mut stream).await;
            });
        }
    });
    (Address::Tcp { host: "127.0.0.1".to_owned(), port }, count)
}

async fn read_head(stream: &mut TcpStream) -> bool {
    let mut head = Vec::new();
    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
        if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
            return false;
        }
    }
    true
}

fn request(method: Method, body: impl Into<RequestBody>) -> Request<RequestBody> {
    Request::builder().method(method).uri("/").body(body.into()).unwrap()
}

async fn ask(dialer: &Dialer, address: &Address) -> Bytes {
    dialer.http(address).send(request(Method::GET, ())).await.unwrap().bytes(10).await.unwrap()
}

#[tokio::test]
async fn a_connection_is_used_again_if_the_answer_was_read_to_its_end() {
    let (address, count) = counting_server(100).await;
    let dialer = Dialer::default();
    for _ in 0..20 {
        assert_eq!(ask(&dialer, &address).await, "ok");
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    // The bytes of an unread answer stay in its connection, so it cannot be used again.
    drop(dialer.http(&address).send(request(Method::GET, ())).await.unwrap());
    assert_eq!(ask(&dialer, &address).await, "ok");
    assert_eq!(count.load(Ordering::SeqCst), 2);
    // Two requests at once need two connections.
    let one = dialer.http(&address).send(request(Method::GET, ())).await.unwrap();
    let two = dialer.http(&address).send(request(Method::GET, ())).await.unwrap();
    one.bytes(10).await.unwrap();
    two.bytes(10).await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_request_on_a_closed_connection_is_sent_once_more() {
    let (address, count) = counting_server(1).await;
    let dialer = Dialer::default();
    for _ in 0..5 {
        assert_eq!(ask(&dialer, &address).await, "ok");
    }
    assert_eq!(count.load(Ordering::SeqCst), 5);
    let put = dialer.http(&address).send(request(Method::PUT, Bytes::from_static(b"flour"))).await;
    assert_eq!(put.unwrap().bytes(10).await.unwrap(), "ok");
    assert_eq!(count.load(Ordering::SeqCst), 6);
}

#[tokio::test]
async fn a_request_that_is_not_repeatable_is_sent_once() {
    for (method, body) in [
        (Method::POST, RequestBody::from(Bytes::from_static(b"flour"))),
        (Method::PUT, RequestBody::from(ReadBody::new(0..5, |_, _| Ok(())))),
    ] {
        let (address, count) = counting_server(1).await;
        let dialer = Dialer::default();
        assert_eq!(ask(&dialer, &address).await, "ok");
        let error = dialer.http(&address).send(request(method, body)).await.unwrap_err();
        assert!(matches!(error, TransportError::Closed { .. }), "{error}");
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_request_on_a_new_connection_that_closes_is_not_repeated() {
    let (address, count) = counting_server(0).await;
    let error = Dialer::default().http(&address).send(request(Method::GET, ())).await.unwrap_err();
    assert!(matches!(error, TransportError::Closed { .. }), "{error}");
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_connect_again_to_a_restarted_node() {
    let server = plain(router()).await;
    let address = server.address.clone();
    let dialer = Dialer::default();
    let get = || Request::get("/peer").body(()).unwrap();
    let channel = dialer.channel(&address).unwrap();
    dialer.http(&address).send(get()).await.unwrap().bytes(100).await.unwrap();
    call(channel.clone(), "corn").await.unwrap();
    server.stop.send(()).unwrap();
    server.done.await.unwrap().unwrap();

    let error = dialer.http(&address).send(get()).await.unwrap_err();
    assert!(matches!(error, TransportError::Refused { .. }), "{error}");
    let status = call(channel.clone(), "corn").await.unwrap_err();
    assert!(chain(&status).contains("check that the node runs"), "{}", chain(&status));

    let listener = gristmill_transport::Listener::bind(&address, None).await.unwrap();
    let _server = serve(listener, router());
    assert_eq!(dialer.http(&address).send(get()).await.unwrap().status(), 200);
    assert_eq!(call(channel, "corn").await.unwrap(), "127.0.0.1 plain corn");
}
