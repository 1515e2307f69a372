//! Tests of a node that measures its link, and counts reads and writes for other nodes.
#![allow(clippy::unwrap_used)]

use bytes::Bytes;
use gristmill_transport::Response;
use gristmill_wire::action::{Opened, PathRequest, names};
use gristmill_wire::{GRANT_HEADER, NodeLoad};
use http::{Request, StatusCode};

use crate::NodeOptions;
use crate::test_node::{TestNode, with_node, with_options};

/// Bytes of the file.
const BYTES: usize = 64 << 20;

impl TestNode {
    fn load(&self) -> NodeLoad {
        self.shared.contention.load("")
    }

    async fn fetch(&self, at: &str) -> Response {
        self.http().send(Request::get(at).body(Bytes::new()).unwrap()).await.unwrap()
    }
}

async fn read(mut response: Response) -> usize {
    let mut bytes = 0;
    while let Some(chunk) = response.chunk().await.unwrap() {
        bytes += chunk.len();
    }
    bytes
}

#[test]
fn a_large_read_measures_the_link() {
    // Slower than any machine, so that the estimate is always the given speed.
    let speed = 1_000_000;
    with_options(
        |options| NodeOptions { link: Some(speed), ..options },
        async |test| {
            assert_eq!((test.load().link, test.load().link_measured), (speed as f64, false));
            assert_eq!(test.put("/files/large", vec![7; BYTES]).await.0, StatusCode::CREATED);
            assert_eq!(read(test.fetch("/files/large").await).await, BYTES);
            // Samples are taken twice per second.
            while !test.load().link_measured {
                tokio::task::yield_now().await;
            }
            assert_eq!(test.load().link, speed as f64, "and never faster than it was said to be");
            let metrics = test.fetch("/metrics").await.bytes(1 << 20).await.unwrap();
            let metrics = String::from_utf8(metrics.to_vec()).unwrap();
            assert!(metrics.contains("gristmill_link_measured 1.0"), "{metrics}");
            assert!(metrics.contains("gristmill_link_bytes_per_second 1000000.0"), "{metrics}");
        },
    );
}

#[test]
fn reads_are_counted_as_long_as_they_last() {
    with_node(async |test| {
        assert_eq!(test.put("/files/large", vec![7; BYTES]).await.0, StatusCode::CREATED);
        while test.load().normal > 0 {
            tokio::task::yield_now().await;
        }
        let path = PathRequest { path: "/large".into() };
        let opened: Opened = test.shared.peers.action(&test.address, names::OPEN, &path).await.unwrap();
        let object = Request::get(format!("/objects/{}", opened.info.file.object()));
        let object = object.header(GRANT_HEADER, opened.grant).body(Bytes::new()).unwrap();
        let mut begun = test.http().send(object).await.unwrap();
        // A part arrived, and the rest is more than the buffers of connections hold.
        let some = begun.chunk().await.unwrap().unwrap().len();
        assert_eq!(test.load().normal, 1);
        assert_eq!(some + read(begun).await, BYTES);
        while test.load().normal > 0 {
            tokio::task::yield_now().await;
        }
    });
}
