//! The tests that every backend passes, for servers that stand for Azure and for Google. `scripts/emulators` starts them, and names
//! them in the environment. `cargo test` leaves these tests out, and `make test-emulators` runs them.

#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_backend::suite::Fixture;
use gristmill_backend::{Backend, Key};
use gristmill_sources::{Sources, SourcesOptions};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The bucket, and the container, that `scripts/emulators` makes.
const BUCKET: &str = "bucket";

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A folder of the bucket that no other test uses.
fn folder() -> String {
    format!("{}/folder-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set; run the tests with scripts/emulators"))
}

fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// Sends a request, and checks that its answer tells success.
fn send(method: &str, address: &str, target: &str, headers: &str, body: &[u8]) {
    let mut connection = TcpStream::connect(address).unwrap();
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(body).unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 2"), "{method} {target}: {}", String::from_utf8_lossy(&answer));
}

fn opened(scheme: &str, folder: &str) -> Arc<dyn Backend> {
    let sources = Sources::start(SourcesOptions::default()).unwrap();
    sources.open(&format!("{scheme}://{BUCKET}/{folder}").parse().unwrap()).unwrap()
}

struct Azure(String);

impl Azure {
    fn send(&self, key: &Key, method: &str, headers: &str, body: &[u8]) {
        let name = encoded(&format!("{}/{key}", self.0));
        let target = format!("/devstoreaccount1/{BUCKET}/{name}?{}", variable("GRISTMILL_AZURITE_SAS"));
        send(method, &variable("GRISTMILL_AZURITE"), &target, headers, body);
    }
}

impl Fixture for Azure {
    fn backend(&self) -> Arc<dyn Backend> {
        opened("az", &self.0)
    }

    fn put(&self, key: &Key, bytes: &[u8]) {
        self.send(key, "PUT", "x-ms-blob-type: BlockBlob\r\n", bytes);
    }

    fn remove(&self, key: &Key) {
        self.send(key, "DELETE", "", &[]);
    }
}

struct Google(String);

impl Fixture for Google {
    fn backend(&self) -> Arc<dyn Backend> {
        opened("gs", &self.0)
    }

    fn put(&self, key: &Key, bytes: &[u8]) {
        let name = encoded(&format!("{}/{key}", self.0));
        let target = format!("/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}");
        send("POST", &variable("GRISTMILL_FAKE_GCS"), &target, "", bytes);
    }

    fn remove(&self, key: &Key) {
        let target = format!("/storage/v1/b/{BUCKET}/o/{}", encoded(&format!("{}/{key}", self.0)));
        send("DELETE", &variable("GRISTMILL_FAKE_GCS"), &target, "", &[]);
    }
}

gristmill_backend::backend_suite!(azure, Azure(folder()));
gristmill_backend::backend_suite!(google, Google(folder()));
