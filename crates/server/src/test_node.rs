//! An entry node in the process of a test.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_transport::HttpClient;
use http::{Request, StatusCode};

use crate::shared::Shared;
use crate::{ActivePriority, Node, NodeOptions};

/// Threads for what blocks.
pub(crate) const THREADS: usize = 4;

/// Time after which a test counts as hanging.
const HANGS: Duration = Duration::from_secs(300);

/// Elements of the file `/numbers`, f64.
pub(crate) const NUMBERS: u64 = 1000;

pub(crate) struct TestNode {
    pub shared: Arc<Shared>,
    pub address: String,
    node: Node,
    _dir: tempfile::TempDir,
}

/// Runs a test against a node with one file.
pub(crate) fn with_node(test: impl AsyncFnOnce(TestNode)) {
    with_share(1.0, test);
}

/// Runs a test against a node whose active work may use a share of the processors.
pub(crate) fn with_share(active_share: f64, test: impl AsyncFnOnce(TestNode)) {
    with_options(|options| NodeOptions { active_share, ..options }, test);
}

/// Runs a test against a node with other options.
pub(crate) fn with_options(
    change: impl FnOnce(NodeOptions) -> NodeOptions,
    test: impl AsyncFnOnce(TestNode),
) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(THREADS)
        .enable_all()
        .build()
        .unwrap();
    let all = async {
        let dir = tempfile::tempdir().unwrap();
        let options = NodeOptions::entry(dir.path(), "127.0.0.1:0".parse().unwrap());
        // Other tests run at the same time, and idle lanes would get only the processor time that they leave.
        let options = NodeOptions { active_priority: ActivePriority::Low, ..options };
        let node = Node::start(change(NodeOptions { lanes: Some(1), ..options })).await.unwrap();
        let (shared, address) = (node.shared().clone(), node.address().to_string());
        let started = TestNode { shared, address, node, _dir: dir };
        let numbers: Vec<u8> = (0..NUMBERS).flat_map(|n| (n as f64).to_le_bytes()).collect();
        assert_eq!(started.put("/files/numbers", numbers).await.0, StatusCode::CREATED);
        test(started).await;
    };
    runtime.block_on(async { tokio::time::timeout(HANGS, all).await }).unwrap();
}

impl TestNode {
    pub fn http(&self) -> HttpClient {
        self.shared.peers.dialer().http(self.node.address())
    }

    /// Sends a request. Returns the status and the body of the answer.
    pub async fn put(&self, at: &str, content: Vec<u8>) -> (StatusCode, String) {
        let request = Request::put(at).body(Bytes::from(content)).unwrap();
        let response = self.http().send(request).await.unwrap();
        let status = response.status();
        (status, String::from_utf8(response.bytes(10_000).await.unwrap().to_vec()).unwrap())
    }
}
