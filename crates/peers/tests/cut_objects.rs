//! Objects whose bodies are cut in the middle arrive in full, or the failure is reported.
#![allow(clippy::unwrap_used)]

use gristmill_peers::{Peers, PeersOptions, TRIES_WITHOUT_PROGRESS};
use gristmill_runtime::{ErrorKind, RunError};
use gristmill_transport::Dialer;
use gristmill_wire::{FileMap, GRANT_HEADER, TargetPlace};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Handle;

const LENGTH: usize = 100_000;

fn bytes() -> Vec<u8> {
    (0..LENGTH as u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// The reaction of a node to a request.
#[derive(Clone, Copy)]
enum Reaction {
    /// Sends this number of the bytes that it was asked for, and cuts the connection.
    Sends(usize),
    /// Answers with the whole object for any range.
    IgnoresRange,
    /// Answers that the object is at another version.
    Refuses,
}

/// Reads an object from a node with these reactions. The node repeats the last one. Returns the bytes, and the first byte of
/// each request.
async fn read(reactions: &[Reaction]) -> (Result<Vec<u8>, RunError>, Vec<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let place = TargetPlace { number: 3, address, version: 7 };
    let (id, path) = ("0".repeat(32), "/file".to_owned());
    let file = FileMap {
        id,
        path,
        length: LENGTH as u64,
        unit: 1 << 20,
        first: 0,
        record: None,
        segments: false,
        attached: None,
        targets: vec![place],
    };
    let mut asked = Vec::new();
    let serve = async {
        for n in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            assert!(head.contains(&format!("{GRANT_HEADER}: the grant")), "{head}");
            let line = head.lines().find_map(|line| line.strip_prefix("range: bytes="));
            let from = line.map_or(0, |range| range.strip_suffix('-').unwrap().parse().unwrap());
            asked.push(from);
            let all = bytes();
            let body = match reactions[n.min(reactions.len() - 1)] {
                Reaction::Sends(some) => {
                    let (rest, last) = (LENGTH - from, LENGTH - 1);
                    let answer = match from {
                        0 => format!("HTTP/1.1 200 OK\r\ncontent-length: {rest}\r\n\r\n"),
                        _ => format!(
                            "HTTP/1.1 206 Partial Content\r\ncontent-length: {rest}\r\n\
                             content-range: bytes {from}-{last}/{LENGTH}\r\n\r\n"
                        ),
                    };
                    [answer.as_bytes(), &all[from..(from + some).min(LENGTH)]].concat()
                }
                Reaction::IgnoresRange => {
                    [format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n").as_bytes(), &all].concat()
                }
                Reaction::Refuses => {
                    let text = r#"{"kind":"stale","message":"it was replaced; open it again"}"#;
                    format!("HTTP/1.1 409 Conflict\r\ncontent-length: {}\r\n\r\n{text}", text.len()).into()
                }
            };
            stream.write_all(&body).await.unwrap();
        }
    };
    let peers = Peers::new(Dialer::default(), Handle::current(), PeersOptions::default()).unwrap();
    let read = async {
        let mut object = peers.object(&file, 0, "the grant").await?;
        let mut got = Vec::new();
        while let Some(chunk) = object.chunk().await? {
            got.extend_from_slice(&chunk);
        }
        object.check_length(got.len() as u64, LENGTH as u64)?;
        Ok(got)
    };
    let got = tokio::select! {
        got = read => got,
        () = serve => unreachable!("it serves for ever"),
    };
    (got, asked)
}

#[tokio::test]
async fn the_rest_is_asked_for_from_where_it_was_cut() {
    let (got, asked) = read(&[Reaction::Sends(30_000)]).await;
    assert!(got.unwrap() == bytes());
    assert_eq!(asked, [0, 30_000, 60_000, 90_000]);
    let (got, asked) = read(&[Reaction::Sends(1), Reaction::Sends(0), Reaction::Sends(LENGTH)]).await;
    assert!(got.unwrap() == bytes());
    assert_eq!(asked, [0, 1, 1]);
}

#[tokio::test]
async fn tries_without_a_byte_come_to_an_end() {
    let (got, asked) = read(&[Reaction::Sends(30_000), Reaction::Sends(20_000), Reaction::Sends(0)]).await;
    let error = got.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("3 (127.0.0.1:"), "{error}");
    assert_eq!(asked.len(), 2 + TRIES_WITHOUT_PROGRESS as usize);
    assert!(asked[2..].iter().all(|from| *from == 50_000), "{asked:?}");
}

#[tokio::test]
async fn a_refusal_is_an_answer() {
    let (got, asked) = read(&[Reaction::Sends(5), Reaction::Refuses]).await;
    assert_eq!(got.unwrap_err().kind(), ErrorKind::Stale);
    assert_eq!(asked, [0, 5]);
}

#[tokio::test]
async fn bytes_of_another_range_are_never_taken_for_the_rest() {
    let (got, _) = read(&[Reaction::Sends(5), Reaction::IgnoresRange]).await;
    let error = got.unwrap_err();
    assert!(error.to_string().contains("other bytes"), "{error}");
}
