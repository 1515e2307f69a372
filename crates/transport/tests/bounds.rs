//! Shutdown of a listener, and bounds on its clients.

#![allow(clippy::unwrap_used)]

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::{get, put};
use gristmill_transport::{
    Address, CLIENT_STALL, ConnectionSlot, Dialer, DialerOptions, FRAME, Listener, Probe, ReadBody,
    SILENT_WHEN_FULL, ServerTls, TransportError, make_test_certificates,
};
use http::Request;
use support::{any_port, plain, router, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc};

/// Control of a handler that reports its start and then waits for a permit.
struct Gate {
    entered: mpsc::UnboundedReceiver<()>,
    permits: Arc<Semaphore>,
    inside: Arc<AtomicUsize>,
    max_inside: Arc<AtomicUsize>,
}

fn gate() -> (Router, Gate) {
    let (enter, entered) = mpsc::unbounded_channel();
    let permits = Arc::new(Semaphore::new(0));
    let (inside, max_inside) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let gate = Gate { entered, permits, inside, max_inside };
    let (permits, inside, max_inside) = (gate.permits.clone(), gate.inside.clone(), gate.max_inside.clone());
    let handler = get(move |slot: axum::Extension<Arc<ConnectionSlot>>| async move {
        slot.set_owner(|| Ok::<_, ()>(())).unwrap();
        max_inside.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        enter.send(()).unwrap();
        permits.acquire().await.unwrap().forget();
        inside.fetch_sub(1, Ordering::SeqCst);
        "done"
    });
    (Router::new().route("/", handler), gate)
}

/// Sends one request on a new connection, which closes with the answer.
async fn ask(address: Address) -> gristmill_transport::Result<bytes::Bytes> {
    let request = Request::get("/").body(()).unwrap();
    Dialer::default().http(&address).send(request).await?.bytes(10).await
}

async fn socket(address: &Address) -> std::io::Result<TcpStream> {
    TcpStream::connect(address.to_string()).await
}

#[tokio::test]
async fn many_clients_may_wait_to_be_accepted() {
    // The queue of a socket of the standard library has 128 places. A client beyond them would not be connected here.
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let listener = Listener::from_socket("127.0.0.1", socket, None).unwrap();
    let mut clients = Vec::new();
    for _ in 0..500 {
        let client = tokio::time::timeout(Duration::from_secs(30), TcpStream::connect(address)).await;
        clients.push(client.unwrap().unwrap());
    }
    drop(listener);
}

