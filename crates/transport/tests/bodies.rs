//! Bodies arrive complete or fail, and every silence has a bound.

#![allow(clippy::unwrap_used)]

mod support;

use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::routing::get;
use gristmill_transport::{Address, Dialer, DialerOptions, FRAME, ReadBody, RequestBody, TransportError};
use http::Request;
use proptest::prelude::*;
use support::{any_port, plain, router};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn fill(at: u64, buffer: &mut [u8]) -> io::Result<()> {
    for (to, at) in buffer.iter_mut().zip(at..) {
        *to = (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
    }
    Ok(())
}

fn expected(start: u64, end: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(end - start).unwrap()];
    fill(start, &mut bytes).unwrap();
    bytes
}

fn ranges() -> Router {
    router().route(
        "/range/{start}/{end}",
        get(|Path((start, end)): Path<(u64, u64)>| async move { Body::new(ReadBody::new(start..end, fill)) }),
    )
}

const SHORT_STALL: Duration = Duration::from_millis(200);

fn short_stall() -> Dialer {
    let mut options = DialerOptions::default();
    options.stall = SHORT_STALL;
    Dialer::new(options)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_range_is_downloaded_and_uploaded(start in 0u64..1 << 40, length in 0u64..3 * FRAME as u64 + 99) {
        let end = start + length;
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let server = plain(ranges()).await;
            let client = Dialer::default().http(&server.address);
            let request = Request::get(format!("/range/{start}/{end}")).body(()).unwrap();
            let response = client.send(request).await.unwrap();
            assert_eq!(response.remaining(), Some(length));
            assert!(response.bytes(4 * FRAME).await.unwrap() == expected(start, end));

            let request = Request::put("/echo").body(ReadBody::new(start..end, fill)).unwrap();
            let response = client.send(request).await.unwrap();
            assert!(response.bytes(4 * FRAME).await.unwrap() == expected(start, end));
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_larger_than_allowed_is_refused() {
    let server = plain(ranges()).await;
    let client = Dialer::default().http(&server.address);
    let whole = client.send(Request::get("/range/0/100").body(()).unwrap()).await.unwrap();
    assert_eq!(whole.bytes(100).await.unwrap(), expected(0, 100));
    let error = client.send(Request::get("/range/0/100").body(()).unwrap()).await.unwrap();
    assert!(matches!(error.bytes(99).await, Err(TransportError::TooLarge { limit: 99, .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_read_on_the_server_is_an_error_at_the_client() {
    let broken = get(|| async {
        Body::new(ReadBody::new(0..4 * FRAME as u64, |at, buffer| match at {
            0 => fill(at, buffer),
            _ => Err(io::Error::other("bad sector")),
        }))
    });
    let server = plain(Router::new().route("/", broken)).await;
    let client = Dialer::default().http(&server.address);
    let mut response = client.send(Request::get("/").body(()).unwrap()).await.unwrap();
    let mut got = Vec::new();
    let error = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => got.extend_from_slice(&chunk),
            Ok(None) => panic!("a short body looked complete"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, TransportError::Closed { .. }), "{error}");
    assert!(expected(0, FRAME as u64).starts_with(&got));
    assert!(response.chunk().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_read_at_the_client_is_an_error_there_and_an_incomplete_upload() {
    let (sender, mut results) = tokio::sync::mpsc::unbounded_channel();
    let router = Router::new().route(
        "/",
        axum::routing::put(move |body: Body| {
            let sender = sender.clone();
            async move {
                let complete = axum::body::to_bytes(body, 8 * FRAME).await.is_ok();
                sender.send(complete).unwrap();
            }
        }),
    );
    let server = plain(router).await;
    let body = ReadBody::new(0..4 * FRAME as u64, |at, buffer| match at {
        0 => fill(at, buffer),
        _ => Err(io::Error::other("bad sector")),
    });
    let client = Dialer::default().http(&server.address);
    let error = client.send(Request::put("/").body(body).unwrap()).await.unwrap_err();
    assert!(matches!(error, TransportError::Request { .. }), "{error}");
    assert!(support::chain(&error).contains("bad sector"), "{}", support::chain(&error));
    assert_eq!(results.recv().await, Some(false));
}

async fn raw_listener() -> (TcpListener, Address) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let Address::Tcp { host, .. } = any_port() else { unreachable!() };
    (listener, Address::Tcp { host, port })
}

fn is_stalled(error: &TransportError, expected: &Address) -> bool {
    matches!(error, TransportError::Stalled { address, .. } if address == expected)
}

#[tokio::test]
async fn a_node_that_never_answers_is_stalled() {
    // The kernel accepts the connection, and the process does nothing.
    let (_listener, address) = raw_listener().await;
    let error = short_stall().http(&address).send(Request::get("/").body(()).unwrap()).await.unwrap_err();
    assert!(is_stalled(&error, &address), "{error}");
}

#[tokio::test]
async fn a_node_that_takes_no_more_of_an_upload_is_stalled() {
    let (_listener, address) = raw_listener().await;
    let body = RequestBody::stream(ReadBody::new(0..1 << 40, |_, _| Ok(())));
    let error = short_stall()
        .http(&address)
        .send_within(Request::put("/").body(body).unwrap(), Duration::from_secs(3600))
        .await
        .unwrap_err();
    assert!(is_stalled(&error, &address), "{error}");
}

/// Answers one request with these bytes, then waits until the client closes the connection.
async fn answer_once(listener: TcpListener, answer: &'static [u8]) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut buffer = [0; 1024];
    let _ = stream.read(&mut buffer).await.unwrap();
    stream.write_all(answer).await.unwrap();
    while stream.read(&mut buffer).await.is_ok_and(|n| n > 0) {}
}

#[tokio::test]
async fn a_node_that_becomes_silent_within_an_answer_is_stalled() {
    let (listener, address) = raw_listener().await;
    tokio::spawn(answer_once(listener, b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"));
    let mut response = short_stall().http(&address).send(Request::get("/").body(()).unwrap()).await.unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "abc");
    let error = response.chunk().await.unwrap_err();
    assert!(is_stalled(&error, &address), "{error}");
    assert!(response.chunk().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_not_stalled_while_the_source_is_slow() {
    let whole = |body: Body| async { axum::body::to_bytes(body, 10).await.unwrap() };
    let server = plain(Router::new().route("/", axum::routing::put(whole))).await;
    // The source, not the node, is silent for longer than `stall`.
    let body = ReadBody::new(7..9, |at, buffer| {
        std::thread::sleep(4 * SHORT_STALL);
        fill(at, buffer)
    });
    let response = short_stall().http(&server.address).send(Request::put("/").body(body).unwrap()).await;
    assert_eq!(response.unwrap().bytes(10).await.unwrap(), expected(7, 9));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_refused_upload_arrives() {
    let full = axum::routing::put(|| async { (http::StatusCode::INSUFFICIENT_STORAGE, "full") });
    let server = plain(Router::new().route("/", full)).await;
    let client = Dialer::default().http(&server.address);
    for _ in 0..20 {
        let body = ReadBody::new(0..50_000_000, fill);
        let response = client.send(Request::put("/").body(body).unwrap()).await.unwrap();
        assert_eq!(response.status(), 507);
        assert_eq!(response.bytes(10).await.unwrap(), "full");
    }
}
