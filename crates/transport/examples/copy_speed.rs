//! Speed of one connection on this machine: plain TCP, HTTP GET and HTTP PUT, in turn.
//!
//! `cargo run --release -p gristmill-transport --example copy_speed -- [MiB]`

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use gristmill_transport::{Address, Dialer, FRAME, HttpClient, Listener, ReadBody};
use http::Request;
use http_body_util::BodyExt;

const REPEATS: usize = 5;
const GIB: f64 = (1u64 << 30) as f64;

#[derive(Clone)]
struct Source {
    file: Arc<File>,
    length: u64,
}

impl Source {
    fn body(&self) -> ReadBody {
        let file = self.file.clone();
        ReadBody::new(0..self.length, move |at, buffer| file.read_exact_at(buffer, at))
    }
}

async fn download(State(source): State<Source>) -> Body {
    Body::new(source.body())
}

async fn upload(mut body: Body) -> String {
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame.unwrap().into_data().unwrap().len() as u64;
    }
    length.to_string()
}

/// A page-aligned slice of a large vector, as in `ReadBody`.
fn aligned(memory: &mut [u8]) -> &mut [u8] {
    let start = memory.as_ptr().align_offset(4096);
    &mut memory[start..start + FRAME]
}

fn plain(source: &Source) -> f64 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let source = source.clone();
    let length = source.length;
    let sender = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut memory = vec![0; FRAME + 4096];
        let buffer = aligned(&mut memory);
        for at in (0..source.length).step_by(FRAME) {
            source.file.read_exact_at(buffer, at).unwrap();
            stream.write_all(buffer).unwrap();
        }
    });
    let mut stream = TcpStream::connect(address).unwrap();
    let mut memory = vec![0; FRAME + 4096];
    let buffer = aligned(&mut memory);
    let began = Instant::now();
    let mut received = 0;
    while received < length {
        received += stream.read(buffer).unwrap() as u64;
    }
    let seconds = began.elapsed().as_secs_f64();
    sender.join().unwrap();
    length as f64 / GIB / seconds
}

async fn http_get(client: &HttpClient, length: u64) -> f64 {
    let began = Instant::now();
    let mut response = client.send(Request::get("/").body(()).unwrap()).await.unwrap();
    let mut received = 0;
    while let Some(chunk) = response.chunk().await.unwrap() {
        received += chunk.len() as u64;
    }
    assert_eq!(received, length);
    length as f64 / GIB / began.elapsed().as_secs_f64()
}

async fn http_put(client: &HttpClient, source: &Source) -> f64 {
    let began = Instant::now();
    let response = client.send(Request::put("/").body(source.body()).unwrap()).await.unwrap();
    assert_eq!(response.bytes(64).await.unwrap(), source.length.to_string());
    source.length as f64 / GIB / began.elapsed().as_secs_f64()
}

fn median(figures: &mut [f64]) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

#[tokio::main]
async fn main() {
    let mib = std::env::args().nth(1).map_or(1024, |text| text.parse::<u64>().unwrap());
    let mut file = tempfile::tempfile().unwrap();
    for n in 0..mib {
        file.write_all(&vec![n as u8; 1 << 20]).unwrap();
    }
    let source = Source { file: Arc::new(file), length: mib << 20 };

    let listener = Listener::bind(&"127.0.0.1:0".parse::<Address>().unwrap(), None).await.unwrap();
    let address = listener.address();
    let router = Router::new().route("/", get(download).put(upload)).with_state(source.clone());
    tokio::spawn(listener.serve(router, std::future::pending()));
    let client = Dialer::default().http(&address);

    println!("{mib} MiB, GiB/s: plain TCP, GET, PUT");
    let (mut tcp, mut gets, mut puts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let for_plain = source.clone();
        tcp.push(tokio::task::spawn_blocking(move || plain(&for_plain)).await.unwrap());
        gets.push(http_get(&client, source.length).await);
        puts.push(http_put(&client, &source).await);
        println!("{:.2} {:.2} {:.2}", tcp.last().unwrap(), gets.last().unwrap(), puts.last().unwrap());
    }
    let (tcp, gets, puts) = (median(&mut tcp), median(&mut gets), median(&mut puts));
    println!(
        "medians {tcp:.2} {gets:.2} {puts:.2}; GET / TCP {:.2}, PUT / TCP {:.2}",
        gets / tcp,
        puts / tcp
    );
}