// There is one thread, so the tasks of both connections have seen the stop when the client sees that the idle one
// closed.
#[tokio::test]
async fn requests_in_flight_finish_and_new_connections_are_refused() {
    let (router, mut gate) = gate();
    let server = plain(router).await;
    let request = tokio::spawn(ask(server.address.clone()));
    gate.entered.recv().await.unwrap();
    let mut idle = socket(&server.address).await.unwrap();
    server.stop.send(()).unwrap();
    let _ = idle.read(&mut [0; 1]).await;
    assert!(socket(&server.address).await.is_err());
    gate.permits.add_permits(1);
    assert_eq!(request.await.unwrap().unwrap(), "done");
    server.done.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_exceeds_the_grace_is_dropped() {
    let (router, mut gate) = gate();
    let listener = Listener::bind(&any_port(), None).await.unwrap();
    let server = serve(listener.shutdown_grace(Duration::from_millis(20)), router);
    let request = tokio::spawn(ask(server.address.clone()));
    gate.entered.recv().await.unwrap();
    server.stop.send(()).unwrap();
    server.done.await.unwrap().unwrap();
    let error = request.await.unwrap().unwrap_err();
    assert!(matches!(error, TransportError::Closed { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_beyond_the_bound_wait_for_a_slot() {
    let (router, mut gate) = gate();
    let listener = Listener::bind(&any_port(), None).await.unwrap().max_connections(2);
    let server = serve(listener, router);
    let requests: Vec<_> = (0..6).map(|_| tokio::spawn(ask(server.address.clone()))).collect();
    for _ in 0..6 {
        gate.entered.recv().await.unwrap();
        gate.permits.add_permits(1);
    }
    for request in requests {
        assert_eq!(request.await.unwrap().unwrap(), "done");
    }
    assert!(gate.max_inside.load(Ordering::SeqCst) <= 2);
}

// In the tests below, time is paused. It jumps to the next deadline when nothing else can happen.

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_disconnected() {
    let server = plain(router()).await;
    let mut silent = socket(&server.address).await.unwrap();
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0);
    // The first text can begin both protocols, and the second is a part of a head.
    for begun in ["PRI", "GET / HTTP/1.1\r\nhost: a\r\n"] {
        let mut silent = socket(&server.address).await.unwrap();
        silent.write_all(begun.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let _ = silent.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 200"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_without_a_handshake_is_disconnected() {
    let dir = tempfile::tempdir().unwrap();
    let files = make_test_certificates(dir.path(), &[]).unwrap();
    let tls = ServerTls::load(&files.cert, &files.key).unwrap();
    let server = serve(Listener::bind(&any_port(), Some(tls)).await.unwrap(), router());
    let mut silent = socket(&server.address).await.unwrap();
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_silent_client_is_evicted_if_all_slots_are_taken() {
    let listener = Listener::bind(&any_port(), None).await.unwrap().max_connections(2);
    let server = serve(listener, router());
    let mut oldest = socket(&server.address).await.unwrap();
    let mut other = socket(&server.address).await.unwrap();
    // The beginning of a request does not count as a request.
    for silent in [&mut oldest, &mut other] {
        silent.write_all(b"GET /peer HTTP/1.1\r\n").await.unwrap();
    }
    let request = Request::get("/peer").body(()).unwrap();
    let response = Dialer::default().http(&server.address).send(request).await.unwrap();
    assert_eq!(response.status(), 200);
    let mut answer = Vec::new();
    let _ = oldest.read_to_end(&mut answer).await;
    assert!(answer.is_empty());
    // One slot was enough, so the other client continues.
    other.write_all(b"host: a\r\nconnection: close\r\n\r\n").await.unwrap();
    other.read_to_end(&mut answer).await.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_with_a_request_keeps_its_slot_while_others_wait() {
    let (router, mut gate) = gate();
    let listener = Listener::bind(&any_port(), None).await.unwrap().max_connections(1);
    let server = serve(listener, router);
    let first = tokio::spawn(ask(server.address.clone()));
    gate.entered.recv().await.unwrap();
    let second = tokio::spawn(ask(server.address.clone()));
    tokio::time::sleep(2 * SILENT_WHEN_FULL).await;
    gate.permits.add_permits(2);
    assert_eq!(first.await.unwrap().unwrap(), "done");
    assert_eq!(second.await.unwrap().unwrap(), "done");
    assert_eq!(gate.max_inside.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_stops_fails_at_the_handler() {
    let (sender, mut results) = mpsc::unbounded_channel();
    let handler = put(move |body: Body| async move {
        sender.send(axum::body::to_bytes(body, 100).await.map_err(|error| support::chain(&error))).unwrap();
    });
    let server = plain(Router::new().route("/", handler)).await;
    let mut client = socket(&server.address).await.unwrap();
    client.write_all(b"PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc").await.unwrap();
    let error = results.recv().await.unwrap().unwrap_err();
    let bound = format!("sent nothing for {}s", CLIENT_STALL.as_secs());
    assert!(error.contains(&bound), "{error}");
}

#[tokio::test(start_paused = true)]
async fn an_upload_may_be_silent_for_as_long_as_the_listener_allows() {
    let server = serve(
        Listener::bind(&any_port(), None).await.unwrap().body_silence(|_, _| 10 * CLIENT_STALL),
        router(),
    );
    let mut client = socket(&server.address).await.unwrap();
    let head = "PUT /echo HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 6\r\n\r\nabc";
    client.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(9 * CLIENT_STALL).await;
    client.write_all(b"def").await.unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert!(answer.ends_with(b"abcdef"), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_is_disconnected() {
    let (sender, mut dropped) = mpsc::unbounded_channel::<()>();
    let sender = Arc::new(Mutex::new(Some(sender)));
    let endless = get(move || async move {
        // Only the body has the sender, and only the connection has the body.
        let sender = sender.lock().unwrap().take();
        Body::new(ReadBody::new(0..1 << 50, move |at, _| {
            assert!(sender.is_some() && at < 4096 * FRAME as u64, "a socket buffers less");
            Ok(())
        }))
    });
    let server = plain(Router::new().route("/", endless)).await;
    let mut client = socket(&server.address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert_eq!(dropped.recv().await, None);
    drop(client);
}

/// The node first works on the upload for a long time, and then answers no probes.
#[tokio::test]
async fn an_upload_waits_only_for_a_node_that_is_alive() {
    let stall = Duration::from_millis(100);
    let (enter, mut entered) = mpsc::unbounded_channel();
    let slow = Arc::new(Semaphore::new(0));
    let permits = slow.clone();
    let alive = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
    let health = alive.clone();
    let probed = Arc::new(AtomicUsize::new(0));
    let probes = probed.clone();
    let handler = put(move || async move {
        enter.send(()).unwrap();
        permits.acquire().await.unwrap().forget();
        "written"
    });
    let health = get(move || async move {
        probes.fetch_add(1, Ordering::SeqCst);
        drop(health.acquire().await.unwrap());
        "ok"
    });
    let router = Router::new().route("/object", handler).route("/health", health);
    let server = plain(router).await;
    let mut options = DialerOptions::default();
    options.stall = stall;
    let client = Dialer::new(options).http(&server.address);
    let upload = || Request::put("/object").body(vec![1u8; 1 << 20]).unwrap();
    let probe = |max_wait| Probe { path: "/health", max_wait };

    let (sent, ()) = tokio::join!(client.send_probing(upload(), probe(Duration::from_secs(600))), async {
        entered.recv().await.unwrap();
        // The node is silent until it was probed several times.
        while probed.load(Ordering::SeqCst) < 3 {
            tokio::time::sleep(stall / 10).await;
        }
        slow.add_permits(1);
    });
    assert_eq!(sent.unwrap().bytes(10).await.unwrap(), "written");

    // The wait for a node that is alive is bounded.
    let error = client.send_probing(upload(), probe(3 * stall)).await.unwrap_err();
    assert!(matches!(error, TransportError::Stalled { .. }), "{error}");
    alive.forget_permits(Semaphore::MAX_PERMITS);
    let error = client.send_probing(upload(), probe(Duration::from_secs(600))).await.unwrap_err();
    assert!(matches!(error, TransportError::Stalled { .. }), "{error}");
}
