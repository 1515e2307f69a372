//! HTTP/1.1 and gRPC on one port: over TCP, TLS and Unix sockets, and the connections that are refused.

#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use gristmill_transport::{
    Address, ClientTls, Dialer, DialerOptions, Listener, ServerTls, TransportError, make_test_certificates,
};
use http::Request;
use support::{any_port, call, chain, plain, router, serve};

async fn speaks_both(dialer: &Dialer, address: &Address, peer: &str) {
    for _ in 0..2 {
        let response = dialer.http(address).send(Request::get("/peer").body(()).unwrap()).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.bytes(100).await.unwrap(), format!("HTTP/1.1 {peer}"));
        assert_eq!(call(dialer.channel(address).unwrap(), "corn").await.unwrap(), format!("{peer} corn"));
    }
    let unknown = dialer.http(address).send(Request::get("/none").body(()).unwrap()).await.unwrap();
    assert_eq!(unknown.status(), 404);
}

fn trusting(ca: &std::path::Path) -> Dialer {
    let mut options = DialerOptions::default();
    options.tls = Some(ClientTls::from_ca(ca).unwrap());
    Dialer::new(options)
}

#[tokio::test(flavor = "multi_thread")]
async fn both_protocols_over_tcp() {
    let server = plain(router()).await;
    speaks_both(&Dialer::default(), &server.address, "127.0.0.1 plain").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_protocols_over_tls_by_name_and_by_address() {
    let dir = tempfile::tempdir().unwrap();
    let files = make_test_certificates(dir.path(), &[]).unwrap();
    let tls = ServerTls::load(&files.cert, &files.key).unwrap();
    let server = serve(Listener::bind(&any_port(), Some(tls)).await.unwrap(), router());
    let dialer = trusting(&files.ca);
    speaks_both(&dialer, &server.address, "127.0.0.1 tls").await;
    let Address::Tcp { port, .. } = server.address else { unreachable!() };
    let named = Address::Tcp { host: "localhost".to_owned(), port };
    speaks_both(&dialer, &named, "127.0.0.1 tls").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_protocols_over_a_unix_socket_that_identifies_the_user() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.sock");
    let uid = std::fs::metadata(dir.path()).unwrap().uid();
    let server = serve(Listener::bind(&Address::Unix(path.clone()), None).await.unwrap(), router());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o666);
    speaks_both(&Dialer::default(), &server.address, &format!("uid {uid} plain")).await;
    // A certificate authority does not apply to Unix sockets.
    let files = make_test_certificates(&dir.path().join("tls"), &[]).unwrap();
    speaks_both(&trusting(&files.ca), &server.address, &format!("uid {uid} plain")).await;
    server.stop.send(()).unwrap();
    server.done.await.unwrap().unwrap();
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_file_in_use_is_refused_and_a_stale_one_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.sock");
    let address = Address::Unix(path.clone());
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let first = Listener::bind(&address, None).await.unwrap();
    let error = Listener::bind(&address, None).await.unwrap_err();
    assert!(matches!(error, TransportError::InUse { .. }), "{error}");
    // The refused listener has not removed the file.
    assert!(path.exists());
    drop(first);
    assert!(!path.exists());
    std::fs::write(&path, "precious").unwrap();
    let error = Listener::bind(&address, None).await.unwrap_err();
    assert!(error.to_string().contains("not a socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[tokio::test]
async fn a_port_in_use_is_refused() {
    let first = Listener::bind(&any_port(), None).await.unwrap();
    let error = Listener::bind(&first.address(), None).await.unwrap_err();
    assert!(matches!(error, TransportError::InUse { .. }), "{error}");
}

#[tokio::test]
async fn other_machines_need_tls() {
    for text in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let error = Listener::bind(&text.parse().unwrap(), None).await.unwrap_err();
        assert!(matches!(error, TransportError::NotLocalListen { .. }), "{error}");
    }
    // This address is not routed. If it were dialled, there would be another error, after a wait.
    let remote: Address = "192.0.2.1:7440".parse().unwrap();
    let dialer = Dialer::default();
    let error = dialer.http(&remote).send(Request::get("/").body(()).unwrap()).await.unwrap_err();
    assert!(matches!(error, TransportError::NotLocal { .. }), "{error}");
    assert!(error.to_string().contains("GRISTMILL_CA"), "{error}");
    assert!(matches!(dialer.channel(&remote), Err(TransportError::NotLocal { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_authority_or_for_another_name_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ours = make_test_certificates(&dir.path().join("ours"), &["elsewhere.example".to_owned()]).unwrap();
    let theirs = make_test_certificates(&dir.path().join("theirs"), &[]).unwrap();
    let tls = ServerTls::load(&ours.cert, &ours.key).unwrap();
    let server = serve(Listener::bind(&any_port(), Some(tls)).await.unwrap(), router());
    for ca in [&ours.ca, &theirs.ca] {
        let dialer = trusting(ca);
        let request = Request::get("/peer").body(()).unwrap();
        let error = dialer.http(&server.address).send(request).await.unwrap_err();
        assert!(matches!(error, TransportError::Tls { .. }), "{error}");
        let status = call(dialer.channel(&server.address).unwrap(), "corn").await.unwrap_err();
        assert!(chain(&status).contains("no TLS with 127.0.0.1"), "{}", chain(&status));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_and_plain_text_do_not_connect() {
    let dir = tempfile::tempdir().unwrap();
    let files = make_test_certificates(dir.path(), &[]).unwrap();
    let plain_server = plain(router()).await;
    let request = || Request::get("/peer").body(()).unwrap();
    let error = trusting(&files.ca).http(&plain_server.address).send(request()).await.unwrap_err();
    assert!(matches!(error, TransportError::Tls { .. }), "{error}");
    let tls = ServerTls::load(&files.cert, &files.key).unwrap();
    let tls_server = serve(Listener::bind(&any_port(), Some(tls)).await.unwrap(), router());
    let error = Dialer::default().http(&tls_server.address).send(request()).await.unwrap_err();
    assert!(matches!(error, TransportError::Closed { .. }), "{error}");
}

#[tokio::test]
async fn the_error_names_an_address_without_a_listener() {
    let listener = Listener::bind(&any_port(), None).await.unwrap();
    let address = listener.address();
    drop(listener);
    let dialer = Dialer::default();
    let error = dialer.http(&address).send(Request::get("/").body(()).unwrap()).await.unwrap_err();
    assert!(matches!(error, TransportError::Refused { .. }), "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    let status = call(dialer.channel(&address).unwrap(), "corn").await.unwrap_err();
    assert!(chain(&status).contains(&error.to_string()), "{}", chain(&status));
}
